"""Ending control groups on the real host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fourwalls.linux import cgroup_tree
from fourwalls.linux.cgroup import CgroupLayout, group_paths, host_layout
from fourwalls.linux.places import Places


@pytest.fixture
def group(places: Places) -> Iterator[tuple[CgroupLayout, str, list[Path]]]:
    layout = host_layout()
    if not layout.version:
        pytest.skip("this host has no control groups to be used")
    name = cgroup_tree.group_name(places.instance, "frozen")
    paths = [Path(path) for path in group_paths(layout, name)]
    for path in paths:
        path.mkdir(parents=True)
    yield layout, name, paths
    assert cgroup_tree.destroy(layout, name)


def test_a_frozen_group_is_thawed_and_ended(group: tuple[CgroupLayout, str, list[Path]]) -> None:
    """A shim freezes the group of a fork bomb to end it, and may be killed in between."""
    layout, name, paths = group
    with subprocess.Popen(["sleep", "60"]) as process:
        for path in paths:
            (path / "cgroup.procs").write_text(str(process.pid))
            if (path / "freezer.state").exists():
                (path / "freezer.state").write_text("FROZEN")
            elif (path / "cgroup.freeze").exists():
                (path / "cgroup.freeze").write_text("1")
        assert cgroup_tree.destroy(layout, name, patience_s=3)
        assert process.wait(1) == -9
    assert not any(path.exists() for path in paths)
