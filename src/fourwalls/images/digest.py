"""Digests of image files. BLAKE2b: several times faster than SHA-256 without CPU support."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ALGORITHM = "blake2b"
_CHUNK = 1 << 20


def digest_of_bytes(data: bytes) -> str:
    """64 hex digits of BLAKE2b-256."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def digest_of_file(path: Path) -> str:
    """64 hex digits of BLAKE2b-256 of the whole file. Raises :class:`OSError`."""
    state = hashlib.blake2b(digest_size=32)
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while count := file.readinto(buffer):
            state.update(view[:count])
    return state.hexdigest()
