"""Output: kept up to the limit, counted beyond, never split inside a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.guest.process import PTY, STDERR, STDOUT
from fourwalls.model.errors import InvalidArgumentError
from fourwalls.sdk.output import DEFAULT_LIMIT, Decoder, Output, check_limit


def read_all(output: Output) -> list[tuple[int, bytes]]:
    pieces = []
    while (piece := output.next_piece()) is not None:
        pieces.append(piece)
    return pieces


@given(st.text(max_size=60), st.lists(st.integers(1, 5)))
def test_any_cut_decodes_to_the_same_text(text: str, cuts: list[int]) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    expected = raw.decode("utf-8", "replace")
    decoder = Decoder()
    got = ""
    for cut in [*cuts, len(raw)]:
        chunk = decoder.chunk(STDOUT, raw[:cut])
        raw = raw[cut:]
        got += (chunk[0] or "") if chunk else ""
    got += "".join(chunk[0] or "" for chunk in decoder.rest())
    assert got == expected


def test_limit_keeps_the_head_and_counts_the_rest() -> None:
    output = Output(5)
    output.add(STDOUT, b"abc", followed=False)
    output.add(STDERR, b"12", followed=False)
    output.add(STDOUT, b"defgh", followed=False)
    output.add(STDOUT, b"ij", followed=False)
    assert (output.text(STDOUT), output.dropped(STDOUT)) == ("abcde", 5)
    assert (output.text(STDERR), output.dropped(STDERR)) == ("12", 0)
    assert read_all(output) == [(STDOUT, b"abc"), (STDERR, b"12"), (STDOUT, b"de")]


def test_followers_get_what_is_not_kept() -> None:
    output = Output(2)
    output.add(STDOUT, b"abc", followed=True)
    output.add(STDOUT, b"def", followed=True)
    assert output.unread_bytes == 4
    assert b"".join(piece for _, piece in read_all(output)) == b"abcdef"
    assert output.unread_bytes == 0
    assert output.dropped(STDOUT) == 4


def test_nothing_is_kept_with_limit_zero() -> None:
    output = Output(0)
    output.add(PTY, b"x", followed=False)
    assert (output.text(PTY), output.dropped(PTY), output.next_piece()) == ("", 1, None)


@given(st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(min_size=1, max_size=4))))
def test_order_within_a_channel_is_kept(pieces: list[tuple[int, bytes]]) -> None:
    output = Output(DEFAULT_LIMIT)
    for channel, data in pieces:
        output.add(channel, data, followed=False)
    got = read_all(output)
    for channel in (STDOUT, STDERR):
        wanted = b"".join(data for ch, data in pieces if ch == channel)
        assert b"".join(data for ch, data in got if ch == channel) == wanted
        assert output.text(channel) == wanted.decode("utf-8", "replace")


def test_very_many_pieces_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fourwalls.sdk.output._MANY", 10)
    output = Output(DEFAULT_LIMIT)
    for index in range(1000):
        output.add(STDOUT if index % 2 else STDERR, b"%d " % index, followed=False)
    got = read_all(output)
    assert len(got) == 10
    odd = b"".join(b"%d " % index for index in range(1, 1000, 2))
    assert b"".join(data for channel, data in got if channel == STDOUT) == odd


@pytest.mark.parametrize("value", [-1, 1.5, "1", True, 2**40])
def test_bad_limits(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        check_limit(value)
