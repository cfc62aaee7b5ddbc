"""What makes a freshly installed system a template: nothing of its making stays in it.

Two builds from the same packages give the same tree: logs, caches, lists and identities go, the
days of password changes are fixed, and what the build wrote gets the time of the newest packaged
file. Packaged files keep their times, because compiled Python code is valid only with those.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_EMPTIED = (
    "dev",
    "run",
    "tmp",
    "var/cache/apt",
    "var/cache/debconf",
    "var/lib/apt/lists",
    "var/tmp",
)
_REMOVED = (
    "etc/.pwd.lock",
    "etc/group-",
    "etc/gshadow-",
    "etc/passwd-",
    "etc/shadow-",
    "etc/subgid-",
    "etc/subuid-",
    "root/.bash_history",
    "var/cache/ldconfig/aux-cache",
    "var/lib/dbus/machine-id",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/available-old",
    "var/lib/dpkg/diversions-old",
    "var/lib/dpkg/statoverride-old",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/triggers/Lock",
    "var/lib/systemd/catalog/database",
)
_FIXED = {
    "etc/hostname": "sandbox\n",
    "etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "etc/machine-id": "",
    "etc/resolv.conf": "",
}


def clean(tree: Path, sources: list[str]) -> None:
    """Remove from the root filesystem ``tree`` what differs from build to build.

    ``sources``: the lines of its sources.list, whatever mirror this host has used.
    """
    for name in _EMPTIED:
        _empty(tree / name)
    for name in _REMOVED:
        (tree / name).unlink(missing_ok=True)
    for path in _files(tree / "etc" / "apt" / "sources.list.d"):
        path.unlink()
    for path in _files(tree / "var" / "log"):
        path.unlink()
    texts = {**_FIXED, "etc/apt/sources.list": "".join(f"{line}\n" for line in sources)}
    for name, text in texts.items():
        path = tree / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o644)
    shadow = tree / "etc" / "shadow"
    if shadow.exists():
        shadow.write_text(fixed_shadow(shadow.read_text()))


def fixed_shadow(text: str) -> str:
    """``/etc/shadow`` with the day of the last change set to 1 (0 would force a change)."""
    lines = [line.split(":") for line in text.splitlines()]
    return "".join(":".join([*fields[:2], "1", *fields[3:]]) + "\n" for fields in lines)


def settle_times(tree: Path, began: float) -> int:
    """Give all that changed since ``began`` (Unix seconds) the time of the newest file that did
    not; returns that time.
    """
    # Whole seconds: packages know no other, and what is written during the build does.
    paths = [tree, *_all_below(tree)]
    times = [(path, path.lstat().st_mtime) for path in paths]
    newest = int(max((time for _, time in times if time < began), default=0))
    for path, time in times:
        settled = newest if time >= began else int(time)
        os.utime(path, (settled, settled), follow_symlinks=False)
    return newest


def _all_below(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory):
        yield from (Path(parent, name) for name in (*directories, *files))


def _files(directory: Path) -> Iterator[Path]:
    for parent, _, files in os.walk(directory):
        yield from (Path(parent, name) for name in files)


def _empty(directory: Path) -> None:
    if not directory.is_dir() or directory.is_symlink():
        return
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
