"""mount(2) and umount2(2).

Errors are plain :class:`OSError` with the kernel's errno and both paths in the message.
"""

from __future__ import annotations

import ctypes
import os

from fourwalls.linux.mountinfo import read_mounts

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000

MNT_FORCE = 0x1
MNT_DETACH = 0x2
UMOUNT_NOFOLLOW = 0x8

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
)
_libc.umount2.argtypes = (ctypes.c_char_p, ctypes.c_int)


def mount(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    fstype: str = "",
    flags: int = 0,
    data: str = "",
) -> None:
    """Mount ``source`` at ``target``."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        fstype.encode() or None,
        flags,
        data.encode() or None,
    )
    if result != 0:
        errno = ctypes.get_errno()
        what = f"mount {fstype or 'filesystem'} {os.fspath(source)!r} at {os.fspath(target)!r}"
        raise OSError(errno, f"{what}: {os.strerror(errno)}")


def unmount(target: str | os.PathLike[str], flags: int = 0) -> None:
    """Unmount what is mounted last at ``target``; a symbolic link there is never followed."""
    if _libc.umount2(os.fsencode(target), flags | UMOUNT_NOFOLLOW) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"unmount {os.fspath(target)!r}: {os.strerror(errno)}")


def is_mounted(target: str | os.PathLike[str]) -> bool:
    """Whether something is mounted exactly at ``target``, as seen by this process."""
    # A look at two directories instead of the whole table; it is asked for every sandbox. It misses
    # bind mounts within one file system, of which we make none.
    path = os.fspath(target)
    try:
        here = os.lstat(path)
    except OSError:
        return False
    return here.st_dev != os.stat(os.path.dirname(path) or ".").st_dev


def mounts_below(directory: str | os.PathLike[str]) -> list[str]:
    """Mount points at or under ``directory``, those to be unmounted first coming first."""
    top = os.path.realpath(directory)
    return [
        entry.target
        for entry in reversed(read_mounts())
        if entry.target == top or entry.target.startswith(f"{top}/")
    ]
