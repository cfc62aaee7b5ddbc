"""A small agent that behaves, for tests of the host half: it plays shim and agent in one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import msgspec

from fourwalls.guest.frame import (
    HEADER_SIZE,
    MAX_BODY_TO_AGENT,
    TO_AGENT,
    Kind,
    encode_data_header,
    encode_frame,
)
from fourwalls.guest.messages import Hello, HelloOk, Message, encode
from fourwalls.guest.session import HelloOptions, Session

Request = tuple[int, int, int, bytes]
"""``kind, channel, stream, body``"""

KINDS = {int(kind) for kind in TO_AGENT} | {int(Kind.LEASE), int(Kind.KILL), int(Kind.STATUS)}


class FakeAgent:
    """The peer of a session: reads requests, writes whatever a test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.pings = 0

    async def receive(self, *, answer_pings: bool = True) -> Request:
        """The next request; pings are answered and counted on the way."""
        while True:
            header = await self.reader.readexactly(HEADER_SIZE)
            length = int.from_bytes(header[:4], "little")
            kind, channel = header[4], header[5]
            assert length <= MAX_BODY_TO_AGENT
            assert kind in KINDS
            assert header[6:8] == b"\0\0"
            body = await self.reader.readexactly(length)
            stream = int.from_bytes(header[8:12], "little")
            if kind == Kind.PING:
                self.pings += 1
                if answer_pings:
                    self.send(Kind.PONG, stream)
                    continue
                continue
            return kind, channel, stream, body

    async def expect(self, kind: Kind) -> tuple[int, dict[str, object]]:
        """The next request, which must be ``kind``: its stream and its body."""
        got, _, stream, body = await self.receive()
        assert got == kind, f"{Kind(got).name} instead of {kind.name}"
        return stream, msgspec.msgpack.decode(body) if body else {}

    def send(self, kind: int, stream: int = 0, message: Message | None = None) -> None:
        """Write one frame."""
        self.raw(encode_frame(kind, stream, b"" if message is None else encode(message)))

    def data(self, stream: int, channel: int, offset: int, payload: bytes) -> None:
        """Write one DATA frame."""
        self.raw(encode_data_header(stream, channel, offset, len(payload)) + payload)

    def raw(self, data: bytes) -> None:
        """Write anything."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(data)

    async def greet(self) -> Hello:
        """Answer HELLO as an agent should."""
        kind, _, stream, body = await self.receive()
        assert (kind, stream) == (Kind.HELLO, 0)
        hello = msgspec.msgpack.decode(body, type=Hello)
        answer = HelloOk(generation=1, nonce=hello.nonce, version="test", kernel="6.1", pid=1)
        self.send(Kind.HELLO_OK, 0, answer)
        return hello

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


async def connect(*, heartbeat: float = 5.0) -> tuple[Session, FakeAgent]:
    """A session and its peer, not greeted yet."""
    host, guest = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=guest, limit=2**22)
    session = await Session.open(host, heartbeat=heartbeat)
    return session, FakeAgent(reader, writer)


@contextlib.asynccontextmanager
async def greeted(*, heartbeat: float = 5.0):  # type: ignore[no-untyped-def]
    """A session after its greeting, and its peer; both closed at the end."""
    session, agent = await connect(heartbeat=heartbeat)
    try:
        await asyncio.gather(session.hello(HelloOptions()), agent.greet())
        yield session, agent
    finally:
        session.close()
        agent.close()
        with contextlib.suppress(ConnectionError):
            await agent.writer.wait_closed()


Script = Callable[[FakeAgent], Awaitable[None]]
