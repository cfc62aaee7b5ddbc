"""Template images mounted read-only, once per boot, for all sandboxes of this host.

Set-user-id files stay effective on these mounts: each sandbox sees them through its own id-mapped
clone, which decides. The mount points are not reachable for others (their parent is 0700).
"""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fourwalls.images.manifest import Manifest
from fourwalls.images.names import digest_hex
from fourwalls.images.store import TemplateStore
from fourwalls.linux import loop
from fourwalls.linux.flock import locked, try_lock
from fourwalls.linux.mount import MNT_DETACH, MS_NODEV, MS_RDONLY, is_mounted, mount, unmount
from fourwalls.linux.places import Places
from fourwalls.model.errors import TemplateCorruptError, TemplateError

_FLAGS = MS_RDONLY | MS_NODEV


def mounted(places: Places, manifest: Manifest) -> Path:
    """The directory where the template's root filesystem is mounted.

    The first call of a boot verifies the whole image. Raises :class:`TemplateCorruptError`, or
    :class:`TemplateError` if this host cannot mount EROFS.
    """
    _make_parent(places)
    with locked(_lock_file(places, manifest.hex)):
        return _ensure(places, manifest)


@contextmanager
def held(places: Places, manifest: Manifest) -> Iterator[Path]:
    """Like :func:`mounted`, and :func:`unmount_idle` leaves it alone inside the block."""
    _make_parent(places)
    with _use_file(places, manifest.hex).open("w") as use:
        fcntl.flock(use, fcntl.LOCK_SH)
        yield mounted(places, manifest)


def unmount_idle(places: Places, in_use: set[str]) -> list[str]:
    """Unmount every template whose digest (hex) is not in ``in_use``; returns those unmounted."""
    gone = []
    if not places.template_mounts.is_dir():
        return []
    for path in sorted(places.template_mounts.iterdir()):
        if digest_hex(path.name) != path.name or path.name in in_use:
            continue
        with (
            locked(_lock_file(places, path.name)),
            _use_file(places, path.name).open("w") as use,
        ):
            if try_lock(use.fileno()) and _release(path):
                gone.append(path.name)
    return gone


def _release(path: Path) -> bool:
    while is_mounted(path):
        try:
            unmount(path)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
            raise
    try:
        path.rmdir()
    except FileNotFoundError:
        return False  # another process was faster
    return True


def _ensure(places: Places, manifest: Manifest) -> Path:
    target = places.template_mounts / manifest.hex
    if is_mounted(target):
        return target
    image = TemplateStore(places).verify(manifest)
    target.mkdir(mode=0o755, exist_ok=True)
    try:
        _mount_image(image, target)
        if not (target / ".fourwalls" / "agent").is_file():
            raise TemplateCorruptError(
                f"the image of template {manifest.name} has no place for the agent",
                remedy="build or import the template again",
            )
    except BaseException:
        if is_mounted(target):
            unmount(target, MNT_DETACH)
        target.rmdir()
        raise
    return target


def _mount_image(image: Path, target: Path) -> None:
    try:
        try:
            mount(image, target, "erofs", _FLAGS)
        except OSError as error:
            if error.errno != errno.ENOTBLK:  # before Linux 6.12 only block devices are taken
                raise
            with loop.attached(image, read_only=True) as device:
                mount(device, target, "erofs", _FLAGS)
    except OSError as error:
        if error.errno == errno.ENODEV:
            raise TemplateError(
                "this kernel has no EROFS", remedy="modprobe erofs, or boot a kernel with it"
            ) from error
        raise TemplateError(f"the template image cannot be mounted: {error}") from error


def _make_parent(places: Places) -> None:
    places.template_mounts.mkdir(mode=0o700, parents=True, exist_ok=True)
    places.template_mounts.chmod(0o700)


def _lock_file(places: Places, wanted: str) -> Path:
    return places.template_mounts / f".{wanted}.lock"


def _use_file(places: Places, wanted: str) -> Path:
    """Locked shared by holders. Apart from the lock of (un)mounting, which holders wait for."""
    return places.template_mounts / f".{wanted}.use"
