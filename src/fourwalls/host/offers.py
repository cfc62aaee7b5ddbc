"""What this host offers: every boundary there is, those that cannot be had with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fourwalls.boundaries import registry
from fourwalls.model import auto
from fourwalls.model.boundary import Boundary, Capabilities, Missing, Probe
from fourwalls.model.errors import BoundaryUnavailableError

_WALLS: Mapping[Boundary, str] = {
    Boundary.ISOLATE: "a language VM",
    Boundary.CONTAINER: "namespaces, cgroups, seccomp",
    Boundary.GVISOR: "a kernel in user space",
    Boundary.MICROVM: "a kernel on virtual hardware",
}


@dataclass(frozen=True)
class Offer:
    """One boundary: its wall in words, and what the host lacks for it."""

    boundary: Boundary
    wall: str
    in_this_version: bool
    missing: tuple[Missing, ...]
    notes: tuple[str, ...] = ()
    native_speed: bool = True
    versions: Mapping[str, str] | None = None
    capabilities: Capabilities | None = None

    @property
    def available(self) -> bool:
        return self.in_this_version and not self.missing


@dataclass(frozen=True)
class Offers:
    """All boundaries, weakest first, and what ``auto`` would choose (None: nothing)."""

    all: tuple[Offer, ...]
    auto: Boundary | None
    auto_reason: str


def offers() -> Offers:
    """Probe this host."""
    probes = registry.probe_all()
    found = tuple(_offer(boundary, probes.get(boundary)) for boundary in Boundary)
    try:
        chosen, reason = auto.choose(None, None, probes)
    except BoundaryUnavailableError as error:
        return Offers(found, None, error.message)
    return Offers(found, chosen, reason)


def _offer(boundary: Boundary, probe: Probe | None) -> Offer:
    if probe is None:
        return Offer(boundary, _WALLS[boundary], in_this_version=False, missing=())
    return Offer(
        boundary,
        _WALLS[boundary],
        in_this_version=True,
        missing=probe.missing,
        notes=probe.notes,
        native_speed=probe.native_speed,
        versions=probe.versions,
        capabilities=registry.driver(boundary).capabilities(),
    )
