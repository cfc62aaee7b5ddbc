"""Round trip of a command, and throughput of its output, beside the runtime's own exec."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time

from bench.raw import RUNTIMES
from bench.report import Report, Row, arguments
from fourwalls import AsyncSandbox

ROUND_TRIP_MS = {"container": 1.5, "gvisor": 20.0}
STREAM_MB_S = {"container": 250.0, "gvisor": 80.0}


def producer(megabytes: int) -> list[str]:
    """A program that writes its output in pieces of 100 kB, as one that cares for speed does."""
    return ["dd", "if=/dev/zero", "bs=100000", f"count={megabytes * 10}", "status=none"]


async def round_trip(sandbox: AsyncSandbox, command: str | list[str], runs: int) -> list[float]:
    samples = []
    for _ in range(runs + 5):
        begun = time.perf_counter()
        await sandbox.commands.run(command)
        samples.append((time.perf_counter() - begun) * 1e3)
    return samples[5:]


async def stream(sandbox: AsyncSandbox, megabytes: int) -> float:
    """MB/s of a command's stdout, as they reach the SDK's callback."""
    received = 0

    def count(text: str) -> None:
        nonlocal received
        received += len(text)

    begun = time.perf_counter()
    await sandbox.commands.run(producer(megabytes), on_stdout=count, output_limit=0)
    seconds = time.perf_counter() - begun
    assert received == megabytes * 1_000_000, received
    return megabytes / seconds


def plain_pipe(megabytes: int) -> float:
    """MB/s of the same program over a plain pipe, read in this process: the ceiling."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        producer(megabytes), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    while os.read(process.stdout.fileno(), 1 << 18):
        pass
    process.wait()
    process.stdout.close()
    return megabytes / (time.perf_counter() - begun)


async def main() -> None:
    options = arguments(__doc__ or "", runs=200, megabytes=1000, rounds=3)
    report = Report("bench/exec.py")
    for boundary in options.boundary or list(RUNTIMES):
        runs = options.runs if boundary == "container" else min(options.runs, 50)
        async with await AsyncSandbox.create(boundary=boundary, size="medium") as sandbox:
            direct = await round_trip(sandbox, ["/bin/true"], runs)
            shell = await round_trip(sandbox, "/bin/true", runs)
            limit = ROUND_TRIP_MS[boundary]
            report.rows += [
                Row(f"{boundary}: commands.run(['/bin/true'])", direct, "ms", limit=limit),
                Row(f"{boundary}: commands.run('/bin/true'), by a login shell", shell, "ms"),
            ]
            size = options.megabytes if boundary == "container" else options.megabytes // 4
            rates = [await stream(sandbox, size) for _ in range(options.rounds)]
            pipes = [plain_pipe(size) for _ in range(options.rounds)]
            report.rows.append(
                Row(
                    f"{boundary}: stdout of {size} MB to the SDK",
                    rates,
                    "MB/s",
                    pipes,
                    STREAM_MB_S[boundary],
                    at_least=True,
                )
            )
    report.show(options.json)


if __name__ == "__main__":
    asyncio.run(main())
