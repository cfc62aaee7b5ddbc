"""Ranges of host ids: one of 65536 for each sandbox, never two sandboxes in one.

A slot is a symbolic link ``slots/<n> -> <sandbox id>``. Making a symbolic link is atomic, so two
processes never get the same slot, and the link names its owner, so that a left one can be told.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from fourwalls.model.errors import LimitError

# Above the ranges that useradd (100000…) and systemd (0x00080000…0x6FFFFFFF) give out, below 2^31.
_FIRST_ID = 0x70000000
_SLOTS = 4095
_IDS = 65536


def id_base(slot: int) -> int:
    """The first host id of a slot."""
    return _FIRST_ID + slot * _IDS


def claim(directory: Path, owner: str) -> tuple[int, Path]:
    """A free slot for the sandbox ``owner``: its number, and the link that holds it."""
    start = random.randrange(_SLOTS)
    for step in range(_SLOTS):
        slot = (start + step) % _SLOTS
        link = directory / str(slot)
        try:
            os.symlink(owner, link)
        except FileExistsError:
            continue
        return slot, link
    raise LimitError(
        f"all {_SLOTS} id ranges of this host are in use",
        remedy="end some sandboxes, or run 'fourwalls doctor --clean' if there are none",
    )


def release(link: Path) -> None:
    """Give a slot back. Only when nothing of its owner runs any more."""
    link.unlink(missing_ok=True)


def claimed(directory: Path) -> dict[Path, str]:
    """All slots in use, with their owners."""
    owners: dict[Path, str] = {}
    for link in directory.iterdir() if directory.is_dir() else ():
        try:
            owners[link] = os.readlink(link)
        except OSError:
            continue  # released meanwhile
    return owners
