"""Create → first output of a static program, alone and many at once, beside the raw runtime.

Each sample is taken after a pause (what a service with sporadic creations sees) and in turn with
one of the raw runtime.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.raw import RUNTIMES, RawRuntime
from bench.report import Report, Row, arguments
from fourwalls import AsyncSandbox

PROGRAM = ["/.fourwalls/agent", "--version"]
RATIO = {"container": 1.6, "gvisor": 1.25}
IDLE_MB = {"container": 4, "gvisor": 18}
PAUSE_S = 0.05


async def first_output(boundary: str) -> tuple[float, AsyncSandbox]:
    """Seconds from the SDK call to the first byte of a program's output."""
    begun = time.perf_counter()
    first: list[float] = []
    sandbox = await AsyncSandbox.create(boundary=boundary, timeout=600)
    await sandbox.commands.run(
        PROGRAM, user="root", on_stdout=lambda _: first.append(time.perf_counter() - begun)
    )
    return first[0], sandbox


async def one_by_one(boundary: str, raw: RawRuntime, runs: int, report: Report) -> None:
    ours, theirs = [], []
    for number in range(runs + 2):
        await asyncio.sleep(PAUSE_S)
        seconds, sandbox = await first_output(boundary)
        await sandbox.kill()
        await asyncio.sleep(PAUSE_S)
        answer = await raw.run()
        if number >= 2:
            ours.append(seconds * 1e3)
            theirs.append(answer["first_output_s"][0] * 1e3)
    report.rows.append(
        Row(f"{boundary}: create → first output", ours, "ms", theirs, RATIO[boundary], "ratio")
    )
    if boundary == "gvisor":
        report.rows.append(Row("gvisor: create → first output, isolated", ours, "ms", limit=140))


async def many_at_once(
    boundary: str, raw: RawRuntime, count: int, rounds: int, report: Report
) -> None:
    ours, theirs = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        made = await asyncio.gather(*(first_output(boundary) for _ in range(count)))
        ours.append(time.perf_counter() - begun)
        await asyncio.gather(*(sandbox.kill() for _, sandbox in made))
        theirs.append((await raw.run(count))["wall_s"])
    limit = 1.3 if boundary == "container" else None
    report.rows.append(
        Row(f"{boundary}: {count} at once, first output of all", ours, "s", theirs, limit, "ratio")
    )


def _pss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _free_mb() -> float:
    """Memory in no use but as cache, which is there for the taking."""
    wanted = {"MemFree:", "Buffers:", "Cached:", "SReclaimable:"}
    lines = Path("/proc/meminfo").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split()[0] in wanted) / 1024


async def idle_memory(boundary: str, count: int, report: Report) -> None:
    """What one idle sandbox costs: its groups and shim, and the difference of the whole host."""
    warm = await AsyncSandbox.create(boundary=boundary, timeout=600)
    await asyncio.sleep(0.5)
    before = _free_mb()
    made = [await AsyncSandbox.create(boundary=boundary, timeout=600) for _ in range(count)]
    await asyncio.sleep(1)
    host = (before - _free_mb()) / count
    shims = [_pss_mb((await s._live.session.status()).shim_pid) for s in made]
    groups = [s._live.usage()[0] / 1e6 for s in made]
    total = [group + shim for group, shim in zip(groups, shims, strict=True)]
    report.rows += [
        Row(f"{boundary}: an idle sandbox (its groups + shim)", total, "MB",
            limit=IDLE_MB[boundary]),
        Row(f"{boundary}: of it the shim (PSS)", shims, "MB"),
        Row(f"{boundary}: difference of the whole host, each of {count}", [host], "MB"),
    ]  # fmt: skip
    await asyncio.gather(*(sandbox.kill() for sandbox in [warm, *made]))


async def main() -> None:
    options = arguments(__doc__ or "", runs=20, count=100, rounds=3, idle=20)
    report = Report("bench/start.py")
    for boundary in options.boundary or list(RUNTIMES):
        raw = await RawRuntime.start(boundary)
        try:
            await one_by_one(boundary, raw, options.runs, report)
            count = options.count if boundary == "container" else min(options.count, 10)
            await many_at_once(boundary, raw, count, options.rounds, report)
        finally:
            await raw.close()
        await idle_memory(boundary, options.idle, report)
    report.show(options.json)


if __name__ == "__main__":
    asyncio.run(main())
