"""A detached sandbox outlives its maker: connect again and go on where it was."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox, SandboxGoneError, SandboxNotFoundError
from fourwalls.host.reaper import reap
from fourwalls.images.mounts import unmount_idle
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary
from fourwalls.model.cause import Cause

MAKER = """
import asyncio, os, signal
from fourwalls import AsyncSandbox
async def main():
    sandbox = await AsyncSandbox.create(boundary={boundary!r}, timeout=120, detach=True,
                                        envs={{"WHO": "maker"}}, metadata={{"job": "7"}})
    handle = await sandbox.commands.run(
        "for i in $(seq 100000); do echo line $i; sleep 0.01; done",
        background=True, timeout=0, tag="counter")
    await asyncio.sleep(0.3)
    print(sandbox.sandbox_id, handle.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_killed_program_loses_nothing(boundary: Boundary, places: Places) -> None:
    maker = subprocess.run(
        [sys.executable, "-c", MAKER.format(boundary=boundary.value)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert maker.returncode == -9
    sandbox_id, pid = maker.stdout.split()
    assert not reap(places).sandboxes, "the reaper must spare what lives"
    (listed,) = [i for i in await AsyncSandbox.list() if i.sandbox_id == sandbox_id]
    assert listed.metadata == {"job": "7"}
    sandbox = await AsyncSandbox.connect(sandbox_id)
    try:
        assert sandbox.boundary == boundary.value
        assert (await sandbox.commands.run("echo $WHO")).stdout == "maker\n"
        # From the first byte: nothing lost, nothing twice, while it goes on.
        stream = await sandbox._live.session.attach(pid=int(pid), offsets=(0, 0))
        text = b""
        async for event in stream:
            text += getattr(event, "data", b"")
            if text.count(b"\n") > 60:
                break
        stream.detach()
        lines = text.decode().splitlines()[:60]
        assert lines == [f"line {n}" for n in range(1, 61)]
        assert await sandbox.commands.kill(int(pid))
    finally:
        assert await sandbox.kill()
    with pytest.raises(SandboxNotFoundError):
        await AsyncSandbox.connect(sandbox_id)


async def test_the_newest_connection_wins(boundary: Boundary) -> None:
    first = await AsyncSandbox.create(boundary=boundary.value, timeout=60, detach=True)
    second = await AsyncSandbox.connect(first.sandbox_id)
    try:
        assert (await second.commands.run("echo two")).stdout == "two\n"
        await asyncio.sleep(0.1)
        assert not await first.is_running()
    finally:
        await second.kill()
        await first.kill()


async def test_how_it_ended_is_told_to_whoever_comes_later(places: Places) -> None:
    sandbox = await AsyncSandbox.create(boundary="container", timeout=0.5, detach=True)
    assert (await sandbox.wait()).cause is Cause.LEASE_EXPIRED
    await sandbox.detach()
    with pytest.raises(SandboxGoneError, match="nobody renewed the lease") as told:
        await AsyncSandbox.connect(sandbox.sandbox_id)
    assert told.value.cause == "lease_expired"
    # A record is kept for an hour; then it is as if the sandbox had never been.
    directory = places.sandboxes / sandbox.sandbox_id
    assert not reap(places).sandboxes
    os.utime(directory / "exit.json", (0, 0))
    assert reap(places).sandboxes == [sandbox.sandbox_id]
    with pytest.raises(SandboxNotFoundError):
        await AsyncSandbox.connect(sandbox.sandbox_id)


async def test_a_run_directory_with_a_long_name(
    run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than the address of a socket may be."""
    monkeypatch.setenv("FOURWALLS_RUN", str(run_directory / ("long" * 30)))
    places = Places.from_environment()
    first = await AsyncSandbox.create(boundary="container", timeout=60, detach=True)
    try:
        second = await AsyncSandbox.connect(first.sandbox_id)
        assert (await second.commands.run("echo two")).stdout == "two\n"
        # The host sees the disk through the shim, whoever is connected to it.
        assert second._live.session.state
        assert second._live.session.state.shim_pid
        await second.kill()
    finally:
        await first.kill()
        unmount_idle(places, set())


async def test_a_command_goes_on_when_its_follower_has_let_go() -> None:
    """More output than windows and ring hold: it must not wait for somebody who reads it."""
    sandbox = await AsyncSandbox.create(boundary="container", timeout=60, detach=True)
    script = "head -c 8000000 /dev/zero; echo done > ~/done; sleep 60"
    await sandbox.commands.run(script, background=True, timeout=0)
    state = sandbox._live.session.state
    assert state
    # Seen from outside: a new connection would let go of the old one's streams itself.
    done = Path(f"/proc/{state.init_pid}/root/home/user/done")
    await sandbox.detach()
    try:
        async with asyncio.timeout(10):
            while not await asyncio.to_thread(done.exists):
                await asyncio.sleep(0.05)
    finally:
        await (await AsyncSandbox.connect(sandbox.sandbox_id)).kill()


FOLLOWER = """
import asyncio, os, signal
from fourwalls import AsyncSandbox
async def main():
    sandbox = await AsyncSandbox.create(boundary="container", timeout=60, detach=True)
    await sandbox.commands.run(
        "head -c 8000000 /dev/zero; echo done > ~/done; sleep 60", background=True, timeout=0)
    print(sandbox.sandbox_id, sandbox._live.session.state.init_pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_command_goes_on_when_its_follower_was_killed() -> None:
    maker = subprocess.run(
        [sys.executable, "-c", FOLLOWER], stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    sandbox_id, init = maker.stdout.split()
    done = Path(f"/proc/{init}/root/home/user/done")
    try:
        async with asyncio.timeout(10):
            while not await asyncio.to_thread(done.exists):
                await asyncio.sleep(0.05)
        sandbox = await AsyncSandbox.connect(sandbox_id)
        assert (await sandbox.commands.run("cat ~/done")).stdout == "done\n"
    finally:
        await (await AsyncSandbox.connect(sandbox_id)).kill()


async def test_an_embedded_sandbox_cannot_be_taken(boundary: Boundary) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, timeout=60) as sandbox:
        with pytest.raises(SandboxNotFoundError, match="belongs to the process that made it"):
            await AsyncSandbox.connect(sandbox.sandbox_id)
