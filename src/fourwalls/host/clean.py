"""Tidying this host: orphans go, and templates nobody runs from are unmounted."""

from __future__ import annotations

from dataclasses import dataclass

from fourwalls.host.listing import running_sandboxes
from fourwalls.host.reaper import Reaped, reap
from fourwalls.images.mounts import unmount_idle
from fourwalls.images.names import digest_hex
from fourwalls.linux.places import Places


@dataclass(frozen=True)
class Cleaned:
    """What went: orphans, and mounts of templates (by digest)."""

    reaped: Reaped
    unmounted: tuple[str, ...]


def clean(places: Places) -> Cleaned:
    """Safe beside running sandboxes."""
    reaped = reap(places)
    in_use = {digest_hex(info.template_digest) or "" for info in running_sandboxes(places)}
    return Cleaned(reaped, tuple(unmount_idle(places, in_use)))
