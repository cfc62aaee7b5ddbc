"""Writing and reading a large file through the SDK, beside a copy on the host's own disk."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator

from bench.raw import RUNTIMES
from bench.report import Report, Row, arguments
from fourwalls import AsyncSandbox

TARGET_MB_S = {"container": 250.0, "gvisor": 80.0}
_CHUNK = b"\xa5" * 1_000_000


def chunks(megabytes: int) -> Iterator[bytes]:
    for _ in range(megabytes):
        yield _CHUNK


async def write(sandbox: AsyncSandbox, megabytes: int) -> float:
    begun = time.perf_counter()
    await sandbox.files.write("/home/user/big", chunks(megabytes))
    return megabytes / (time.perf_counter() - begun)


async def read(sandbox: AsyncSandbox, megabytes: int) -> float:
    begun = time.perf_counter()
    received = 0
    async for chunk in await sandbox.files.read("/home/user/big", format="stream"):
        received += len(chunk)
    assert received == megabytes * 1_000_000, received
    return megabytes / (time.perf_counter() - begun)


def host_write(megabytes: int) -> float:
    """MB/s into a file of the host, no sandbox: what the disk and its cache give."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as file:
        for chunk in chunks(megabytes):
            os.write(file.fileno(), chunk)
    return megabytes / (time.perf_counter() - begun)


async def main() -> None:
    options = arguments(__doc__ or "", megabytes=500, rounds=3)
    report = Report("bench/files.py")
    for boundary in options.boundary or list(RUNTIMES):
        limit = TARGET_MB_S[boundary]
        size = options.megabytes
        async with await AsyncSandbox.create(boundary=boundary, size="medium") as sandbox:
            writes, reads, host = [], [], []
            for _ in range(options.rounds):
                writes.append(await write(sandbox, size))
                reads.append(await read(sandbox, size))
                host.append(host_write(size))
            report.rows += [
                Row(f"{boundary}: files.write of {size} MB", writes, "MB/s", host, limit,
                    at_least=True),
                Row(f"{boundary}: files.read of {size} MB", reads, "MB/s", None, limit,
                    at_least=True),
            ]  # fmt: skip
    report.show(options.json)


if __name__ == "__main__":
    asyncio.run(main())
