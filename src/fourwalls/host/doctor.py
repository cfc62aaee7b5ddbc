"""Is this host ready? A list of small checks, each with the exact remedy."""

from __future__ import annotations

import enum
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from fourwalls.boundaries import registry
from fourwalls.host.distribution import read_distribution
from fourwalls.host.kernel import Kernel, Presence, free_bytes
from fourwalls.host.orphans import find_orphans
from fourwalls.host.packages import SYSTEM_PATH, examine_packages
from fourwalls.images.store import TemplateStore
from fourwalls.linux import binaries
from fourwalls.linux.cgroup import CgroupLayout, host_layout
from fourwalls.linux.places import Places
from fourwalls.model.errors import FourwallsError

_GIB = 1024**3
# A template and the disks of a few sandboxes that write little.
_LITTLE_SPACE = 2 * _GIB
_DEBIAN_KERNEL = "boot a kernel that has it: apt-get install linux-image-amd64"
_OLDEST_KERNEL = (5, 19)
_MODULES = ("overlay", "erofs", "ext4", "loop")


class Status(enum.Enum):
    """``NOTE`` is worth knowing and stops nothing."""

    OK = "ok"
    MISSING = "missing"
    NOTE = "note"


@dataclass(frozen=True)
class Check:
    """What was found. ``remedy`` is empty when there is nothing to do."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def examine(places: Places, kernel: Kernel | None = None) -> list[Check]:
    """Every check, in the order a person would go through them."""
    kernel = kernel or Kernel()
    parts: list[Callable[[], list[Check]]] = [
        _user,
        _distribution,
        lambda: check_kernel(kernel) + _modprobe(kernel),
        lambda: [check_cgroups(host_layout())],
        _packages,
        _binaries,
        _boundaries,
        lambda: [_base_template(places), _space(places), _orphans(places)],
        lambda: check_speed(kernel),
    ]
    return [check for part in parts for check in part()]


def _user() -> list[Check]:
    if os.geteuid() == 0:
        return [Check("root", Status.OK, "running as root")]
    return [
        Check("root", Status.MISSING, f"running as user {os.geteuid()}", "sudo fourwalls …"),
    ]


def _distribution() -> list[Check]:
    found = read_distribution()
    if found.known:
        return [Check("distribution", Status.OK, found.pretty_name)]
    words = f"{found.pretty_name}; setup can install packages on Debian 12 and 13 only"
    return [Check("distribution", Status.NOTE, words)]


def check_kernel(kernel: Kernel) -> list[Check]:
    """The version, and each part of the kernel that sandboxes are made of."""
    oldest = ".".join(map(str, _OLDEST_KERNEL))
    new_enough = kernel.version >= _OLDEST_KERNEL
    checks = [
        Check("kernel", Status.OK, f"Linux {kernel.release}")
        if new_enough
        else Check(
            "kernel",
            Status.MISSING,
            f"Linux {kernel.release}; id-mapped mounts of EROFS need {oldest}",
            "upgrade the kernel; Debian 12 and 13 have newer ones",
        )
    ]
    features = {
        "overlay": kernel.filesystem("overlay"),
        "erofs": kernel.filesystem("erofs"),
        "ext4": kernel.filesystem("ext4"),
        "loop devices": kernel.loop_devices(),
    }
    for name, presence in features.items():
        checks.append(_feature(name, presence))
    users = kernel.user_namespaces()
    checks.append(
        Check("user namespaces", Status.OK, f"up to {users}")
        if users
        else Check(
            "user namespaces",
            Status.MISSING,
            "this kernel allows none",
            "sysctl -w user.max_user_namespaces=15000",
        )
    )
    checks.append(
        Check("seccomp", Status.OK, "filters are available")
        if kernel.seccomp_filters()
        else Check("seccomp", Status.MISSING, "this kernel has no filters", _DEBIAN_KERNEL)
    )
    return checks


def _feature(name: str, presence: Presence) -> Check:
    module = name.split()[0]
    match presence:
        case Presence.PRESENT:
            return Check(name, Status.OK, "in the kernel")
        case Presence.LOADABLE:
            words = "a module, loaded when it is needed"
            return Check(name, Status.OK, words, f"modprobe {module}")
        case Presence.ABSENT:
            return Check(name, Status.MISSING, "not in this kernel", _DEBIAN_KERNEL)


def check_cgroups(layout: CgroupLayout) -> Check:
    """Whether limits can be set, and which way."""
    if layout.version == 0:
        return Check(
            "control groups",
            Status.MISSING,
            f"no controllers {', '.join(layout.missing)}",
            "mount cgroup2 on /sys/fs/cgroup with these controllers enabled",
        )
    if layout.version == 2:
        return Check("control groups", Status.OK, "version 2")
    kind = "version 1 and 2 (hybrid)" if layout.hybrid else "version 1"
    if layout.swap_limit:
        return Check("control groups", Status.OK, kind)
    return Check(
        "control groups",
        Status.NOTE,
        f"{kind}; swap of sandboxes cannot be limited",
        "boot with swapaccount=1, or without swap",
    )


def _packages() -> list[Check]:
    checks = []
    for found in examine_packages():
        package = found.package
        name = package.provides.rpartition("/")[2].removesuffix(".gpg")
        if not found.problem:
            checks.append(Check(name, Status.OK, found.version or found.where))
            continue
        status = Status.NOTE if package.optional else Status.MISSING
        needed = f", {package.needs} is needed" if package.needs else ""
        words = f"{found.problem}{needed} for {package.purpose}"
        if found.version:
            words = f"{found.version}: {words}"
        checks.append(Check(name, status, words, f"fourwalls setup (installs {package.name})"))
    return checks


def _binaries() -> list[Check]:
    checks = []
    for name in (binaries.AGENT, binaries.SHIM):
        path = binaries.packaged(name)
        if path is None:
            words = "not built"
            checks.append(Check(name, Status.MISSING, words, "scripts/build-agent"))
        elif not os.access(path, os.X_OK):
            checks.append(Check(name, Status.MISSING, "not executable", f"chmod +x {path}"))
        else:
            checks.append(Check(name, Status.OK, f"{path.stat().st_size / 1024:.0f} KiB"))
    return checks


def _boundaries() -> list[Check]:
    checks = []
    for boundary, probe in registry.probe_all().items():
        name = f"boundary {boundary.value}"
        if probe.available:
            checks.append(Check(name, Status.OK, "available"))
        else:
            what = "; ".join(missing.what for missing in probe.missing)
            remedy = "; ".join(dict.fromkeys(missing.remedy for missing in probe.missing))
            checks.append(Check(name, Status.MISSING, f"needs {what}", remedy))
    return checks


def _base_template(places: Places) -> Check:
    try:
        manifest = TemplateStore(places).get("base")
    except FourwallsError as error:
        return Check(
            "template base", Status.MISSING, error.message, "fourwalls template build base"
        )
    size = manifest.size_bytes / 1024**2
    return Check("template base", Status.OK, f"{size:.0f} MiB, built {manifest.created_at[:10]}")


def _space(places: Places) -> Check:
    free = free_bytes(places.state)
    words = f"{free / _GIB:.1f} GiB free in {places.state}"
    if free >= _LITTLE_SPACE:
        return Check("disk space", Status.OK, words)
    remedy = "free some, or let FOURWALLS_STATE name a directory on a larger disk"
    return Check("disk space", Status.MISSING, words, remedy)


def _orphans(places: Places) -> Check:
    try:
        found = find_orphans(places)
    except PermissionError:
        return Check("orphans", Status.NOTE, "only root can see them", "sudo fourwalls doctor")
    if not found:
        return Check("orphans", Status.OK, "none")
    shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return Check("orphans", Status.NOTE, shown, "fourwalls doctor --clean")


def check_speed(kernel: Kernel) -> list[Check]:
    """Notes on settings that make sandboxes start faster. Nothing is ever set."""
    checks = []
    if kernel.rcu_expedited() is False:
        checks.append(
            Check(
                "start time",
                Status.NOTE,
                "each start waits for a few RCU grace periods, about 10 ms each",
                "on a host for nothing else: echo 1 >/sys/kernel/rcu_expedited",
            )
        )
    return checks


def _modprobe(kernel: Kernel) -> list[Check]:
    """Without it the kernel cannot load the modules it has."""
    modules = [name for name in _MODULES if kernel.module(name) is Presence.LOADABLE]
    if not modules or shutil.which("modprobe", path=SYSTEM_PATH):
        return []
    words = f"needed to load {', '.join(modules)}"
    return [Check("modprobe", Status.MISSING, words, "apt-get install kmod")]
