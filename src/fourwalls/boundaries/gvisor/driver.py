"""The `gvisor` boundary on runsc."""

from __future__ import annotations

import platform

from fourwalls.boundaries.base import GuestLimits, Plan, Running
from fourwalls.boundaries.gvisor.render import render_gvisor_config, render_gvisor_spec
from fourwalls.boundaries.oci.host_probe import missing_on_host
from fourwalls.boundaries.oci.launch import launch_oci
from fourwalls.boundaries.oci.runtime import find_runtime, runsc_release, runtime_version
from fourwalls.linux.scope import Scope
from fourwalls.model.boundary import Boundary, Capabilities, Missing, Probe
from fourwalls.model.sizes import Resources

# Older ones have no systrap and fail statx(2) of a current Debian guest with EINVAL.
OLDEST_RUNSC = 20240729

_INSTALL = (
    "apt-get install runsc (Debian 12: from bookworm-backports, "
    "apt-get install -t bookworm-backports runsc)"
)


class GvisorDriver:
    """A kernel in user space between the guest and the host's kernel."""

    boundary = Boundary.GVISOR

    def capabilities(self) -> Capabilities:
        return Capabilities(survives_oom=False)

    def probe(self) -> Probe:
        missing = missing_on_host()
        versions: dict[str, str] = {}
        runsc = find_runtime("runsc")
        if runsc is None:
            missing.append(Missing("runsc", _INSTALL))
        else:
            line = versions["runsc"] = runtime_version(runsc)
            release = runsc_release(line)
            if release is None or release < OLDEST_RUNSC:
                missing.append(Missing(f"runsc {OLDEST_RUNSC} or newer (found: {line})", _INSTALL))
        return Probe(self.boundary, tuple(missing), versions=versions)

    def guest_limits(self, resources: Resources) -> GuestLimits:
        return GuestLimits(nproc=resources.pids, oom_score_adj=500)

    def launch(self, plan: Plan, scope: Scope) -> Running:
        runsc = find_runtime("runsc")
        if runsc is None:
            raise FileNotFoundError("runsc")
        config = render_gvisor_config(plan, platform.machine())
        return launch_oci(plan, config, render_gvisor_spec(plan, runsc), scope)
