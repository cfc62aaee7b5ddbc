"""What one stream may send: the agent's credit, counted down."""

from __future__ import annotations

import asyncio
from typing import Final

from fourwalls.guest.connection import Connection
from fourwalls.guest.frame import MAX_PAYLOAD, Kind, encode_data_header, encode_frame
from fourwalls.model.errors import AgentProtocolError, FourwallsError

_MOST_CREDIT: Final = 2**63


class Outbox:
    """The way from the host to the agent of one stream, on channel 0."""

    def __init__(self, connection: Connection, stream: int) -> None:
        self._connection = connection
        self._stream = stream
        self._credit = 0
        self._offset = 0
        self._closed = False
        self._over: FourwallsError | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._lock = asyncio.Lock()

    def grant(self, count: int) -> None:
        """The agent may be sent ``count`` bytes more."""
        self._credit += count
        if self._credit >= _MOST_CREDIT:
            raise AgentProtocolError("the agent granted more credit than there are bytes")
        self._wake()

    def end(self, error: FourwallsError) -> None:
        """Nothing more can be sent; senders get ``error``."""
        if self._over is None:
            self._over = error
            self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of ``data``, waiting for credit and for room in the connection."""
        rest = memoryview(data).cast("B")
        async with self._lock:
            while len(rest):
                piece = rest[: await self._reserve(min(len(rest), MAX_PAYLOAD))]
                header = encode_data_header(self._stream, 0, self._offset, len(piece))
                self._connection.write(b"".join((header, piece)))
                self._offset += len(piece)
                rest = rest[len(piece) :]
                await self._connection.drain()

    async def _reserve(self, wanted: int) -> int:
        while True:
            if self._over is not None:
                raise self._over
            if self._closed:
                raise RuntimeError("the stream was closed for sending")
            if self._credit:
                count = min(wanted, self._credit)
                self._credit -= count
                return count
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    async def close(self) -> None:
        """Send EOF, after what is being sent. Closing twice is nothing."""
        async with self._lock:
            if not self._closed and self._over is None:
                self._closed = True
                self._connection.write(encode_frame(Kind.EOF, self._stream))
