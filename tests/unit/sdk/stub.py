"""A live sandbox whose agent is played by the test."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, cast

from fourwalls.guest.frame import Kind
from fourwalls.guest.messages import Exit, Started
from fourwalls.guest.session import HelloOptions, Session
from fourwalls.host.live import LiveSandbox
from fourwalls.model.boundary import Boundary, Capabilities
from fourwalls.model.sandbox import SandboxInfo
from fourwalls.model.sizes import SIZES
from fourwalls.sdk import AsyncSandbox
from tests.unit.guest.fake_agent import FakeAgent, connect


class StubSandbox:
    """The parts of :class:`LiveSandbox` that the SDK uses."""

    id = "a" * 20
    boundary = Boundary.CONTAINER
    capabilities = Capabilities()
    default_user = "user"

    def __init__(self, session: Session) -> None:
        self.session = session
        self.oom = 0
        now = time.time()
        self.info = SandboxInfo(
            self.id, self.boundary, "test", "base", "", SIZES["small"], {}, now, now + 300
        )

    def oom_kills(self) -> int:
        return self.oom

    def disk_full(self) -> bool:
        return False

    async def kill(self) -> None:
        self.session.close()

    def detach(self) -> None:
        self.session.close()


def sandbox_of(session: Session, stub: StubSandbox | None = None) -> AsyncSandbox:
    """A sandbox object over any session that was greeted."""
    return AsyncSandbox(cast(LiveSandbox, stub or StubSandbox(session)))


async def open_sandbox() -> tuple[AsyncSandbox, FakeAgent, StubSandbox]:
    """A sandbox object and the agent behind it."""
    session, agent = await connect()
    await asyncio.gather(session.hello(HelloOptions()), agent.greet())
    stub = StubSandbox(session)
    return sandbox_of(session, stub), agent, stub


@contextlib.asynccontextmanager
async def sandbox() -> AsyncIterator[tuple[AsyncSandbox, FakeAgent, StubSandbox]]:
    """The same, closed at the end."""
    opened, agent, stub = await open_sandbox()
    try:
        yield opened, agent, stub
    finally:
        await opened.kill()
        agent.close()
        with contextlib.suppress(ConnectionError):
            await agent.writer.wait_closed()


async def started(agent: FakeAgent, pid: int = 42) -> tuple[int, dict[str, Any]]:
    """Answer an EXEC_START."""
    stream, body = await agent.expect(Kind.EXEC_START)
    agent.send(Kind.STARTED, stream, Started(pid=pid))
    return stream, body


async def run_once(agent: FakeAgent, out: bytes = b"", exit_: Exit | None = None) -> dict[str, Any]:
    """Play one whole command."""
    stream, body = await started(agent)
    if out:
        agent.data(stream, 1, 0, out)
    agent.send(Kind.EXIT, stream, exit_ or Exit())
    return body
