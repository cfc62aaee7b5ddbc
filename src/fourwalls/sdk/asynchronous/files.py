"""The files of a sandbox."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Final, Literal, overload

from fourwalls.guest.transfer import ReadStream
from fourwalls.model.errors import InvalidArgumentError, LimitError, PathNotFoundError
from fourwalls.sdk import checks
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.asynchronous.sources import Source, check_source, pieces
from fourwalls.sdk.asynchronous.watch import AsyncWatchHandle, EventCallback, ExitCallback
from fourwalls.sdk.paths import PathLike
from fourwalls.sdk.values import EntryInfo, WriteEntry, WriteInfo, entry_info, write_info

READ_LIMIT: Final = 1024 * 1024 * 1024
"""Bytes a file may have to be read as a whole."""


class AsyncFiles:
    """Paths are absolute, or relative to the user's home; ``~`` works, too.

    Names that are not UTF-8 come and go as surrogate escapes, as in :func:`os.fsdecode`. What is
    made belongs to ``user``, by default the template's. ``request_timeout`` is in seconds.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    @overload
    async def read(
        self,
        path: PathLike,
        format: Literal["text"] = "text",
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> str: ...

    @overload
    async def read(
        self,
        path: PathLike,
        format: Literal["bytes"],
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> bytes: ...

    @overload
    async def read(
        self,
        path: PathLike,
        format: Literal["stream"],
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> AsyncGenerator[bytes, None]: ...

    async def read(
        self,
        path: PathLike,
        format: Literal["text", "bytes", "stream"] = "text",
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> str | bytes | AsyncGenerator[bytes, None]:
        """The content of a file.

        ``text`` is decoded as UTF-8 with U+FFFD for what is none; ``bytes`` is exact; ``stream``
        is an iterator of pieces, for files of any size. ``request_timeout`` bounds the whole
        reading, of a stream the beginning. Raises :class:`PathNotFoundError`,
        :class:`PathIsADirectoryError`, and :class:`LimitError` for a whole file over 1 GiB.
        """
        if format not in ("text", "bytes", "stream"):
            raise InvalidArgumentError(f"format must be text, bytes or stream, not {format!r:.80}")
        owner = checks.user(user)
        async with self._shared.bounded(request_timeout):
            full = await self._shared.resolve(path, owner)
            stream = await self._shared.session.files.read(full)
            if format == "stream":
                return _closing(stream)
            content = await _whole(stream)
        return content.decode("utf-8", "replace") if format == "text" else bytes(content)

    async def write(
        self,
        path: PathLike,
        data: Source,
        user: str | None = None,
        request_timeout: float | None = 0,
        *,
        mode: int | None = None,
    ) -> WriteInfo:
        """Write a file, making its parent directories; when this returns it is there.

        ``data``: text, bytes, a file object, or an iterator (also asynchronous) of text or bytes;
        the last two stream, whatever their size. ``mode``: permission bits of a new file. When the
        source fails midway, the file keeps what was written until then.
        """
        check_source(data)
        owner = checks.user(user)
        bits = None if mode is None else checks.whole(mode, "mode", 0, 0o7777)
        async with self._shared.bounded(request_timeout):
            full = await self._shared.resolve(path, owner)
            stream = await self._shared.session.files.write(full, user=owner, mode=bits)
            try:
                async for piece in pieces(data):
                    await stream.write(piece)
                return write_info(await stream.finish())
            finally:
                stream.close()

    async def write_files(
        self,
        files: Iterable[WriteEntry | Mapping[str, object]],
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> list[WriteInfo]:
        """Write several files: each a :class:`WriteEntry` or a map with ``path`` and ``data``.

        ``request_timeout`` bounds each.
        """
        entries = []
        for file in files:
            if isinstance(file, Mapping):
                if "path" not in file or "data" not in file:
                    raise InvalidArgumentError("each file needs a path and data")
                file = WriteEntry(file["path"], file["data"])  # type: ignore[arg-type]
            check_source(file.data)
            entries.append(file)
        return [
            await self.write(file.path, file.data, user, request_timeout)  # type: ignore[arg-type]
            for file in entries
        ]

    async def list(
        self,
        path: PathLike,
        depth: int = 1,
        user: str | None = None,
        request_timeout: float | None = None,
    ) -> list[EntryInfo]:
        """What is in a directory, ``depth`` levels deep, each directory before its content."""
        levels = checks.whole(depth, "depth", 1, 2**32 - 1)
        seconds = checks.request_timeout(request_timeout)
        full = await self._shared.resolve(path, checks.user(user))
        entries = await self._shared.session.files.list(full, levels, timeout=seconds)
        return [entry_info(entry) for entry in entries]

    async def get_info(
        self, path: PathLike, user: str | None = None, request_timeout: float | None = None
    ) -> EntryInfo:
        """What is at a path, without following a symlink. Raises :class:`PathNotFoundError`."""
        seconds = checks.request_timeout(request_timeout)
        full = await self._shared.resolve(path, checks.user(user))
        return entry_info(await self._shared.session.files.stat(full, timeout=seconds))

    async def exists(
        self, path: PathLike, user: str | None = None, request_timeout: float | None = None
    ) -> bool:
        """Whether there is anything at a path."""
        try:
            await self.get_info(path, user, request_timeout)
        except PathNotFoundError:
            return False
        return True

    async def remove(
        self, path: PathLike, user: str | None = None, request_timeout: float | None = 0
    ) -> None:
        """Remove a file, or a directory with all that is in it. A missing path is no error."""
        seconds = checks.request_timeout(request_timeout)
        full = await self._shared.resolve(path, checks.user(user))
        await self._shared.session.files.remove(full, timeout=seconds)

    async def rename(
        self,
        old_path: PathLike,
        new_path: PathLike,
        user: str | None = None,
        request_timeout: float | None = None,
    ) -> EntryInfo:
        """Move a file or directory, making the parents of the new path."""
        owner = checks.user(user)
        seconds = checks.request_timeout(request_timeout)
        old = await self._shared.resolve(old_path, owner, "old_path")
        new = await self._shared.resolve(new_path, owner, "new_path")
        entry = await self._shared.session.files.move(old, new, user=owner, timeout=seconds)
        return entry_info(entry)

    async def make_dir(
        self, path: PathLike, user: str | None = None, request_timeout: float | None = None
    ) -> bool:
        """Make a directory and its parents; false when it exists already."""
        owner = checks.user(user)
        seconds = checks.request_timeout(request_timeout)
        full = await self._shared.resolve(path, owner)
        return (await self._shared.session.files.mkdir(full, user=owner, timeout=seconds)).created

    async def watch_dir(
        self,
        path: PathLike,
        on_event: EventCallback | None = None,
        on_exit: ExitCallback | None = None,
        user: str | None = None,
        request_timeout: float | None = None,
        *,
        recursive: bool = False,
    ) -> AsyncWatchHandle:
        """Watch a directory: what changes after this returns is reported."""
        owner = checks.user(user)
        async with self._shared.bounded(request_timeout):
            full = await self._shared.resolve(path, owner)
            watch = await self._shared.session.files.watch(full, recursive=bool(recursive))
        return AsyncWatchHandle(self._shared, watch, on_event, on_exit)


async def _whole(stream: ReadStream) -> bytearray:
    """All of a file that is not too large for that."""
    content = bytearray()
    try:
        async for piece in stream:
            content += piece
            if len(content) > READ_LIMIT:
                raise LimitError(
                    f"the file has more than {READ_LIMIT} bytes",
                    remedy='read it with format="stream"',
                )
    finally:
        stream.close()
    return content


async def _closing(stream: ReadStream) -> AsyncGenerator[bytes, None]:
    """The stream's pieces; the transfer is given up when the iterator is closed early."""
    try:
        async for piece in stream:
            yield piece
    finally:
        stream.close()
