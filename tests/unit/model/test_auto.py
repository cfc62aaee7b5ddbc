"""The choice of a boundary: never below what was asked, always with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.model.auto import DEFAULT_FLOOR, choose
from fourwalls.model.boundary import Boundary, Missing, Probe
from fourwalls.model.errors import BoundaryUnavailableError, InvalidArgumentError


def probes(
    *available: Boundary, slow: tuple[Boundary, ...] = (), lacking: tuple[Boundary, ...] = ()
) -> dict[Boundary, Probe]:
    found = {b: Probe(b, native_speed=b not in slow) for b in available}
    found |= {b: Probe(b, (Missing(f"{b.value} tool", f"install {b.value}"),)) for b in lacking}
    return found


def test_auto_takes_the_strongest_at_native_speed() -> None:
    here = probes(Boundary.CONTAINER, Boundary.GVISOR, Boundary.MICROVM, slow=(Boundary.MICROVM,))
    assert choose(None, None, here)[0] is Boundary.GVISOR


def test_auto_takes_the_slow_one_when_only_that_meets_the_floor() -> None:
    here = probes(Boundary.GVISOR, Boundary.MICROVM, slow=(Boundary.MICROVM,))
    boundary, reason = choose(None, Boundary.MICROVM, here)
    assert boundary is Boundary.MICROVM
    assert "none runs at native speed" in reason


def test_auto_refuses_below_its_default_floor_and_says_what_to_do() -> None:
    here = probes(Boundary.CONTAINER, lacking=(Boundary.GVISOR,))
    with pytest.raises(BoundaryUnavailableError) as caught:
        choose(None, None, here)
    assert "gvisor tool" in caught.value.message
    assert caught.value.remedy == "install gvisor"


def test_a_named_boundary_is_given_or_refused() -> None:
    here = probes(Boundary.CONTAINER, lacking=(Boundary.GVISOR,))
    assert choose(Boundary.CONTAINER, None, here) == (Boundary.CONTAINER, "asked for")
    with pytest.raises(BoundaryUnavailableError, match="cannot be used on this host"):
        choose(Boundary.GVISOR, None, here)
    with pytest.raises(BoundaryUnavailableError, match="not part of this version"):
        choose(Boundary.MICROVM, None, here)
    with pytest.raises(BoundaryUnavailableError, match="weaker than the floor"):
        choose(Boundary.CONTAINER, Boundary.GVISOR, here)


@given(
    asked=st.none() | st.sampled_from(list(Boundary)),
    floor=st.none() | st.sampled_from(list(Boundary)),
    here=st.dictionaries(st.sampled_from(list(Boundary)), st.tuples(st.booleans(), st.booleans())),
)
def test_never_weaker_than_asked(
    asked: Boundary | None,
    floor: Boundary | None,
    here: dict[Boundary, tuple[bool, bool]],
) -> None:
    given_probes = {
        b: Probe(b, () if ok else (Missing("x", "y"),), native_speed=native)
        for b, (ok, native) in here.items()
    }
    try:
        boundary, reason = choose(asked, floor, given_probes)
    except BoundaryUnavailableError:
        return
    assert reason
    assert given_probes[boundary].available
    assert asked is None or boundary is asked
    assert floor is None or not boundary < floor
    if asked is None and floor is None:
        assert not boundary < DEFAULT_FLOOR


def test_parse() -> None:
    assert Boundary.parse("gvisor") is Boundary.GVISOR
    with pytest.raises(InvalidArgumentError, match="one of auto, isolate, container"):
        Boundary.parse("docker")
