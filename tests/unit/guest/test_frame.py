"""The codec: any chunking gives the same frames, and no form of nonsense passes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fourwalls.guest.frame import (
    HEADER_SIZE,
    MAX_BODY_TO_AGENT,
    MAX_BODY_TO_HOST,
    MAX_PAYLOAD,
    TO_AGENT,
    TO_HOST,
    FrameDecoder,
    Kind,
    encode_data_header,
    encode_frame,
    split_data,
)
from fourwalls.model.errors import AgentProtocolError

frames = st.lists(
    st.tuples(
        st.sampled_from(sorted(TO_HOST)),
        st.integers(0, 255),
        st.integers(0, 2**32 - 1),
        st.one_of(st.binary(max_size=64), st.integers(0, 200_000).map(bytes)),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=150)
@given(frames, st.lists(st.integers(1, 70_000), max_size=40))
def test_any_chunking_gives_the_same_frames(
    wanted: list[tuple[int, int, int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(encode_frame(kind, number, body, ch) for kind, ch, number, body in wanted)
    decoder = FrameDecoder()
    got = []
    position = 0
    for cut in [*cuts, len(stream)]:
        piece = stream[position : position + cut]
        position += len(piece)
        got += [(k, c, n, bytes(body)) for k, c, n, body in decoder.feed(piece)]
    assert got == wanted
    assert decoder.pending == 0


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=300))
def test_noise_is_frames_or_an_error(noise: bytes) -> None:
    decoder = FrameDecoder()
    try:
        for kind, _, _, body in decoder.feed(noise):
            assert kind in TO_HOST
            assert len(body) <= MAX_BODY_TO_HOST
    except AgentProtocolError:
        pass


@pytest.mark.parametrize(
    ("header", "what"),
    [
        (struct.pack("<IBBHI", 0xFFFFFFFF, Kind.DATA, 0, 0, 1), "bytes was announced"),
        (struct.pack("<IBBHI", MAX_BODY_TO_HOST + 1, Kind.DATA, 0, 0, 1), "bytes was announced"),
        (struct.pack("<IBBHI", 0, Kind.OK, 0, 1, 1), "reserved 0x0001"),
        (struct.pack("<IBBHI", 0, 0x00, 0, 0, 1), "kind 0x00"),
        (struct.pack("<IBBHI", 0, Kind.PING, 0, 0, 1), "kind 0x02"),
        (struct.pack("<IBBHI", 0, 0xFF, 0, 0, 1), "kind 0xff"),
    ],
)
def test_illegal_headers_are_refused_before_their_body(header: bytes, what: str) -> None:
    with pytest.raises(AgentProtocolError, match=what):
        list(FrameDecoder().feed(header))


def test_largest_frame_fits_and_the_buffer_stays_bounded() -> None:
    decoder = FrameDecoder()
    frame = encode_frame(Kind.RESULT, 1, bytes(MAX_BODY_TO_HOST))
    for _ in range(5):
        (only,) = list(decoder.feed(frame))
        assert len(only[3]) == MAX_BODY_TO_HOST
        assert len(decoder.room()) <= 2 * (MAX_BODY_TO_HOST + HEADER_SIZE)


def test_a_decoder_for_the_other_direction() -> None:
    decoder = FrameDecoder(MAX_BODY_TO_AGENT, TO_AGENT)
    body = bytes(MAX_BODY_TO_AGENT)
    assert [len(f[3]) for f in decoder.feed(encode_frame(Kind.EXEC_START, 1, body))] == [len(body)]


def test_small_frames_need_a_small_buffer() -> None:
    decoder = FrameDecoder()
    for _ in range(10_000):
        assert len(list(decoder.feed(encode_frame(Kind.PONG, 0)))) == 1
    assert len(decoder.room()) == 64 * 1024


@pytest.mark.parametrize("size", [0, 7, 8 + MAX_PAYLOAD + 1])
def test_data_bodies_of_wrong_size(size: int) -> None:
    with pytest.raises(AgentProtocolError):
        split_data(memoryview(bytes(size)))


def test_data_header() -> None:
    raw = encode_data_header(7, 2, 2**40, 3) + b"abc"
    ((kind, channel, stream, body),) = list(FrameDecoder().feed(raw))
    assert (kind, channel, stream) == (Kind.DATA, 2, 7)
    offset, payload = split_data(body)
    assert (offset, bytes(payload)) == (2**40, b"abc")
