"""The checks of `doctor`, on kernels and layouts that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourwalls.host.doctor import Status, check_cgroups, check_kernel, check_speed
from fourwalls.host.kernel import Kernel, Presence, free_bytes
from fourwalls.linux.cgroup import CgroupLayout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a kernel that has everything, most of it built in."""
    files = {
        "proc/filesystems": "nodev\tproc\nnodev\toverlay\n\text4\n",
        "proc/sys/user/max_user_namespaces": "15000\n",
        "proc/sys/kernel/seccomp/actions_avail": "kill_process trap errno allow\n",
        "proc/self/ns/user": "",
        "sys/kernel/rcu_expedited": "0\n",
        "lib/modules/6.1.0/modules.dep": "kernel/fs/erofs/erofs.ko.xz: kernel/lib/x.ko\n",
        "lib/modules/6.1.0/modules.builtin": "kernel/drivers/block/loop.ko\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_good_kernel(root: Path) -> None:
    kernel = Kernel("6.1.0", root)
    assert kernel.filesystem("overlay") is Presence.PRESENT
    assert kernel.filesystem("erofs") is Presence.LOADABLE
    assert kernel.filesystem("btrfs") is Presence.ABSENT
    assert kernel.loop_devices() is Presence.PRESENT
    assert {check.status for check in check_kernel(kernel)} == {Status.OK}


def test_a_bad_kernel(tmp_path: Path) -> None:
    checks = check_kernel(Kernel("4.19.0-test", tmp_path))
    assert {check.name for check in checks} == {
        "kernel", "overlay", "erofs", "ext4", "loop devices", "user namespaces", "seccomp",
    }  # fmt: skip
    for check in checks:
        assert check.status is Status.MISSING
        assert check.remedy


def test_no_user_namespaces(root: Path) -> None:
    (root / "proc/sys/user/max_user_namespaces").write_text("0\n")
    (bad,) = [c for c in check_kernel(Kernel("6.1.0", root)) if c.status is Status.MISSING]
    assert bad.remedy == "sysctl -w user.max_user_namespaces=15000"


def test_speed_is_a_note_only(root: Path) -> None:
    (note,) = check_speed(Kernel("6.1.0", root))
    assert note.status is Status.NOTE
    (root / "sys/kernel/rcu_expedited").write_text("1\n")
    assert check_speed(Kernel("6.1.0", root)) == []


@pytest.mark.parametrize(
    ("layout", "status", "words"),
    [
        (CgroupLayout(2, {"": "/c"}), Status.OK, "version 2"),
        (CgroupLayout(1, {"memory": "/m"}), Status.OK, "version 1"),
        (CgroupLayout(1, {"memory": "/m"}, hybrid="/u"), Status.OK, "hybrid"),
        (CgroupLayout(1, {"memory": "/m"}, swap_limit=False), Status.NOTE, "swap"),
        (CgroupLayout(0, {}, missing=("pids",)), Status.MISSING, "pids"),
    ],
)
def test_cgroups(layout: CgroupLayout, status: Status, words: str) -> None:
    check = check_cgroups(layout)
    assert check.status is status
    assert words in check.detail


def test_free_space_of_what_is_not_there_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b" / "c") > 0
