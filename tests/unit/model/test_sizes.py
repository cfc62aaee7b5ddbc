"""Sizes and overrides: bad numbers are refused with what is allowed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.sizes import SIZES, Resources, resources


def test_sizes_grow() -> None:
    order = [SIZES[name] for name in ("small", "medium", "large", "xlarge")]
    for field in ("cpus", "memory_mib", "disk_mib"):
        values = [getattr(size, field) for size in order]
        assert values == sorted(values)
        assert len(set(values)) == len(values)


def test_overrides() -> None:
    assert resources("small", cpus=0.5, memory_mib=256) == Resources(0.5, 256, 4096, 1024)


@pytest.mark.parametrize("name", ["cpus", "memory_mib", "disk_mib", "pids"])
@pytest.mark.parametrize(
    "value", [0, -1, -0.5, math.nan, math.inf, -math.inf, 1e300, True, "1", 10**30]
)
def test_bad_numbers(name: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        resources("small", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "SMALL", "huge", "small "])
def test_unknown_size(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="one of small, medium, large, xlarge"):
        resources(name)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_float_slips_through(value: float) -> None:
    try:
        chosen = resources("small", memory_mib=value)  # type: ignore[arg-type]
    except InvalidArgumentError:
        return
    assert isinstance(chosen.memory_mib, int)
    assert 64 <= chosen.memory_mib <= 4 * 1024 * 1024
