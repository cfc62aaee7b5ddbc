"""Which boundary a request gets: pure policy, never a downgrade."""

from __future__ import annotations

from collections.abc import Mapping

from fourwalls.model.boundary import Boundary, Probe
from fourwalls.model.errors import BoundaryUnavailableError

DEFAULT_FLOOR = Boundary.GVISOR


def choose(
    asked: Boundary | None, floor: Boundary | None, probes: Mapping[Boundary, Probe]
) -> tuple[Boundary, str]:
    """The boundary for a request and the reason for it.

    A named boundary is given or refused; a floor above it is a contradiction and refused. ``auto``
    (``asked`` None) takes the strongest available boundary that runs at native speed, at least
    ``floor`` (default ``gvisor``, as the code's origin is unknown); when none runs at native speed,
    the strongest available one.
    """
    if asked is not None:
        if floor is not None and asked < floor:
            raise BoundaryUnavailableError(
                f"boundary {asked.value} is weaker than the floor {floor.value}",
                remedy="ask for a boundary at or above min_boundary, or lower min_boundary",
            )
        probe = probes.get(asked)
        if probe is None:
            raise BoundaryUnavailableError(
                f"boundary {asked.value} is not part of this version",
                remedy="use one of " + ", ".join(b.value for b in sorted(probes)),
            )
        if not probe.available:
            raise _refusal(f"boundary {asked.value} cannot be used on this host", [probe])
        return asked, "asked for"
    least = floor or DEFAULT_FLOOR
    candidates = [probe for b, probe in probes.items() if not b < least]
    usable = [probe for probe in candidates if probe.available]
    if not usable:
        raise _refusal(
            f"no boundary at or above {least.value} can be used on this host", candidates
        )
    native = [probe for probe in usable if probe.native_speed]
    best = max(native or usable, key=lambda probe: probe.boundary.strength)
    why = (
        "strongest boundary at native speed on this host"
        if native
        else ("strongest boundary on this host; none runs at native speed")
    )
    return best.boundary, f"auto with floor {least.value}: {why}"


def _refusal(message: str, probes: list[Probe]) -> BoundaryUnavailableError:
    missing = [(p.boundary.value, m) for p in probes for m in p.missing]
    what = "; ".join(f"{name}: {m.what}" for name, m in missing)
    remedy = "; ".join(dict.fromkeys(m.remedy for _, m in missing))
    return BoundaryUnavailableError(
        f"{message}: {what}" if what else message,
        remedy=remedy or "ask for a lower min_boundary",
    )
