"""Reading a directory of the host as a stream of entries. Links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fourwalls.images.entry import DEEPEST, Entry, Kind, Readable, show
from fourwalls.images.policy import Notes
from fourwalls.model.errors import ImportRefusedError, InvalidArgumentError

_KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.DIRECTORY,
    stat.S_IFLNK: Kind.SYMLINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFCHR: Kind.CHAR_DEVICE,
    stat.S_IFBLK: Kind.BLOCK_DEVICE,
}
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class _File:
    """The content of a file, which must have the size that was seen."""

    def __init__(self, fd: int, size: int, path: tuple[str, ...]) -> None:
        self._fd = fd
        self._left = size
        self._path = path

    def read(self, size: int, /) -> bytes:
        data = os.read(self._fd, min(size, self._left))
        self._left -= len(data)
        if size and self._left and not data:
            raise ImportRefusedError(f"{show(self._path)} became shorter while it was read")
        return data


class _Empty:
    def read(self, _: int, /) -> bytes:
        return b""


def read_tree(root: Path, notes: Notes) -> Iterator[tuple[Entry, Readable]]:
    """Every member of ``root``, directories before what they hold, in the order of names.

    Other filesystems mounted below and sockets are left out with a note.
    """
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidArgumentError(f"{root} cannot be read as a directory: {error}") from error
    try:
        device = os.fstat(fd).st_dev
        seen: dict[int, tuple[str, ...]] = {}
        yield _entry((), os.fstat(fd), _xattrs(fd)), _Empty()
        yield from _below(fd, (), device, seen, notes)
    finally:
        os.close(fd)


def _below(
    directory: int,
    path: tuple[str, ...],
    device: int,
    seen: dict[int, tuple[str, ...]],
    notes: Notes,
) -> Iterator[tuple[Entry, Readable]]:
    if len(path) >= DEEPEST:
        raise ImportRefusedError(f"{show(path)} is deeper than {DEEPEST} directories")
    for name in sorted(os.listdir(directory)):
        here = (*path, name)
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFSOCK:
            notes.add("sockets were left out")
        elif kind != stat.S_IFDIR and status.st_nlink > 1 and status.st_ino in seen:
            yield Entry(here, Kind.HARDLINK, linked=seen[status.st_ino]), _Empty()
        elif kind in (stat.S_IFREG, stat.S_IFDIR):
            fd = os.open(name, _OPEN, dir_fd=directory)
            try:
                status = os.fstat(fd)
                yield (
                    _entry(here, status, _xattrs(fd)),
                    _File(fd, status.st_size, here) if kind == stat.S_IFREG else _Empty(),
                )
                if status.st_dev != device:
                    notes.add(f"{show(here)} is another filesystem; its content was left out")
                elif kind == stat.S_IFDIR:
                    yield from _below(fd, here, device, seen, notes)
            finally:
                os.close(fd)
            if kind == stat.S_IFREG:
                seen[status.st_ino] = here
        else:
            target = os.readlink(name, dir_fd=directory) if kind == stat.S_IFLNK else ""
            yield _entry(here, status, {}, target), _Empty()
            seen[status.st_ino] = here


def _entry(
    path: tuple[str, ...], status: os.stat_result, xattrs: dict[str, bytes], target: str = ""
) -> Entry:
    kind = _KINDS[stat.S_IFMT(status.st_mode)]
    return Entry(
        path=path,
        kind=kind,
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime=max(int(status.st_mtime), 0),
        size=status.st_size if kind is Kind.FILE else 0,
        target=target,
        device=(os.major(status.st_rdev), os.minor(status.st_rdev)),
        xattrs=xattrs,
    )


def _xattrs(fd: int) -> dict[str, bytes]:
    found = {}
    with suppress(OSError):  # a filesystem without them has none
        for name in os.listxattr(fd):
            found[name] = os.getxattr(fd, name)
    return found
