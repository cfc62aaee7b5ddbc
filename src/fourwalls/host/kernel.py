"""What the running kernel can do, read from /proc, /sys and /lib/modules."""

from __future__ import annotations

import enum
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path


class Presence(enum.Enum):
    """Whether a part of the kernel is there, or would be after ``modprobe``."""

    PRESENT = "present"
    LOADABLE = "loadable"
    ABSENT = "absent"


@dataclass(frozen=True)
class Kernel:
    """The running kernel; ``root`` is another root directory in tests."""

    release: str = platform.release()
    root: Path = Path("/")

    @property
    def version(self) -> tuple[int, int]:
        match = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def filesystem(self, name: str) -> Presence:
        """A file system, by its name in /proc/filesystems."""
        known = self._read("proc/filesystems").split()
        return Presence.PRESENT if name in known else self.module(name)

    def loop_devices(self) -> Presence:
        there = (self.root / "dev/loop-control").exists()
        return Presence.PRESENT if there else self.module("loop")

    def module(self, name: str) -> Presence:
        """A module that is loaded, or could be. One that is built in is told from its users."""
        if (self.root / "sys/module" / name).is_dir():
            return Presence.PRESENT
        library = f"lib/modules/{self.release}"
        pattern = re.compile(rf"(?:^|/){re.escape(name)}\.ko\b", re.MULTILINE)
        if pattern.search(self._read(f"{library}/modules.builtin")):
            return Presence.PRESENT
        if pattern.search(self._read(f"{library}/modules.dep")):
            return Presence.LOADABLE
        return Presence.ABSENT

    def user_namespaces(self) -> int:
        """How many user namespaces this kernel allows; 0: none."""
        if not (self.root / "proc/self/ns/user").exists():
            return 0
        text = self._read("proc/sys/user/max_user_namespaces").strip()
        return int(text) if text.isdigit() else 0

    def seccomp_filters(self) -> bool:
        return "errno" in self._read("proc/sys/kernel/seccomp/actions_avail").split()

    def rcu_expedited(self) -> bool | None:
        """None when this kernel does not say."""
        text = self._read("sys/kernel/rcu_expedited").strip()
        return text != "0" if text else None

    def _read(self, path: str) -> str:
        try:
            return (self.root / path).read_text(errors="replace")
        except OSError:
            return ""


def free_bytes(path: Path) -> int:
    """Free space of the file system that holds ``path``, or would hold it."""
    while not path.exists():
        path = path.parent
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
