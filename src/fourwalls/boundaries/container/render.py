"""A container as values: the OCI config and the launch specification. Pure."""

from __future__ import annotations

from typing import Any

from fourwalls.boundaries.base import AGENT_IN_SANDBOX, HOSTNAME, UID_COUNT, Plan
from fourwalls.boundaries.oci.render import SEARCH_PATH, OciConfig, render_config
from fourwalls.boundaries.oci.sandbox_files import SandboxFiles
from fourwalls.boundaries.shim import spec
from fourwalls.linux.cgroup import CgroupLimits, render_groups

_START_TIMEOUT_MS = 30_000


def render_container_config(plan: Plan, machine: str) -> dict[str, Any]:
    """``config.json`` for crun."""
    return render_config(
        OciConfig(
            hostname=HOSTNAME,
            root=str(SandboxFiles(plan.directory).rootfs),
            agent=str(plan.agent),
            agent_target=AGENT_IN_SANDBOX,
            uid_base=plan.uid_base,
            uid_count=UID_COUNT,
            nofile=plan.nofile,
            shm_bytes=plan.resources.memory_bytes // 2,
            machine=machine,
            kernel_walls=True,
        )
    )


def render_container_spec(plan: Plan, crun: str) -> spec.LaunchSpec:
    """What the shim does: disk, shifted template, overlay, then ``crun run``."""
    files = SandboxFiles(plan.directory)
    upper, work = files.disk / "upper", files.disk / "work"
    mounts = []
    if plan.cgroup_layout.hybrid:
        # crun refuses a v2 hierarchy with controllers beside v1; it need not see it.
        mounts.append(spec.tmpfs_over(plan.cgroup_layout.hybrid))
    mounts += [
        *(spec.mkdir(str(path), 0o755, 0) for path in (files.lower, files.disk, files.rootfs)),
        spec.disk(
            str(plan.scratch_image),
            str(plan.disk_template),
            plan.resources.disk_bytes,
            str(files.disk),
        ),
        spec.mkdir(str(upper), 0o755, plan.uid_base),
        spec.mkdir(str(work), 0o700, 0),
        spec.bind_idmapped(str(plan.template), str(files.lower), plan.uid_base, UID_COUNT),
        spec.overlay(str(files.lower), str(upper), str(work), str(files.rootfs)),
    ]
    return spec.LaunchSpec(
        id=plan.sandbox_id,
        mode="server" if plan.detach else "embedded",
        dir=str(plan.directory),
        cgroup=render_groups(
            plan.cgroup_layout,
            plan.cgroup,
            CgroupLimits(
                memory_bytes=plan.resources.memory_bytes,
                pids=plan.resources.pids,
                cpus=plan.resources.cpus,
            ),
        ),
        mounts=mounts,
        argv=[
            crun,
            "--root",
            str(plan.runtime_root),
            # The shim has made the group and starts crun inside it.
            "--cgroup-manager=disabled",
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
        membarrier_filter=False,
        cleanup=[str(plan.runtime_root / plan.sandbox_id), str(plan.scratch_image)],
        release=[str(plan.slot)],
        lease_deadline_ns=plan.lease_deadline_ns,
        start_timeout_ms=_START_TIMEOUT_MS,
    )
