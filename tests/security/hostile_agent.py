"""A guest agent that lies. It speaks as shim and agent over a socket, for tests of the host.

Each lie waits for a request of the host and answers it with something no honest agent sends.
``LIES`` names them all; :func:`serve` plays one on a connected socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from fourwalls.guest.frame import HEADER_SIZE, MAX_PAYLOAD, Kind, encode_frame

NONCE_SIZE = 16


class Peer:
    """The guest end of the connection, with no opinion on what is legal."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> tuple[int, int, Any]:
        """Kind, stream and decoded body of the next request; pings are answered on the way."""
        while True:
            header = await self.reader.readexactly(HEADER_SIZE)
            length, kind, _, _, stream = struct.unpack("<IBBHI", header)
            body = await self.reader.readexactly(length)
            if kind == Kind.PING:
                await self.send(Kind.PONG, stream)
                continue
            decoded = None if kind == Kind.DATA or not body else msgspec.msgpack.decode(body)
            return kind, stream, decoded

    async def send(self, kind: int, stream: int, body: Any = None, channel: int = 0) -> None:
        """One frame with any MessagePack body."""
        raw = b"" if body is None else msgspec.msgpack.encode(body)
        await self.raw(encode_frame(kind, stream, raw, channel))

    async def data(self, stream: int, channel: int, offset: int, payload: bytes) -> None:
        """One DATA frame, credit or not."""
        body = struct.pack("<Q", offset) + payload
        await self.raw(encode_frame(Kind.DATA, stream, body, channel))

    async def raw(self, data: bytes) -> None:
        """Any bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def greet(self) -> None:
        """The last honest thing this agent does."""
        _, stream, hello = await self.request()
        await self.send(Kind.HELLO_OK, stream, {"generation": 1, "nonce": hello["nonce"], "pid": 1})

    async def started(self) -> int:
        """Answer the next request, an EXEC_START, by STARTED: its stream."""
        _, stream, _ = await self.request()
        await self.send(Kind.STARTED, stream, {"pid": 42, "offsets": [0, 0]})
        return stream


Script = Callable[[Peer], Awaitable[None]]


@dataclass(frozen=True)
class Lie:
    """``request`` is what the host must ask for to hear it; ``greets``: HELLO is answered first."""

    name: str
    request: str
    script: Script
    greets: bool = True


LIES: dict[str, Lie] = {}


def lie(request: str, *, greets: bool = True) -> Callable[[Script], Script]:
    """Register a script."""

    def register(script: Script) -> Script:
        name = script.__name__
        LIES[name] = Lie(name, request, script, greets)
        return script

    return register


async def play(told: Lie, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Tell one lie, then keep silent with the connection open until the host closes it."""
    peer = Peer(reader, writer)
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        if told.greets:
            await peer.greet()
        await told.script(peer)
        while await reader.read(65536):
            pass


@contextlib.asynccontextmanager
async def serve(told: Lie) -> AsyncIterator[socket.socket]:
    """The host end of a connection on which ``told`` is played."""
    host, guest = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=guest)
    task = asyncio.create_task(play(told, reader, writer))
    try:
        yield host
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        host.close()


# The form of frames.


@lie("stat")
async def frame_of_four_gibibytes(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(struct.pack("<IBBHI", 0xFFFFFFFF, Kind.RESULT, 0, 0, stream))


@lie("stat")
async def reserved_bits(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(struct.pack("<IBBHI", 0, Kind.OK, 0, 0x8000, stream))


@lie("stat")
async def unknown_kind(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(0x7F, stream)


@lie("stat")
async def requests_of_its_own(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.EXEC_START, stream, {"argv": [b"/bin/sh"]})


@lie("stat")
async def half_a_frame_then_silence(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(struct.pack("<IBBHI", 1000, Kind.RESULT, 0, 0, stream) + b"\x80")
    # Silence means silence: pings are not answered either.
    while await peer.reader.read(65536):
        pass


@lie("stat")
async def noise(peer: Peer) -> None:
    await peer.request()
    await peer.raw(bytes(range(255, -1, -1)) * 64)


# Streams.


@lie("stat")
async def answer_to_nobody(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.OK, stream + 1000)


@lie("stat")
async def two_terminal_frames(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(encode_frame(Kind.ERROR, stream + 7) + encode_frame(Kind.OK, stream))


@lie("exec")
async def exit_twice(peer: Peer) -> None:
    stream = await peer.started()
    await peer.send(Kind.EXIT, stream, {"code": 0})
    await peer.send(Kind.EXIT, stream, {"code": 1})


@lie("exec")
async def started_twice(peer: Peer) -> None:
    stream = await peer.started()
    await peer.send(Kind.STARTED, stream, {"pid": 43, "offsets": [0, 0]})


@lie("exec")
async def output_before_the_start(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.data(stream, 1, 0, b"early")


@lie("exec")
async def file_answer_to_a_command(peer: Peer) -> None:
    stream = await peer.started()
    await peer.send(Kind.ENTRIES, stream, {"entries": []})


@lie("idle_after_stat")
async def pong_flood(peer: Peer) -> None:
    while True:
        await peer.raw(encode_frame(Kind.PONG, 0) * 1000)


@lie("exec")
async def credit_beyond_measure(peer: Peer) -> None:
    stream = await peer.started()
    for _ in range(3):
        await peer.send(Kind.CREDIT, stream, {"bytes": 2**63 - 1})


# Data.


@lie("exec_unread")
async def flood_without_credit(peer: Peer) -> None:
    stream = await peer.started()
    offset = 0
    while True:
        await peer.data(stream, 1, offset, bytes(MAX_PAYLOAD))
        offset += MAX_PAYLOAD


@lie("exec_unread")
async def flood_of_single_bytes(peer: Peer) -> None:
    """Within the credit, but as costly as can be: one byte a frame, the channels in turn."""
    stream = await peer.started()
    frames = bytearray()
    for offset in range(40_000):
        channel, at = 1 + offset % 2, offset // 2
        frames += struct.pack("<IBBHIQ", 9, Kind.DATA, channel, 0, stream, at) + b"x"
        if len(frames) > 1_000_000:
            await peer.raw(bytes(frames))
            frames.clear()
    await peer.raw(bytes(frames))
    await peer.data(stream, 1, 0, b"back")


@lie("exec_unread")
async def flood_of_empty_frames(peer: Peer) -> None:
    stream = await peer.started()
    empty = struct.pack("<IBBHIQ", 8, Kind.DATA, 1, 0, stream, 0) * 10_000
    for _ in range(4):
        await peer.raw(empty)
    await peer.data(stream, 9, 0, b"the end")


@lie("exec_unread")
async def flood_of_gaps(peer: Peer) -> None:
    stream = await peer.started()
    for index in range(5000):
        await peer.data(stream, 1, 10 * index, b"x")


@lie("exec")
async def offset_goes_back(peer: Peer) -> None:
    stream = await peer.started()
    await peer.data(stream, 1, 0, b"abc")
    await peer.data(stream, 1, 1, b"bcd")


@lie("exec")
async def offset_at_the_end_of_numbers(peer: Peer) -> None:
    stream = await peer.started()
    await peer.data(stream, 1, 2**64 - 1, b"abc")


@lie("exec")
async def unknown_channel(peer: Peer) -> None:
    stream = await peer.started()
    await peer.data(stream, 200, 0, b"abc")


@lie("exec")
async def data_after_its_end(peer: Peer) -> None:
    stream = await peer.started()
    await peer.send(Kind.EOF, stream, channel=1)
    await peer.data(stream, 1, 0, b"abc")


@lie("exec")
async def data_without_offset(peer: Peer) -> None:
    stream = await peer.started()
    await peer.raw(encode_frame(Kind.DATA, stream, b"1234567", 1))


@lie("exec")
async def payload_too_large(peer: Peer) -> None:
    stream = await peer.started()
    await peer.data(stream, 1, 0, bytes(MAX_PAYLOAD + 1))


@lie("read")
async def hole_in_a_file(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.STARTED_READ, stream, {"size": 10})
    await peer.data(stream, 0, 5, b"abcde")
    await peer.send(Kind.OK, stream)


@lie("read")
async def file_without_a_beginning(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.data(stream, 0, 0, b"abc")


# Bodies.


@lie("exec")
async def exit_code_out_of_range(peer: Peer) -> None:
    stream = await peer.started()
    await peer.send(Kind.EXIT, stream, {"code": 70000})


@lie("exec")
async def signal_out_of_range(peer: Peer) -> None:
    stream = await peer.started()
    await peer.send(Kind.EXIT, stream, {"code": -1, "signal": 4096})


@lie("exec")
async def negative_pid(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.STARTED, stream, {"pid": -1, "offsets": [0, 0]})


@lie("exec")
async def pid_zero(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.STARTED, stream, {"pid": 0, "offsets": [0, 0]})


@lie("metrics")
async def negative_numbers(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.RESULT, stream, {"mem_total": -5})


@lie("stat")
async def wrong_types(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.RESULT, stream, {"name": 5, "path": [], "size": "big"})


@lie("stat")
async def not_a_map(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(encode_frame(Kind.RESULT, stream, b"\x93\x01\x02\x03"))


@lie("stat")
async def deep_nesting(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    body = b"\x81\xa1x" + b"\x91" * 1_000_000 + b"\x01"
    await peer.raw(encode_frame(Kind.RESULT, stream, body))


@lie("list")
async def array_of_four_billion(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    body = b"\x81\xa7entries\xdd\xff\xff\xff\xff" + b"\x80" * 1000
    await peer.raw(encode_frame(Kind.ENTRIES, stream, body))


@lie("processes")
async def map_of_four_billion(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    body = b"\x81\xa9processes\x91\x82\xa3pid\x01\xa3env\xdf\xff\xff\xff\xff\xa1a\xc4\x00"
    await peer.raw(encode_frame(Kind.RESULT, stream, body))


@lie("list")
async def million_entries_in_one_frame(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    body = b"\x81\xa7entries\xdd" + struct.pack(">I", 1_000_000) + b"\x80" * 1_000_000
    await peer.raw(encode_frame(Kind.ENTRIES, stream, body))


@lie("list")
async def endless_listing(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    entries = [{"name": b"%d" % i, "path": b"/d/%d" % i} for i in range(256)]
    frame = encode_frame(Kind.ENTRIES, stream, msgspec.msgpack.encode({"entries": entries}))
    while True:
        await peer.raw(frame)


@lie("stat")
async def invalid_utf8(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(encode_frame(Kind.ERROR, stream, b"\x81\xa7message\xa2\xff\xfe"))


@lie("stat")
async def trailing_bytes(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.raw(encode_frame(Kind.RESULT, stream, b"\x80\x80"))


def _listing(name: str, entry: dict[str, Any]) -> None:
    async def script(peer: Peer) -> None:
        _, stream, _ = await peer.request()
        await peer.send(Kind.ENTRIES, stream, {"entries": [entry]})
        await peer.send(Kind.OK, stream)

    LIES[name] = Lie(name, "list", script)


_listing("name_with_slash", {"name": b"a/b", "path": b"/d/a/b"})
_listing("name_dot_dot", {"name": b"..", "path": b"/d/.."})
_listing("name_with_nul", {"name": b"a\0b", "path": b"/d/a\0b"})
_listing("name_empty", {"name": b"", "path": b"/d/"})
_listing("path_elsewhere", {"name": b"passwd", "path": b"/etc/passwd"})
_listing("path_through_parent", {"name": b"passwd", "path": b"/d/../etc/passwd"})
_listing("path_of_another_name", {"name": b"a", "path": b"/d/b"})


@lie("watch")
async def change_outside(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.READY, stream)
    event = {"kind": "create", "name": b"../../etc/passwd"}
    await peer.send(Kind.EVENTS, stream, {"events": [event], "overflow": False})


@lie("watch_unread")
async def endless_changes(peer: Peer) -> None:
    _, stream, _ = await peer.request()
    await peer.send(Kind.READY, stream)
    events = [{"kind": "write", "name": b"x" * 50}] * 1000
    frame = encode_frame(Kind.EVENTS, stream, msgspec.msgpack.encode({"events": events}))
    for _ in range(80):
        await peer.raw(frame)
    await peer.send(Kind.READY, stream)


# The greeting.


@lie("hello", greets=False)
async def wrong_nonce(peer: Peer) -> None:
    await peer.request()
    await peer.send(Kind.HELLO_OK, 0, {"generation": 1, "nonce": bytes(NONCE_SIZE), "pid": 1})


@lie("hello", greets=False)
async def other_generation(peer: Peer) -> None:
    _, _, hello = await peer.request()
    await peer.send(Kind.HELLO_OK, 0, {"generation": 99, "nonce": hello["nonce"], "pid": 1})


@lie("hello", greets=False)
async def stale_frames_for_ever(peer: Peer) -> None:
    await peer.request()
    frame = encode_frame(Kind.DATA, 5, bytes(8 + 1000), 1)
    while True:
        await peer.raw(frame * 100)


@lie("hello", greets=False)
async def refusal(peer: Peer) -> None:
    await peer.request()
    await peer.send(Kind.ERROR, 0, {"code": "unsupported", "message": "\x1b]0;owned\x07" * 1000})


# In the shim's name. (The real shim ends a sandbox whose agent tries.)


@lie("stat")
async def speaks_as_shim(peer: Peer) -> None:
    await peer.request()
    await peer.send(Kind.GONE, 0, {"id": "x" * 1000, "cause": "exited"})


@lie("stat")
async def unknown_shim_kind(peer: Peer) -> None:
    await peer.request()
    await peer.send(0xFB, 0)
