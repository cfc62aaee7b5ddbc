"""The files of a sandbox, for callers that wait."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Literal, overload

from fourwalls.sdk.asynchronous.files import AsyncFiles
from fourwalls.sdk.asynchronous.watch import AsyncWatchHandle
from fourwalls.sdk.paths import PathLike
from fourwalls.sdk.synchronous.blocking import Blocking, Facade
from fourwalls.sdk.values import FilesystemEvent


class WatchHandle(Facade[AsyncWatchHandle]):
    """A directory that is watched: iterate over the events, or ask for those that have come."""

    def __iter__(self) -> Iterator[FilesystemEvent]:
        events = self._inner.__aiter__()
        while True:
            try:
                yield self._runner.call(events.__anext__())
            except StopAsyncIteration:
                return

    get_new_events = Blocking(AsyncWatchHandle.take_new_events)
    stop = Blocking(AsyncWatchHandle.stop)


class Files(Facade[AsyncFiles]):
    """As :class:`AsyncFiles`. File objects and iterators to upload are read in another thread."""

    @overload
    def read(
        self,
        path: PathLike,
        format: Literal["text"] = "text",
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> str: ...

    @overload
    def read(
        self,
        path: PathLike,
        format: Literal["bytes"],
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> bytes: ...

    @overload
    def read(
        self,
        path: PathLike,
        format: Literal["stream"],
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> Iterator[bytes]: ...

    def read(
        self,
        path: PathLike,
        format: Literal["text", "bytes", "stream"] = "text",
        user: str | None = None,
        request_timeout: float | None = 0,
    ) -> str | bytes | Iterator[bytes]:
        """The content of a file; as :meth:`AsyncFiles.read`."""
        if format == "stream":
            opening = self._inner.read(path, "stream", user, request_timeout)
            return self._stream(self._runner.call(opening))
        if format == "bytes":
            return self._runner.call(self._inner.read(path, "bytes", user, request_timeout))
        return self._runner.call(self._inner.read(path, format, user, request_timeout))

    def _stream(self, pieces: AsyncGenerator[bytes, None]) -> Iterator[bytes]:
        try:
            while True:
                try:
                    yield self._runner.call(pieces.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._runner.drop(pieces)

    def watch_dir(
        self,
        path: PathLike,
        user: str | None = None,
        request_timeout: float | None = None,
        *,
        recursive: bool = False,
    ) -> WatchHandle:
        """Watch a directory: what changes after this returns is reported."""
        inner = self._inner.watch_dir(
            path, user=user, request_timeout=request_timeout, recursive=recursive
        )
        return WatchHandle(self._runner.call(inner), self._runner)

    write = Blocking(AsyncFiles.write)
    write_files = Blocking(AsyncFiles.write_files)
    list = Blocking(AsyncFiles.list)
    get_info = Blocking(AsyncFiles.get_info)
    exists = Blocking(AsyncFiles.exists)
    remove = Blocking(AsyncFiles.remove)
    rename = Blocking(AsyncFiles.rename)
    make_dir = Blocking(AsyncFiles.make_dir)
