"""What every template has beside its own content: mount points, and the agent's place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fourwalls.model.errors import ImportRefusedError

# Empty directories that a sandbox mounts over. The image is read-only when that happens.
_MOUNT_POINTS = {"dev": 0o755, "proc": 0o555, "run": 0o755, "sys": 0o555, "tmp": 0o1777}
_OURS = ".fourwalls"
_AGENT = "agent"


def add_skeleton(tree: Path) -> None:
    """Add to ``tree``, which may be hostile, what is missing.

    ``/.fourwalls/agent`` is an empty file: the mount point of the guest agent; ``/tmp/.fourwalls``
    another, so that ``/tmp`` is a directory of the sandbox's disk behind every boundary. Raises
    :class:`ImportRefusedError` if the tree has anything else there, or a mount point that is not
    a directory.
    """
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name, mode in _MOUNT_POINTS.items():
            _ensure_directory(root, name, mode)
        _ensure_directory(root, _OURS, 0o755)
        _replace_agent(root)
        _keep_tmp(root)
        _reset_times(root)
    finally:
        os.close(root)


def _ensure_directory(root: int, name: str, mode: int) -> None:
    try:
        found = os.stat(name, dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=root)
        os.chmod(name, mode, dir_fd=root)
        os.utime(name, (0, 0), dir_fd=root)
        return
    if not stat.S_ISDIR(found.st_mode):
        raise ImportRefusedError(
            f"/{name} is not a directory; a sandbox needs it as a mount point",
            remedy=f"remove /{name} from the image, or make it a directory",
        )


def _replace_agent(root: int) -> None:
    ours = os.open(_OURS, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        if set(os.listdir(ours)) - {_AGENT}:
            raise ImportRefusedError(
                f"the image has files in /{_OURS}, which is reserved",
                remedy=f"remove /{_OURS} from the image",
            )
        try:
            os.unlink(_AGENT, dir_fd=ours)
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            raise ImportRefusedError(
                f"/{_OURS}/{_AGENT} is a directory; this name is reserved",
                remedy=f"remove /{_OURS} from the image",
            ) from None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        agent = os.open(_AGENT, flags, 0o644, dir_fd=ours)
        os.fchmod(agent, 0o644)
        os.utime(agent, (0, 0))
        os.close(agent)
        os.fchown(ours, 0, 0)
        os.fchmod(ours, 0o755)
        os.utime(ours, (0, 0))
    finally:
        os.close(ours)


def _keep_tmp(root: int) -> None:
    # gVisor mounts a file system in memory over an empty /tmp: no quota of the disk would hold for
    # it, and what is written there would count as memory.
    tmp = os.open("tmp", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        if _OURS not in os.listdir(tmp):
            mark = os.open(_OURS, flags, 0o444, dir_fd=tmp)
            os.utime(mark, (0, 0))
            os.close(mark)
            os.utime(tmp, (0, 0))
    finally:
        os.close(tmp)


def _reset_times(root: int) -> None:
    # Adding entries touched the root directory: its time must not be that of this moment.
    os.utime(root, (0, 0))
