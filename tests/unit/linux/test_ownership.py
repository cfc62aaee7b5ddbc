"""Locked directories and id slots: who owns what, also after a crash."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fourwalls.linux import dirlock, slots
from fourwalls.model.errors import LimitError


def test_a_directory_is_an_orphan_once_every_holder_is_gone(tmp_path: Path) -> None:
    directory, lock = dirlock.make_locked(tmp_path, "abc")
    inherited = os.dup(lock)
    assert dirlock.is_held(directory)
    assert dirlock.take_if_orphaned(directory) is None
    os.close(lock)
    assert dirlock.take_if_orphaned(directory) is None
    os.close(inherited)
    assert not dirlock.is_held(directory)
    taken = dirlock.take_if_orphaned(directory)
    assert taken is not None
    assert dirlock.take_if_orphaned(directory) is None
    os.close(taken)


def test_a_missing_directory_is_nobodys(tmp_path: Path) -> None:
    assert dirlock.take_if_orphaned(tmp_path / "none") is None
    assert not dirlock.is_held(tmp_path / "none")


def test_the_same_name_twice_leaves_the_first_alone(tmp_path: Path) -> None:
    _, lock = dirlock.make_locked(tmp_path, "abc")
    with pytest.raises(OSError, match="not empty"):
        dirlock.make_locked(tmp_path, "abc")
    assert [p.name for p in tmp_path.iterdir()] == ["abc"]
    os.close(lock)


def test_slots_are_exclusive_and_name_their_owner(tmp_path: Path) -> None:
    claims = [slots.claim(tmp_path, f"owner{n}") for n in range(50)]
    assert len({slot for slot, _ in claims}) == 50
    assert sorted(slots.claimed(tmp_path).values()) == sorted(f"owner{n}" for n in range(50))
    slots.release(claims[0][1])
    slots.release(claims[0][1])
    assert len(slots.claimed(tmp_path)) == 49


def test_ranges_do_not_overlap_and_stay_below_2_31() -> None:
    bases = [slots.id_base(n) for n in (0, 1, 4094)]
    assert bases[1] - bases[0] == 65536
    assert bases[2] + 65536 <= 2**31


def test_no_slot_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_SLOTS", 2)
    slots.claim(tmp_path, "a")
    slots.claim(tmp_path, "b")
    with pytest.raises(LimitError, match="in use"):
        slots.claim(tmp_path, "c")


def test_a_reaper_that_comes_by_at_once_does_not_fail_the_maker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between mkdir and flock the directory is nobody's, and a reaper may take it for an orphan."""
    made = os.mkdir
    visits = 0

    def mkdir_and_reaper(path: Path, mode: int = 0o777) -> None:
        nonlocal visits
        made(path, mode)
        visits += 1
        if visits == 1:
            taken = dirlock.take_if_orphaned(path)
            assert taken is not None
            shutil.rmtree(path)
            os.close(taken)
        elif visits == 2:
            # Seen, locked, but not removed yet.
            held = dirlock.take_if_orphaned(path)
            assert held is not None
            holders.append(held)

    holders: list[int] = []
    monkeypatch.setattr(os, "mkdir", mkdir_and_reaper)
    directory, lock = dirlock.make_locked(tmp_path, "abc")
    assert visits == 3
    assert dirlock.is_held(directory)
    for fd in (lock, *holders):
        os.close(fd)
