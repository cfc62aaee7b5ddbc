"""A command that runs: its output as it comes, its end, and the ways to act on it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal as signals
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from fourwalls.guest.inbox import Gap
from fourwalls.guest.inbox import Output as Piece
from fourwalls.guest.messages import Exit
from fourwalls.guest.process import STDERR, STDOUT, ProcessStream
from fourwalls.model.errors import (
    CommandError,
    CommandTimeoutError,
    FourwallsError,
    InvalidArgumentError,
    ProcessNotFoundError,
)
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.checks import payload
from fourwalls.sdk.outcome import LimitWatch, check_result, make_result, timeout_error
from fourwalls.sdk.output import Chunk, Decoder, Output
from fourwalls.sdk.values import CommandResult

TextCallback = Callable[[str], Awaitable[None] | None]
BytesCallback = Callable[[bytes], Awaitable[None] | None]

GRACE: Final = 10.0
"""Seconds after a command's timeout at which the host ends it, if the sandbox did not."""

_FOLLOW_AHEAD: Final = 1024 * 1024


@dataclass(frozen=True)
class Callbacks:
    """Called with each piece of output, in order; the next piece waits for them."""

    on_stdout: TextCallback | None = None
    on_stderr: TextCallback | None = None
    on_pty: BytesCallback | None = None

    def __bool__(self) -> bool:
        return bool(self.on_stdout or self.on_stderr or self.on_pty)

    async def call(self, chunk: Chunk) -> None:
        """Hand out one piece."""
        stdout, stderr, pty = chunk
        answer: Awaitable[None] | None = None
        if stdout is not None and self.on_stdout is not None:
            answer = self.on_stdout(stdout)
        elif stderr is not None and self.on_stderr is not None:
            answer = self.on_stderr(stderr)
        elif pty is not None and self.on_pty is not None:
            answer = self.on_pty(pty)
        if inspect.isawaitable(answer):
            await answer


class AsyncCommandHandle:
    """A running command. Its output is read all the time, whether anybody waits or not.

    ``async for stdout, stderr, pty in handle`` yields the pieces as they come, from the first
    one; :meth:`wait` gives the result. Disconnecting, or losing the handle, ends nothing.
    """

    def __init__(
        self,
        shared: Shared,
        stream: ProcessStream,
        *,
        limit: int,
        timeout: float = 0.0,
        callbacks: Callbacks | None = None,
        stdin: bool = False,
        attached: bool = False,
        limits: LimitWatch | None = None,
    ) -> None:
        self._shared = shared
        self._stream = stream
        self._output = Output(limit)
        self._timeout = timeout
        self._callbacks = callbacks or Callbacks()
        self._stdin = stdin
        self._attached = attached
        self._limits = limits or LimitWatch(shared.live.oom_kills, shared.live.disk_full)
        self._decoder = Decoder()
        self._exit: Exit | None = None
        self._result: CommandResult | None = None
        self._error: Exception | None = None
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self._followers = 0
        self._killed = False
        self._overdue = False
        # A process has either stdout or a terminal, which count as one.
        self._received = [*stream.offsets]
        self._watchdog: asyncio.TimerHandle | None = None
        if timeout:
            loop = asyncio.get_running_loop()
            if attached:
                self._watchdog = loop.call_later(timeout, stream.detach)
            else:
                self._watchdog = loop.call_later(timeout + GRACE, self._end_overdue)
        self._pump = shared.spawn(self._run())

    # Reading.

    async def _run(self) -> None:
        try:
            self._exit = await self._follow()
            self._result = self._make_result(self._exit)
        except asyncio.CancelledError:
            self._error = CommandError("the handle is disconnected from the command")
            raise
        except Exception as error:
            self._error = error
            self._stream.detach()
        finally:
            if self._watchdog is not None:
                self._watchdog.cancel()
            self._ended.set()
            self._changed.set()

    async def _follow(self) -> Exit:
        while True:
            event = await self._stream.next_event()
            if isinstance(event, Piece):
                await self._take(event.channel, event.data)
            elif isinstance(event, Gap):
                self._output.lose(event.channel, event.missing)
                self._received[event.channel == STDERR] += event.missing
            elif isinstance(event, Exit):
                if self._callbacks:
                    for chunk in self._decoder.rest():
                        await self._callbacks.call(chunk)
                return event
            elif event is None:
                if self._overdue:
                    raise timeout_error(self._timeout, self.stdout, self.stderr)
                raise CommandError("the handle is disconnected from the command")

    async def _take(self, channel: int, data: bytes) -> None:
        self._received[channel == STDERR] += len(data)
        self._output.add(channel, data, followed=self._followers > 0)
        self._changed.set()
        if self._callbacks:
            chunk = self._decoder.chunk(channel, data)
            if chunk is not None:
                await self._callbacks.call(chunk)
        while self._followers and self._output.unread_bytes > _FOLLOW_AHEAD:
            self._changed.clear()
            await self._changed.wait()

    def _make_result(self, exit_: Exit) -> CommandResult:
        return make_result(exit_, self._output, killed=self._killed, limits=self._limits)

    def _end_overdue(self) -> None:
        self._overdue = True
        self._shared.spawn(self._kill_overdue())

    async def _kill_overdue(self) -> None:
        with contextlib.suppress(FourwallsError):
            await self._shared.session.exec_signal(
                signals.SIGKILL, pid=self.pid, tree=True, timeout=GRACE / 2
            )
        self._stream.detach()

    # For the user.

    @property
    def pid(self) -> int:
        """The process's id inside the sandbox."""
        return self._stream.pid

    @property
    def stdout(self) -> str:
        """What was printed so far and kept."""
        return self._output.text(STDOUT)

    @property
    def stderr(self) -> str:
        """What was printed to standard error so far and kept."""
        return self._output.text(STDERR)

    @property
    def exit_code(self) -> int | None:
        """None while the command runs; -1 when a signal ended it."""
        return None if self._exit is None else self._exit.code

    @property
    def error(self) -> str | None:
        """Why the command ended, when not with exit code 0."""
        return None if self._result is None else self._result.error

    @property
    def offsets(self) -> tuple[int, int]:
        """Bytes received of stdout (or the terminal) and stderr, for ``commands.connect``."""
        return self._received[0], self._received[1]

    async def wait(self) -> CommandResult:
        """Wait for the end.

        Raises :class:`CommandExitError` when the exit code is not 0 or a signal ended it,
        :class:`CommandTimeoutError` when its time was over.
        """
        await self._ended.wait()
        return check_result(self._outcome(), self._timeout)

    def _outcome(self) -> CommandResult:
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self.pieces()

    async def pieces(self) -> AsyncGenerator[Chunk, None]:
        """What ``async for`` iterates over."""
        decoder = Decoder()
        self._followers += 1
        try:
            while True:
                piece = self._output.next_piece()
                if piece is not None:
                    self._changed.set()
                    chunk = decoder.chunk(*piece)
                    if chunk is not None:
                        yield chunk
                elif self._ended.is_set():
                    break
                else:
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            self._followers -= 1
            self._changed.set()
        for chunk in decoder.rest():
            yield chunk
        if self._error is not None and not isinstance(self._error, CommandTimeoutError):
            raise self._error

    async def kill(self) -> bool:
        """Kill the command and everything it has started; false when it had ended already."""
        if self._exit is not None:
            return False
        self._killed = True
        try:
            await self._shared.session.exec_signal(signals.SIGKILL, pid=self.pid, tree=True)
        except ProcessNotFoundError:
            return False
        return True

    async def kill_quietly(self) -> None:
        """Kill and do not care whether there was anything to kill."""
        with contextlib.suppress(FourwallsError):
            await self.kill()

    async def disconnect(self) -> None:
        """Stop following; the command goes on."""
        self._pump.cancel()
        self._stream.detach()
        await asyncio.wait([self._pump])

    async def send_stdin(self, data: str | bytes) -> None:
        """Write to the command's standard input or terminal."""
        raw = payload(data)
        if self._attached:
            await self._shared.session.exec_input(raw, pid=self.pid)
            return
        self._check_stdin()
        await self._stream.send_stdin(raw)

    async def close_stdin(self) -> None:
        """Let the command see the end of its standard input."""
        if self._attached:
            await self._shared.session.exec_close_stdin(pid=self.pid)
            return
        self._check_stdin()
        await self._stream.close_stdin()

    def _check_stdin(self) -> None:
        if not self._stdin:
            raise InvalidArgumentError(
                "the command was started without standard input",
                remedy="start it with stdin=True",
            )

    def feed(self, data: bytes) -> None:
        """Write ``data`` and the end beside everything else; a command need not read it."""
        self._shared.spawn(self._feed(data))

    async def _feed(self, data: bytes) -> None:
        # When the command ends first, or the sandbox does, whoever waits for it is told why.
        with contextlib.suppress(FourwallsError):
            await self._stream.send_stdin(data)
            await self._stream.close_stdin()
