"""Templates from what others have made: a tar archive, a directory, an OCI image.

A ready-made filesystem image is never taken: what the host's kernel mounts has been packed here,
from files that went through :mod:`fourwalls.images.unpack`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from fourwalls.images.architecture import host_architecture
from fourwalls.images.build import pack
from fourwalls.images.manifest import Manifest, Settings, Source
from fourwalls.images.names import TemplateName
from fourwalls.images.oci_image import unpack_image
from fourwalls.images.oci_layout import Layout
from fourwalls.images.oci_source import to_layout
from fourwalls.images.policy import Limits, Notes
from fourwalls.images.progress import Progress, Report, silent
from fourwalls.images.streams import Measured, compression_of, decompressed
from fourwalls.images.tarstream import read_tar
from fourwalls.images.treestream import read_tree
from fourwalls.images.unpack import Unpacker
from fourwalls.images.workspace import workspace
from fourwalls.linux.places import Places
from fourwalls.model.errors import ImportRefusedError, InvalidArgumentError, TemplateError

_LIMITS = Limits()
_SETTINGS = Settings()

# Fills the unpacker; gets a private directory to work in and says what the template is.
_Fill = Callable[[Path, Unpacker, Notes], tuple[Settings, Source]]


def import_tar(
    places: Places,
    archive: Path,
    name: TemplateName,
    *,
    settings: Settings = _SETTINGS,
    limits: Limits = _LIMITS,
    report: Report = silent,
) -> Manifest:
    """A root filesystem in a tar archive, plain or compressed with gzip, xz or zstd.

    Raises :class:`~fourwalls.model.errors.ImportRefusedError` for what is unsafe or damaged.
    """

    def fill(_: Path, unpacker: Unpacker, notes: Notes) -> tuple[Settings, Source]:
        try:
            file = archive.open("rb")
        except OSError as error:
            raise InvalidArgumentError(f"{archive} cannot be read: {error.strerror}") from error
        with file:
            compression = compression_of(file.read(8))
            file.seek(0)
            with decompressed(file, compression) as stream:
                bounded = Measured(stream, limits.stream_bytes)
                empty = True
                for entry, content in read_tar(bounded, notes, end_required=True):
                    unpacker.apply(entry, content, whiteouts=False)
                    empty = False
        if empty:
            raise ImportRefusedError(f"{archive} holds no files")
        return settings, Source(kind="tar", reference=str(archive), notes=notes.lines)

    return _import(places, name, limits, report, fill)


def import_directory(
    places: Places,
    directory: Path,
    name: TemplateName,
    *,
    settings: Settings = _SETTINGS,
    limits: Limits = _LIMITS,
    report: Report = silent,
) -> Manifest:
    """A root filesystem in a directory of this host; other filesystems in it are left out."""

    def fill(_: Path, unpacker: Unpacker, notes: Notes) -> tuple[Settings, Source]:
        for entry, content in read_tree(directory, notes):
            unpacker.apply(entry, content, whiteouts=False)
        return settings, Source(kind="directory", reference=str(directory), notes=notes.lines)

    return _import(places, name, limits, report, fill)


def import_oci(
    places: Places,
    reference: str,
    name: TemplateName,
    *,
    insecure: bool = False,
    limits: Limits = _LIMITS,
    report: Report = silent,
) -> Manifest:
    """An OCI image: a layout directory or an archive (of a layout, or by ``docker save``), either
    with ``:tag`` if it holds several; or a registry reference, ``docker://…`` or plain, through
    skopeo. ``insecure`` allows registries without TLS.

    Environment, user, working directory, entrypoint and command become the template's settings.
    """

    def fill(work: Path, unpacker: Unpacker, notes: Notes) -> tuple[Settings, Source]:
        architecture = host_architecture()
        report(Progress("fetch", f"getting {reference}", 0.0))
        root, tag = to_layout(reference, work, architecture, insecure=insecure, limits=limits)
        return unpack_image(
            Layout(root),
            unpacker,
            reference=reference,
            tag=tag,
            architecture=architecture,
            limits=limits,
            notes=notes,
            report=report,
        )

    return _import(places, name, limits, report, fill)


def _import(
    places: Places, name: TemplateName, limits: Limits, report: Report, fill: _Fill
) -> Manifest:
    if os.geteuid() != 0:
        raise TemplateError("importing a template needs root", remedy="run the command with sudo")
    notes = Notes()
    with workspace(places) as work:
        tree = work / "tree"
        tree.mkdir()
        report(Progress("unpack", "unpacking", None))
        try:
            with Unpacker(tree, limits, notes) as unpacker:
                settings, source = fill(work, unpacker, notes)
                unpacker.finish()
        except OSError as error:
            raise TemplateError(
                f"unpacking failed: {error}",
                remedy="free some space in the state directory (FOURWALLS_STATE)"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else None,
            ) from error
        for note in notes.lines:
            report(Progress("note", note))
        return pack(
            places,
            tree,
            name=name,
            settings=settings,
            source=source,
            architecture=host_architecture(),
            report=report,
        )
