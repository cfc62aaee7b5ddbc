"""Ending a sandbox by its id, whoever made it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

from fourwalls.host.reaper import clear
from fourwalls.host.record import read_record
from fourwalls.linux import dirlock
from fourwalls.linux.binaries import SHIM
from fourwalls.linux.places import Places
from fourwalls.model.errors import SandboxError, SandboxNotFoundError
from fourwalls.model.ids import parse_sandbox_id

_PATIENCE_S = 15.0
# Where every shim holds the lock of its sandbox's directory (docs/wire/shim.md).
_LOCK_FD = 4


async def end(sandbox_id: str, places: Places) -> None:
    """End it and return when nothing of it is left. Raises :class:`SandboxNotFoundError`."""
    directory = places.sandboxes / parse_sandbox_id(sandbox_id)
    if read_record(directory) is None or not dirlock.is_held(directory):
        raise SandboxNotFoundError(
            f"no sandbox {sandbox_id} runs on this host",
            remedy="fourwalls list shows those that do",
        )
    stop_shim(directory)
    await until_gone(places, directory)


async def until_gone(places: Places, directory: Path) -> None:
    """Wait for the end of a sandbox that has been told to end, and see that nothing is left.

    A detached sandbox leaves its directory with the record of its end, and a shim that was killed
    much more. Raises :class:`SandboxError` when it does not end.
    """
    deadline = time.monotonic() + _PATIENCE_S
    # The kernel tells nobody when a lock becomes free. Clearing may have processes to end.
    while not _is_gone(directory):
        if not dirlock.is_held(directory) and await asyncio.to_thread(clear, places, directory):
            return
        if time.monotonic() > deadline:
            raise SandboxError(
                f"sandbox {directory.name} does not end", remedy="fourwalls doctor --clean"
            )
        await asyncio.sleep(0.005)


def _is_gone(directory: Path) -> bool:
    return not directory.exists()


def stop_shim(directory: Path) -> None:
    """SIGTERM: the shim ends the sandbox with cause ``killed`` and cleans up."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or not _guards(entry.name, directory):
            continue
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(int(entry.name))
            try:
                # The number could be another process's by now.
                if _guards(entry.name, directory):
                    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
            finally:
                os.close(pidfd)


def _guards(pid: str, directory: Path) -> bool:
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        lock = os.readlink(f"/proc/{pid}/fd/{_LOCK_FD}")
    except OSError:
        return False
    # A copy of the shim runs, whose name says more; the kernel keeps 15 characters.
    return name.startswith(SHIM) and lock == str(directory / dirlock.LOCK)
