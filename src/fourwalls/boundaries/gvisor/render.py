"""A gVisor sandbox as values: the OCI config and the launch specification. Pure."""

from __future__ import annotations

from typing import Any

from fourwalls.boundaries.base import AGENT_IN_SANDBOX, HOSTNAME, UID_COUNT, Plan
from fourwalls.boundaries.oci.render import SEARCH_PATH, OciConfig, render_config
from fourwalls.boundaries.oci.sandbox_files import SandboxFiles
from fourwalls.boundaries.shim import spec
from fourwalls.linux.cgroup import CgroupLimits, render_groups
from fourwalls.model.sizes import MIB

_START_TIMEOUT_MS = 60_000

# The sentry and the gofer live in the same group as the guest's memory (about 13 MiB when idle).
SENTRY_MEMORY_BYTES = 48 * MIB

# Host processes and threads for one guest process: two measured, and some for the sentry, which
# dies when it cannot make a thread. The guest's own count is limited inside (RLIMIT_NPROC, which
# counts each user apart).
_HOST_PIDS_PER_GUEST_PID = 6
_SENTRY_PIDS = 200


def render_gvisor_config(plan: Plan, machine: str) -> dict[str, Any]:
    """``config.json`` for runsc."""
    return render_config(
        OciConfig(
            hostname=HOSTNAME,
            root=str(SandboxFiles(plan.directory).lower),
            agent=str(plan.agent),
            agent_target=AGENT_IN_SANDBOX,
            uid_base=plan.uid_base,
            uid_count=UID_COUNT,
            nofile=plan.nofile,
            shm_bytes=plan.resources.memory_bytes // 2,
            machine=machine,
            kernel_walls=False,
        )
    )


def render_gvisor_spec(plan: Plan, runsc: str) -> spec.LaunchSpec:
    """What the shim does: disk, shifted template, then ``runsc run``.

    The root is the template itself; the sentry keeps all changes in one file on the sandbox's disk.
    """
    files = SandboxFiles(plan.directory)
    runtime_root = plan.directory / "runsc"
    return spec.LaunchSpec(
        id=plan.sandbox_id,
        mode="server" if plan.detach else "embedded",
        dir=str(plan.directory),
        cgroup=render_groups(
            plan.cgroup_layout,
            plan.cgroup,
            CgroupLimits(
                memory_bytes=plan.resources.memory_bytes + SENTRY_MEMORY_BYTES,
                pids=plan.resources.pids * _HOST_PIDS_PER_GUEST_PID + _SENTRY_PIDS,
                cpus=plan.resources.cpus,
                group_oom=True,
            ),
        ),
        mounts=[
            *(spec.mkdir(str(path), 0o755, 0) for path in (files.lower, files.disk)),
            spec.mkdir(str(runtime_root), 0o711, 0),
            spec.disk(
                str(plan.scratch_image),
                str(plan.disk_template),
                plan.resources.disk_bytes,
                str(files.disk),
            ),
            spec.bind_idmapped(str(plan.template), str(files.lower), plan.uid_base, UID_COUNT),
        ],
        argv=[
            runsc,
            "--root",
            str(runtime_root),
            "--platform=systrap",
            "--network=none",
            f"--overlay2=root:dir={files.disk}",
            "--file-access=exclusive",
            # The shim has made the group and starts runsc inside it; so its counters outlive it.
            "--ignore-cgroups",
            "run",
            "--detach",
            "--bundle",
            str(files.bundle),
            "--pid-file",
            str(files.pid_file),
            plan.sandbox_id,
        ],
        env=[("PATH", SEARCH_PATH)],
        pid_file=str(files.pid_file),
        membarrier_filter=True,
        cleanup=[str(runtime_root), str(plan.scratch_image)],
        release=[str(plan.slot)],
        lease_deadline_ns=plan.lease_deadline_ns,
        start_timeout_ms=_START_TIMEOUT_MS,
    )
