"""Payload streams that are not processes: reading a file, writing one, a byte tunnel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from fourwalls.guest.frame import Kind
from fourwalls.guest.inbox import Gap, Inbox, Output
from fourwalls.guest.link import Link
from fourwalls.guest.messages import (
    Credit,
    Entry,
    FileRead,
    FileWrite,
    Message,
    StartedRead,
    TunnelDial,
    decode,
)
from fourwalls.guest.names import check_single
from fourwalls.guest.outbox import Outbox
from fourwalls.guest.streams import read_error, unexpected
from fourwalls.model.errors import AgentProtocolError, FileError, FourwallsError, SandboxError

WINDOW: Final = 4 * 1024 * 1024
"""Bytes of one transfer that may be under way or unread."""

OPEN_TIMEOUT: Final = 60.0
"""Seconds until a transfer must have begun."""

_MAIN: Final = frozenset({0})


class _Transfer:
    """What the three have in common: a beginning, payload on channel 0, and an end."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._number = 0
        self._begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._inbox = Inbox(WINDOW, _MAIN, self._send_credit)
        self._outbox: Outbox

    async def _open(self, kind: Kind, message: Message) -> None:
        self._number = self._link.add(self, kind, message)
        self._outbox = Outbox(self._link.connection, self._number)
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                await self._link.connection.drain()
                await self._begun
        except TimeoutError:
            self.close()
            raise SandboxError(
                f"the sandbox did not answer {kind.name} within {OPEN_TIMEOUT:g} s"
            ) from None
        except BaseException:
            self.close()
            raise

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        raise unexpected(kind)

    def fail(self, error: FourwallsError) -> None:
        if not self._begun.done():
            self._begun.set_exception(error)
            self._begun.exception()
        self._inbox.end(error)
        self._outbox.end(error)

    def _begin(self, kind: int, size: int) -> None:
        if self._begun.done() and not self._begun.cancelled():
            raise unexpected(kind)
        if not self._begun.done():
            self._begun.set_result(size)

    def _error(self, body: memoryview) -> bool:
        self.fail(read_error(body, process=False))
        return True

    def _send_credit(self, count: int) -> None:
        self._link.send(Kind.CREDIT, self._number, Credit(bytes=count))

    def close(self) -> None:
        """Give up the transfer. Nothing happens when it is complete."""
        self._link.abandon(self._number)
        self._inbox.discard()
        self._inbox.end()
        self._outbox.end(SandboxError("the transfer was closed"))


class ReadStream(_Transfer):
    """The content of a file: iterate over it for its pieces. ``size`` is what stat says."""

    size: int = 0

    @classmethod
    async def open(
        cls, link: Link, path: bytes, offset: int = 0, length: int | None = None
    ) -> ReadStream:
        """Begin to read ``length`` bytes (None: to the end) from ``offset``."""
        stream = cls(link)
        await stream._open(
            Kind.FILE_READ, FileRead(path=path, offset=offset, length=length, credit=WINDOW)
        )
        stream.size = stream._begun.result()
        return stream

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if kind == Kind.DATA and self._begun.done():
            self._inbox.put(channel, body)
            return False
        if kind == Kind.STARTED_READ:
            self._begin(kind, decode(body, StartedRead).size)
            return False
        if kind == Kind.OK and self._begun.done():
            self._inbox.end()
            return True
        if kind == Kind.ERROR:
            return self._error(body)
        raise unexpected(kind)

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        item = await self._inbox.take()
        if isinstance(item, Gap):
            error = AgentProtocolError("the agent left out part of a file")
            self._link.connection.abort(error)
            raise error
        return item.data if isinstance(item, Output) else b""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self.read()
        if not piece:
            raise StopAsyncIteration
        return piece


class WriteStream(_Transfer):
    """A file being written: :meth:`write` as often as needed, then :meth:`finish`."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._result: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(
        cls,
        link: Link,
        path: bytes,
        *,
        user: str | None = None,
        mode: int | None = None,
        append: bool = False,
    ) -> WriteStream:
        """Open the file for writing, making its parent directories."""
        stream = cls(link)
        message = FileWrite(path=path, user=user, mode=mode, append=append)
        await stream._open(Kind.FILE_WRITE, message)
        return stream

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if kind == Kind.CREDIT and self._begun.done():
            self._outbox.grant(decode(body, Credit).bytes)
            return False
        if kind == Kind.READY:
            self._begin(kind, 0)
            return False
        if kind == Kind.RESULT and self._begun.done():
            if not self._result.done():
                entry = decode(body, Entry)
                check_single(entry)
                self._result.set_result(entry)
            self._outbox.end(FileError("the sandbox ended the upload early"))
            return True
        if kind == Kind.ERROR:
            return self._error(body)
        raise unexpected(kind)

    def fail(self, error: FourwallsError) -> None:
        super().fail(error)
        if not self._result.done():
            self._result.set_exception(error)
            self._result.exception()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a piece, as fast as the sandbox takes it."""
        await self._outbox.send(data)

    async def finish(self) -> Entry:
        """Everything is sent: wait until it is written."""
        await self._outbox.close()
        return await self._result


class Tunnel(_Transfer):
    """A connection to a port inside the sandbox."""

    _read_all = False

    @classmethod
    async def dial(cls, link: Link, port: int) -> Tunnel:
        """Connect; :class:`NotFoundError` when nothing listens there."""
        stream = cls(link)
        await stream._open(Kind.TUNNEL_DIAL, TunnelDial(port=port, credit=WINDOW))
        return stream

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if self._begun.done():
            if kind == Kind.DATA:
                self._inbox.put(channel, body)
                return False
            if kind == Kind.EOF:
                self._inbox.close_channel(channel)
                return False
            if kind == Kind.CREDIT:
                self._outbox.grant(decode(body, Credit).bytes)
                return False
            if kind == Kind.OK:
                self._inbox.end()
                self._outbox.end(SandboxError("the connection is closed"))
                return True
        elif kind == Kind.READY:
            self._begin(kind, 0)
            return False
        if kind == Kind.ERROR:
            return self._error(body)
        raise unexpected(kind)

    async def read(self) -> bytes:
        """The next bytes; empty when the other side has closed its direction, and from then on."""
        if self._read_all:
            return b""
        item = await self._inbox.take()
        if isinstance(item, Gap):
            error = AgentProtocolError("the agent left out part of a tunnel")
            self._link.connection.abort(error)
            raise error
        if isinstance(item, Output):
            return item.data
        self._read_all = True
        return b""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes, as fast as the other side takes them."""
        await self._outbox.send(data)

    async def write_eof(self) -> None:
        """Close this direction; the other stays open."""
        await self._outbox.close()
