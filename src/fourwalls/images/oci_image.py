"""An OCI image's layers and configuration, turned into a tree, settings and a source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fourwalls.images.manifest import Settings, Source
from fourwalls.images.oci_layout import (
    LAYER_TYPES,
    ContainerConfig,
    Descriptor,
    Layout,
    split_digest,
)
from fourwalls.images.policy import Limits, Notes
from fourwalls.images.progress import Progress, Report
from fourwalls.images.streams import Measured, decompressed
from fourwalls.images.tarstream import read_tar
from fourwalls.images.unpack import Unpacker
from fourwalls.model.errors import ImportRefusedError


def unpack_image(
    layout: Layout,
    unpacker: Unpacker,
    *,
    reference: str,
    tag: str,
    architecture: str,
    limits: Limits,
    notes: Notes,
    report: Report,
) -> tuple[Settings, Source]:
    """Unpack all layers of the image for ``architecture``; what it says about itself."""
    descriptor, manifest = layout.image(architecture, tag)
    config = layout.config(manifest)
    if (config.os, config.architecture) != ("linux", architecture):
        raise ImportRefusedError(
            f"the image is made for {config.os}/{config.architecture}, this host is"
            f" linux/{architecture}"
        )
    count = len(manifest.layers)
    if count > limits.layers:
        raise ImportRefusedError(f"the image has {count} layers; {limits.layers} are allowed")
    left = limits.stream_bytes
    for number, layer in enumerate(manifest.layers):
        where = f"layer {number + 1} of {count}"
        report(Progress("unpack", where, 0.1 + 0.8 * number / count))
        with _naming(where):
            diff_id = config.rootfs.diff_ids[number]
            left -= _unpack_layer(layout, unpacker, layer, diff_id, left, notes)
    source = Source(
        kind="oci",
        reference=reference,
        manifest_digest=descriptor.digest,
        layers=[layer.digest for layer in manifest.layers],
        notes=notes.lines,
    )
    return settings_from(config.config or ContainerConfig(), notes), source


def settings_from(config: ContainerConfig, notes: Notes) -> Settings:
    """Environment, user, working directory, and entrypoint with command as start command."""
    env = {}
    for line in config.env or []:
        key, equals, value = line.partition("=")
        if key and equals and "\0" not in line:
            env[key] = value
        else:
            notes.add(f"the environment entry {line[:80]!a} was left out")
    return Settings(
        env=env,
        user=config.user or "root",
        workdir=config.working_dir or "",
        start_command=[*(config.entrypoint or []), *(config.cmd or [])],
    )


def _unpack_layer(
    layout: Layout,
    unpacker: Unpacker,
    layer: Descriptor,
    diff_id: str,
    limit: int,
    notes: Notes,
) -> int:
    compression = LAYER_TYPES.get(layer.media_type)
    if compression is None:
        raise ImportRefusedError(
            f"the media type {layer.media_type[:100]!a} is not supported; supported are"
            f" {', '.join(sorted(LAYER_TYPES))}"
        )
    algorithm, wanted = split_digest(diff_id)
    unpacker.begin_layer()
    with layout.blob(layer) as file, decompressed(file, compression) as stream:
        measured = Measured(stream, limit, algorithm)
        # Digests vouch for the archive's completeness, so that its end mark may be missing.
        for entry, content in read_tar(measured, notes, end_required=False):
            unpacker.apply(entry, content, whiteouts=True)
    if measured.hex != wanted:
        raise ImportRefusedError(
            f"the content has the digest {algorithm}:{measured.hex}, but the image's"
            f" configuration says {diff_id}"
        )
    return measured.count


@contextmanager
def _naming(where: str) -> Iterator[None]:
    try:
        yield
    except ImportRefusedError as error:
        raise ImportRefusedError(f"{where}: {error.message}", remedy=error.remedy) from error
