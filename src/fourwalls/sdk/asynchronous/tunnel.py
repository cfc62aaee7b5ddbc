"""A byte connection to a port inside a sandbox."""

from __future__ import annotations

from types import TracebackType

from fourwalls.guest.transfer import Tunnel
from fourwalls.sdk.checks import payload


class AsyncTunnel:
    """Connected to a port on the sandbox's loopback; use it with ``async with``."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel

    async def read(self) -> bytes:
        """The next bytes that came; empty when the other side will send no more."""
        return await self._tunnel.read()

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when they are on their way."""
        await self._tunnel.write(payload(data))

    async def write_eof(self) -> None:
        """Say that no more will be sent; reading goes on."""
        await self._tunnel.write_eof()

    async def close(self) -> None:
        """Close both directions."""
        self._tunnel.close()

    async def __aenter__(self) -> AsyncTunnel:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
