"""What a command has printed: kept up to a limit, decoded without splitting characters."""

from __future__ import annotations

import codecs
from collections import deque
from typing import Final

from fourwalls.guest.process import PTY, STDERR, STDOUT
from fourwalls.model.errors import InvalidArgumentError

DEFAULT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes kept of each stream, unless the caller says otherwise."""

MAX_LIMIT: Final = 4 * 1024 * 1024 * 1024

_MANY: Final = 65_536

Chunk = tuple[str | None, str | None, bytes | None]
"""``stdout, stderr, pty``: one of them set."""


def check_limit(value: object) -> int:
    """Bytes to keep of each stream."""
    if value is None:
        return DEFAULT_LIMIT
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LIMIT:
        raise InvalidArgumentError(
            f"output_limit must be between 0 and {MAX_LIMIT} bytes, not {value!r:.80}"
        )
    return value


class Decoder:
    """Text from bytes that come in pieces; a character cut in two waits for its rest."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {STDOUT: make("replace"), STDERR: make("replace")}

    def chunk(self, channel: int, data: bytes) -> Chunk | None:
        """The piece as it is handed out; None when it has no whole character yet."""
        if channel == PTY:
            return (None, None, data)
        return self._text(channel, self._decoders[channel].decode(data))

    def rest(self) -> list[Chunk]:
        """What a stream that has ended left unfinished."""
        chunks = [
            self._text(ch, decoder.decode(b"", True)) for ch, decoder in self._decoders.items()
        ]
        return [chunk for chunk in chunks if chunk is not None]

    @staticmethod
    def _text(channel: int, text: str) -> Chunk | None:
        if not text:
            return None
        return (text, None, None) if channel == STDOUT else (None, text, None)


class Output:
    """The kept bytes of each channel, and the order in which they came."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = {STDOUT: bytearray(), STDERR: bytearray(), PTY: bytearray()}
        self._dropped = {STDOUT: 0, STDERR: 0, PTY: 0}
        # Pieces not yet handed to an iterator: (channel, bytes kept) or (channel, piece not kept).
        self._unread: deque[tuple[int, int | bytes]] = deque()
        self._position = {STDOUT: 0, STDERR: 0, PTY: 0}
        self.unread_bytes = 0

    def add(self, channel: int, data: bytes, *, followed: bool) -> None:
        """Take in a piece. ``followed``: an iterator wants what is beyond the limit, too."""
        kept = self._kept[channel]
        room = self._limit - len(kept)
        head = data if len(data) <= room else data[: max(room, 0)]
        if head:
            kept += head
            self._remember(channel, len(head))
        if len(head) < len(data):
            self._dropped[channel] += len(data) - len(head)
            if followed:
                self._unread.append((channel, data[len(head) :]))
                self.unread_bytes += len(data) - len(head)

    def _remember(self, channel: int, size: int) -> None:
        if self._unread:
            last_channel, last = self._unread[-1]
            # With very many pieces the order between the channels gives way, never that within.
            if isinstance(last, int) and last_channel == channel:
                self._unread[-1] = (channel, last + size)
                return
            if len(self._unread) >= _MANY:
                for index in range(len(self._unread) - 1, -1, -1):
                    other, piece = self._unread[index]
                    if other == channel and isinstance(piece, int):
                        self._unread[index] = (channel, piece + size)
                        return
        self._unread.append((channel, size))

    def lose(self, channel: int, count: int) -> None:
        """Count bytes that never arrived."""
        if channel in self._dropped:
            self._dropped[channel] += count

    def next_piece(self) -> tuple[int, bytes] | None:
        """The oldest piece no iterator has had."""
        if not self._unread:
            return None
        channel, piece = self._unread.popleft()
        if isinstance(piece, bytes):
            self.unread_bytes -= len(piece)
            return channel, piece
        start = self._position[channel]
        self._position[channel] = start + piece
        return channel, bytes(memoryview(self._kept[channel])[start : start + piece])

    def text(self, channel: int) -> str:
        """All that is kept of a channel."""
        return self._kept[channel].decode("utf-8", "replace")

    def dropped(self, channel: int) -> int:
        """Bytes of a channel that are not kept."""
        return self._dropped[channel]
