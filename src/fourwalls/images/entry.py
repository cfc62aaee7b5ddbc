"""One member of a file tree on its way into a template, whatever it is read from."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Protocol

from fourwalls.model.errors import ImportRefusedError

LONGEST_NAME = 255
LONGEST_PATH = 2048
# Deeper trees exist only to break those who walk them.
DEEPEST = 256


class Kind(enum.Enum):
    """What a member is."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"
    FIFO = "fifo"
    CHAR_DEVICE = "character device"
    BLOCK_DEVICE = "block device"


class Readable(Protocol):
    """The least that a source of bytes can do. Fewer bytes than asked for: the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Entry:
    """``path`` has no empty, ``.`` or ``..`` part; ``()`` is the root itself.

    ``target`` is the text of a symbolic link as it is; ``linked`` the path of a hard link's
    target. ``mtime`` in whole seconds.
    """

    path: tuple[str, ...]
    kind: Kind
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: int = 0
    size: int = 0
    target: str = ""
    linked: tuple[str, ...] = ()
    device: tuple[int, int] = (0, 0)
    xattrs: dict[str, bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return show(self.path)


def show(path: tuple[str, ...]) -> str:
    """A path for people: printable whatever it holds."""
    text = "/" + "/".join(path)
    return text if text.isprintable() else ascii(text)


def safe_path(text: str) -> tuple[str, ...]:
    """The parts of a path that stays inside the root.

    ``./`` in front, doubled and trailing slashes are harmless and dropped. Raises
    :class:`ImportRefusedError` for absolute paths, ``..``, NUL bytes and sizes beyond bounds.
    """
    shown = show((text[:200],))[1:]
    if text.startswith("/"):
        raise ImportRefusedError(f"absolute path {shown!r}: paths are relative to the root")
    if "\0" in text:
        raise ImportRefusedError(f"path {shown!r} contains a NUL byte")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ImportRefusedError(f"path {shown!r} contains '..': it could leave the root")
    if len(parts) > DEEPEST:
        raise ImportRefusedError(f"path {shown!r}… is deeper than {DEEPEST} directories")
    if len(_encoded(text)) > LONGEST_PATH:
        raise ImportRefusedError(f"path {shown!r}… is longer than {LONGEST_PATH} bytes")
    if any(len(_encoded(part)) > LONGEST_NAME for part in parts):
        raise ImportRefusedError(f"path {shown!r}… has a part longer than {LONGEST_NAME} bytes")
    return parts


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
