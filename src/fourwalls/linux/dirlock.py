"""A directory that is alive exactly as long as somebody holds its lock.

The lock is flock(2) on a file inside, taken before the directory gets its final name. The
descriptor is handed on to the process that keeps the directory's owner alive; when the last holder
dies, however it dies, the kernel frees the lock, and a reaper that can take it knows the directory
for an orphan.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from pathlib import Path

LOCK = "lock"
_UNFINISHED = ".new-"
_ATTEMPTS = 100


def make_locked(parent: Path, name: str, mode: int = 0o711) -> tuple[Path, int]:
    """Make ``parent/name`` with its lock held; the directory and the lock's descriptor."""
    parent.mkdir(parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        # Between its making and its lock the directory is nobody's: a reaper that comes by takes it
        # away, and one that only looks holds the lock for a moment.
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            return _make_locked(parent, name, mode)
    raise BlockingIOError(errno.EWOULDBLOCK, "the lock of a new directory is taken every time")


def _make_locked(parent: Path, name: str, mode: int) -> tuple[Path, int]:
    unfinished, final = parent / f"{_UNFINISHED}{name}", parent / name
    os.mkdir(unfinished, mode)
    try:
        fd = os.open(unfinished / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unfinished, final)
        except BaseException:
            os.close(fd)
            raise
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return final, fd


def take_if_orphaned(directory: Path) -> int | None:
    """The lock's descriptor if nobody held it, so that the caller may remove the directory."""
    try:
        fd = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def is_held(directory: Path) -> bool:
    """Whether the directory exists and somebody holds its lock."""
    with contextlib.suppress(OSError):
        fd = os.open(directory / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
    return False
