"""Root of the sandbox against the agent: nothing but the sandbox's own end can come of it."""

from __future__ import annotations

import asyncio
import resource
import time
from pathlib import Path

import pytest

from fourwalls import AgentProtocolError, AsyncSandbox, CommandExitError, SandboxGoneError
from fourwalls.model.boundary import Boundary

SIGNALS = "for s in 9 19 15 1 2 3 11 6 17 10 12 64 34; do kill -$s 1; done; sleep 0.2; echo sent"


async def alive(sandbox: AsyncSandbox) -> bool:
    return (await sandbox.commands.run("echo alive")).stdout == "alive\n"


async def test_signals(sandbox: AsyncSandbox) -> None:
    if sandbox.boundary == "container":
        said = await sandbox.commands.run(SIGNALS, user="root")
        assert said.stdout == "sent\n"
        assert await alive(sandbox)
        return
    # The sentry lets root kill the first process: the sandbox is gone, and says why.
    with pytest.raises(SandboxGoneError) as gone:
        await sandbox.commands.run(SIGNALS, user="root")
    assert gone.value.cause == "boundary_died"
    assert "the first process left with exit status 137" in str(gone.value)


async def test_users_cannot_signal_it(sandbox: AsyncSandbox) -> None:
    said = await sandbox.commands.run(f"({SIGNALS}) 2>/dev/null")
    assert said.stdout == "sent\n"
    assert await alive(sandbox)


async def test_everything_at_once(sandbox: AsyncSandbox) -> None:
    """``kill -9 -1`` spares the agent."""
    for user in ("user", "root"):
        with pytest.raises(CommandExitError):
            await sandbox.commands.run("(kill -9 -1) 2>/dev/null; sleep 5", user=user, timeout=3)
        assert await alive(sandbox)


async def test_a_stopped_agent_is_noticed(boundary: Boundary, sandbox: AsyncSandbox) -> None:
    sandbox._live.session._link._heartbeat._interval = 0.3
    stop = "kill -STOP 1; sleep 0.1; echo sent"
    if boundary is Boundary.CONTAINER:
        assert (await sandbox.commands.run(stop, user="root")).stdout == "sent\n"
        assert await alive(sandbox)
        return
    with pytest.raises(AgentProtocolError, match="stopped answering"):
        await asyncio.wait_for(sandbox.commands.run(stop, user="root"), 20)
    assert not await sandbox.is_running()


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        # Noise; a frame that speaks as the shim; a frame larger than any; output nobody asked for.
        ("x" * 64, "reserved field"),
        ("\\0\\0\\0\\0\\371\\0\\0\\0\\0\\0\\0\\0", "kind 0xf9"),
        ("\\377\\377\\377\\177\\201\\0\\0\\0\\0\\0\\0\\0", "claims a body of 2147483647 bytes"),
        ("\\0\\0\\0\\0\\377\\0\\0\\0\\0\\0\\0\\0", "kind 0xff"),
    ],
    ids=["noise", "gone", "huge", "unknown"],
)
async def test_frames_that_are_not_the_agents(
    boundary: Boundary, sandbox: AsyncSandbox, written: str, complaint: str
) -> None:
    script = f"printf '{written}' > /proc/1/fd/1; sleep 0.5; echo written"
    if boundary is Boundary.CONTAINER:
        # Nobody gets at the pipe.
        done = await sandbox.commands.run(script, user="root")
        assert (done.stdout, "Permission denied" in done.stderr) == ("written\n", True)
        assert await alive(sandbox)
        return
    with pytest.raises((SandboxGoneError, AgentProtocolError)) as caught:
        await asyncio.wait_for(sandbox.commands.run(script, user="root"), 20)
    assert complaint in str(caught.value)
    if isinstance(caught.value, SandboxGoneError):
        assert caught.value.cause == "boundary_died"
    assert not await sandbox.is_running()


async def test_requests_stolen_from_its_pipe(boundary: Boundary, sandbox: AsyncSandbox) -> None:
    sandbox._live.session._link._heartbeat._interval = 0.3
    thief = "setsid sh -c 'cat /proc/1/fd/0 > /dev/null' & sleep 0.3; echo stolen"
    assert (await sandbox.commands.run(thief, user="root")).stdout == "stolen\n"
    if boundary is Boundary.CONTAINER:
        assert await alive(sandbox)
        return

    async def go_on() -> None:
        while True:
            await sandbox.commands.run("echo still")

    with pytest.raises((AgentProtocolError, SandboxGoneError)):
        await asyncio.wait_for(go_on(), 20)
    assert not await sandbox.is_running()


async def test_its_log_is_bounded_and_harmless(boundary: Boundary, places_run: Path) -> None:
    """What the guest writes to the agent's stderr ends up in the record: cut, and as JSON."""
    sandbox = await AsyncSandbox.create(boundary=boundary.value, timeout=60, detach=True)
    try:
        hostile = "printf '\\033]0;owned\\007\\033[2J\\377' > /proc/1/fd/2;"
        flood = "head -c 3000000 /dev/zero | tr '\\0' x > /proc/1/fd/2; kill -9 1; sleep 1; true"
        done = asyncio.create_task(sandbox.commands.run(hostile + flood, user="root"))
        directory = places_run / "sandboxes" / sandbox.sandbox_id
        if boundary is Boundary.CONTAINER:
            assert (await done).stderr.count("Permission denied") == 2
            return
        with pytest.raises(SandboxGoneError):
            await done
        text = (directory / "exit.json").read_bytes()
        assert len(text) < 600_000
        assert b"\x1b" not in text
        assert b"\x07" not in text
        assert (directory / "exit.json").stat().st_mode & 0o777 == 0o600
        record = await sandbox.wait()
        assert record.cause.value == "boundary_died"
        assert len(record.stderr) < 100_000
    finally:
        await sandbox.kill()


@pytest.fixture
def places_run(run_directory: Path) -> Path:
    return run_directory


async def test_the_agent_outlives_its_files(sandbox: AsyncSandbox) -> None:
    ruin = "rm -rf /.fourwalls /bin/bash /usr/lib /etc/shadow 2>/dev/null; echo ruined"
    assert (await sandbox.commands.run(ruin, user="root")).stdout == "ruined\n"
    assert await sandbox.files.exists("/etc/passwd")
    await sandbox.files.write("/tmp/still", "here")
    assert await sandbox.files.read("/tmp/still") == "here"
    assert await sandbox.is_running()


async def test_a_flood_of_output_costs_the_host_no_memory(sandbox: AsyncSandbox) -> None:
    shim = (await sandbox._live.session.status()).shim_pid

    def resident() -> int:
        pages = int(Path(f"/proc/{shim}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    before, own = resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # One that is read and mostly dropped, one that nobody reads.
    await sandbox.commands.run("head -c 30000000 /dev/zero", output_limit=100_000)
    unread = await sandbox.commands.run("cat /dev/zero", background=True, output_limit=1000)
    await asyncio.sleep(0.5)
    await unread.disconnect()
    await asyncio.sleep(0.3)
    assert await alive(sandbox)
    assert resident() - before < 16 << 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - own) << 10 < 48 << 20
    await sandbox.commands.kill(unread.pid)


async def test_a_guest_that_does_not_read_its_input(sandbox: AsyncSandbox) -> None:
    deaf = await sandbox.commands.run("sleep 60", background=True, stdin=True)
    sending = asyncio.create_task(deaf.send_stdin(bytes(20 << 20)))
    await asyncio.sleep(0.3)
    started = time.monotonic()
    assert await alive(sandbox)
    assert time.monotonic() - started < 5
    assert not sending.done()
    await sandbox.commands.kill(deaf.pid)
    with pytest.raises(CommandExitError):
        await deaf.wait()
    await asyncio.wait([sending], timeout=10)
    assert sending.done()
    sending.exception()
    assert await alive(sandbox)
