"""The container's config and launch specification, by whole value."""

from __future__ import annotations

from dataclasses import replace

from fourwalls.boundaries.container.render import render_container_config, render_container_spec
from fourwalls.boundaries.oci.render import MASKED_PATHS, READONLY_PATHS, ROOT_CAPABILITIES
from fourwalls.boundaries.oci.seccomp_profile import seccomp_profile
from fourwalls.linux.cgroup import CgroupLimits, render_groups
from tests.unit.boundaries.plans import PLAN

MAPPING = [{"containerID": 0, "hostID": 1879048192, "size": 65536}]


def test_config() -> None:
    assert render_container_config(PLAN, "x86_64") == {
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": "/run/fw/sandboxes/s/rootfs", "readonly": False},
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": ["/.fourwalls/agent"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {
                "bounding": list(ROOT_CAPABILITIES),
                "effective": list(ROOT_CAPABILITIES),
                "permitted": list(ROOT_CAPABILITIES),
            },
            "rlimits": [
                {"type": "RLIMIT_NOFILE", "soft": 65536, "hard": 65536},
                {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
            ],
        },
        "mounts": [
            {
                "destination": "/proc",
                "type": "proc",
                "source": "proc",
                "options": ["nosuid", "noexec", "nodev"],
            },
            {
                "destination": "/dev",
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["nosuid", "noexec", "strictatime", "mode=755", "size=64k"],
            },
            {
                "destination": "/dev/pts",
                "type": "devpts",
                "source": "devpts",
                "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
            },
            {
                "destination": "/dev/shm",
                "type": "tmpfs",
                "source": "shm",
                "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=536870912"],
            },
            {
                "destination": "/.fourwalls/agent",
                "type": "bind",
                "source": "/var/lib/fw/bin/agent",
                "options": ["bind", "ro", "nosuid", "nodev"],
            },
        ],
        "linux": {
            "namespaces": [
                {"type": kind}
                for kind in ("pid", "mount", "ipc", "uts", "network", "user", "cgroup")
            ],
            "uidMappings": MAPPING,
            "gidMappings": MAPPING,
            "maskedPaths": list(MASKED_PATHS),
            "readonlyPaths": list(READONLY_PATHS),
            "seccomp": seccomp_profile("x86_64"),
        },
    }


def test_spec() -> None:
    spec = render_container_spec(PLAN, "/usr/bin/crun").as_map()
    assert spec == {
        "version": 1,
        "id": "sandboxsandboxsandbo",
        "mode": "embedded",
        "dir": "/run/fw/sandboxes/s",
        "cgroup": render_groups(
            PLAN.cgroup_layout,
            "fourwalls/default/s",
            CgroupLimits(memory_bytes=1 << 30, pids=1024, cpus=1),
        ),
        "mounts": [
            {"op": "mkdir", "path": f"/run/fw/sandboxes/s/{name}", "mode": 493, "uid": 0, "gid": 0}
            for name in ("lower", "disk", "rootfs")
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
                "op": "mkdir",
                "path": "/run/fw/sandboxes/s/disk/upper",
                "mode": 493,
                "uid": 1879048192,
                "gid": 1879048192,
            },
            {
                "op": "mkdir",
                "path": "/run/fw/sandboxes/s/disk/work",
                "mode": 448,
                "uid": 0,
                "gid": 0,
            },
            {
                "op": "bind_idmapped",
                "source": "/run/fw/templates/t",
                "target": "/run/fw/sandboxes/s/lower",
                "base": 1879048192,
                "count": 65536,
                "suid": False,
            },
            {
                "op": "overlay",
                "lower": "/run/fw/sandboxes/s/lower",
                "upper": "/run/fw/sandboxes/s/disk/upper",
                "work": "/run/fw/sandboxes/s/disk/work",
                "target": "/run/fw/sandboxes/s/rootfs",
            },
        ],
        "argv": [
            "/usr/bin/crun",
            "--root",
            "/run/fw/crun",
            "--cgroup-manager=disabled",
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
        "membarrier_filter": False,
        "cleanup": ["/run/fw/crun/sandboxsandboxsandbo", "/var/lib/fw/scratch/s.img"],
        "release": ["/run/fw/slots/0"],
        "lease_deadline_ns": 123,
        "start_timeout_ms": 30000,
    }


def test_a_hybrid_hierarchy_is_hidden_first() -> None:
    layout = replace(PLAN.cgroup_layout, hybrid="/sys/fs/cgroup/unified")
    spec = render_container_spec(replace(PLAN, cgroup_layout=layout), "/usr/bin/crun")
    assert spec.mounts[0] == {"op": "tmpfs_over", "target": "/sys/fs/cgroup/unified"}


def test_detach_is_server_mode() -> None:
    assert render_container_spec(replace(PLAN, detach=True), "crun").mode == "server"
