"""Ending a sandbox by its id, whoever made it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

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
    _stop_shim(directory)
    deadline = time.monotonic() + _PATIENCE_S
    while dirlock.is_held(directory):
        if time.monotonic() > deadline:
            raise SandboxError(
                f"sandbox {sandbox_id} does not end", remedy="fourwalls doctor --clean"
            )
        await asyncio.sleep(0.01)
    # A detached sandbox leaves its directory with the record of its end.
    dirlock.remove_if_orphaned(directory)


def _stop_shim(directory: Path) -> None:
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
