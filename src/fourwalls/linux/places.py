"""Where things are kept: the run directory (this boot) and the state directory (durable)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_RUN = "/run/fourwalls"
_STATE = "/var/lib/fourwalls"


@dataclass(frozen=True)
class Places:
    """All paths of one installation, derived from two roots.

    ``run`` holds what lives and dies with this boot (sandboxes, mounts, sockets), ``state`` what
    outlives it (templates, formatted disks). Two installations with different roots never see
    each other: their cgroups carry ``instance``.
    """

    run: Path
    state: Path

    @classmethod
    def from_environment(cls) -> Places:
        """``FOURWALLS_RUN`` and ``FOURWALLS_STATE``, or the defaults for root."""
        return cls(
            Path(os.environ.get("FOURWALLS_RUN") or _RUN).absolute(),
            Path(os.environ.get("FOURWALLS_STATE") or _STATE).absolute(),
        )

    @cached_property
    def instance(self) -> str:
        """Name of the cgroup subtree: ``default``, or a digest of the run directory."""
        if str(self.run) == _RUN:
            return "default"
        return hashlib.blake2b(str(self.run).encode(), digest_size=6).hexdigest()

    @cached_property
    def sandboxes(self) -> Path:
        return self.run / "sandboxes"

    @cached_property
    def slots(self) -> Path:
        return self.run / "slots"

    @cached_property
    def template_mounts(self) -> Path:
        return self.run / "templates"

    @cached_property
    def crun_root(self) -> Path:
        return self.run / "crun"

    @cached_property
    def templates(self) -> Path:
        return self.state / "templates"

    @cached_property
    def building(self) -> Path:
        return self.state / "building"

    @cached_property
    def disks(self) -> Path:
        return self.state / "disks"

    @cached_property
    def scratch(self) -> Path:
        # Of this run directory alone: the reaper of another must not take them for left ones.
        return self.state / "scratch" / self.instance
