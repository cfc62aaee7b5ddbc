"""From what a user names (a path or a registry reference) to a layout directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO

from fourwalls.images.entry import Kind, Readable
from fourwalls.images.policy import Limits, Notes
from fourwalls.images.skopeo import copy_to_layout, registry_source
from fourwalls.images.streams import Measured, compression_of, decompressed
from fourwalls.images.tarstream import read_tar
from fourwalls.model.errors import InvalidArgumentError

_BLOB = re.compile(r"blobs/(sha256|sha512)/[0-9a-f]{64,128}")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/:@-]{0,255}")


def to_layout(
    reference: str, work: Path, architecture: str, *, insecure: bool, limits: Limits
) -> tuple[Path, str]:
    """The layout directory and the tag to choose in it, copied below ``work`` where needed."""
    layout = work / "layout"
    path, tag = split_local(reference)
    if path is None:
        source = registry_source(reference)
        if reference.startswith(("/", ".")):
            raise InvalidArgumentError(f"{reference} does not exist")
    elif path.is_dir():
        return path, tag
    elif _unpack_archive(path, layout, limits):
        return layout, tag
    else:
        source = f"docker-archive:{path}" + (f":{tag}" if tag else "")
    copy_to_layout(
        source,
        layout,
        architecture=architecture,
        insecure=insecure,
        largest_file=limits.file_bytes,
    )
    return layout, ""


def split_local(reference: str) -> tuple[Path | None, str]:
    """``path`` or ``path:tag`` if that path exists here, else None."""
    if reference.startswith("docker://"):
        return None, ""
    plain = Path(reference)
    if plain.exists():
        return plain, ""
    name, colon, tag = reference.partition(":")
    if colon and Path(name).exists() and _TAG.fullmatch(tag):
        return Path(name), tag
    return None, ""


def _unpack_archive(path: Path, layout: Path, limits: Limits) -> bool:
    """Unpack an archived layout; False if the archive is of ``docker save``'s older kind."""
    with path.open("rb") as file:
        compression = compression_of(file.read(8))
        file.seek(0)
        with decompressed(file, compression) as stream:
            bounded = Measured(stream, limits.stream_bytes)
            for entry, content in read_tar(bounded, Notes(), end_required=True):
                name = "/".join(entry.path)
                if entry.kind is Kind.FILE and (
                    name in ("oci-layout", "index.json") or _BLOB.fullmatch(name)
                ):
                    target = layout / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as out:
                        _copy(content, out)
    return (layout / "index.json").exists()


def _copy(content: Readable, out: IO[bytes]) -> None:
    while data := content.read(1 << 20):
        out.write(data)
