"""Every limit ends with its cause, and the sandbox, where it survives, stays usable."""

from __future__ import annotations

import asyncio
import time

import pytest

from fourwalls import AsyncSandbox, CommandExitError, FourwallsError, SandboxGoneError
from fourwalls.boundaries import registry
from fourwalls.model.boundary import Boundary

HOG = "x = bytearray(600 << 20); print(len(x))"


async def test_memory(boundary: Boundary) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, memory_mb=256) as sandbox:
        if registry.driver(boundary).capabilities().survives_oom:
            with pytest.raises(CommandExitError) as killed:
                await sandbox.commands.run(["python3", "-c", HOG])
            assert killed.value.cause == "oom"
            assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"
        else:
            with pytest.raises(SandboxGoneError) as gone:
                await sandbox.commands.run(["python3", "-c", HOG])
            assert gone.value.cause == "oom"
            assert not await sandbox.is_running()


async def test_processes(boundary: Boundary) -> None:
    bomb = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    for _ in range(500):\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(20); os._exit(0)\n"
        "        made += 1\n"
        "except BlockingIOError as error:\n"
        "    print('refused after', made, error.errno, flush=True)\n"
        "os.killpg(0, 9)\n"
    )
    async with await AsyncSandbox.create(boundary=boundary.value, pids=64) as sandbox:
        with pytest.raises(CommandExitError) as caught:
            await sandbox.commands.run(["python3", "-c", bomb], timeout=60)
        assert "refused after" in caught.value.stdout
        assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"


async def test_a_fork_bomb_takes_only_itself_down(boundary: Boundary) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, pids=100) as sandbox:
        bomb = await sandbox.commands.run(
            ["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"], background=True
        )
        await asyncio.sleep(1)
        assert await sandbox.is_running()
        await bomb.kill()
        async with asyncio.timeout(30):
            while True:
                try:
                    assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"
                    break
                except FourwallsError:
                    await asyncio.sleep(0.2)


async def test_disk(boundary: Boundary) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, disk_mb=64) as sandbox:
        with pytest.raises(CommandExitError) as full:
            await sandbox.commands.run("head -c 200000000 /dev/zero > ~/fill")
        assert "No space left" in full.value.stderr
        assert full.value.cause == "disk_full"
        await sandbox.commands.run("rm /home/user/fill /usr/bin/perl", user="root")
        await sandbox.commands.run("echo x > ~/small && cat ~/small")


@pytest.mark.parametrize("directory", ["/tmp", "/var/tmp", "/home/user", "/root"])
async def test_every_directory_counts(boundary: Boundary, directory: str) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, disk_mb=48) as sandbox:
        with pytest.raises(CommandExitError, match="No space left"):
            await sandbox.commands.run(f"head -c 100000000 /dev/zero > {directory}/x", user="root")


async def test_cpu(boundary: Boundary) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, cpu=0.25) as sandbox:
        script = "import time; t = time.monotonic()\nwhile time.monotonic() - t < 2: pass"
        _, _, before = sandbox._live.usage()
        started = time.monotonic()
        await sandbox.commands.run(["python3", "-c", script], timeout=30)
        wall = time.monotonic() - started
        _, _, after = sandbox._live.usage()
        assert (after - before) / 1e6 / wall < 0.4


async def test_lease(boundary: Boundary) -> None:
    sandbox = await AsyncSandbox.create(boundary=boundary.value, timeout=1.5)
    with pytest.raises(SandboxGoneError) as gone:
        await sandbox.commands.run("sleep 60")
    assert gone.value.cause == "lease_expired"
    assert not await sandbox.is_running()
    await sandbox.kill()


async def test_lease_can_be_moved(boundary: Boundary) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, timeout=2) as sandbox:
        await sandbox.set_timeout(60)
        await asyncio.sleep(2.5)
        assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"


async def test_killed(boundary: Boundary) -> None:
    sandbox = await AsyncSandbox.create(boundary=boundary.value)
    waiting = asyncio.create_task(sandbox.commands.run("sleep 60"))
    await asyncio.sleep(0.3)
    assert await sandbox.kill()
    with pytest.raises(SandboxGoneError) as gone:
        await waiting
    assert gone.value.cause == "killed"
    assert not await sandbox.kill()
