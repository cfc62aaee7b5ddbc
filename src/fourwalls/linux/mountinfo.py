"""Parsing of ``/proc/<pid>/mountinfo`` (format: proc_pid_mountinfo(5))."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One mount: where it is, what it is, and the options of its superblock."""

    target: str
    fstype: str
    source: str
    super_options: tuple[str, ...]


def parse_mountinfo(text: str) -> list[Mount]:
    """All mounts, oldest first. Lines that are not of the format are skipped."""
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, rest = left.split(" "), right.split(" ")
        if not separator or len(fields) < 6 or len(rest) < 3:
            continue
        mounts.append(Mount(_plain(fields[4]), rest[0], _plain(rest[1]), tuple(rest[2].split(","))))
    return mounts


def read_mounts(pid: int | None = None) -> list[Mount]:
    """The mounts seen by ``pid``, or by this process."""
    who = "self" if pid is None else str(pid)
    return parse_mountinfo(Path(f"/proc/{who}/mountinfo").read_text(errors="surrogateescape"))


def _plain(field: str) -> str:
    # Space, tab, newline and backslash in paths are written as octal escapes.
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
