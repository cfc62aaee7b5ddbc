"""A sandbox as the host sees it: its processes, and the shim beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fourwalls import AsyncSandbox


@dataclass(frozen=True)
class Seen:
    """The processes in a sandbox's cgroup, the first host id of its range, and its shim."""

    pids: tuple[int, ...]
    base: int
    shim: int


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def processes_of(sandbox: AsyncSandbox) -> Seen:
    """What is in the groups of the sandbox now."""
    shim = await sandbox._live.session.status()
    pids = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            groups = Path(entry.path, "cgroup").read_text()
        except OSError:
            continue
        if f"/{sandbox.sandbox_id}" in groups:
            pids.append(int(entry.name))
    maps = {Path(f"/proc/{pid}/uid_map").read_text() for pid in pids}
    bases = {int(line.split()[1]) for text in maps for line in text.splitlines()}
    (base,) = bases
    return Seen(tuple(sorted(pids)), base, shim.shim_pid)
