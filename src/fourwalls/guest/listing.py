"""Streams of many small answers: a directory's entries, a watch's events."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from fourwalls.guest.frame import Kind
from fourwalls.guest.link import REQUEST_TIMEOUT, Link
from fourwalls.guest.messages import Entries, Entry, Events, FileList, FileWatch, WatchEvent, decode
from fourwalls.guest.names import check_event, check_listed
from fourwalls.guest.streams import read_error, unexpected
from fourwalls.model.errors import FourwallsError, LimitError, SandboxError

MAX_ENTRIES: Final = 250_000
MAX_LISTING_BYTES: Final = 64 * 1024 * 1024
MAX_WAITING_EVENTS: Final = 65_536


class Listing:
    """Collects the entries of a directory, up to a limit: they come without flow control."""

    def __init__(self, directory: bytes, result: asyncio.Future[list[Entry]]) -> None:
        self._directory = directory
        self._entries: list[Entry] = []
        self._bytes = 0
        self.result = result

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if kind == Kind.ENTRIES:
            self._add(decode(body, Entries).entries, len(body))
            return False
        if kind == Kind.OK:
            if not self.result.done():
                self.result.set_result(self._entries)
            return True
        if kind == Kind.ERROR:
            self.fail(read_error(body, process=False))
            return True
        raise unexpected(kind)

    def _add(self, entries: list[Entry], size: int) -> None:
        if self.result.done():
            return
        for entry in entries:
            check_listed(entry, self._directory)
        self._bytes += size
        self._entries.extend(entries)
        if len(self._entries) > MAX_ENTRIES or self._bytes > MAX_LISTING_BYTES:
            self._entries = []
            self.fail(
                LimitError(
                    f"the listing is larger than {MAX_ENTRIES} entries or "
                    f"{MAX_LISTING_BYTES // 2**20} MiB",
                    remedy="list a smaller directory or with less depth",
                )
            )

    def fail(self, error: FourwallsError) -> None:
        if not self.result.done():
            self.result.set_exception(error)
            self.result.exception()


async def list_directory(
    link: Link, path: bytes, depth: int, timeout: float | None = REQUEST_TIMEOUT
) -> list[Entry]:
    """The entries below ``path``, depth first, names in byte order."""
    result: asyncio.Future[list[Entry]] = asyncio.get_running_loop().create_future()
    number = link.add(Listing(path, result), Kind.FILE_LIST, FileList(path=path, depth=depth))
    try:
        async with asyncio.timeout(timeout):
            await link.connection.drain()
            return await result
    except TimeoutError:
        raise SandboxError(
            f"the sandbox did not list the directory within {timeout:g} s",
            remedy="give a longer request_timeout, or less depth",
        ) from None
    finally:
        link.abandon(number)


class Watch:
    """Changes below a directory. Events nobody takes are dropped and reported as overflow."""

    def __init__(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        self._link = link
        self._number = 0
        self._ready: asyncio.Future[None] = loop.create_future()
        self._events: deque[WatchEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._over = False
        self._error: FourwallsError | None = None
        self.overflow = False

    @classmethod
    async def open(cls, link: Link, path: bytes, recursive: bool) -> Watch:
        """Begin to watch; what happens after this returns is reported."""
        watch = cls(link)
        watch._number = link.add(watch, Kind.FILE_WATCH, FileWatch(path=path, recursive=recursive))
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                await watch._ready
        except TimeoutError:
            watch.close()
            raise SandboxError("the sandbox did not begin to watch in time") from None
        except BaseException:
            watch.close()
            raise
        return watch

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if kind == Kind.EVENTS and self._ready.done():
            self._add(decode(body, Events))
            return False
        if kind == Kind.READY and not self._ready.done():
            self._ready.set_result(None)
            return False
        if kind == Kind.ERROR:
            self.fail(read_error(body, process=False))
            return True
        if kind == Kind.OK and self._ready.done():
            self._end(None)
            return True
        raise unexpected(kind)

    def fail(self, error: FourwallsError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()
        self._end(error)

    def _add(self, message: Events) -> None:
        self.overflow = self.overflow or message.overflow
        for event in message.events:
            check_event(event)
            if len(self._events) >= MAX_WAITING_EVENTS:
                self.overflow = True
                break
            self._events.append(event)
        self._wake()

    def _end(self, error: FourwallsError | None) -> None:
        if not self._over:
            self._over = True
            self._error = error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def pending(self) -> list[WatchEvent]:
        """The events that have come, without waiting."""
        events = list(self._events)
        self._events.clear()
        if not events and self._error is not None:
            raise self._error
        return events

    async def next_event(self) -> WatchEvent | None:
        """The next event, waiting for it; ``None`` when the watch is closed."""
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._over:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._events.popleft()

    def close(self) -> None:
        """Stop watching."""
        self._link.abandon(self._number)
        self._end(None)
