"""The names inside a sandbox's directory that the OCI boundaries agree on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class SandboxFiles:
    """Paths below one sandbox directory."""

    directory: Path

    @cached_property
    def bundle(self) -> Path:
        return self.directory / "bundle"

    @cached_property
    def config(self) -> Path:
        return self.bundle / "config.json"

    @cached_property
    def pid_file(self) -> Path:
        return self.directory / "init.pid"

    @cached_property
    def lower(self) -> Path:
        """The template, with ids shifted into the sandbox's range."""
        return self.directory / "lower"

    @cached_property
    def disk(self) -> Path:
        """The sandbox's own disk, the only thing it can write to."""
        return self.directory / "disk"

    @cached_property
    def rootfs(self) -> Path:
        return self.directory / "rootfs"
