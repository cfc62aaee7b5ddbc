"""The end of a sandbox whose shim does not do what it should."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest

from fourwalls.guest.frame import Kind
from fourwalls.host import end, live
from fourwalls.host.live import LiveSandbox
from fourwalls.host.record import SandboxRecord
from fourwalls.linux import dirlock
from fourwalls.linux.cgroup import CgroupLayout
from fourwalls.linux.places import Places
from fourwalls.model.errors import AgentProtocolError, SandboxError
from fourwalls.model.lifecycle import State
from tests.unit.guest.fake_agent import greeted

_ID = "a" * 20


class StubRunning:
    """A shim that ends on a signal, if at all."""

    pid = 0

    def __init__(self, lock: int, *, ends: bool) -> None:
        self._lock = lock
        self._ends = ends
        self.killed = False

    def connect(self) -> socket.socket:
        raise NotImplementedError

    async def wait(self) -> None:
        return

    def kill(self) -> None:
        self.killed = True
        if self._ends:
            os.close(self._lock)


def record() -> SandboxRecord:
    now = time.time()
    return SandboxRecord(
        _ID, "container", "", "base", "", 1, 64, 64, 64, {}, {}, "root", None, "g", True, now, now
    )


@pytest.mark.parametrize("ends", [True, False])
async def test_a_shim_that_does_not_answer_is_ended_by_a_signal(
    ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_ANSWER_TIMEOUT_S", 0.05)
    monkeypatch.setattr(end, "_PATIENCE_S", 0.1)
    places = Places(tmp_path / "run", tmp_path / "state")
    directory, lock = dirlock.make_locked(places.sandboxes, _ID)
    running = StubRunning(lock, ends=ends)
    async with greeted() as (session, agent):
        sandbox = LiveSandbox(
            places, record(), session, running, CgroupLayout(2, {"": str(tmp_path / "cgroup")})
        )
        if ends:
            assert await sandbox.kill() is None
            assert not directory.exists()
        else:
            with pytest.raises(SandboxError, match="does not end") as told:
                await sandbox.kill()
            assert told.value.remedy == "fourwalls doctor --clean"
            os.close(lock)
        assert running.killed
        assert (await agent.receive())[0] == Kind.KILL


async def test_what_breaks_the_protocol_is_ended_whoever_it_belongs_to(tmp_path: Path) -> None:
    """Also a sandbox that was made to outlive its connections."""
    places = Places(tmp_path / "run", tmp_path / "state")
    _, lock = dirlock.make_locked(places.sandboxes, _ID)
    running = StubRunning(lock, ends=True)
    async with greeted() as (session, agent):
        sandbox = LiveSandbox(
            places, record(), session, running, CgroupLayout(2, {"": str(tmp_path / "cgroup")})
        )
        agent.send(Kind.EXIT, 99)
        with pytest.raises(AgentProtocolError):
            await session.metrics()
        await asyncio.sleep(0)
        assert running.killed
        assert sandbox.info.state is State.GONE
