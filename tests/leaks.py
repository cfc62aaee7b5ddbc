"""Taking stock of the host: everything a sandbox can leave behind, found by listing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fourwalls.linux import cgroup_tree, slots
from fourwalls.linux.cgroup import detect
from fourwalls.linux.mountinfo import read_mounts
from fourwalls.linux.places import Places

# The kernel ends processes and takes mounts apart a moment after the last user is gone.
_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Inventory:
    """What is there at one moment, each thing with a name that says what it is."""

    things: frozenset[str]

    @classmethod
    def take(cls, places: Places) -> Self:
        return cls(
            frozenset(
                [
                    *_processes(places),
                    *_mounts(places),
                    *_loops(places),
                    *_groups(places),
                    *_files(places),
                    *_descriptors(),
                ]
            )
        )

    @classmethod
    def settle(cls, places: Places, before: Self) -> list[str]:
        """What is there now and was not before, once it has had time to go."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            left = sorted(cls.take(places).things - before.things)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.02)


def _processes(places: Places) -> list[str]:
    """What is in a group of this installation, and the shims that hold a lock of it."""
    found = []
    group = f"/fourwalls/{places.instance}/".encode()
    directory = f"{places.sandboxes}/"
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            name = Path(entry.path, "comm").read_text().strip()
            ours = group in Path(entry.path, "cgroup").read_bytes()
            if name.startswith("fourwalls-shim") and not ours:
                ours = os.readlink(f"{entry.path}/fd/4").startswith(directory)
        except OSError:
            continue
        if ours:
            found.append(f"process {entry.name} {name}")
    return found


def _mounts(places: Places) -> list[str]:
    # The templates' mounts are made once for the whole run; the session's fixture takes them down.
    return [
        f"mount {mount.target}"
        for mount in read_mounts()
        if mount.target.startswith(f"{places.sandboxes}/")
    ]


def _loops(places: Places) -> list[str]:
    found = []
    for device in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = device.read_text().strip()
        except OSError:
            continue
        if backing.startswith(f"{places.scratch}/"):
            found.append(f"loop {device.parts[3]} {backing}")
    return found


def _groups(places: Places) -> list[str]:
    layout = detect(read_mounts())
    return [f"cgroup {name}" for name in cgroup_tree.sandboxes_with_groups(layout, places.instance)]


def _files(places: Places) -> list[str]:
    found = [f"slot {link.name}" for link in slots.claimed(places.slots)]
    for directory in (places.sandboxes, places.scratch, places.crun_root):
        if directory.is_dir():
            found += [f"file {path}" for path in directory.iterdir()]
    # Newer versions of crun keep the compiled seccomp profile there, for all sandboxes.
    return [thing for thing in found if thing != f"file {places.crun_root}/.cache"]


def _descriptors() -> list[str]:
    """Open descriptors of this process that point at sandboxes or are sockets and pidfds."""
    found = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            target = os.readlink(entry.path)
        except OSError:
            continue
        if "fourwalls" in target or "pidfd" in target:
            found.append(f"descriptor {target}")
    return found
