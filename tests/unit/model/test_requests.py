"""What callers pass: ids, leases, environment, metadata."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.ids import new_sandbox_id, parse_sandbox_id
from fourwalls.model.sandbox import check_envs, check_metadata, check_timeout


def test_ids_are_valid_and_differ() -> None:
    made = {new_sandbox_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(parse_sandbox_id(one) == one for one in made)


@given(st.text(max_size=40))
def test_an_id_can_never_be_a_path(text: str) -> None:
    try:
        parsed = parse_sandbox_id(text)
    except InvalidArgumentError:
        return
    assert len(parsed) == 20
    assert all(c in "abcdefghijklmnopqrstuvwxyz0123456789" for c in parsed)


@pytest.mark.parametrize("bad", ["a" * 20 + "\n", "../" + "a" * 17, "A" * 20, "é" * 20, None, 3])
def test_bad_ids(bad: object) -> None:
    with pytest.raises(InvalidArgumentError, match="not a sandbox id"):
        parse_sandbox_id(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, 1e12, "5", None, True])
def test_bad_leases(bad: object) -> None:
    with pytest.raises(InvalidArgumentError, match="timeout must be"):
        check_timeout(bad)


@pytest.mark.parametrize(
    "bad", [{"A=B": "1"}, {"": "1"}, {"A\0": "1"}, {"A": "x\0"}, {"A": 1}, {1: "a"}, "A=1", None]
)
def test_bad_envs(bad: object) -> None:
    with pytest.raises(InvalidArgumentError):
        check_envs(bad)


@pytest.mark.parametrize("bad", [{"A": "\udcff"}, {"\ud800": "1"}])
def test_envs_that_cannot_be_written_down(bad: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="is not UTF-8"):
        check_envs(bad)


def test_envs_are_bounded() -> None:
    check_envs({"A": "x" * (128 * 1024 - 3)})
    with pytest.raises(InvalidArgumentError, match="at most 131071"):
        check_envs({"A": "x" * (128 * 1024 - 2)})
    with pytest.raises(InvalidArgumentError, match="at most 1048576 together"):
        check_envs({f"A{n}": "x" * 120_000 for n in range(10)})


def test_good_envs() -> None:
    assert check_envs({"A": "", "b.c": "d=e"}) == {"A": "", "b.c": "d=e"}


def test_metadata_is_bounded() -> None:
    assert check_metadata({"a": "b"}) == {"a": "b"}
    with pytest.raises(InvalidArgumentError, match="65536"):
        check_metadata({"a": "b" * 70_000})
    with pytest.raises(InvalidArgumentError, match="strings to strings"):
        check_metadata({"a": 1})
    with pytest.raises(InvalidArgumentError, match="is not UTF-8"):
        check_metadata({"a": "\udcff"})
