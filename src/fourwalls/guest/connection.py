"""The socket: frames in, bytes out, and nothing known about what they mean."""

from __future__ import annotations

import asyncio
import os
import socket
import weakref
from collections.abc import Callable
from typing import Final, cast

from fourwalls.guest.frame import FrameDecoder
from fourwalls.model.errors import AgentProtocolError

WRITE_HIGH: Final = 1024 * 1024
"""Bytes that may wait to be written before senders are made to wait."""

_SOCKET_BUFFER: Final = 1024 * 1024

_open_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_in_child() -> None:
    # A forked child that kept the descriptor would keep the sandbox alive after its parent's end.
    for sock in list(_open_sockets):
        sock.close()
    _open_sockets.clear()


os.register_at_fork(after_in_child=_close_in_child)


class Connection(asyncio.BufferedProtocol):
    """One connected stream socket that carries frames.

    ``on_frame(kind, channel, stream, body)`` is called for each frame, from the event loop; the
    body is only valid during the call. ``on_lost(error)`` is called once, at the end: ``None``
    means that the peer closed the connection.
    """

    def __init__(
        self,
        on_frame: Callable[[int, int, int, memoryview], None],
        on_lost: Callable[[Exception | None], None],
    ) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._lost = False
        self._paused = False
        self._drained: list[asyncio.Future[None]] = []

    @classmethod
    async def open(
        cls,
        sock: socket.socket,
        on_frame: Callable[[int, int, int, memoryview], None],
        on_lost: Callable[[Exception | None], None],
    ) -> Connection:
        """Take over ``sock``, which is connected; it is closed with the connection."""
        sock.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
        loop = asyncio.get_running_loop()
        # With sock=, this works for any connected stream socket and resolves nothing.
        _, protocol = await loop.create_connection(lambda: cls(on_frame, on_lost), sock=sock)
        _open_sockets.add(sock)
        return protocol

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._decoder.commit(nbytes)
        on_frame = self._on_frame
        try:
            for kind, channel, stream, body in self._decoder.frames():
                on_frame(kind, channel, stream, body)
                if self._lost:
                    return
        except AgentProtocolError as error:
            self.abort(error)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(exc)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()

    # Called by the session.

    @property
    def closed(self) -> bool:
        return self._lost

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send or queue ``data``; dropped silently once the connection is lost."""
        if self._transport is not None and not self._lost:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait while too much is queued. Returns at once when the connection is lost."""
        while self._paused and not self._lost:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drained.append(waiter)
            await waiter

    def abort(self, error: Exception | None = None) -> None:
        """Close now, dropping what is queued."""
        if self._transport is not None:
            self._transport.abort()
        self._finish(error)

    def close(self) -> None:
        """Close after what is queued has been sent."""
        if self._transport is not None:
            self._transport.close()

    def _finish(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._wake()
        self._on_lost(error)

    def _wake(self) -> None:
        waiters, self._drained = self._drained, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
