"""One plan for the tests of the renderers."""

from __future__ import annotations

from pathlib import Path

from fourwalls.boundaries.base import Plan
from fourwalls.linux.cgroup import CgroupLayout
from fourwalls.model.sizes import SIZES

PLAN = Plan(
    sandbox_id="sandboxsandboxsandbo",
    directory=Path("/run/fw/sandboxes/s"),
    lock_fd=4,
    slot=Path("/run/fw/slots/0"),
    template=Path("/run/fw/templates/t"),
    agent=Path("/var/lib/fw/bin/agent"),
    shim=Path("/var/lib/fw/bin/shim"),
    scratch_image=Path("/var/lib/fw/scratch/s.img"),
    disk_template=Path("/var/lib/fw/disks/ext4.img"),
    runtime_root=Path("/run/fw/crun"),
    uid_base=0x70000000,
    resources=SIZES["small"],
    cgroup_layout=CgroupLayout(2, {"": "/sys/fs/cgroup"}),
    cgroup="fourwalls/default/s",
    lease_deadline_ns=123,
    nofile=65536,
    detach=False,
)
