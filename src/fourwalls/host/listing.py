"""The sandboxes of this host, by listing it."""

from __future__ import annotations

from fourwalls.host.record import read_record
from fourwalls.linux import dirlock
from fourwalls.linux.places import Places
from fourwalls.model.lifecycle import State
from fourwalls.model.sandbox import SandboxInfo


def running_sandboxes(places: Places) -> list[SandboxInfo]:
    """Every sandbox that lives now, whoever made it, oldest first."""
    found = []
    for directory in places.sandboxes.iterdir() if places.sandboxes.is_dir() else ():
        record = read_record(directory)
        if record is not None and dirlock.is_held(directory):
            found.append(record.info(State.RUNNING))
    return sorted(found, key=lambda info: info.started_at)
