"""What may come into a template: extended attributes, device nodes, ids, and how much of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from fourwalls.images.entry import Entry, Kind
from fourwalls.model.errors import ImportRefusedError

GIB = 1 << 30
LARGEST_ID = 65535
_NOBODY = 65534
_MOST_NOTES = 50
_LARGEST_XATTR = 4096
# Refused, not dropped: the overlay mounted on the template would obey them.
_REFUSED_XATTRS = ("trusted.", "user.overlay.")
# Made anew in each sandbox, so that their absence from the image changes nothing.
_HARMLESS_DEVICES = {
    "console": (5, 1),
    "full": (1, 7),
    "null": (1, 3),
    "ptmx": (5, 2),
    "random": (1, 8),
    "tty": (5, 0),
    "urandom": (1, 9),
    "zero": (1, 5),
}


@dataclass(frozen=True)
class Limits:
    """The most an import may bring. ``stream_bytes`` counts what decompression yields."""

    file_bytes: int = 16 * GIB
    stream_bytes: int = 20 * GIB
    entries: int = 1_000_000
    layers: int = 127


class Verdict(enum.Enum):
    """What to do with an extended attribute or a device node; refusals are raised."""

    KEEP = "keep"
    DROP = "drop"


@dataclass
class Notes:
    """What was left out or changed, for people: each thing once, and not without end."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        if len(self.lines) < _MOST_NOTES and line not in self.lines:
            self.lines.append(line)


def judge_xattr(entry: Entry, name: str, value: bytes) -> Verdict:
    """``security.capability`` and ``user.*`` stay; what steers an overlay is refused."""
    if name.startswith(_REFUSED_XATTRS):
        raise ImportRefusedError(f"{entry} has the extended attribute {name!a}")
    if not (name == "security.capability" or name.startswith("user.")):
        return Verdict.DROP
    if len(value) > _LARGEST_XATTR or len(name.encode("utf-8", "surrogateescape")) > 255:
        raise ImportRefusedError(
            f"{entry} has an extended attribute of {len(value)} bytes;"
            f" at most {_LARGEST_XATTR} are allowed"
        )
    if "\0" in name or name == "user.":
        raise ImportRefusedError(f"{entry} has an extended attribute with no valid name")
    return Verdict.KEEP


def judge_device(entry: Entry) -> Verdict:
    """The usual nodes of /dev are dropped, every other device node is refused."""
    usual = (
        entry.kind is Kind.CHAR_DEVICE
        and len(entry.path) == 2
        and entry.path[0] == "dev"
        and _HARMLESS_DEVICES.get(entry.path[1]) == entry.device
    )
    if usual:
        return Verdict.DROP
    major, minor = entry.device
    raise ImportRefusedError(
        f"{entry} is a {entry.kind.value} ({major}:{minor}); a sandbox gets its devices from its"
        " boundary, never from a template"
    )


def owner(entry: Entry, notes: Notes) -> tuple[int, int]:
    """User and group id, those beyond what a sandbox can map turned to nobody."""
    if max(entry.uid, entry.gid) > LARGEST_ID:
        notes.add(f"owners above {LARGEST_ID} became nobody ({_NOBODY})")
    return (
        entry.uid if entry.uid <= LARGEST_ID else _NOBODY,
        entry.gid if entry.gid <= LARGEST_ID else _NOBODY,
    )
