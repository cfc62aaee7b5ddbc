"""Private directories for unfinished work, recognised as abandoned when their lock is free.

A workspace lives under the state directory, so that a finished template moves into the store by
rename. It is locked with flock(2) on the directory itself: the kernel frees the lock however the
owner ends, and the next one to open a workspace sweeps what is left.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fourwalls.linux.flock import locked, try_lock
from fourwalls.linux.mount import MNT_DETACH, mounts_below, unmount
from fourwalls.linux.places import Places

_PREFIX = "work-"
_GATE = ".lock"


@contextmanager
def workspace(places: Places) -> Iterator[Path]:
    """An empty directory, mode 0700, removed with all it holds at the end."""
    places.building.mkdir(mode=0o700, parents=True, exist_ok=True)
    places.building.chmod(0o700)  # what is unpacked here may be setuid
    with locked(places.building / _GATE):
        _sweep(places.building)
        path = places.building / f"{_PREFIX}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield path
    finally:
        try:
            remove_tree(path)
        finally:
            os.close(fd)


def sweep(places: Places) -> list[str]:
    """Remove what interrupted builds and imports left; returns the names of what was removed."""
    if not places.building.is_dir():
        return []
    with locked(places.building / _GATE):
        return _sweep(places.building)


def remove_tree(path: Path) -> None:
    """Remove ``path`` and all below it, after unmounting whatever is mounted there."""
    for target in mounts_below(path):
        unmount(target, MNT_DETACH)
    shutil.rmtree(path)


def _sweep(building: Path) -> list[str]:
    removed = []
    for path in building.glob(f"{_PREFIX}*"):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if try_lock(fd):
                remove_tree(path)
                removed.append(path.name)
        finally:
            os.close(fd)
    return removed
