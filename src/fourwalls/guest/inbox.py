"""What one stream has received and nobody has taken yet: bounded by credit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from fourwalls.guest.frame import split_data
from fourwalls.model.errors import AgentProtocolError, FourwallsError

_SMALL: Final = 32 * 1024
_MERGED: Final = 64 * 1024
_MANY: Final = 512
_MOST_GAPS: Final = 1024


class Output(msgspec.Struct, frozen=True):
    """Bytes of one channel, in order."""

    channel: int
    data: bytes


class Gap(msgspec.Struct, frozen=True):
    """``missing`` bytes of this channel are lost: the agent's ring no longer held them."""

    channel: int
    missing: int


class Closed(msgspec.Struct, frozen=True):
    """Nothing more comes on this channel."""

    channel: int


class _Chunk:
    __slots__ = ("channel", "data")

    def __init__(self, channel: int, data: bytes) -> None:
        self.channel = channel
        self.data: bytes | bytearray = data


class Inbox:
    """Queue of one stream's payload.

    The peer may send ``window`` bytes more than were taken; ``grant`` is called with the credit
    that taking frees. Small pieces are joined, so that a peer that sends single bytes costs
    little more memory than the bytes.
    """

    def __init__(self, window: int, channels: frozenset[int], grant: Callable[[int], None]) -> None:
        self.window = window
        self._channels = channels
        self._grant = grant
        self._credit = window
        self._taken = 0
        self._queue: deque[_Chunk | Gap | Closed] = deque()
        self._last: dict[int, _Chunk] = {}
        self._offsets: dict[int, int] = {}
        self._eof: set[int] = set()
        self._gaps = 0
        self._ended = False
        self._error: FourwallsError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def begin(self, offsets: dict[int, int]) -> None:
        """Output starts at these offsets instead of at 0."""
        self._offsets.update(offsets)

    def put(self, channel: int, body: memoryview) -> None:
        """Take in the body of a DATA frame."""
        offset, payload = split_data(body)
        size = len(payload)
        if channel not in self._channels or channel in self._eof:
            raise AgentProtocolError(f"the agent sent data on channel {channel}, which is not open")
        if size > self._credit:
            raise AgentProtocolError("the agent sent more data than it was allowed to")
        self._credit -= size
        expected = self._offsets.get(channel, 0)
        if offset != expected:
            self.skip(channel, expected, offset)
        if offset + size >= 2**64:
            raise AgentProtocolError("the agent sent data past the largest offset")
        self._offsets[channel] = offset + size
        if not size:
            return
        queue = self._queue
        if size <= _SMALL and queue:
            last = self._last.get(channel)
            if last is not None and (
                len(queue) >= _MANY or (last is queue[-1] and len(last.data) < _MERGED)
            ):
                if isinstance(last.data, bytes):
                    last.data = bytearray(last.data)
                last.data += payload
                return
        chunk = _Chunk(channel, bytes(payload))
        self._last[channel] = chunk
        queue.append(chunk)
        self._wake()

    def skip(self, channel: int, expected: int, offset: int) -> None:
        """Output goes on at ``offset`` instead of ``expected``: a gap, unless they are the same."""
        if offset == expected:
            return
        if offset < expected:
            raise AgentProtocolError(
                f"the agent went back from offset {expected} to {offset} on channel {channel}"
            )
        self._gaps += 1
        if self._gaps > _MOST_GAPS:
            raise AgentProtocolError(f"the agent left out data more than {_MOST_GAPS} times")
        self._last.pop(channel, None)
        self._queue.append(Gap(channel, offset - expected))

    def close_channel(self, channel: int) -> None:
        """Take in an EOF frame."""
        if channel not in self._channels or channel in self._eof:
            raise AgentProtocolError(f"the agent closed channel {channel}, which is not open")
        self._eof.add(channel)
        self._queue.append(Closed(channel))
        self._wake()

    def end(self, error: FourwallsError | None = None) -> None:
        """Nothing more comes; after what is queued, takers get ``error`` or the end."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._wake()

    def discard(self) -> None:
        """Forget what is queued: nobody will take it."""
        self._queue.clear()
        self._last.clear()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> Output | Gap | Closed | None:
        """The next item, waiting for it; ``None`` at the end. One taker at a time."""
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            if self._waiter is not None:
                raise RuntimeError("two tasks read the same stream")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        item = self._queue.popleft()
        if not isinstance(item, _Chunk):
            return item
        if self._last.get(item.channel) is item:
            del self._last[item.channel]
        self._return_credit(len(item.data))
        return Output(item.channel, bytes(item.data))

    def _return_credit(self, size: int) -> None:
        self._taken += size
        if 2 * self._taken >= self.window and not self._ended:
            self._credit += self._taken
            self._grant(self._taken)
            self._taken = 0
