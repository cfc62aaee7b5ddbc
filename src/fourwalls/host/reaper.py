"""Finding and ending what nobody owns any more, by listing the host and never by memory.

What carries a sandbox's name is listed: its directory, control groups, id slot, disk image, the
runtime's state. A directory whose lock can be taken belongs to nobody. Mounts and loop devices need
no list: they belong to the shim's mount namespace and go with it.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from fourwalls.host.record import EXIT
from fourwalls.linux import cgroup_tree, dirlock, slots
from fourwalls.linux.cgroup import host_layout
from fourwalls.linux.flock import locked
from fourwalls.linux.places import Places
from fourwalls.model.ids import ID_LENGTH

_RECORD_KEPT_S = 3600.0


@dataclass
class Reaped:
    """What one pass removed, and what it could not."""

    sandboxes: list[str] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.sandboxes or self.slots or self.files or self.stuck)


def reap(places: Places) -> Reaped:
    """One pass. Safe beside running sandboxes and beside other passes, which it waits for."""
    places.run.mkdir(parents=True, exist_ok=True, mode=0o711)
    # Another pass could release a slot between our look at it and our own release: by then it may
    # be a new sandbox's.
    with locked(places.run / "reaper.lock"):
        return _reap(places)


def clear(places: Places, directory: Path) -> bool:
    """End what is left of the one sandbox of ``directory``, if nobody owns it; whether it is gone.

    A shim that came to its own end has left the directory at most; one that was killed, everything.
    """
    lock = dirlock.take_if_orphaned(directory)
    if lock is None:
        return not directory.exists()
    try:
        layout, group = host_layout(), cgroup_tree.group_name(places.instance, directory.name)
        if layout.version and not cgroup_tree.destroy(layout, group):
            return False
        for link, owner in slots.claimed(places.slots).items():
            if owner == directory.name:
                slots.release(link)
        shutil.rmtree(places.crun_root / directory.name, ignore_errors=True)
        (places.scratch / f"{directory.name}.img").unlink(missing_ok=True)
        # Last: what carries a name without a directory is a reaper's.
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
    return True


def _reap(places: Places) -> Reaped:
    layout = host_layout()
    done = Reaped()
    # Everything else is read before the directories: what is claimed later belongs to a sandbox
    # whose directory we may not have seen, and is not touched.
    owners = slots.claimed(places.slots)
    groups = cgroup_tree.sandboxes_with_groups(layout, places.instance) if layout.version else set()
    scratch = {path.stem: path for path in _list(places.scratch)}
    states = {path.name: path for path in _list(places.crun_root) if len(path.name) == ID_LENGTH}
    for directory in _list(places.sandboxes):
        if keeps_a_record(directory):
            continue
        sandbox_id = directory.name.removeprefix(".new-")
        lock = dirlock.take_if_orphaned(directory)
        if lock is None:
            continue
        try:
            group = cgroup_tree.group_name(places.instance, sandbox_id)
            if layout.version and not cgroup_tree.destroy(layout, group):
                done.stuck.append(f"cgroup {group}")
                continue
            shutil.rmtree(directory, ignore_errors=True)
            done.sandboxes.append(sandbox_id)
        finally:
            os.close(lock)
    alive = {directory.name.removeprefix(".new-") for directory in _list(places.sandboxes)}
    for sandbox_id in groups - alive - set(done.sandboxes):
        group = cgroup_tree.group_name(places.instance, sandbox_id)
        if cgroup_tree.destroy(layout, group):
            done.sandboxes.append(sandbox_id)
        else:
            done.stuck.append(f"cgroup {group}")
    stuck = {name.rpartition("/")[2] for name in done.stuck}
    for link, owner in owners.items():
        if owner not in alive and owner not in stuck and _still_owned_by(link, owner):
            slots.release(link)
            done.slots.append(link.name)
    for sandbox_id, path in scratch.items():
        if sandbox_id not in alive:
            path.unlink(missing_ok=True)
            done.files.append(str(path))
    for sandbox_id, path in states.items():
        if sandbox_id not in alive:
            shutil.rmtree(path, ignore_errors=True)
    return done


def keeps_a_record(directory: Path) -> bool:
    """The record of how a detached sandbox ended stays a while, for those who ask later."""
    try:
        return time.time() - (directory / EXIT).stat().st_mtime < _RECORD_KEPT_S
    except OSError:
        return False


def _still_owned_by(link: Path, owner: str) -> bool:
    try:
        return os.readlink(link) == owner
    except OSError:
        return False


def _list(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except FileNotFoundError:
        return []
