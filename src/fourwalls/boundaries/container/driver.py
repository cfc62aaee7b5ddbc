"""The `container` boundary on crun."""

from __future__ import annotations

import os
import platform

from fourwalls.boundaries.base import GuestLimits, Plan, Running
from fourwalls.boundaries.container.render import render_container_config, render_container_spec
from fourwalls.boundaries.oci.host_probe import missing_on_host
from fourwalls.boundaries.oci.launch import launch_oci
from fourwalls.boundaries.oci.runtime import crun_version, find_runtime, runtime_version
from fourwalls.linux.scope import Scope
from fourwalls.model.boundary import Boundary, Capabilities, Missing, Probe
from fourwalls.model.sizes import Resources

OLDEST_CRUN = (1, 8)

# Processes the commands of a sandbox may never have, so that the agent can always fork one more.
_RESERVED_PIDS = 16


class ContainerDriver:
    """Namespaces, cgroups and seccomp of the host's own kernel."""

    boundary = Boundary.CONTAINER

    def capabilities(self) -> Capabilities:
        return Capabilities()

    def probe(self) -> Probe:
        missing = missing_on_host()
        crun = find_runtime("crun")
        versions: dict[str, str] = {}
        if crun is None:
            missing.append(Missing("crun", "apt-get install crun"))
        else:
            line = versions["crun"] = runtime_version(crun)
            version = crun_version(line)
            if version is None or version < OLDEST_CRUN:
                missing.append(
                    Missing(f"crun 1.8 or newer (found: {line})", "apt-get install crun")
                )
        return Probe(self.boundary, tuple(missing), versions=versions)

    def guest_limits(self, resources: Resources) -> GuestLimits:
        # A higher score than the agent's own: memory overruns kill commands first.
        return GuestLimits(nproc=resources.pids - _RESERVED_PIDS, oom_score_adj=500)

    def launch(self, plan: Plan, scope: Scope) -> Running:
        crun = find_runtime("crun")
        if crun is None:
            raise FileNotFoundError("crun")
        os.makedirs(plan.runtime_root, mode=0o700, exist_ok=True)
        config = render_container_config(plan, platform.machine())
        return launch_oci(plan, config, render_container_spec(plan, crun), scope)
