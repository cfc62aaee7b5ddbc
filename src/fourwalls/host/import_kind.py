"""What kind of thing a user wants to import, told by looking at it."""

from __future__ import annotations

import enum
import re
from pathlib import Path

from fourwalls.images.oci_source import split_local
from fourwalls.images.policy import Limits, Notes
from fourwalls.images.streams import Measured, compression_of, decompressed
from fourwalls.images.tarstream import read_tar
from fourwalls.model.errors import InvalidArgumentError

# How far to look into an archive: layouts and `docker save` show themselves at once.
_ENTRIES = 16
_OF_AN_IMAGE = re.compile(
    r"(?:oci-layout|index\.json|manifest\.json|repositories|blobs(?:/.*)?"
    r"|[0-9a-f]{64}(?:/.*|\.json|\.tar)?)"
)


class ImportKind(enum.Enum):
    """Which import takes it."""

    OCI = "oci"
    TAR = "tar"
    DIRECTORY = "directory"


def kind_of(reference: str) -> ImportKind:
    """The kind of ``reference``. What is no path of this host is a registry's image."""
    path, _ = split_local(reference)
    if path is None:
        if reference.startswith(("/", ".", "~")):
            raise InvalidArgumentError(f"{reference} does not exist")
        return ImportKind.OCI
    if path.is_dir():
        is_layout = (path / "oci-layout").is_file()
        return ImportKind.OCI if is_layout else ImportKind.DIRECTORY
    return ImportKind.OCI if _holds_image(path) else ImportKind.TAR


def _holds_image(archive: Path) -> bool:
    try:
        file = archive.open("rb")
    except OSError as error:
        raise InvalidArgumentError(f"{archive} cannot be read: {error.strerror}") from error
    with file:
        compression = compression_of(file.read(8))
        file.seek(0)
        with decompressed(file, compression) as stream:
            entries = read_tar(Measured(stream, Limits().stream_bytes), Notes(), end_required=True)
            for _, (entry, _) in zip(range(_ENTRIES), entries, strict=False):
                name = "/".join(entry.path)
                if name and not _OF_AN_IMAGE.fullmatch(name):
                    return False
            return True
