"""The template store: images by digest, names that point to them.

::

    templates/<hex>/image.erofs      never changed once it is there
    templates/<hex>/manifest.json
    templates/names/<name>@<tag>     holds the hex digits
    templates/.lock                  held while any of these appears or goes

Nothing is ever seen half-made: a template is prepared elsewhere on the same filesystem and
renamed into place, and a name is one small file replaced by rename.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fourwalls.images.digest import digest_of_file
from fourwalls.images.manifest import Manifest, decode, encode, settings_uuid
from fourwalls.images.names import TemplateName, digest_hex
from fourwalls.images.superblock import image_uuid
from fourwalls.linux.flock import locked
from fourwalls.linux.places import Places
from fourwalls.model.errors import (
    FourwallsError,
    InvalidArgumentError,
    TemplateCorruptError,
    TemplateNotFoundError,
)

IMAGE = "image.erofs"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class StoredTemplate:
    """One template with the names that point to it; none: superseded by a newer build."""

    names: tuple[TemplateName, ...]
    manifest: Manifest


class TemplateStore:
    """The templates of one installation. Safe to use from many processes at once."""

    def __init__(self, places: Places) -> None:
        self._root = places.templates
        self._names = self._root / "names"

    def image(self, manifest: Manifest) -> Path:
        """Where the image file of ``manifest`` is."""
        return self._root / manifest.hex / IMAGE

    def list(self) -> Sequence[StoredTemplate]:
        """All readable templates, newest first. Unreadable ones are left out."""
        names: dict[str, list[TemplateName]] = {}
        for name, target in self._references().items():
            names.setdefault(target, []).append(name)
        found = []
        for directory in self._directories():
            try:
                manifest = self._load(directory.name)
            except FourwallsError:
                continue  # `get` says what is wrong with it
            known = tuple(sorted(names.get(directory.name, [])))
            found.append(StoredTemplate(known, manifest))
        return sorted(found, key=lambda stored: stored.manifest.created_at, reverse=True)

    def get(self, name_or_digest: str) -> Manifest:
        """Find a template by ``name``, ``name:tag`` or digest.

        Raises :class:`TemplateNotFoundError`, :class:`TemplateCorruptError` or, for what cannot
        be a name, :class:`InvalidArgumentError`. The image itself is verified when it is mounted.
        """
        wanted = digest_hex(name_or_digest)
        if wanted is None:
            wanted = self._target(TemplateName.parse(name_or_digest))
        return self._load(wanted)

    def add(self, prepared: Path, manifest: Manifest, name: TemplateName) -> Manifest:
        """Move the image ``prepared`` (on the store's filesystem) in, and point ``name`` to it.

        If the same image is here already, its manifest stays and is returned.
        """
        parcel = prepared.parent / f"parcel-{secrets.token_hex(4)}"
        parcel.mkdir(mode=0o755)
        prepared.chmod(0o444)
        prepared.rename(parcel / IMAGE)
        (parcel / MANIFEST).write_bytes(encode(manifest))
        (parcel / MANIFEST).chmod(0o444)
        for path in (parcel / IMAGE, parcel / MANIFEST, parcel):
            _sync(path)
        self._names.mkdir(mode=0o755, parents=True, exist_ok=True)
        with locked(self._root / ".lock"):
            target = self._root / manifest.hex
            if target.exists() and not self._is_sound(manifest.hex):
                target.rename(prepared.parent / f"broken-{secrets.token_hex(4)}")
            if not target.exists():
                parcel.rename(target)
            self._point(name, manifest.hex)
            _sync(self._root)
            return self._load(manifest.hex)

    def name(self, name: TemplateName, digest: str) -> None:
        """Let ``name`` point to the stored template ``digest``."""
        manifest = self.get(digest)
        with locked(self._root / ".lock"):
            self._point(name, manifest.hex)

    def remove(self, name_or_digest: str) -> Manifest | None:
        """Remove a name, and its template if no other name points there; or, by digest, the
        template with all its names. Returns the manifest if the template itself went.

        Sandboxes that run from it keep their mount and go on. Raises
        :class:`TemplateNotFoundError`.
        """
        if not self._root.is_dir():
            raise _not_found(name_or_digest, [])
        with locked(self._root / ".lock"):
            wanted = digest_hex(name_or_digest)
            if wanted is None:
                name = TemplateName.parse(name_or_digest)
                wanted = self._target(name)
                doomed = [name]
            else:
                doomed = [n for n, target in self._references().items() if target == wanted]
                if not (self._root / wanted).is_dir():
                    raise _not_found(name_or_digest, self._references())
            for name in doomed:
                (self._names / name.file_name).unlink()
            if wanted in self._references().values():
                return None
            return self._discard(wanted)

    def verify(self, manifest: Manifest) -> Path:
        """The image file, after comparing every byte of it with the manifest.

        Raises :class:`TemplateCorruptError`; takes about 1.3 s per GiB.
        """
        image = self.image(manifest)
        again = _remedy(manifest)
        try:
            status = image.lstat()
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise TemplateCorruptError(
                    f"{image} is not a file that only this user can write", remedy=again
                )
            if status.st_size != manifest.size_bytes:
                raise TemplateCorruptError(
                    f"the image of template {manifest.name} has {status.st_size} bytes,"
                    f" its manifest says {manifest.size_bytes}",
                    remedy=again,
                )
            found = digest_of_file(image)
            with image.open("rb") as file:
                identity = image_uuid(file)
        except OSError as error:
            raise TemplateCorruptError(
                f"the image of template {manifest.name} cannot be read: {error}", remedy=again
            ) from error
        if found != manifest.hex:
            raise TemplateCorruptError(
                f"the image of template {manifest.name} is damaged: its digest is {found},"
                f" its manifest says {manifest.hex}",
                remedy=again,
            )
        if identity != settings_uuid(manifest.settings, manifest.architecture):
            raise TemplateCorruptError(
                f"the manifest of template {manifest.name} was changed: its settings are not"
                " those the image was made with",
                remedy=again,
            )
        return image

    def _is_sound(self, wanted: str) -> bool:
        try:
            self.verify(self._load(wanted))
        except FourwallsError:
            return False
        return True

    def _load(self, wanted: str) -> Manifest:
        path = self._root / wanted / MANIFEST
        try:
            manifest = decode(path.read_bytes(), path)
        except FileNotFoundError:
            if (self._root / wanted).exists():
                raise TemplateCorruptError(
                    f"{path} is missing", remedy=f"fourwalls template rm {wanted}"
                ) from None
            raise _not_found(wanted, self._references()) from None
        if manifest.hex != wanted:
            raise TemplateCorruptError(
                f"{path} describes another template: {manifest.digest}",
                remedy=f"fourwalls template rm {wanted}",
            )
        return manifest

    def _target(self, name: TemplateName) -> str:
        try:
            text = (self._names / name.file_name).read_text(errors="replace").strip()
        except FileNotFoundError:
            raise _not_found(str(name), self._references()) from None
        wanted = digest_hex(text)
        if wanted is None:
            raise TemplateCorruptError(
                f"the name {name} does not point to a digest",
                remedy="build or import the template again",
            )
        return wanted

    def _references(self) -> dict[TemplateName, str]:
        found = {}
        if self._names.is_dir():
            for path in self._names.iterdir():
                try:
                    name = TemplateName.from_file_name(path.name)
                    found[name] = path.read_text(errors="replace").strip()
                except (InvalidArgumentError, FileNotFoundError):
                    continue  # being written or removed right now
        return found

    def _directories(self) -> Sequence[Path]:
        if not self._root.is_dir():
            return []
        return sorted(path for path in self._root.iterdir() if digest_hex(path.name) == path.name)

    def _point(self, name: TemplateName, wanted: str) -> None:
        fresh = self._names / f".{name.file_name}.{secrets.token_hex(4)}"
        fresh.write_text(f"{wanted}\n")
        _sync(fresh)
        fresh.rename(self._names / name.file_name)
        _sync(self._names)

    def _discard(self, wanted: str) -> Manifest | None:
        try:
            manifest = self._load(wanted)
        except FourwallsError:
            manifest = None
        if (self._root / wanted).exists():
            # One rename takes it out of sight; the manifest cannot outlive its image.
            gone = self._root / f".gone-{secrets.token_hex(4)}"
            (self._root / wanted).rename(gone)
            shutil.rmtree(gone)
        for left in self._root.glob(".gone-*"):
            shutil.rmtree(left)
        return manifest


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remedy(manifest: Manifest) -> str:
    if manifest.source.kind == "recipe":
        return f"fourwalls template build {manifest.source.reference}"
    return f"import it again: fourwalls template import {manifest.source.reference}"


def _not_found(wanted: str, known: Iterable[TemplateName]) -> FourwallsError:
    names = ", ".join(str(name) for name in sorted(known)) or "none"
    return TemplateNotFoundError(
        f"no template {wanted!r} is stored here (stored: {names})",
        remedy="fourwalls template build base, or fourwalls template import",
    )
