"""What the reaper would remove, found without removing anything."""

from __future__ import annotations

from fourwalls.host.reaper import keeps_a_record
from fourwalls.linux import cgroup_tree, dirlock, slots
from fourwalls.linux.cgroup import host_layout
from fourwalls.linux.places import Places


def find_orphans(places: Places) -> list[str]:
    """One line for each thing that carries the name of a sandbox nobody owns."""
    layout = host_layout()
    owners = slots.claimed(places.slots)
    groups = cgroup_tree.sandboxes_with_groups(layout, places.instance) if layout.version else set()
    scratch = sorted(places.scratch.iterdir()) if places.scratch.is_dir() else []
    directories = sorted(places.sandboxes.iterdir()) if places.sandboxes.is_dir() else []
    alive = {d.name.removeprefix(".new-") for d in directories if dirlock.is_held(d)}
    kept = {d.name for d in directories if keeps_a_record(d)}
    return [
        *(f"directory of sandbox {d.name}" for d in directories if d.name not in alive | kept),
        *(f"control group of sandbox {name}" for name in sorted(groups - alive)),
        *(
            f"id slot {link.name} of {owner}"
            for link, owner in owners.items()
            if owner not in alive
        ),
        *(f"disk of sandbox {path.stem}" for path in scratch if path.stem not in alive),
    ]
