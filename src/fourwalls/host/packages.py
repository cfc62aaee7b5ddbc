"""The Debian packages this host needs, and which of them are not there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fourwalls.boundaries.container.driver import OLDEST_CRUN
from fourwalls.boundaries.gvisor.driver import OLDEST_RUNSC
from fourwalls.boundaries.oci.runtime import crun_version, runsc_release, runtime_version

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Package:
    """A package and the program or file that shows it is installed.

    ``refuses`` gives the reason why the installed version will not do, or an empty string.
    ``optional``: sandboxes run without it.
    """

    name: str
    provides: str
    purpose: str
    refuses: Callable[[str], str] = lambda path: ""
    needs: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Finding:
    """What the host has of a package: ``problem`` is empty when all is well."""

    package: Package
    where: str
    version: str
    problem: str


def _old_crun(path: str) -> str:
    version = crun_version(runtime_version(path))
    return "" if version and version >= OLDEST_CRUN else "too old"


def _old_runsc(path: str) -> str:
    release = runsc_release(runtime_version(path))
    return "" if release and release >= OLDEST_RUNSC else "too old"


_CRUN = ".".join(map(str, OLDEST_CRUN))

PACKAGES = (
    Package("crun", "crun", "the boundary container", _old_crun, f">= {_CRUN}"),
    Package("runsc", "runsc", "the boundary gvisor", _old_runsc, f">= {OLDEST_RUNSC}"),
    Package("e2fsprogs", "mkfs.ext4", "the disks of sandboxes"),
    Package("erofs-utils", "mkfs.erofs", "the images of templates"),
    Package("mmdebstrap", "mmdebstrap", "building templates"),
    Package("util-linux", "setpriv", "building templates"),
    Package(
        "debian-archive-keyring",
        "/usr/share/keyrings/debian-archive-keyring.gpg",
        "building templates",
    ),
    Package("skopeo", "skopeo", "importing images from registries", optional=True),
)


def examine_packages() -> list[Finding]:
    """One finding for each package, in the order of the table."""
    return [_examine(package) for package in PACKAGES]


def _examine(package: Package) -> Finding:
    if package.provides.startswith("/"):
        where = package.provides if Path(package.provides).exists() else ""
    else:
        where = shutil.which(package.provides, path=SYSTEM_PATH) or ""
    if not where:
        return Finding(package, "", "", "not installed")
    # Only the runtimes are asked: starting a program costs more than all other checks together.
    version = runtime_version(where) if package.needs else ""
    problem = package.refuses(where)
    return Finding(package, where, version, problem)
