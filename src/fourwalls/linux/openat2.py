"""openat2(2): opening a path as if a directory were the root of everything."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any, ClassVar

_SYS_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_IN_ROOT = 0x10
_ATTEMPTS = 16

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


def open_in_root(root: int, path: str, flags: int) -> int:
    """Open ``path`` below the directory fd ``root``.

    Absolute symbolic links and ``..`` are taken relative to ``root``: nothing outside is ever
    reached. Raises :class:`OSError`.
    """
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    for _ in range(_ATTEMPTS):
        fd = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(root),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return int(fd)
        error = ctypes.get_errno()
        if error != errno.EAGAIN:  # something was renamed on the way
            break
    raise OSError(error, os.strerror(error), path)
