"""Formatted, empty disk images: made once for each size, copied (sparsely) by every sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fourwalls.host.kernel import free_bytes
from fourwalls.host.remedies import remedy_for
from fourwalls.linux.flock import locked
from fourwalls.linux.places import Places
from fourwalls.model.errors import LimitError, SandboxStartError
from fourwalls.model.sizes import MIB

_MKFS_TIMEOUT_S = 120


def disk_template(places: Places, size_mib: int) -> Path:
    """The ext4 image for disks of ``size_mib``; formatted at first use (about 10 ms).

    Without a journal: the disk dies with its sandbox, there is nothing to recover. No reserved
    blocks: the quota is all for the sandbox.
    """
    image = places.disks / f"ext4-{size_mib}.img"
    if image.exists():
        return image
    places.disks.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(places.disks / "lock"):
        if not image.exists():
            _format(image, size_mib)
    return image


def check_room(places: Places, size_bytes: int) -> None:
    """Refuse a disk that this host cannot hold.

    Disks are sparse: a sandbox takes what it writes. On a host that is full its writes would fail
    behind its back, long after it was told that they had succeeded. Room is looked at for each
    sandbox alone: many together may still be promised more than there is.
    """
    free = free_bytes(places.state)
    if free < size_bytes:
        raise LimitError(
            f"the host has {free // MIB} MiB left below {places.state}, "
            f"the sandbox's disk may grow to {size_bytes // MIB} MiB",
            remedy="free space there, ask for a smaller disk, or move FOURWALLS_STATE",
        )


def _format(image: Path, size_mib: int) -> None:
    unfinished = image.with_name(".unfinished")
    with open(unfinished, "wb") as file:
        file.truncate(size_mib * MIB)
    command = [
        "mkfs.ext4", "-q", "-F", "-m", "0",
        "-O", "^has_journal,^resize_inode",
        "-E", "lazy_itable_init=1,nodiscard",
        str(unfinished),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_MKFS_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise SandboxStartError(
            "mkfs.ext4 is missing", stage="disk", remedy="apt-get install e2fsprogs"
        ) from None
    if done.returncode != 0:
        said = done.stderr.strip()[:500]
        raise SandboxStartError(f"mkfs.ext4 failed: {said}", stage="disk", remedy=remedy_for(said))
    os.rename(unfinished, image)
