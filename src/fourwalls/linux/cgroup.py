"""Control groups: which layout this host has, and the groups of one sandbox as data.

The shim makes the groups (docs/wire/shim.md), so that the runtime starts inside them; this module
says what to write. Reading and ending of groups by the reaper is in :mod:`cgroup_tree`.
Source of the file names: the kernel's ``cgroup-v1/*`` and ``cgroup-v2`` documents.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fourwalls.linux.mountinfo import Mount, read_mounts

PERIOD_US = 100_000

# The devices every container has; anything else is denied.
ALLOWED_DEVICES = ("c 1:3", "c 1:5", "c 1:7", "c 1:8", "c 1:9", "c 5:0", "c 5:2", "c 136:*")

# Made in this order. The last is the one whose cgroup.procs is read to end a sandbox.
_V1_ORDER = ("freezer", "devices", "cpuacct", "cpu", "pids", "memory")
_V2_NEEDED = frozenset({"memory", "pids", "cpu"})


@dataclass(frozen=True)
class CgroupLayout:
    """Where the controllers are. ``version`` 0: limits cannot be set on this host.

    ``roots`` maps controller to the mount point of its hierarchy (v2: one entry ``""``).
    ``hybrid`` is a v2 hierarchy mounted beside v1 ones, which crun has to be kept from seeing.
    """

    version: int
    roots: Mapping[str, str]
    hybrid: str | None = None
    swap_limit: bool = True
    missing: tuple[str, ...] = ()


def detect(mounts: list[Mount], read: Any = None) -> CgroupLayout:
    """The layout behind ``mounts`` (``/proc/self/mountinfo``).

    ``read`` gives the text of a file, or None when there is none; it is a parameter for tests.
    """
    read = read or _read
    v2 = [m.target for m in mounts if m.fstype == "cgroup2"]
    v1: dict[str, str] = {}
    for mount in mounts:
        if mount.fstype == "cgroup":
            for option in mount.super_options:
                if option in _V1_ORDER:
                    v1.setdefault(option, mount.target)
    if "memory" in v1:
        missing = tuple(c for c in ("cpu", "memory", "pids", "devices") if c not in v1)
        swap = read(f"{v1['memory']}/memory.memsw.limit_in_bytes") is not None
        return CgroupLayout(
            0 if missing else 1, v1, hybrid=v2[0] if v2 else None, swap_limit=swap, missing=missing
        )
    if v2:
        available = set((read(f"{v2[0]}/cgroup.controllers") or "").split())
        missing = tuple(sorted(_V2_NEEDED - available))
        return CgroupLayout(0 if missing else 2, {"": v2[0]}, missing=missing)
    return CgroupLayout(0, {}, missing=tuple(sorted(_V2_NEEDED)))


@functools.cache
def host_layout() -> CgroupLayout:
    """The layout of this host, looked up once: it does not change while programs run."""
    return detect(read_mounts())


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None


@dataclass(frozen=True)
class CgroupLimits:
    """Limits of one sandbox. ``group_oom``: a memory overrun ends all of it, not one process."""

    memory_bytes: int
    pids: int
    cpus: float
    group_oom: bool = False


def group_paths(layout: CgroupLayout, name: str) -> list[str]:
    """The directories of the group ``name`` (relative), in the order they are made."""
    if layout.version == 2:
        return [f"{layout.roots['']}/{name}"]
    roots = dict.fromkeys(layout.roots[c] for c in _V1_ORDER if c in layout.roots)
    # cpu and cpuacct are often one hierarchy; memory must stay last.
    memory = layout.roots["memory"]
    return [f"{root}/{name}" for root in roots if root != memory] + [f"{memory}/{name}"]


def render_groups(layout: CgroupLayout, name: str, limits: CgroupLimits) -> dict[str, Any]:
    """The ``cgroup`` map of a launch specification."""
    quota = max(1000, round(limits.cpus * PERIOD_US))
    if layout.version == 2:
        path = f"{layout.roots['']}/{name}"
        files = [
            ["memory.max", str(limits.memory_bytes)],
            ["memory.swap.max", "0"],
            ["memory.oom.group", "1" if limits.group_oom else "0"],
            ["pids.max", str(limits.pids)],
            ["cpu.max", f"{quota} {PERIOD_US}"],
        ]
        return {
            "version": 2,
            "groups": [{"path": path, "files": files}],
            "device_filter": True,
            "group_oom": limits.group_oom,
            "oom": f"{path}/memory.events",
            "pids": f"{path}/pids.events",
        }
    files_of: dict[str, list[list[str]]] = {
        "cpu": [["cpu.cfs_period_us", str(PERIOD_US)], ["cpu.cfs_quota_us", str(quota)]],
        "pids": [["pids.max", str(limits.pids)]],
        "memory": [["memory.limit_in_bytes", str(limits.memory_bytes)]],
        "devices": [
            ["devices.deny", "a"],
            *(["devices.allow", f"{device} rwm"] for device in ALLOWED_DEVICES),
        ],
    }
    if layout.swap_limit:
        files_of["memory"].append(["memory.memsw.limit_in_bytes", str(limits.memory_bytes)])
    groups = []
    for path in group_paths(layout, name):
        root = path.removesuffix(f"/{name}")
        files = [
            line
            for controller in _V1_ORDER
            if layout.roots.get(controller) == root
            for line in files_of.get(controller, [])
        ]
        groups.append({"path": path, "files": files})
    return {
        "version": 1,
        "groups": groups,
        "device_filter": False,
        "group_oom": limits.group_oom,
        "oom": f"{layout.roots['memory']}/{name}/memory.oom_control",
        "pids": f"{layout.roots['pids']}/{name}/pids.events",
    }
