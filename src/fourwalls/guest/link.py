"""Many requests over one connection: stream numbers, the heartbeat, and one end for all."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from fourwalls.guest.connection import Connection
from fourwalls.guest.errors import printable
from fourwalls.guest.frame import Kind, encode_frame
from fourwalls.guest.heartbeat import INTERVAL, Heartbeat
from fourwalls.guest.messages import Error, HelloOk, Message, MessageType, decode, encode
from fourwalls.guest.shim import Gone, State
from fourwalls.guest.streams import Abandoned, Reply, Stream, unexpected
from fourwalls.model.errors import (
    AgentProtocolError,
    FourwallsError,
    LimitError,
    SandboxError,
    SandboxGoneError,
)
from fourwalls.model.sandbox import ExitRecord

MAX_STREAMS: Final = 1024
"""Requests that may be open at the same time."""

REQUEST_TIMEOUT: Final = 60.0
"""Seconds a request with one answer may take."""


class Link:
    """Routes frames to the streams they belong to, and ends all of them when one lies."""

    def __init__(self, heartbeat: float = INTERVAL) -> None:
        loop = asyncio.get_running_loop()
        self.connection: Connection
        self.failure: FourwallsError | None = None
        self.gone: asyncio.Future[ExitRecord] = loop.create_future()
        self.state: State | None = None
        self._streams: dict[int, Stream] = {}
        self._next_stream = 1
        self._nonce: bytes | None = None
        self._hello: asyncio.Future[HelloOk] | None = None
        self._greeted = False
        self._pings = 0
        self._states: deque[asyncio.Future[State]] = deque()
        self._record: ExitRecord | None = None
        self._heartbeat = Heartbeat(self._send_ping, self._agent_is_dead, heartbeat)

    @classmethod
    async def open(cls, sock: socket.socket, heartbeat: float = INTERVAL) -> Link:
        """Take over a connected socket."""
        link = cls(heartbeat)
        link.connection = await Connection.open(sock, link._on_frame, link._on_lost)
        return link

    # Requests.

    def add(self, stream: Stream, kind: Kind, message: Message | None) -> int:
        """Open a stream by sending its request; its number."""
        self.check()
        if len(self._streams) >= MAX_STREAMS:
            raise LimitError(f"{MAX_STREAMS} requests are open in this sandbox")
        number = self._next_stream
        if number >= 2**32:
            raise LimitError("this connection has carried 2^32 requests: connect again")
        self._next_stream += 1
        self._streams[number] = stream
        self._heartbeat.start()
        self.send(kind, number, message)
        return number

    def abandon(self, number: int, swallow: Abandoned | None = None) -> None:
        """Nobody waits for this stream any more; what the agent still sends for it is dropped."""
        if number in self._streams and not isinstance(self._streams[number], Abandoned):
            self._streams[number] = swallow or Abandoned()
            self.send(Kind.CANCEL, number, None)

    def abandon_all(self) -> None:
        """Nobody waits for anything any more."""
        for number in list(self._streams):
            self.abandon(number)

    async def request(
        self,
        kind: Kind,
        message: Message,
        *,
        result: bool = False,
        process: bool = False,
        timeout: float | None = REQUEST_TIMEOUT,
    ) -> bytes:
        """Send a request that has one answer and wait for it: the body of its RESULT or OK."""
        reply = Reply(result=result, process=process)
        number = self.add(reply, kind, message)
        try:
            async with asyncio.timeout(timeout):
                await self.connection.drain()
                return await reply.body
        except TimeoutError:
            raise SandboxError(
                f"the sandbox did not answer {kind.name} within {timeout:g} s",
                remedy="give a longer request_timeout, or kill the sandbox",
            ) from None
        finally:
            # Also when cancelled or out of time: the stream is given up then.
            if not reply.body.done() or reply.body.cancelled():
                self.abandon(number)
            elif not reply.body.cancelled():
                reply.body.exception()

    async def fetch(
        self,
        kind: Kind,
        message: Message,
        answer: type[MessageType],
        *,
        check: Callable[[MessageType], None] | None = None,
        process: bool = False,
        timeout: float | None = REQUEST_TIMEOUT,
    ) -> MessageType:
        """Like :meth:`request`, for a RESULT, decoded. A malformed one ends the session."""
        body = await self.request(kind, message, result=True, process=process, timeout=timeout)
        try:
            received = decode(body, answer)
            if check is not None:
                check(received)
            return received
        except AgentProtocolError as error:
            self.connection.abort(error)
            raise

    def send(self, kind: Kind, number: int, message: Message | None) -> None:
        """Queue one frame."""
        body = b"" if message is None else encode(message)
        self.connection.write(encode_frame(kind, number, body))

    def check(self) -> None:
        """Raise the reason when the connection is over."""
        if self.failure is not None:
            raise self.failure

    # The greeting and the shim.

    async def greet(self, nonce: bytes, hello: Message, timeout: float) -> HelloOk:
        """Send HELLO and wait for the answer that carries ``nonce``, dropping all before it."""
        self.check()
        if self._hello is not None:
            raise RuntimeError("HELLO was sent on this connection already")
        self._nonce = nonce
        self._hello = asyncio.get_running_loop().create_future()
        self.send(Kind.HELLO, 0, hello)
        try:
            async with asyncio.timeout(timeout):
                return await self._hello
        except TimeoutError:
            error = AgentProtocolError(f"the agent did not answer HELLO within {timeout:g} s")
            self.connection.abort(error)
            raise error from None

    async def ask_shim(self, kind: Kind, message: Message | None, timeout: float) -> State:
        """Send a frame the shim answers by STATE. Answers come in the order of the questions."""
        self.check()
        answer: asyncio.Future[State] = asyncio.get_running_loop().create_future()
        self._states.append(answer)
        self.send(kind, 0, message)
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise SandboxError(
                f"the shim did not answer {kind.name} within {timeout:g} s"
            ) from None

    # Frames.

    def _on_frame(self, kind: int, channel: int, number: int, body: memoryview) -> None:
        if number and self._greeted:
            self._heartbeat.sign_of_life()
            stream = self._streams.get(number)
            if stream is None:
                raise AgentProtocolError(f"the agent answered stream {number}, which is not open")
            if stream.receive(kind, channel, body):
                self._remove(number)
        elif kind >= 0xF0:
            self._on_shim(kind, body)
        elif not self._greeted:
            self._before_greeting(kind, number, body)
        elif kind == Kind.PONG and self._pings:
            self._pings -= 1
            self._heartbeat.sign_of_life()
        else:
            raise unexpected(kind)

    def _before_greeting(self, kind: int, number: int, body: memoryview) -> None:
        """Frames of an earlier connection are dropped until the agent greets this one."""
        waiter = self._hello
        if number or waiter is None:
            return
        if kind == Kind.HELLO_OK:
            answer = decode(body, HelloOk)
            if answer.nonce == self._nonce:
                self._greeted = True
                if not waiter.done():
                    waiter.set_result(answer)
        elif kind == Kind.ERROR:
            error = decode(body, Error)
            raise AgentProtocolError(f"the agent refused the greeting: {printable(error.message)}")

    def _on_shim(self, kind: int, body: memoryview) -> None:
        if kind == Kind.STATE:
            self.state = decode(body, State)
            # The shim reports the end of the start unasked; nobody may wait then.
            while self._states:
                waiter = self._states.popleft()
                if not waiter.done():
                    waiter.set_result(self.state)
                    break
        else:
            self._record = decode(body, Gone).record()
            self.connection.abort()

    def _remove(self, number: int) -> None:
        del self._streams[number]
        if not self._streams:
            self._heartbeat.stop()

    # The heartbeat.

    def _send_ping(self) -> None:
        self._pings += 1
        self.send(Kind.PING, 0, None)

    def _agent_is_dead(self) -> None:
        self.connection.abort(AgentProtocolError("the agent stopped answering"))

    # The end.

    def _on_lost(self, error: Exception | None) -> None:
        self._heartbeat.close()
        self.failure = self._reason(error)
        if not self.gone.done():
            if self._record is not None:
                self.gone.set_result(self._record)
            else:
                self.gone.set_exception(self.failure)
                self.gone.exception()  # Whoever cares asks; unasked is no reason for a warning.
        waiters: list[asyncio.Future[HelloOk] | asyncio.Future[State]] = list(self._states)
        if self._hello is not None:
            waiters.append(self._hello)
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(self.failure)
                waiter.exception()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.fail(self.failure)

    def _reason(self, error: Exception | None) -> FourwallsError:
        if self._record is not None:
            cause = self._record.cause.value
            detail = f": {printable(self._record.message)}" if self._record.message else ""
            return SandboxGoneError(f"the sandbox ended ({cause}){detail}", cause=cause)
        if isinstance(error, FourwallsError):
            return error
        detail = f": {error}" if error is not None else ""
        return SandboxGoneError(f"the connection to the sandbox was closed{detail}")
