"""A process of the sandbox, as seen by one stream that follows it."""

from __future__ import annotations

import asyncio
import contextlib
import signal as signals
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from fourwalls.guest.frame import Kind
from fourwalls.guest.inbox import Closed, Gap, Inbox, Output
from fourwalls.guest.link import Link
from fourwalls.guest.messages import (
    Credit,
    ExecAttach,
    ExecResize,
    ExecSignal,
    ExecStart,
    Exit,
    PtySize,
    Started,
    decode,
)
from fourwalls.guest.outbox import Outbox
from fourwalls.guest.streams import Abandoned, read_error, unexpected
from fourwalls.model.errors import FourwallsError, ProcessNotFoundError

STDOUT: Final = 1
STDERR: Final = 2
PTY: Final = 3
WINDOW: Final = 2 * 1024 * 1024
"""Bytes of output that may be under way or unread, for each stream."""


class ExecRequest(msgspec.Struct, kw_only=True, frozen=True):
    """What to run. ``timeout`` in seconds, 0 for none; ``pty`` is (columns, rows)."""

    argv: list[bytes]
    env: dict[str, bytes] = msgspec.field(default_factory=dict)
    cwd: bytes | None = None
    user: str | None = None
    stdin: bool = False
    pty: tuple[int, int] | None = None
    tag: str | None = None
    timeout: float = 0
    rlimits: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)


ProcessEvent = Started | Output | Gap | Closed | Exit


class _Unwanted(Abandoned):
    """A start nobody waits for any more: whoever gave up has no pid to end the process by."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if kind == Kind.STARTED:
            kill = ExecSignal(pid=decode(body, Started).pid, signal=signals.SIGKILL, tree=True)
            # Without a connection, or a stream to be had, its own timeout has to end it.
            with contextlib.suppress(FourwallsError):
                self._link.add(Abandoned(), Kind.EXEC_SIGNAL, kill)
        return super().receive(kind, channel, body)


class ProcessStream:
    """Follows one process: iterate over it for its events, the last of which is :class:`Exit`.

    A stream that is not read makes the process wait as soon as its output fills the window:
    read it, or :meth:`detach`.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._number = 0
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inbox = Inbox(WINDOW, frozenset({STDOUT, STDERR, PTY}), self._send_credit)
        self._outbox: Outbox
        self._pid = 0
        self._asked: tuple[int, int] | None = None
        self._offsets = (0, 0)
        self._announce: Started | None = None
        self._exit: Exit | None = None

    @classmethod
    async def start(cls, link: Link, request: ExecRequest) -> ProcessStream:
        """Start a process. :class:`CommandStartError` when it never ran."""
        size = request.pty
        message = ExecStart(
            argv=request.argv,
            env=request.env,
            cwd=request.cwd,
            user=request.user,
            stdin=request.stdin,
            pty=None if size is None else PtySize(cols=size[0], rows=size[1]),
            tag=request.tag,
            timeout_ms=round(request.timeout * 1000),
            credit=WINDOW,
            rlimits=request.rlimits,
        )
        return await cls(link)._open(Kind.EXEC_START, message)

    @classmethod
    async def attach(
        cls,
        link: Link,
        *,
        pid: int | None = None,
        tag: str | None = None,
        offsets: tuple[int, int] | None = None,
    ) -> ProcessStream:
        """Follow a process that was started before; ``offsets`` None means from now on."""
        message = ExecAttach(pid=pid, tag=tag, offsets=offsets, credit=WINDOW)
        stream = cls(link)
        stream._asked = offsets
        return await stream._open(Kind.EXEC_ATTACH, message)

    async def _open(self, kind: Kind, message: ExecStart | ExecAttach) -> ProcessStream:
        self._number = self._link.add(self, kind, message)
        self._outbox = Outbox(self._link.connection, self._number)
        try:
            await self._link.connection.drain()
            await self._started
        except BaseException:
            # A process that was started for nobody is ended; one that was only joined goes on.
            unwanted = _Unwanted(self._link) if kind == Kind.EXEC_START else None
            self._link.abandon(self._number, unwanted)
            raise
        return self

    # Frames.

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if self._pid:
            if kind == Kind.DATA:
                self._inbox.put(channel, body)
                return False
            if kind == Kind.EOF:
                self._inbox.close_channel(channel)
                return False
            if kind == Kind.CREDIT:
                self._outbox.grant(decode(body, Credit).bytes)
                return False
            if kind == Kind.EXIT:
                self._exit = decode(body, Exit)
                self._finish(None)
                return True
        elif kind == Kind.STARTED:
            self._begin(decode(body, Started))
            if not self._started.done():
                self._started.set_result(None)
            return False
        if kind == Kind.ERROR:
            self.fail(read_error(body, process=True))
            return True
        raise unexpected(kind)

    def _begin(self, started: Started) -> None:
        out, err = started.offsets
        self._inbox.begin({STDOUT: out, STDERR: err, PTY: out})
        self._offsets = self._asked or started.offsets
        # What the ring no longer holds of what was asked for is lost before the first byte comes.
        self._inbox.skip(STDOUT, self._offsets[0], out)
        self._inbox.skip(STDERR, self._offsets[1], err)
        self._pid, self._announce = started.pid, started

    def fail(self, error: FourwallsError) -> None:
        if not self._started.done():
            self._started.set_exception(error)
            self._started.exception()
        self._finish(error)

    def _finish(self, error: FourwallsError | None) -> None:
        self._inbox.end(error)
        self._outbox.end(error or ProcessNotFoundError(f"process {self.pid} has ended"))

    def _send_credit(self, count: int) -> None:
        self._link.send(Kind.CREDIT, self._number, Credit(bytes=count))

    # For the user.

    @property
    def pid(self) -> int:
        """The process's id inside the sandbox."""
        return self._pid

    @property
    def offsets(self) -> tuple[int, int]:
        """Where this stream begins, gaps included: stdout or terminal, and stderr."""
        return self._offsets

    async def next_event(self) -> ProcessEvent | None:
        """The next event; ``None`` after :class:`Exit`, or after :meth:`detach`."""
        if self._announce is not None:
            started, self._announce = self._announce, None
            return started
        item = await self._inbox.take()
        if item is None:
            ended, self._exit = self._exit, None
            return ended
        return item

    def __aiter__(self) -> AsyncIterator[ProcessEvent]:
        return self

    async def __anext__(self) -> ProcessEvent:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def send_stdin(self, data: bytes) -> None:
        """Write to the process's standard input or terminal, as fast as it reads."""
        await self._outbox.send(data)

    async def close_stdin(self) -> None:
        """Let the process see the end of its standard input."""
        await self._outbox.close()

    async def resize(self, cols: int, rows: int) -> None:
        """Change the size of the terminal."""
        message = ExecResize(pid=self.pid, cols=cols, rows=rows)
        await self._link.request(Kind.EXEC_RESIZE, message, process=True)

    def detach(self) -> None:
        """Stop following: the process goes on, what it writes is kept in the agent's ring."""
        self._link.abandon(self._number)
        self._inbox.discard()
        self._finish(None)
