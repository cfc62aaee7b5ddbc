"""Reading and ending control groups: counters for the host, and clean-up for the reaper."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from pathlib import Path

from fourwalls.linux.cgroup import CgroupLayout, group_paths

_BASE = "fourwalls"


def group_name(instance: str, sandbox_id: str) -> str:
    """Path of a sandbox's group below each hierarchy."""
    return f"{_BASE}/{instance}/{sandbox_id}"


def sandboxes_with_groups(layout: CgroupLayout, instance: str) -> set[str]:
    """Ids of the sandboxes that have a group in any hierarchy."""
    found: set[str] = set()
    for root in set(layout.roots.values()):
        with contextlib.suppress(OSError):
            found.update(
                entry.name
                for entry in os.scandir(f"{root}/{_BASE}/{instance}")
                if entry.is_dir(follow_symlinks=False)
            )
    return found


def oom_file(layout: CgroupLayout, name: str) -> str:
    """The file with the group's count of processes killed for want of memory."""
    file = "memory.events" if layout.version == 2 else "memory.oom_control"
    return f"{group_paths(layout, name)[-1]}/{file}"


def oom_kills(path: str) -> int:
    """The count in an :func:`oom_file`; 0 when the group is gone. Read for every command."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.read(fd, 4096)
    except OSError:
        return 0
    finally:
        os.close(fd)
    _, found, rest = text.partition(b"oom_kill ")
    return int(rest.split(b"\n", 1)[0]) if found else 0


def usage(layout: CgroupLayout, name: str) -> tuple[int, int, int]:
    """Memory in use, the cache in it (bytes), and cpu time used (µs)."""
    if layout.version == 2:
        directory = Path(group_paths(layout, name)[-1])
        stat = _keys(directory / "memory.stat")
        cpu = _keys(directory / "cpu.stat").get("usage_usec", 0)
        return _number(directory / "memory.current"), stat.get("file", 0), cpu
    memory = Path(layout.roots["memory"]) / name
    cache = _keys(memory / "memory.stat").get("total_cache", 0)
    cpu_root = layout.roots.get("cpuacct")
    cpu = _number(Path(cpu_root) / name / "cpuacct.usage") // 1000 if cpu_root else 0
    return _number(memory / "memory.usage_in_bytes"), cache, cpu


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _keys(path: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            found[key] = int(value)
    return found


def destroy(layout: CgroupLayout, name: str, *, patience_s: float = 5.0) -> bool:
    """Kill everything in the group and remove it. False when something would not go in time."""
    deadline = time.monotonic() + patience_s
    paths = [Path(path) for path in group_paths(layout, name)]
    while True:
        alive = False
        for path in paths:
            alive |= _kill_all(path)
        if not alive and all(_remove(path) for path in paths):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)


def _kill_all(path: Path) -> bool:
    with contextlib.suppress(OSError):
        (path / "cgroup.kill").write_text("1")
    # What is frozen on v1 does not die before it is thawed, and a shim that was killed may have
    # left it frozen. Only the freezer's own hierarchy has the file; opening makes none elsewhere.
    with contextlib.suppress(OSError):
        fd = os.open(path / "freezer.state", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"THAWED")
        finally:
            os.close(fd)
    try:
        pids = [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
    except OSError:
        return False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            # A number read a moment ago could be another process by now: it has to be in the
            # group still when the pidfd, which cannot change its meaning, is held.
            pidfd = os.pidfd_open(pid)
            try:
                if _in_group(path, pid):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            finally:
                os.close(pidfd)
    return bool(pids)


def _in_group(path: Path, pid: int) -> bool:
    try:
        return str(pid) in (path / "cgroup.procs").read_text().split()
    except OSError:
        return False


def _remove(path: Path) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
            return False
        raise
    return True
