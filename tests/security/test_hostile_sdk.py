"""The SDK in front of an agent that lies: the same clear errors, no hang, no memory lost."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest

from fourwalls.guest.session import HelloOptions, Session
from fourwalls.model.errors import CommandTimeoutError, FourwallsError
from fourwalls.sdk import AsyncSandbox
from tests.unit.sdk.stub import sandbox_of

from .hostile_agent import LIES, Lie, Peer, serve

MOST_MEMORY = 48 * 1024 * 1024


async def _run(box: AsyncSandbox) -> object:
    await box.commands.run(["x"], timeout=0, output_limit=1024 * 1024)
    await asyncio.sleep(0.2)
    return await box.commands.list()


async def _follow(box: AsyncSandbox) -> None:
    handle = await box.commands.run(["x"], background=True, output_limit=1024)
    async for _ in handle:
        pass
    await handle.wait()
    await asyncio.sleep(0.2)
    await box.commands.list()


async def _stream(box: AsyncSandbox) -> None:
    async for _ in await box.files.read("/f", "stream"):
        pass


async def _watch(box: AsyncSandbox) -> None:
    async for _ in await box.files.watch_dir("/d"):
        pass


CALLS: dict[str, list[Callable[[AsyncSandbox], Awaitable[object]]]] = {
    "exec": [_run, _follow],
    "stat": [lambda box: box.files.get_info("/d/a"), lambda box: box.files.exists("/d/a")],
    "list": [lambda box: box.files.list("/d")],
    "read": [lambda box: box.files.read("/f"), _stream],
    "watch": [_watch],
    "processes": [lambda box: box.commands.list()],
}
TOLD = [(told, call) for told in LIES.values() for call in CALLS.get(told.request, [])]


@pytest.mark.parametrize(("told", "call"), TOLD, ids=[told.name for told, _ in TOLD])
async def test_lie_is_answered_by_a_clear_error(
    told: Lie,
    call: Callable[[AsyncSandbox], Awaitable[object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fourwalls.guest.listing.MAX_ENTRIES", 10_000)
    async with serve(told) as sock:
        session = await Session.open(sock, heartbeat=0.1)
        await session.hello(HelloOptions())
        box = sandbox_of(session)
        tracemalloc.start()
        try:
            with pytest.raises(FourwallsError) as caught:
                await asyncio.wait_for(call(box), 40)
            assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
        finally:
            tracemalloc.stop()
            await box.kill()
        assert len(str(caught.value)) < 2000


async def test_a_command_that_never_ends_is_ended_by_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The agent ignores the timeout, floods with output and says OK to every signal."""
    monkeypatch.setattr("fourwalls.sdk.asynchronous.handle.GRACE", 0.2)

    async def script(peer: Peer) -> None:
        stream = await peer.started()
        offset, credit = 0, 1024 * 1024
        while True:
            while credit >= 65536:
                await peer.data(stream, 1, offset, bytes(65536))
                offset += 65536
                credit -= 65536
            kind, number, body = await peer.request()
            if kind == 0x03:
                credit += body["bytes"]
            elif kind != 0x04:
                await peer.send(0x81, number)

    async with serve(Lie("never_ends", "exec", script)) as sock:
        session = await Session.open(sock)
        await session.hello(HelloOptions())
        box = sandbox_of(session)
        with pytest.raises(CommandTimeoutError):
            await asyncio.wait_for(box.commands.run(["x"], timeout=0.1, output_limit=10), 5)
        await box.kill()
