"""The file requests. Paths are absolute bytes; see :mod:`fourwalls.guest.transfer` for content."""

from __future__ import annotations

from fourwalls.guest.frame import Kind
from fourwalls.guest.link import REQUEST_TIMEOUT, Link
from fourwalls.guest.listing import Watch, list_directory
from fourwalls.guest.messages import (
    Entry,
    FileChange,
    FileMkdir,
    FileMove,
    FileRemove,
    FileStat,
    Message,
    MkdirResult,
    RemoveResult,
)
from fourwalls.guest.names import check_single
from fourwalls.guest.transfer import ReadStream, WriteStream


class Files:
    """The files of one sandbox. Everything runs as its root; ``user`` owns what is made."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def _entry(self, kind: Kind, message: Message, timeout: float | None) -> Entry:
        return await self._link.fetch(kind, message, Entry, check=check_single, timeout=timeout)

    async def stat(self, path: bytes, *, timeout: float | None = REQUEST_TIMEOUT) -> Entry:
        """What is at ``path``, not following a symlink."""
        return await self._entry(Kind.FILE_STAT, FileStat(path=path), timeout)

    async def list(
        self, path: bytes, depth: int = 1, *, timeout: float | None = REQUEST_TIMEOUT
    ) -> list[Entry]:
        """What is below the directory, ``depth`` levels deep."""
        return await list_directory(self._link, path, depth, timeout)

    async def read(self, path: bytes, *, offset: int = 0, length: int | None = None) -> ReadStream:
        """Begin to read a file."""
        return await ReadStream.open(self._link, path, offset, length)

    async def write(
        self,
        path: bytes,
        *,
        user: str | None = None,
        mode: int | None = None,
        append: bool = False,
    ) -> WriteStream:
        """Begin to write a file, which is emptied first unless ``append``."""
        return await WriteStream.open(self._link, path, user=user, mode=mode, append=append)

    async def mkdir(
        self,
        path: bytes,
        *,
        user: str | None = None,
        mode: int | None = None,
        timeout: float | None = REQUEST_TIMEOUT,
    ) -> MkdirResult:
        """Make a directory and its parents."""
        message = FileMkdir(path=path, user=user, mode=mode)
        return await self._link.fetch(Kind.FILE_MKDIR, message, MkdirResult, timeout=timeout)

    async def move(
        self,
        source: bytes,
        destination: bytes,
        *,
        user: str | None = None,
        timeout: float | None = REQUEST_TIMEOUT,
    ) -> Entry:
        """Rename, making the parents of the destination."""
        message = FileMove(source=source, destination=destination, user=user)
        return await self._entry(Kind.FILE_MOVE, message, timeout)

    async def remove(self, path: bytes, *, timeout: float | None = None) -> bool:
        """Remove a file or a whole tree; false when there was none."""
        message = FileRemove(path=path)
        answer = await self._link.fetch(Kind.FILE_REMOVE, message, RemoveResult, timeout=timeout)
        return answer.existed

    async def change(
        self,
        path: bytes,
        *,
        mode: int | None = None,
        user: str | None = None,
        timeout: float | None = REQUEST_TIMEOUT,
    ) -> Entry:
        """Change permission bits or owner."""
        message = FileChange(path=path, mode=mode, user=user)
        return await self._entry(Kind.FILE_CHANGE, message, timeout)

    async def watch(self, path: bytes, *, recursive: bool = False) -> Watch:
        """Begin to watch a directory."""
        return await Watch.open(self._link, path, recursive)
