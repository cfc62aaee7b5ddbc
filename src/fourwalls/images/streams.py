"""Decompression with bounds, and digests taken on the way."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Literal

from fourwalls.images.entry import Readable
from fourwalls.model.errors import ImportRefusedError

Compression = Literal["none", "gzip", "zstd", "xz"]

_MAGIC: dict[bytes, Compression] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
}


class Measured:
    """Passes bytes through, counts them, digests them, and stops at ``limit``."""

    def __init__(self, inner: Readable, limit: int, algorithm: str | None = None) -> None:
        self._inner = inner
        self._limit = limit
        self._state = hashlib.new(algorithm) if algorithm else None
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._inner.read(size)
        self.count += len(data)
        if self.count > self._limit:
            raise ImportRefusedError(f"more than {self._limit} bytes after decompression")
        if self._state:
            self._state.update(data)
        return data

    @property
    def hex(self) -> str:
        return self._state.hexdigest() if self._state else ""


def compression_of(beginning: bytes) -> Compression:
    """What a file is compressed with, by its first bytes."""
    for magic, compression in _MAGIC.items():
        if beginning.startswith(magic):
            return compression
    return "none"


@contextmanager
def decompressed(file: IO[bytes], compression: Compression) -> Iterator[Readable]:
    """``file`` decompressed while it is read. Damage is an :class:`ImportRefusedError`.

    zstd runs as a program of its own and must be given a real file.
    """
    try:
        match compression:
            case "none":
                yield file
            case "gzip":
                with gzip.GzipFile(fileobj=file, mode="rb") as stream:
                    yield stream
            case "xz":
                with lzma.LZMAFile(file, "rb") as stream:
                    yield stream
            case "zstd":
                yield from _zstd(file)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise ImportRefusedError(
            f"the {compression} stream is damaged or truncated: {error}",
            remedy="make or download it again",
        ) from error


def _zstd(file: IO[bytes]) -> Iterator[Readable]:
    os.lseek(file.fileno(), file.tell(), os.SEEK_SET)  # Python may have read ahead
    try:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "zstd", "-dcq", "--memory=128MB"],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError as error:
        raise ImportRefusedError(
            "setpriv is missing", remedy="apt-get install util-linux"
        ) from error
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield process.stdout
        except BaseException:
            process.kill()
            raise
        rest = process.stdout.read(1)
        said = process.stderr.read(2000).decode(errors="replace").strip()
        if rest:
            process.kill()
    if process.returncode == 127 or "No such file" in said:
        raise ImportRefusedError("this image needs zstd", remedy="apt-get install zstd")
    if process.returncode != 0 and not rest:
        raise ImportRefusedError(f"the zstd stream is damaged or truncated: {said}")
