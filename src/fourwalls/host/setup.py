"""Making a host ready: look at it, plan what is to be done, do it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fourwalls.boundaries.oci.runtime import find_runtime, runtime_version
from fourwalls.host import apt
from fourwalls.host.distribution import Distribution, read_distribution
from fourwalls.host.kernel import Kernel, Presence
from fourwalls.host.packages import PACKAGES, examine_packages
from fourwalls.images.mirror import find_mirrors
from fourwalls.images.progress import Progress, Report
from fourwalls.images.store import TemplateStore
from fourwalls.linux.places import Places
from fourwalls.model.errors import BoundaryUnavailableError, FourwallsError, TemplateNotFoundError

BASE = "base"

# What Debian 12 has only in backports, or too old.
_FROM_BACKPORTS = frozenset({"runsc"})
_BACKPORTS_OF = {"12": "bookworm-backports"}
_MODULES = ("loop", "overlay", "erofs")


@dataclass(frozen=True)
class HostState:
    """What `setup` looks at."""

    distribution: Distribution
    missing_packages: tuple[str, ...]
    unloaded_modules: tuple[str, ...]
    has_base: bool
    has_backports: bool
    mirror: str


@dataclass(frozen=True)
class SetupPlan:
    """What is to be done, in this order. Nothing of it means that the host is ready."""

    files: dict[Path, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.packages or self.modules or self.templates)

    def describe(self) -> list[str]:
        """One line for each thing."""
        lines = [f"write {path}" for path in self.files]
        if self.packages:
            lines.append(f"install {' '.join(self.packages)} (apt-get)")
        lines += [f"load the kernel module {module}" for module in self.modules]
        lines += [f"build the template {name} (about a minute)" for name in self.templates]
        return lines


def look(places: Places, kernel: Kernel | None = None) -> HostState:
    """The state of this host. Costs a few files and the versions of the two runtimes."""
    kernel = kernel or Kernel()
    distribution = read_distribution()
    presence = {
        "loop": kernel.loop_devices(),
        "overlay": kernel.filesystem("overlay"),
        "erofs": kernel.filesystem("erofs"),
    }
    return HostState(
        distribution=distribution,
        missing_packages=tuple(f.package.name for f in examine_packages() if f.problem),
        unloaded_modules=tuple(m for m in _MODULES if presence[m] is Presence.LOADABLE),
        has_base=_has_base(places),
        has_backports=apt.has_suite(_BACKPORTS_OF.get(distribution.version, "")),
        mirror=find_mirrors().main,
    )


def make_plan(state: HostState) -> SetupPlan:
    """What has to be done. Raises when this distribution's packages are not known to us."""
    files: dict[Path, str] = {}
    if state.missing_packages:
        if not state.distribution.known:
            raise _unknown_distribution(state)
        suite = _BACKPORTS_OF.get(state.distribution.version)
        late = [name for name in state.missing_packages if name in _FROM_BACKPORTS]
        if suite and late:
            if not state.has_backports:
                files[apt.SOURCE_FILE] = apt.backports_source(suite, state.mirror)
            files[apt.PIN_FILE] = apt.backports_pin(suite, late)
    return SetupPlan(
        files=files,
        packages=state.missing_packages,
        modules=state.unloaded_modules,
        templates=() if state.has_base else (BASE,),
    )


def carry_out(plan: SetupPlan, places: Places, report: Report) -> None:
    """Do it. Stops at the first thing that fails; a second run goes on from there."""
    if os.geteuid() != 0:
        raise BoundaryUnavailableError(
            "setup changes the system and needs root", remedy="sudo fourwalls setup"
        )
    for path, text in plan.files.items():
        report(Progress("files", f"writing {path}"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if plan.packages:
        apt.install(plan.packages, report)
        find_runtime.cache_clear()
        runtime_version.cache_clear()
    for module in plan.modules:
        report(Progress("modules", f"loading {module}"))
        _load_module(module)
    for name in plan.templates:
        _build(name, places, report)


def _build(name: str, places: Places, report: Report) -> None:
    from fourwalls.images.build import build_recipe
    from fourwalls.images.recipe import load_recipe

    template, recipe = load_recipe(name)
    build_recipe(places, recipe, template, reference=name, report=report)


def _has_base(places: Places) -> bool:
    """Whether there is a base that this version would build, or one that the user has put there."""
    from fourwalls.images.recipe import load_recipe

    try:
        source = TemplateStore(places).get(BASE).source
    except TemplateNotFoundError:
        return False
    if source.kind != "recipe" or source.reference != BASE:
        return True
    return source.recipe_digest == load_recipe(BASE)[1].digest


def _load_module(name: str) -> None:
    try:
        done = subprocess.run(
            ["modprobe", name], capture_output=True, text=True, timeout=60, check=False
        )
    except FileNotFoundError:
        raise FourwallsError("modprobe is missing", remedy="apt-get install kmod") from None
    if done.returncode != 0:
        raise FourwallsError(
            f"modprobe {name} failed: {done.stderr.strip()[:500]}",
            remedy=f"boot a kernel that has {name}",
        )


def _unknown_distribution(state: HostState) -> FourwallsError:
    wanted = [p for p in PACKAGES if p.name in state.missing_packages]
    needed = ", ".join(
        f"{p.name} {p.needs}".rstrip() + f" ({p.provides}: {p.purpose})" for p in wanted
    )
    name = state.distribution.pretty_name
    return BoundaryUnavailableError(
        f"setup installs packages on Debian 12 and 13 only, this is {name}; missing here: {needed}",
        remedy="install these with this distribution's own tools, then run fourwalls setup again",
    )
