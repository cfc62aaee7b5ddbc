"""Checks of names that come from inside: nothing may point outside of what was asked for."""

from __future__ import annotations

from fourwalls.guest.messages import Entry, WatchEvent
from fourwalls.model.errors import AgentProtocolError

_BAD_PARTS = frozenset({b"", b".", b".."})


def check_listed(entry: Entry, directory: bytes) -> None:
    """An entry of the listing of ``directory`` must lie below it, under its own name."""
    prefix = directory.rstrip(b"/") + b"/"
    rest = entry.path[len(prefix) :].split(b"/")
    if (
        not entry.path.startswith(prefix)
        or b"\0" in entry.path
        or not _BAD_PARTS.isdisjoint(rest)
        or rest[-1] != entry.name
    ):
        raise AgentProtocolError(
            f"the agent listed {entry.path[:200]!r} as {entry.name[:200]!r} in {directory[:200]!r}"
        )


def check_single(entry: Entry) -> None:
    """An entry that answers a question for one path."""
    if not entry.path.startswith(b"/") or b"\0" in entry.path or b"\0" in entry.name:
        raise AgentProtocolError(f"the agent described {entry.path[:200]!r}, which is no path")


def check_event(event: WatchEvent) -> None:
    """The name of a change is relative to the watched directory; empty means the directory."""
    if not event.name:
        return
    if b"\0" in event.name or not _BAD_PARTS.isdisjoint(event.name.split(b"/")):
        raise AgentProtocolError(f"the agent reported a change of {event.name[:200]!r}")
