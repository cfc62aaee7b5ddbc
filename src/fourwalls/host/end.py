"""Ending a sandbox by its id, whoever made it."""

from __future__ import annotations

import asyncio
import time

from fourwalls.host.adopt import adopt
from fourwalls.host.record import read_record
from fourwalls.linux import cgroup_tree, dirlock
from fourwalls.linux.cgroup import detect
from fourwalls.linux.mountinfo import read_mounts
from fourwalls.linux.places import Places
from fourwalls.model.errors import SandboxError, SandboxNotFoundError
from fourwalls.model.ids import parse_sandbox_id

_PATIENCE_S = 15.0


async def end(sandbox_id: str, places: Places) -> None:
    """End it and return when it is gone. Raises :class:`SandboxNotFoundError`."""
    directory = places.sandboxes / parse_sandbox_id(sandbox_id)
    record = read_record(directory)
    if record is None or not dirlock.is_held(directory):
        raise SandboxNotFoundError(
            f"no sandbox {sandbox_id} runs on this host",
            remedy="fourwalls list shows those that do",
        )
    if record.detach:
        await (await adopt(sandbox_id, places)).kill()
    else:
        # Its shim listens to nobody but the process that made it: take away what it guards.
        layout = detect(read_mounts())
        await asyncio.to_thread(cgroup_tree.destroy, layout, record.cgroup)
    deadline = time.monotonic() + _PATIENCE_S
    while dirlock.is_held(directory):
        if time.monotonic() > deadline:
            raise SandboxError(
                f"sandbox {sandbox_id} does not end", remedy="fourwalls doctor --clean"
            )
        await asyncio.sleep(0.01)
