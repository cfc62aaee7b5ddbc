"""The reaper beside things that happen while it is at work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fourwalls.host import reaper
from fourwalls.linux import cgroup_tree, dirlock, slots
from fourwalls.linux.cgroup import CgroupLayout
from fourwalls.linux.places import Places

_OLD, _NEW = "o" * 20, "n" * 20


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    layout = CgroupLayout(2, {"": str(tmp_path / "cgroup")})
    monkeypatch.setattr(reaper, "host_layout", lambda: layout)
    return Places(tmp_path / "run", tmp_path / "state")


def test_a_sandbox_that_starts_during_a_pass_is_spared(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, old = dirlock.make_locked(places.sandboxes, _OLD)
    os.close(old)
    state = places.crun_root / _NEW
    locks = []

    def slow_destroy(layout: CgroupLayout, name: str) -> bool:
        # Killing a fork bomb takes seconds, in which a whole sandbox can start.
        if not locks:
            locks.append(dirlock.make_locked(places.sandboxes, _NEW)[1])
            places.slots.mkdir()
            slots.claim(places.slots, _NEW)
            state.mkdir(parents=True)
        return True

    monkeypatch.setattr(cgroup_tree, "destroy", slow_destroy)
    done = reaper.reap(places)
    assert done.sandboxes == [_OLD]
    assert not done.slots
    assert state.is_dir()
    assert (places.sandboxes / _NEW).is_dir()
    os.close(locks[0])


def test_what_a_sandbox_has_left_goes_by_its_name(places: Places) -> None:
    for directory in (places.slots, places.scratch, places.crun_root / _OLD):
        directory.mkdir(parents=True)
    slots.claim(places.slots, _OLD)
    (places.scratch / f"{_OLD}.img").touch()
    (places.crun_root / ".cache").mkdir()
    done = reaper.reap(places)
    assert done.slots
    assert done.files
    assert not list(places.slots.iterdir())
    assert [path.name for path in places.crun_root.iterdir()] == [".cache"]
