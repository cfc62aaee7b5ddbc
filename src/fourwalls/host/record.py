"""What the host writes down of a sandbox, so that another process can list and adopt it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from fourwalls.guest.shim import Gone
from fourwalls.model.boundary import Boundary
from fourwalls.model.lifecycle import State
from fourwalls.model.sandbox import ExitRecord, SandboxInfo
from fourwalls.model.sizes import Resources

_FILE = "sandbox.json"
EXIT = "exit.json"


class SandboxRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sandbox as it stands in its directory. Times: seconds since the epoch."""

    sandbox_id: str
    boundary: str
    boundary_reason: str
    template: str
    template_digest: str
    cpus: float
    memory_mib: int
    disk_mib: int
    pids: int
    envs: dict[str, str]
    metadata: dict[str, str]
    user: str
    workdir: str | None
    cgroup: str
    detach: bool
    started_at: float
    end_at: float
    version: int = 1

    @property
    def resources(self) -> Resources:
        return Resources(self.cpus, self.memory_mib, self.disk_mib, self.pids)

    def info(self, state: State) -> SandboxInfo:
        """What callers may see of it."""
        return SandboxInfo(
            sandbox_id=self.sandbox_id,
            boundary=Boundary(self.boundary),
            boundary_reason=self.boundary_reason,
            template=self.template,
            template_digest=self.template_digest,
            resources=self.resources,
            metadata=self.metadata,
            started_at=self.started_at,
            end_at=self.end_at,
            state=state,
        )


def write_record(directory: Path, record: SandboxRecord) -> None:
    """Replace the record at once, never half."""
    unfinished = directory / f".{_FILE}"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    rest = memoryview(msgspec.json.encode(record))
    try:
        while rest:  # a file system that is getting full takes a part
            rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)
    os.rename(unfinished, directory / _FILE)


def read_record(directory: Path) -> SandboxRecord | None:
    """The record, or None when the sandbox is gone or was never finished."""
    try:
        return msgspec.json.decode((directory / _FILE).read_bytes(), type=SandboxRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def read_exit(directory: Path) -> ExitRecord | None:
    """How a detached sandbox ended, as its shim wrote it down; None while nobody has."""
    try:
        return msgspec.json.decode((directory / EXIT).read_bytes(), type=Gone).record()
    except (OSError, msgspec.MsgspecError):
        return None


def boottime_deadline_ns(end_at: float) -> int:
    """The moment ``end_at`` on CLOCK_BOOTTIME, which no change of the wall clock moves."""
    left = max(0.0, end_at - time.time())
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + int(left * 1e9)
