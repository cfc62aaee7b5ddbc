"""Files of a sandbox onto this host. Everything the sandbox says is hostile.

Nothing is written outside the destination: every directory is opened relative to the one above it
without following symlinks, names with ``/`` or ``..`` never come through the listing's checks, and
no symlink, device or special permission bit of the sandbox is made on the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from fourwalls.guest.files import Files
from fourwalls.guest.messages import Entry
from fourwalls.host.copy_in import Copied
from fourwalls.model.errors import FileError, LimitError

# Listed a level at a time, so that one answer stays small; deeper trees are an attack.
_DEEPEST = 128
_MOST_FILES = 1_000_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class CopyOut:
    """One copy from ``files``; at most ``limit`` bytes (sparse files can claim any size)."""

    def __init__(self, files: Files, limit: int) -> None:
        self._files = files
        self._limit = limit
        self.done = Copied()

    async def copy(self, source: bytes, destination: Path) -> Copied:
        """Copy the file or directory at ``source`` to ``destination``, replacing files there.

        If ``destination`` is a directory, a file goes into it; a directory's content is merged
        into one of that name. Its parent has to exist.
        """
        entry = await self._files.stat(source)
        if entry.kind == "symlink":
            raise FileError(
                f"{_shown(source)} is a symlink in the sandbox and is not followed",
                remedy="name the file it points to",
            )
        if entry.kind not in ("file", "dir"):
            raise FileError(f"{_shown(source)} is neither a file nor a directory in the sandbox")
        if entry.kind == "file" and _is_directory(destination):
            destination = destination / os.fsdecode(source.rpartition(b"/")[2])
        name = os.fsencode(destination.name)
        if not name or name in (b".", b".."):
            parent, name = destination, b""
        else:
            parent = destination.parent
        with _told(destination), _opened(os.open(parent, _DIRECTORY & ~os.O_NOFOLLOW)) as fd:
            if entry.kind == "file":
                await self._file(entry, source, fd, name)
            elif name:
                await self._into(entry, source, fd, name, 0)
            else:
                await self._content(source, fd, 0)
        return self.done

    async def _into(
        self, entry: Entry, source: bytes, parent: int, name: bytes, depth: int
    ) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o777, dir_fd=parent)
        with _opened(os.open(name, _DIRECTORY, dir_fd=parent)) as fd:
            await self._content(source, fd, depth)

    async def _content(self, source: bytes, fd: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise LimitError(f"{_shown(source)} is more than {_DEEPEST} directories deep")
        for entry in await self._files.list(source, depth=1):
            inside = source.rstrip(b"/") + b"/" + entry.name
            if entry.kind == "dir":
                await self._into(entry, inside, fd, entry.name, depth + 1)
            elif entry.kind == "file":
                await self._file(entry, inside, fd, entry.name)
            else:
                self.done.left_out.append(f"{_shown(inside)}: {_shown(entry.kind.encode())}")

    async def _file(self, entry: Entry, source: bytes, parent: int, name: bytes) -> None:
        self.done.files += 1
        if self.done.files > _MOST_FILES:
            raise LimitError(f"more than {_MOST_FILES} files")
        self._check_size(entry.size)
        # The agent opens without following a symlink at the end; what is a file now may be
        # something else by then, but only ever something of the sandbox.
        with _opened(os.open(name, _FILE, entry.mode & 0o777, dir_fd=parent)) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileError(f"{_shown(name)} exists here and is not a file")
            os.ftruncate(fd, 0)
            stream = await self._files.read(source)
            try:
                async for piece in stream:
                    self._check_size(len(piece))
                    self.done.size += len(piece)
                    await asyncio.to_thread(_write_all, fd, piece)
            except BaseException:
                # Half a file is worse than none.
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=parent)
                raise
            finally:
                stream.close()

    def _check_size(self, more: int) -> None:
        if self.done.size + more > self._limit:
            raise LimitError(
                f"more than {self._limit} bytes: the sandbox's disk holds no more",
                remedy="sparse files count with their full size; copy less",
            )


def _is_directory(path: Path) -> bool:
    return path.is_dir()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@contextlib.contextmanager
def _opened(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _told(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write to {destination}: {error.strerror}") from error


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")[:200]
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
