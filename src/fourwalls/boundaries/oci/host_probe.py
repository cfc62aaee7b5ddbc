"""What the OCI boundaries need of a host besides their runtime."""

from __future__ import annotations

import os
import platform
import re

from fourwalls.linux import binaries
from fourwalls.linux.cgroup import host_layout
from fourwalls.model.boundary import Missing

# Idmapped mounts of EROFS came with 5.19.
_KERNEL = (5, 19)


def missing_on_host() -> list[Missing]:
    """Everything that is absent, each with its remedy; empty on a host that is ready."""
    missing = []
    if os.geteuid() != 0:
        missing.append(Missing("root", "run as root (sudo fourwalls …)"))
    release = platform.release()
    match = re.match(r"(\d+)\.(\d+)", release)
    if match and (int(match[1]), int(match[2])) < _KERNEL:
        missing.append(
            Missing(
                f"Linux {_KERNEL[0]}.{_KERNEL[1]} or newer (this is {release})",
                "upgrade the kernel; Debian 12 and 13 have newer ones",
            )
        )
    layout = host_layout()
    if layout.version == 0:
        missing.append(
            Missing(
                "cgroup controllers " + ", ".join(layout.missing),
                "mount cgroup2 on /sys/fs/cgroup with these controllers enabled",
            )
        )
    for name in (binaries.AGENT, binaries.SHIM):
        if binaries.packaged(name) is None:
            missing.append(Missing(name, "build it: scripts/build-agent"))
    return missing
