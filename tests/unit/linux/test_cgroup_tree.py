"""Counters of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.linux.cgroup import CgroupLayout
from fourwalls.linux.cgroup_tree import oom_file, oom_kills


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7),
        ("low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 1\n", 3),
        ("oom_kill_disable 5\nunder_oom 0\n", 0),
        ("", 0),
    ],
)
def test_oom_kills(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "counter").write_text(text)
    assert oom_kills(str(tmp_path / "counter")) == count


def test_a_group_that_is_gone_counts_nothing(tmp_path: Path) -> None:
    assert oom_kills(str(tmp_path / "none")) == 0


def test_where_the_counter_is() -> None:
    v2 = CgroupLayout(2, {"": "/sys/fs/cgroup"})
    v1 = CgroupLayout(1, {"memory": "/cg/memory", "pids": "/cg/pids", "cpu": "/cg/cpu"})
    assert oom_file(v2, "fourwalls/x/y") == "/sys/fs/cgroup/fourwalls/x/y/memory.events"
    assert oom_file(v1, "fourwalls/x/y") == "/cg/memory/fourwalls/x/y/memory.oom_control"
