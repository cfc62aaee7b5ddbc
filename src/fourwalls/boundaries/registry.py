"""The boundaries of this version: the one table that names implementations.

A driver is imported when it is first asked for, so choosing one never loads another.
"""

from __future__ import annotations

import functools
import importlib

from fourwalls.boundaries.base import BoundaryDriver
from fourwalls.model.boundary import Boundary, Probe

_DRIVERS: dict[Boundary, str] = {
    Boundary.CONTAINER: "fourwalls.boundaries.container.driver:ContainerDriver",
    Boundary.GVISOR: "fourwalls.boundaries.gvisor.driver:GvisorDriver",
}


def known() -> list[Boundary]:
    """The boundaries this version implements, weakest first."""
    return sorted(_DRIVERS)


@functools.cache
def driver(boundary: Boundary) -> BoundaryDriver:
    """The driver of ``boundary``, which must be a known one."""
    module, _, name = _DRIVERS[boundary].partition(":")
    made: BoundaryDriver = getattr(importlib.import_module(module), name)()
    return made


def probe_all() -> dict[Boundary, Probe]:
    """What this host offers, for every known boundary."""
    return {boundary: driver(boundary).probe() for boundary in known()}
