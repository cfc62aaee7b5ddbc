"""Boundaries, ordered by strength, and what each may be able to do."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from fourwalls.model.errors import InvalidArgumentError


class Boundary(enum.Enum):
    """The wall around a sandbox. Compare with ``<``: weaker is less."""

    ISOLATE = "isolate"
    CONTAINER = "container"
    GVISOR = "gvisor"
    MICROVM = "microvm"

    @property
    def strength(self) -> int:
        """0 for the weakest."""
        return list(Boundary).index(self)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Boundary):
            return NotImplemented
        return self.strength < other.strength

    @classmethod
    def parse(cls, name: str) -> Boundary:
        """The boundary called ``name``; :class:`InvalidArgumentError` names the known ones."""
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(b.value for b in cls)
            raise InvalidArgumentError(f"unknown boundary {name!r}: one of auto, {known}") from None


@dataclass(frozen=True)
class Capabilities:
    """What a boundary can do. A capability that is missing is refused, never imitated."""

    commands: bool = True
    pty: bool = True
    files: bool = True
    watch: bool = True
    ports: bool = True
    sudo: bool = False
    network: bool = False
    pause: bool = False
    disk_snapshot: bool = False
    memory_snapshot: bool = False
    nested_virtualization: bool = False
    gpu: bool = False
    survives_oom: bool = True
    languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Something a boundary needs and this host lacks, with the exact remedy."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Probe:
    """What a host offers for one boundary. It can be used when nothing is missing."""

    boundary: Boundary
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    native_speed: bool = True
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def available(self) -> bool:
        return not self.missing
