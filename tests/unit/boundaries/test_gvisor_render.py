"""gVisor's config and launch specification, by whole value."""

from __future__ import annotations

from fourwalls.boundaries.gvisor.render import render_gvisor_config, render_gvisor_spec
from fourwalls.boundaries.oci.render import ROOT_CAPABILITIES
from fourwalls.boundaries.oci.runtime import crun_version, runsc_release
from fourwalls.linux.cgroup import CgroupLimits, render_groups
from tests.unit.boundaries.plans import PLAN

MAPPING = [{"containerID": 0, "hostID": 1879048192, "size": 65536}]


def test_config_leaves_out_what_has_no_effect_in_the_sentry() -> None:
    config = render_gvisor_config(PLAN, "x86_64")
    assert config["root"] == {"path": "/run/fw/sandboxes/s/lower", "readonly": False}
    assert config["linux"] == {
        "namespaces": [
            {"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network", "user")
        ],
        "uidMappings": MAPPING,
        "gidMappings": MAPPING,
    }
    assert [mount["destination"] for mount in config["mounts"]] == [
        "/proc",
        "/dev",
        "/dev/pts",
        "/dev/shm",
        "/sys",
        "/.fourwalls/agent",
    ]
    assert config["process"]["noNewPrivileges"]
    assert config["process"]["capabilities"]["bounding"] == list(ROOT_CAPABILITIES)


def test_spec() -> None:
    spec = render_gvisor_spec(PLAN, "/usr/bin/runsc").as_map()
    assert spec == {
        "version": 1,
        "id": "sandboxsandboxsandbo",
        "mode": "embedded",
        "dir": "/run/fw/sandboxes/s",
        "cgroup": render_groups(
            PLAN.cgroup_layout,
            "fourwalls/default/s",
            CgroupLimits(
                memory_bytes=(1 << 30) + (48 << 20), pids=1024 * 6 + 200, cpus=1, group_oom=True
            ),
        ),
        "mounts": [
            {"op": "mkdir", "path": f"/run/fw/sandboxes/s/{name}", "mode": mode, "uid": 0, "gid": 0}
            for name, mode in (("lower", 0o755), ("disk", 0o755), ("runsc", 0o711))
        ]
        + [
            {
                "op": "disk",
                "image": "/var/lib/fw/scratch/s.img",
                "template": "/var/lib/fw/disks/ext4.img",
                "size": 4 << 30,
                "target": "/run/fw/sandboxes/s/disk",
            },
            {
                "op": "bind_idmapped",
                "source": "/run/fw/templates/t",
                "target": "/run/fw/sandboxes/s/lower",
                "base": 1879048192,
                "count": 65536,
                "suid": False,
            },
        ],
        "argv": [
            "/usr/bin/runsc",
            "--root",
            "/run/fw/sandboxes/s/runsc",
            "--platform=systrap",
            "--network=none",
            "--overlay2=root:dir=/run/fw/sandboxes/s/disk",
            "--file-access=exclusive",
            "--ignore-cgroups",
            "run",
            "--detach",
            "--bundle",
            "/run/fw/sandboxes/s/bundle",
            "--pid-file",
            "/run/fw/sandboxes/s/init.pid",
            "sandboxsandboxsandbo",
        ],
        "env": [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")],
        "pid_file": "/run/fw/sandboxes/s/init.pid",
        "membarrier_filter": True,
        "cleanup": ["/run/fw/sandboxes/s/runsc", "/var/lib/fw/scratch/s.img"],
        "release": ["/run/fw/slots/0"],
        "lease_deadline_ns": 123,
        "start_timeout_ms": 60000,
    }


def test_versions_are_read_as_the_distributions_print_them() -> None:
    assert runsc_release("runsc version 0.0~20240729.0") == 20240729
    assert runsc_release("runsc version release-20250512.0") == 20250512
    assert runsc_release("runsc version 0.0~20221219.0") == 20221219
    assert runsc_release("unusable: no output") is None
    assert crun_version("crun version 1.8.1") == (1, 8, 1)
    assert crun_version("crun version 1.21") == (1, 21)
    assert crun_version("runc version 1.1") is None
