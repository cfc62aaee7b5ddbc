"""What a boundary is: a wall and a byte stream, nothing else.

Commands, files, limits and clean-up are written once above this interface. A boundary gets a
:class:`Plan` with no decision left in it and gives back a :class:`Running`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fourwalls.linux.cgroup import CgroupLayout
from fourwalls.linux.scope import Scope
from fourwalls.model.boundary import Boundary, Capabilities, Probe
from fourwalls.model.sizes import Resources

# Where every template keeps an empty file for the agent to be mounted on.
AGENT_IN_SANDBOX = "/.fourwalls/agent"

# The same in every sandbox, as /etc/hosts of the templates has it.
HOSTNAME = "sandbox"

# Ids of a sandbox: 0..65535 inside, a range of its own outside.
UID_COUNT = 65536


@dataclass(frozen=True)
class Plan:
    """Everything needed to start one sandbox, decided.

    ``directory`` is the sandbox's own (0711, locked through ``lock_fd``); ``template`` the mounted
    template; ``disk_template`` a formatted, empty file system image to copy; ``uid_base`` the first
    host id of the sandbox's range; ``cgroup`` the path of its group below each hierarchy;
    ``lease_deadline_ns`` on CLOCK_BOOTTIME; ``nofile`` the most files a process may open.
    """

    sandbox_id: str
    directory: Path
    lock_fd: int
    slot: Path
    template: Path
    agent: Path
    shim: Path
    scratch_image: Path
    disk_template: Path
    runtime_root: Path
    uid_base: int
    resources: Resources
    cgroup_layout: CgroupLayout
    cgroup: str
    lease_deadline_ns: int
    nofile: int
    detach: bool


@dataclass(frozen=True)
class GuestLimits:
    """Limits the agent has to set for the commands it starts, as this boundary needs them."""

    nproc: int
    oom_score_adj: int


class Running(Protocol):
    """A started sandbox."""

    @property
    def pid(self) -> int:
        """Pid of the host process that stands for the sandbox."""
        ...

    def connect(self) -> socket.socket:
        """The byte stream to agent and shim. Can be called once."""
        ...

    async def wait(self) -> None:
        """Return when nothing of the sandbox runs any more."""
        ...

    def kill(self) -> None:
        """End it without asking the guest. Safe to call at any time."""
        ...


class BoundaryDriver(Protocol):
    """One kind of wall."""

    @property
    def boundary(self) -> Boundary: ...

    def capabilities(self) -> Capabilities:
        """What sandboxes behind this boundary can do."""
        ...

    def probe(self) -> Probe:
        """What this host lacks for it, with the remedy for each."""
        ...

    def guest_limits(self, resources: Resources) -> GuestLimits:
        """What the agent must limit by itself."""
        ...

    def launch(self, plan: Plan, scope: Scope) -> Running:
        """Start the sandbox. What is acquired on the way is registered in ``scope``."""
        ...


Probes = Mapping[Boundary, Probe]
