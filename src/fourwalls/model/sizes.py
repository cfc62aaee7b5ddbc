"""Sizes of sandboxes and the limits that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fourwalls.model.errors import InvalidArgumentError

MIB = 1024 * 1024


@dataclass(frozen=True)
class Resources:
    """What a sandbox may use. CPUs may be fractional; memory and disk are MiB."""

    cpus: float
    memory_mib: int
    disk_mib: int
    pids: int = 1024

    @property
    def memory_bytes(self) -> int:
        return self.memory_mib * MIB

    @property
    def disk_bytes(self) -> int:
        return self.disk_mib * MIB


SIZES: dict[str, Resources] = {
    "small": Resources(cpus=1, memory_mib=1024, disk_mib=4096),
    "medium": Resources(cpus=2, memory_mib=2048, disk_mib=8192, pids=2048),
    "large": Resources(cpus=4, memory_mib=8192, disk_mib=16384, pids=4096),
    "xlarge": Resources(cpus=8, memory_mib=16384, disk_mib=32768, pids=8192),
}

# The floor of each limit is what the boundaries need to start at all (measured: gVisor's sentry
# dies below 64 MiB; ext4 needs a few MiB for itself); the ceiling keeps arithmetic in the kernel's
# types and typing errors out of the host.
_BOUNDS: dict[str, tuple[float, float]] = {
    "cpus": (0.05, 512),
    "memory_mib": (64, 4 * 1024 * 1024),
    "disk_mib": (32, 16 * 1024 * 1024),
    "pids": (32, 262_144),
}


def resources(
    size: str,
    *,
    cpus: float | None = None,
    memory_mib: int | None = None,
    disk_mib: int | None = None,
    pids: int | None = None,
) -> Resources:
    """The resources of ``size`` with the given overrides, each checked."""
    if size not in SIZES:
        raise InvalidArgumentError(f"unknown size {size!r}: one of {', '.join(SIZES)}")
    chosen = SIZES[size]
    if cpus is not None:
        chosen = replace(chosen, cpus=_checked("cpus", cpus, whole=False))
    if memory_mib is not None:
        chosen = replace(chosen, memory_mib=int(_checked("memory_mib", memory_mib)))
    if disk_mib is not None:
        chosen = replace(chosen, disk_mib=int(_checked("disk_mib", disk_mib)))
    if pids is not None:
        chosen = replace(chosen, pids=int(_checked("pids", pids)))
    return chosen


def _checked(name: str, value: float, *, whole: bool = True) -> float:
    low, high = _BOUNDS[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgumentError(f"{name} must be a number, not {type(value).__name__}")
    if not math.isfinite(value) or not low <= value <= high:
        raise InvalidArgumentError(
            f"{name} must be between {low:.9g} and {high:.9g}, not {value!r}"
        )
    if whole and value != int(value):
        raise InvalidArgumentError(f"{name} must be a whole number, not {value!r}")
    return float(value)
