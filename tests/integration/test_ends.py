"""Ends nobody planned: of the caller's patience, of the shim, of the lease."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from fourwalls import AsyncSandbox
from fourwalls.model.boundary import Boundary
from fourwalls.model.lifecycle import State


def children() -> list[int]:
    """Our children, zombies among them."""
    pid = os.getpid()
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


async def test_a_sandbox_nobody_asks_about_leaves_no_zombie(boundary: Boundary) -> None:
    before = children()
    sandbox = await AsyncSandbox.create(boundary=boundary.value, timeout=1)
    assert children() != before
    async with asyncio.timeout(20):
        while sandbox.info.state is not State.GONE or children() != before:
            await asyncio.sleep(0.02)


async def test_after_the_death_of_the_shim_a_kill_leaves_nothing(boundary: Boundary) -> None:
    """The inventory after each test finds what this does not: groups, slots, processes."""
    sandbox = await AsyncSandbox.create(boundary=boundary.value, timeout=60)
    await sandbox.commands.run(["sleep", "60"], background=True)
    running = sandbox._live._running
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    await sandbox.kill()


@pytest.mark.parametrize("detach", [False, True])
async def test_a_start_that_is_cancelled_leaves_nothing(boundary: Boundary, detach: bool) -> None:
    before = children()
    for step in range(12):
        start = asyncio.create_task(
            AsyncSandbox.create(boundary=boundary.value, timeout=60, detach=detach)
        )
        await asyncio.sleep(step * 0.004)
        start.cancel()
        try:
            sandbox = await start
        except asyncio.CancelledError:
            continue
        await sandbox.kill()
    assert children() == before
