"""Loop devices: a file seen as a block device, freed by the kernel with its last user."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

_LOOP_CONFIGURE = 0x4C0A
_LOOP_CTL_GET_FREE = 0x4C82
_LO_FLAGS_READ_ONLY = 1
_LO_FLAGS_AUTOCLEAR = 4
_ATTEMPTS = 64


class _LoopInfo64(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("lo_device", ctypes.c_uint64),
        ("lo_inode", ctypes.c_uint64),
        ("lo_rdevice", ctypes.c_uint64),
        ("lo_offset", ctypes.c_uint64),
        ("lo_sizelimit", ctypes.c_uint64),
        ("lo_number", ctypes.c_uint32),
        ("lo_encrypt_type", ctypes.c_uint32),
        ("lo_encrypt_key_size", ctypes.c_uint32),
        ("lo_flags", ctypes.c_uint32),
        ("lo_file_name", ctypes.c_uint8 * 64),
        ("lo_crypt_name", ctypes.c_uint8 * 64),
        ("lo_encrypt_key", ctypes.c_uint8 * 32),
        ("lo_init", ctypes.c_uint64 * 2),
    ]


class _LoopConfig(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("fd", ctypes.c_uint32),
        ("block_size", ctypes.c_uint32),
        ("info", _LoopInfo64),
        ("reserved", ctypes.c_uint64 * 8),
    ]


@contextmanager
def attached(path: str | os.PathLike[str], *, read_only: bool) -> Iterator[str]:
    """The path of a loop device showing ``path``, e.g. ``/dev/loop3``.

    Mount it inside the ``with`` block: the device lives on as long as it is mounted and frees
    itself afterwards. Raises :class:`OSError`.
    """
    mode = os.O_RDONLY if read_only else os.O_RDWR
    backing = os.open(path, mode | os.O_CLOEXEC)
    try:
        device, name = _claim(backing, mode, read_only)
    finally:
        os.close(backing)
    try:
        yield name
    finally:
        os.close(device)


def _claim(backing: int, mode: int, read_only: bool) -> tuple[int, str]:
    config = _LoopConfig(fd=backing)
    config.info.lo_flags = _LO_FLAGS_AUTOCLEAR | (_LO_FLAGS_READ_ONLY if read_only else 0)
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_ATTEMPTS):
            name = f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
            device = os.open(name, mode | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device, _LOOP_CONFIGURE, bytes(config))
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:  # EBUSY: another process was faster
                    raise
            else:
                return device, name
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, "no free loop device: another process takes each one first")
