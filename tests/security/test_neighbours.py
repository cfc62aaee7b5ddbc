"""A sandbox that spends all it was given does not hurt the one beside it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox, CommandError, SandboxGoneError
from fourwalls.model.boundary import Boundary

# Processes that make processes, and one that eats memory until it is killed for it.
BOMB = "bomb() { bomb | bomb & }; bomb; sleep 60"
HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"
# On a machine that runs nothing else a round trip takes 1 to 20 ms.
SLOWEST = 5.0


async def slowest_of(sandbox: AsyncSandbox, count: int) -> float:
    slowest = 0.0
    for _ in range(count):
        started = time.monotonic()
        assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"
        slowest = max(slowest, time.monotonic() - started)
    return slowest


async def test_fork_bomb(boundary: Boundary) -> None:
    async with (
        await AsyncSandbox.create(boundary=boundary.value, timeout=60) as victim,
        await AsyncSandbox.create(boundary=boundary.value, timeout=60, pids=100, cpu=0.5) as bomber,
    ):
        await bomber.commands.run(["bash", "-c", BOMB], background=True)
        assert await slowest_of(victim, 8) < SLOWEST
        assert processes_below(bomber) <= 100 * 6 + 200
        ended = time.monotonic()
        await bomber.kill()
        assert time.monotonic() - ended < SLOWEST
        assert await victim.is_running()


def processes_below(sandbox: AsyncSandbox) -> int:
    name = f"/{sandbox.sandbox_id}"
    count = 0
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            count += name in path.read_text()
        except OSError:
            continue
    return count


async def test_memory_hog(boundary: Boundary) -> None:
    async with (
        await AsyncSandbox.create(boundary=boundary.value, timeout=60) as victim,
        await AsyncSandbox.create(boundary=boundary.value, timeout=60, memory_mb=128) as hog,
    ):
        eating = asyncio.create_task(hog.commands.run(["python3", "-c", HOG]))
        assert await slowest_of(victim, 8) < SLOWEST
        with pytest.raises((CommandError, SandboxGoneError)) as killed:
            await asyncio.wait_for(eating, 30)
        assert getattr(killed.value, "cause", "") == "oom"
        assert await slowest_of(victim, 2) < SLOWEST


async def test_full_disk(boundary: Boundary) -> None:
    async with (
        await AsyncSandbox.create(boundary=boundary.value, timeout=60) as victim,
        await AsyncSandbox.create(boundary=boundary.value, timeout=60, disk_mb=64) as filler,
    ):
        with pytest.raises(CommandError) as full:
            await filler.commands.run("cat /dev/zero > ~/full", timeout=30)
        assert getattr(full.value, "cause", "") == "disk_full"
        await victim.commands.run("head -c 20000000 /dev/zero > ~/fits")
