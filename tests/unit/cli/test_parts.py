"""The small parts: sizes, escapes, what a terminal must not obey, what a demo answer means."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from fourwalls.cli.demo_program import ATTEMPTS, BOMBS, compute
from fourwalls.cli.demo_trial import TITLES, judge
from fourwalls.cli.environment import parse_environment
from fourwalls.cli.options import Mebibytes
from fourwalls.cli.output import printable
from fourwalls.cli.run import _input, _output, _pair
from fourwalls.cli.terminal import Escape
from fourwalls.model.boundary import Boundary
from fourwalls.model.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "mib"),
    [("512", 512), ("512M", 512), ("2G", 2048), ("2GiB", 2048), ("0.5g", 512), ("1T", 1 << 20)],
)
def test_sizes(text: str, mib: int) -> None:
    assert Mebibytes().convert(text, None, None) == mib


@pytest.mark.parametrize("text", ["", "x", "-1", "1K", "1e9", "0x10", "nan"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Mebibytes().convert(text, None, None)


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([b"~."], True),
        ([b"~", b"."], True),
        ([b"ls\r", b"~."], True),
        ([b"ls~."], False),
        ([b"~x."], False),
        ([b"a~.\n~."], True),
    ],
)
def test_escape(pieces: list[bytes], found: bool) -> None:
    escape = Escape()
    assert any([escape.seen(piece) for piece in pieces]) is found


def test_printable() -> None:
    assert printable("a\x1b[31mb\x07\nü") == "a\ufffd[31mb\ufffd\nü"


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "mine")
    assert parse_environment(["A=1", "B=x=y", "C=", "OWN"]) == {
        "A": "1", "B": "x=y", "C": "", "OWN": "mine",
    }  # fmt: skip
    for bad in ("=x", "NOT_SET_ANYWHERE", "A=\0"):
        with pytest.raises(InvalidArgumentError):
            parse_environment([bad])


def test_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _pair("a") == ("a", None)
    assert _pair("a:b") == ("a", "b")
    assert _pair("a:b:c") == ("a:b", "c")
    for bad in ("a:", ":b", ":"):
        with pytest.raises(InvalidArgumentError):
            _pair(bad)
    Path("with:colon").write_text("")
    assert _input("with:colon").source == Path("with:colon")
    assert _output("/a/b/").destination == Path("b")
    assert _output("/a/b:c").destination == Path("c")


def test_the_demo_names_every_attempt() -> None:
    assert list(TITLES) == [*ATTEMPTS, *BOMBS]
    assert compute() == 17984


def test_judging() -> None:
    done = {"name": "mount", "done": True, "answer": "done"}
    assert judge(Boundary.CONTAINER, done).verdict == "let_through"
    assert judge(Boundary.GVISOR, done).verdict == "contained"
    assert judge(Boundary.GVISOR, {**done, "name": "read_host_file"}).verdict == "let_through"
    assert judge(Boundary.CONTAINER, {**done, "done": False}).verdict == "refused"
