"""The superblock of an EROFS image: reading its UUID, and making it reproducible."""

from __future__ import annotations

import struct
import uuid
from typing import BinaryIO

from fourwalls.model.errors import TemplateError

_OFFSET = 1024
_MAGIC = 0xE0F5E1E2
_CHECKSUM = slice(4, 8)
_FEATURES = slice(8, 12)
_BLOCK_BITS = 12
_BUILD_TIME = slice(24, 36)  # 8 bytes of seconds, 4 of nanoseconds
_UUID = slice(48, 64)
_HAS_CHECKSUM = 1
_SIZE = 128


def image_uuid(file: BinaryIO) -> uuid.UUID | None:
    """The UUID of the image; None if ``file`` is not EROFS at all."""
    file.seek(_OFFSET)
    block = file.read(_SIZE)
    return uuid.UUID(bytes=block[_UUID]) if _is_erofs(block) else None


def clear_build_time(file: BinaryIO) -> None:
    """Set the image's own time to 0, as if made at the epoch. ``file`` is open for update.

    mkfs.erofs can do so itself only by setting the times of all files too.
    """
    file.seek(_OFFSET)
    block = bytearray(file.read(_SIZE))
    if not _is_erofs(bytes(block)):
        raise TemplateError("mkfs.erofs made something that is not an EROFS image")
    file.seek(_OFFSET)
    block += bytearray(file.read((1 << block[_BLOCK_BITS]) - _OFFSET)[_SIZE:])
    summed = bool(int.from_bytes(block[_FEATURES], "little") & _HAS_CHECKSUM)
    if summed and _checksum(block) != bytes(block[_CHECKSUM]):
        raise TemplateError("mkfs.erofs made an image with a wrong checksum in its superblock")
    block[_BUILD_TIME] = bytes(12)
    if summed:
        block[_CHECKSUM] = _checksum(block)
    file.seek(_OFFSET)
    file.write(block)


def _is_erofs(block: bytes) -> bool:
    return len(block) == _SIZE and struct.unpack_from("<I", block)[0] == _MAGIC


def _checksum(block: bytearray) -> bytes:
    """CRC-32C of the superblock's block from the superblock on, its own field taken as 0."""
    zeroed = bytearray(block)
    zeroed[_CHECKSUM] = bytes(4)
    crc = 0xFFFFFFFF
    for byte in zeroed:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc.to_bytes(4, "little")
