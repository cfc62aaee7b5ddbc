"""Rendering of the OCI runtime config, for crun and runsc. Pure: values in, one dict out.

Source of the format: the OCI runtime specification, ``config.json`` and ``config-linux``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fourwalls.boundaries.oci.seccomp_profile import seccomp_profile

# What the sandbox's root keeps, over ids of its own range only: to change users, to own and open
# its files, to end its processes, to listen below 1024. None of it reaches past the user namespace.
ROOT_CAPABILITIES = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
)

# Files of /proc and /sys that tell about the host, or do things to it.
MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/bootconfig",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/mdstat",
    "/proc/modules",
    "/proc/mtrr",
    "/proc/pagetypeinfo",
    "/proc/partitions",
    # Anybody may write there to be told of pressure on the whole host.
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/swaps",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
)

READONLY_PATHS = (
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
)

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class OciConfig:
    """The decisions an OCI config is rendered from.

    ``kernel_walls`` adds what only a runtime on the host's kernel can use: seccomp, masked paths,
    a cgroup namespace. For runsc they have no effect and are left out.
    """

    hostname: str
    root: str
    agent: str
    agent_target: str
    uid_base: int
    uid_count: int
    nofile: int
    shm_bytes: int
    machine: str
    kernel_walls: bool


def render_config(config: OciConfig) -> dict[str, Any]:
    """The whole ``config.json``."""
    mapping = [{"containerID": 0, "hostID": config.uid_base, "size": config.uid_count}]
    namespaces = ["pid", "mount", "ipc", "uts", "network", "user"]
    linux: dict[str, Any] = {
        "namespaces": [{"type": name} for name in namespaces],
        "uidMappings": mapping,
        "gidMappings": mapping,
    }
    if config.kernel_walls:
        linux["namespaces"].append({"type": "cgroup"})
        linux["maskedPaths"] = list(MASKED_PATHS)
        linux["readonlyPaths"] = list(READONLY_PATHS)
        linux["seccomp"] = seccomp_profile(config.machine)
    capabilities = list(ROOT_CAPABILITIES)
    return {
        "ociVersion": "1.0.2",
        "hostname": config.hostname,
        "root": {"path": config.root, "readonly": False},
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": [config.agent_target],
            "env": [f"PATH={SEARCH_PATH}"],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {
                "bounding": capabilities,
                "effective": capabilities,
                "permitted": capabilities,
            },
            "rlimits": [
                {"type": "RLIMIT_NOFILE", "soft": config.nofile, "hard": config.nofile},
                {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
            ],
        },
        "mounts": _mounts(config),
        "linux": linux,
    }


def _mounts(config: OciConfig) -> list[dict[str, Any]]:
    def mount(target: str, kind: str, source: str, options: str) -> dict[str, Any]:
        return {
            "destination": target,
            "type": kind,
            "source": source,
            "options": options.split(","),
        }

    mounts = [
        mount("/proc", "proc", "proc", "nosuid,noexec,nodev"),
        mount("/dev", "tmpfs", "tmpfs", "nosuid,noexec,strictatime,mode=755,size=64k"),
        mount(
            "/dev/pts",
            "devpts",
            "devpts",
            "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620",
        ),
        mount(
            "/dev/shm",
            "tmpfs",
            "shm",
            f"nosuid,noexec,nodev,mode=1777,size={config.shm_bytes}",
        ),
        mount(config.agent_target, "bind", config.agent, "bind,ro,nosuid,nodev"),
    ]
    if not config.kernel_walls:
        # gVisor's own; on the host's kernel /sys tells about the machine and stays away.
        mounts.insert(4, mount("/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro"))
    return mounts
