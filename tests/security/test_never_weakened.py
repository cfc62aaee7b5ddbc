"""A boundary that cannot be had is refused with the remedy; nothing weaker is given instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox, BoundaryUnavailableError, InvalidArgumentError
from fourwalls.boundaries import registry
from fourwalls.boundaries.oci import runtime
from fourwalls.model.boundary import Boundary

Hide = Callable[[str, str | None], None]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hide]:
    """Let a runtime be absent (None), or be a program that prints this as its version."""

    places: dict[str, str | None] = {}

    def find(wanted: str) -> str | None:
        return places[wanted] if wanted in places else runtime.find_runtime(wanted)

    def replace(name: str, version: str | None) -> None:
        path = tmp_path / name
        if version is not None:
            path.write_text(f"#!/bin/sh\necho '{version}'\n")
            path.chmod(0o755)
        places[name] = str(path) if version is not None else None

    for module in ("container", "gvisor"):
        monkeypatch.setattr(f"fourwalls.boundaries.{module}.driver.find_runtime", find)
    runtime.runtime_version.cache_clear()
    yield replace
    runtime.runtime_version.cache_clear()


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "runsc"),
        ("runsc version 0.0~20221219.0", "runsc 20240729 or newer (found: runsc version"),
        ("runsc version release-20240728.0", "runsc 20240729 or newer (found: runsc version"),
        ("Segmentation fault", "runsc 20240729 or newer (found: Segmentation fault"),
        ("", "runsc 20240729 or newer (found:"),
    ],
    ids=["absent", "old", "a-day-old", "broken", "silent"],
)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"boundary": "auto"},
        {"boundary": "gvisor"},
        {"min_boundary": "gvisor"},
        {"boundary": "gvisor", "min_boundary": "container"},
    ],
    ids=["default", "auto", "named", "floor", "both"],
)
async def test_without_gvisor(
    stand_in: Hide, version: str | None, said: str, asked: dict[str, str]
) -> None:
    stand_in("runsc", version)
    with pytest.raises(BoundaryUnavailableError) as refused:
        await AsyncSandbox.create(**asked)  # type: ignore[arg-type]
    assert said in refused.value.message
    assert "apt-get install" in (refused.value.remedy or "")


async def test_without_gvisor_a_lower_floor_has_to_be_asked_for(stand_in: Hide) -> None:
    stand_in("runsc", None)
    async with await AsyncSandbox.create(min_boundary="container", timeout=60) as sandbox:
        assert sandbox.boundary == "container"
        assert sandbox.info.boundary_reason.startswith("auto with floor container")


@pytest.mark.parametrize("version", [None, "crun version 1.7.2", "crun version 0.21"])
async def test_without_crun(stand_in: Hide, version: str | None) -> None:
    stand_in("crun", version)
    with pytest.raises(BoundaryUnavailableError) as refused:
        await AsyncSandbox.create(boundary="container")
    assert "crun" in refused.value.message
    assert refused.value.remedy == "apt-get install crun"


async def test_without_anything(stand_in: Hide) -> None:
    stand_in("crun", None)
    stand_in("runsc", None)
    with pytest.raises(BoundaryUnavailableError) as refused:
        await AsyncSandbox.create(min_boundary="container")
    assert "container: crun" in refused.value.message
    assert "gvisor: runsc" in refused.value.message


@pytest.mark.parametrize(
    ("asked", "floor"),
    [("container", "gvisor"), ("container", "microvm"), ("gvisor", "microvm")],
)
async def test_a_floor_above_the_boundary_is_a_contradiction(asked: str, floor: str) -> None:
    with pytest.raises(BoundaryUnavailableError, match=f"{asked} is weaker than the floor {floor}"):
        await AsyncSandbox.create(boundary=asked, min_boundary=floor)


@pytest.mark.parametrize("name", ["isolate", "microvm"])
async def test_what_is_not_in_this_version_is_refused(name: str) -> None:
    with pytest.raises(BoundaryUnavailableError, match="not part of this version") as refused:
        await AsyncSandbox.create(boundary=name)
    assert refused.value.remedy == "use one of container, gvisor"


async def test_a_floor_nobody_reaches() -> None:
    with pytest.raises(BoundaryUnavailableError, match="at or above microvm"):
        await AsyncSandbox.create(min_boundary="microvm")


@pytest.mark.parametrize("name", ["docker", "CONTAINER", "", "gvisor "])
async def test_unknown_names(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        await AsyncSandbox.create(boundary=name)


async def test_auto_takes_the_strongest(boundary: Boundary) -> None:
    """Also where the weaker one would do."""
    best = max(b for b, probe in registry.probe_all().items() if probe.available)
    async with await AsyncSandbox.create(min_boundary=boundary.value, timeout=60) as sandbox:
        assert sandbox.boundary == best.value


async def test_a_runtime_that_fails_is_an_error_and_no_fallback(
    stand_in: Hide, tmp_path: Path
) -> None:
    from fourwalls import SandboxStartError

    stand_in("runsc", "runsc version 0.0~20990101.0")
    with pytest.raises(SandboxStartError):
        await AsyncSandbox.create(timeout=60)
