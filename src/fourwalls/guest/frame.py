"""The frame codec: bytes to frames and back, without I/O and without meaning.

A frame is a header of twelve little-endian bytes (``length``, ``kind``, ``channel``, ``reserved``,
``stream``) and a body of ``length`` bytes. See ``docs/wire/agent.md``.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final

from fourwalls.model.errors import AgentProtocolError

HEADER_SIZE: Final = 12
MAX_BODY_TO_AGENT: Final = 4 * 1024 * 1024
MAX_BODY_TO_HOST: Final = 1024 * 1024
MAX_PAYLOAD: Final = 256 * 1024
OFFSET_SIZE: Final = 8

_HEADER: Final = struct.Struct("<IBBHI")
_OFFSET: Final = struct.Struct("<Q")
_DATA_HEADER: Final = struct.Struct("<IBBHIQ")
_FIRST_CAPACITY: Final = 64 * 1024
_LEAST_ROOM: Final = 32 * 1024

Frame = tuple[int, int, int, memoryview]
"""``kind, channel, stream, body``. The body is valid until the decoder takes in more bytes."""


class Kind(enum.IntEnum):
    """What a frame is."""

    HELLO = 0x01
    PING = 0x02
    CREDIT = 0x03
    CANCEL = 0x04
    DATA = 0x05
    EOF = 0x06
    EXEC_START = 0x10
    EXEC_ATTACH = 0x11
    EXEC_INPUT = 0x12
    EXEC_CLOSE_STDIN = 0x13
    EXEC_RESIZE = 0x14
    EXEC_SIGNAL = 0x15
    EXEC_LIST = 0x16
    FILE_STAT = 0x20
    FILE_LIST = 0x21
    FILE_READ = 0x22
    FILE_WRITE = 0x23
    FILE_MKDIR = 0x24
    FILE_MOVE = 0x25
    FILE_REMOVE = 0x26
    FILE_CHANGE = 0x27
    FILE_WATCH = 0x28
    TUNNEL_DIAL = 0x30
    METRICS = 0x40
    SHUTDOWN = 0x42
    DETACH = 0x43
    HELLO_OK = 0x80
    OK = 0x81
    PONG = 0x82
    ERROR = 0x83
    RESULT = 0x84
    STARTED = 0x85
    EXIT = 0x86
    ENTRIES = 0x87
    EVENTS = 0x88
    READY = 0x89
    STARTED_READ = 0x8A
    LEASE = 0xF0
    KILL = 0xF1
    STATUS = 0xF2
    STATE = 0xF8
    GONE = 0xF9


TERMINAL: Final = frozenset({Kind.OK, Kind.ERROR, Kind.RESULT, Kind.EXIT})
"""The kinds that end a stream."""

TO_HOST: Final = frozenset(
    {kind for kind in Kind if 0x80 <= kind < 0xF0}
    | {Kind.CREDIT, Kind.DATA, Kind.EOF, Kind.STATE, Kind.GONE}
)
"""The kinds a host may receive."""

TO_AGENT: Final = frozenset(kind for kind in Kind if kind < 0x80)
"""The kinds an agent may receive."""


def encode_frame(kind: int, stream: int, body: bytes = b"", channel: int = 0) -> bytes:
    """One whole frame."""
    return _HEADER.pack(len(body), kind, channel, 0, stream) + body


def encode_data_header(stream: int, channel: int, offset: int, size: int) -> bytes:
    """What precedes ``size`` bytes of payload in a DATA frame."""
    return _DATA_HEADER.pack(OFFSET_SIZE + size, Kind.DATA, channel, 0, stream, offset)


def split_data(body: memoryview) -> tuple[int, memoryview]:
    """Offset and payload of the body of a DATA frame."""
    size = len(body) - OFFSET_SIZE
    if not 0 <= size <= MAX_PAYLOAD:
        raise AgentProtocolError(f"a DATA frame carries {size} bytes: 0 to {MAX_PAYLOAD} allowed")
    return _OFFSET.unpack_from(body)[0], body[OFFSET_SIZE:]


class FrameDecoder:
    """Cuts a byte stream into frames inside one buffer that is used again and again.

    The owner writes into :meth:`room`, says how much by :meth:`commit` and takes the complete
    frames from :meth:`frames`. The buffer starts small and grows to hold the largest frame
    allowed, never further.
    """

    def __init__(
        self, limit: int = MAX_BODY_TO_HOST, kinds: frozenset[Kind] | frozenset[int] = TO_HOST
    ) -> None:
        self._limit = limit
        self._kinds = frozenset(int(kind) for kind in kinds)
        self._capacity_limit = 2 * (limit + HEADER_SIZE)
        self._view = memoryview(bytearray(min(_FIRST_CAPACITY, self._capacity_limit)))
        self._start = 0
        self._end = 0
        self._filled = False

    def room(self) -> memoryview:
        """Where the next bytes go; never empty. Frames handed out before become invalid."""
        pending = self._end - self._start
        capacity = len(self._view)
        if pending == 0:
            self._start = self._end = 0
        wanted = max(pending + _LEAST_ROOM, self._needed())
        if self._filled or wanted > capacity:
            # A read filled everything: more is waiting, and a larger buffer means fewer reads.
            self._filled = False
            self._move(min(max(2 * capacity, wanted), self._capacity_limit))
        elif self._start + wanted > capacity:
            self._move(capacity)
        return self._view[self._end :]

    def _needed(self) -> int:
        """Size of the frame that is half there, 0 when not even its header is."""
        if self._end - self._start < HEADER_SIZE:
            return 0
        length: int = _HEADER.unpack_from(self._view, self._start)[0]
        return HEADER_SIZE + min(length, self._limit)

    def _move(self, capacity: int) -> None:
        """Bring what is pending to the front, into a larger buffer if ``capacity`` says so."""
        pending = self._end - self._start
        if capacity > len(self._view):
            larger = memoryview(bytearray(capacity))
            larger[:pending] = self._view[self._start : self._end]
            self._view = larger
        else:
            self._view[:pending] = self._view[self._start : self._end]
        self._start, self._end = 0, pending

    def commit(self, count: int) -> None:
        """``count`` bytes were written into the last :meth:`room`."""
        self._end += count
        self._filled = self._end == len(self._view)

    def feed(self, data: bytes | memoryview) -> Iterator[Frame]:
        """Frames completed by ``data``; for callers that have the bytes already."""
        rest = memoryview(data)
        while len(rest):
            room = self.room()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            self.commit(count)
            rest = rest[count:]
            yield from self.frames()

    def frames(self) -> Iterator[Frame]:
        """The frames that are complete. :class:`AgentProtocolError` at the first illegal one."""
        view = self._view
        unpack = _HEADER.unpack_from
        while self._end - self._start >= HEADER_SIZE:
            start = self._start
            length, kind, channel, reserved, stream = unpack(view, start)
            if length > self._limit:
                raise AgentProtocolError(
                    f"a frame of {length} bytes was announced: {self._limit} allowed"
                )
            if kind not in self._kinds or reserved:
                raise AgentProtocolError(
                    f"a frame of unknown form: kind {kind:#04x}, reserved {reserved:#06x}"
                )
            body_start = start + HEADER_SIZE
            body_end = body_start + length
            if body_end > self._end:
                return
            self._start = body_end
            yield kind, channel, stream, view[body_start:body_end]

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return self._end - self._start
