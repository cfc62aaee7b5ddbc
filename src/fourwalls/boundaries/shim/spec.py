"""The launch specification of docs/wire/shim.md as plain data, and the steps it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

VERSION = 1


def tmpfs_over(target: str) -> dict[str, Any]:
    """Hide what is below ``target`` behind an empty file system."""
    return {"op": "tmpfs_over", "target": target}


def mkdir(path: str, mode: int, owner: int) -> dict[str, Any]:
    """A directory owned by the host id ``owner``."""
    return {"op": "mkdir", "path": path, "mode": mode, "uid": owner, "gid": owner}


def disk(image: str, template: str, size: int, target: str) -> dict[str, Any]:
    """A disk of ``size`` bytes of the sandbox's own, copied from a formatted ``template``."""
    return {"op": "disk", "image": image, "template": template, "size": size, "target": target}


def bind_idmapped(
    source: str, target: str, base: int, count: int, *, suid: bool = False
) -> dict[str, Any]:
    """A read-only view of ``source`` whose owners are shifted by ``base``."""
    return {
        "op": "bind_idmapped",
        "source": source,
        "target": target,
        "base": base,
        "count": count,
        "suid": suid,
    }


def overlay(lower: str, upper: str, work: str, target: str) -> dict[str, Any]:
    """A writable view: ``lower`` below, changes in ``upper``."""
    return {"op": "overlay", "lower": lower, "upper": upper, "work": work, "target": target}


@dataclass(frozen=True)
class LaunchSpec:
    """Everything the shim does, in the words of docs/wire/shim.md."""

    id: str
    mode: str
    dir: str
    cgroup: dict[str, Any]
    mounts: Sequence[dict[str, Any]]
    argv: Sequence[str]
    env: Sequence[tuple[str, str]]
    pid_file: str
    membarrier_filter: bool
    cleanup: Sequence[str]
    release: Sequence[str]
    lease_deadline_ns: int
    start_timeout_ms: int
    version: int = VERSION

    def as_map(self) -> dict[str, Any]:
        """The map that goes over the wire."""
        # Not asdict(): it copies every step deeply, which costs more than the rest of a start.
        return {field.name: getattr(self, field.name) for field in fields(self)}
