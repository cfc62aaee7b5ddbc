"""Whatever the agent does, the host gets a clear error, in bounded memory and time."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest

from fourwalls.guest.process import ExecRequest
from fourwalls.guest.session import HelloOptions, Session
from fourwalls.model.errors import AgentProtocolError, FourwallsError, LimitError

from .hostile_agent import LIES, Lie, serve

MOST_MEMORY = 24 * 1024 * 1024
# Tracing allocations makes everything an order of magnitude slower.
PATIENCE = 40


async def _run(session: Session) -> None:
    process = await session.exec(ExecRequest(argv=[b"x"]))
    async for _ in process:
        pass
    await asyncio.sleep(0.2)
    await session.exec_list()


async def _never_read(session: Session) -> None:
    await session.exec(ExecRequest(argv=[b"x"]))
    await asyncio.shield(session.gone)


async def _read(session: Session) -> None:
    async for _ in await session.files.read(b"/f"):
        pass


async def _watch(session: Session) -> None:
    watch = await session.files.watch(b"/d")
    while await watch.next_event():
        pass


async def _watch_unread(session: Session) -> None:
    await session.files.watch(b"/d")
    await asyncio.shield(session.gone)


async def _idle(session: Session) -> None:
    await asyncio.shield(session.gone)


REQUESTS: dict[str, Callable[[Session], Awaitable[object]]] = {
    "exec": _run,
    "exec_unread": _never_read,
    "stat": lambda session: session.files.stat(b"/d/a"),
    "list": lambda session: session.files.list(b"/d"),
    "read": _read,
    "watch": _watch,
    "watch_unread": _watch_unread,
    "metrics": lambda session: session.metrics(),
    "processes": lambda session: session.exec_list(),
    "idle_after_stat": _idle,
}


async def _ask(session: Session, told: Lie) -> None:
    await session.hello(HelloOptions(), timeout=0.5)
    if told.request != "hello":
        await REQUESTS[told.request](session)


@pytest.mark.parametrize("told", LIES.values(), ids=LIES)
async def test_lie_is_answered_by_a_clear_error(told: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fourwalls.guest.listing.MAX_ENTRIES", 10_000)
    async with serve(told) as sock:
        session = await Session.open(sock, heartbeat=0.1)
        tracemalloc.start()
        try:
            with pytest.raises(FourwallsError) as caught:
                await asyncio.wait_for(_ask(session, told), PATIENCE)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        error = caught.value
        assert peak < MOST_MEMORY
        assert len(str(error)) < 2000
        assert str(error).isprintable() or "remedy" in str(error)
        if told.name == "endless_listing":
            # Honest sandboxes can have huge directories: refused, and the session lives on.
            assert isinstance(error, LimitError)
            assert session.failure is None
            session.close()
            return
        if told.name != "speaks_as_shim":
            assert isinstance(error, AgentProtocolError)
        # The session is over for everybody, at once, for the same reason.
        assert session.failure is not None
        with pytest.raises(type(error)):
            await session.metrics()
        with pytest.raises(FourwallsError):
            await asyncio.shield(session.gone)
