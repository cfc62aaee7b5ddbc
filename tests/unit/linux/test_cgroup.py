"""Which layout a host has, and the groups of a sandbox by whole value."""

from __future__ import annotations

from collections.abc import Callable

from fourwalls.linux.cgroup import CgroupLayout, CgroupLimits, detect, group_paths, render_groups
from fourwalls.linux.mountinfo import Mount, parse_mountinfo

LIMITS = CgroupLimits(memory_bytes=1 << 30, pids=1024, cpus=1.5)


def cgroup1(target: str, *controllers: str) -> Mount:
    return Mount(target, "cgroup", "cgroup", ("rw", *controllers))


V1 = [
    cgroup1("/sys/fs/cgroup/cpu,cpuacct", "cpu", "cpuacct"),
    cgroup1("/sys/fs/cgroup/memory", "memory"),
    cgroup1("/sys/fs/cgroup/devices", "devices"),
    cgroup1("/sys/fs/cgroup/pids", "pids"),
    cgroup1("/sys/fs/cgroup/freezer", "freezer"),
]
UNIFIED = Mount("/sys/fs/cgroup/unified", "cgroup2", "cgroup2", ("rw",))
V2 = Mount("/sys/fs/cgroup", "cgroup2", "cgroup2", ("rw", "nsdelegate"))


def files(**contents: str) -> Callable[[str], str | None]:
    return lambda path: contents.get(path.rpartition("/")[2].replace(".", "_"))


def test_v2() -> None:
    layout = detect([V2], files(cgroup_controllers="cpuset cpu io memory pids\n"))
    assert layout == CgroupLayout(2, {"": "/sys/fs/cgroup"})


def test_v2_without_a_controller_cannot_limit() -> None:
    layout = detect([V2], files(cgroup_controllers="cpuset cpu io\n"))
    assert layout == CgroupLayout(0, {"": "/sys/fs/cgroup"}, missing=("memory", "pids"))


def test_hybrid_is_v1_with_something_to_hide() -> None:
    layout = detect([*V1, UNIFIED], files(memory_memsw_limit_in_bytes="1"))
    assert layout.version == 1
    assert layout.hybrid == "/sys/fs/cgroup/unified"
    assert layout.swap_limit
    assert layout.roots["cpu"] == layout.roots["cpuacct"] == "/sys/fs/cgroup/cpu,cpuacct"


def test_v1_without_swap_accounting() -> None:
    assert not detect(V1, files()).swap_limit


def test_v1_without_a_controller_cannot_limit() -> None:
    layout = detect([m for m in V1 if "pids" not in m.super_options], files())
    assert (layout.version, layout.missing) == (0, ("pids",))


def test_no_cgroups_at_all() -> None:
    assert detect([], files()) == CgroupLayout(0, {}, missing=("cpu", "memory", "pids"))


def test_render_v2() -> None:
    layout = CgroupLayout(2, {"": "/sys/fs/cgroup"})
    assert render_groups(layout, "fourwalls/default/abc", LIMITS) == {
        "version": 2,
        "groups": [
            {
                "path": "/sys/fs/cgroup/fourwalls/default/abc",
                "files": [
                    ["memory.max", "1073741824"],
                    ["memory.swap.max", "0"],
                    ["memory.oom.group", "0"],
                    ["pids.max", "1024"],
                    ["cpu.max", "150000 100000"],
                ],
            }
        ],
        "device_filter": True,
        "group_oom": False,
        "oom": "/sys/fs/cgroup/fourwalls/default/abc/memory.events",
        "pids": "/sys/fs/cgroup/fourwalls/default/abc/pids.events",
    }


def test_render_v1() -> None:
    layout = detect(V1, files(memory_memsw_limit_in_bytes="1"))
    rendered = render_groups(layout, "fourwalls/x/abc", LIMITS)
    assert rendered == {
        "version": 1,
        "groups": [
            {"path": "/sys/fs/cgroup/freezer/fourwalls/x/abc", "files": []},
            {
                "path": "/sys/fs/cgroup/devices/fourwalls/x/abc",
                "files": [
                    ["devices.deny", "a"],
                    ["devices.allow", "c 1:3 rwm"],
                    ["devices.allow", "c 1:5 rwm"],
                    ["devices.allow", "c 1:7 rwm"],
                    ["devices.allow", "c 1:8 rwm"],
                    ["devices.allow", "c 1:9 rwm"],
                    ["devices.allow", "c 5:0 rwm"],
                    ["devices.allow", "c 5:2 rwm"],
                    ["devices.allow", "c 136:* rwm"],
                ],
            },
            {
                "path": "/sys/fs/cgroup/cpu,cpuacct/fourwalls/x/abc",
                "files": [["cpu.cfs_period_us", "100000"], ["cpu.cfs_quota_us", "150000"]],
            },
            {"path": "/sys/fs/cgroup/pids/fourwalls/x/abc", "files": [["pids.max", "1024"]]},
            {
                "path": "/sys/fs/cgroup/memory/fourwalls/x/abc",
                "files": [
                    ["memory.limit_in_bytes", "1073741824"],
                    ["memory.memsw.limit_in_bytes", "1073741824"],
                ],
            },
        ],
        "device_filter": False,
        "group_oom": False,
        "oom": "/sys/fs/cgroup/memory/fourwalls/x/abc/memory.oom_control",
        "pids": "/sys/fs/cgroup/pids/fourwalls/x/abc/pids.events",
    }
    assert [g["path"] for g in rendered["groups"]] == group_paths(layout, "fourwalls/x/abc")


def test_mountinfo_is_parsed_with_its_escapes() -> None:
    text = (
        "36 35 98:0 /mnt1 /mnt\\040a\\134b rw,noatime master:1 - ext4 /dev/root rw,errors=panic\n"
        "broken line\n"
        "37 35 0:30 / /sys rw shared:7 master:3 - sysfs none rw\n"
    )
    assert parse_mountinfo(text) == [
        Mount("/mnt a\\b", "ext4", "/dev/root", ("rw", "errors=panic")),
        Mount("/sys", "sysfs", "none", ("rw",)),
    ]
