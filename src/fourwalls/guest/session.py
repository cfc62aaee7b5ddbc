"""One sandbox's agent and shim, over one connected socket: every request there is."""

from __future__ import annotations

import asyncio
import os
import socket

import msgspec

from fourwalls.guest.files import Files
from fourwalls.guest.frame import Kind
from fourwalls.guest.heartbeat import INTERVAL
from fourwalls.guest.link import REQUEST_TIMEOUT, Link
from fourwalls.guest.messages import (
    GENERATION,
    ExecCloseStdin,
    ExecInput,
    ExecList,
    ExecResize,
    ExecSignal,
    Hello,
    HelloLimits,
    HelloOk,
    Metrics,
    MetricsRequest,
    Process,
    ProcessList,
    Shutdown,
)
from fourwalls.guest.process import ExecRequest, ProcessStream
from fourwalls.guest.shim import Kill, Lease, State
from fourwalls.guest.transfer import Tunnel
from fourwalls.model.errors import AgentProtocolError, FourwallsError
from fourwalls.model.sandbox import ExitRecord

MAX_INPUT = 256 * 1024
"""Bytes one EXEC_INPUT may carry."""


class HelloOptions(msgspec.Struct, kw_only=True, frozen=True):
    """Defaults of every process: environment, user, working directory, limits (0 = unset)."""

    env: dict[str, bytes] = msgspec.field(default_factory=dict)
    user: str = "root"
    workdir: bytes | None = None
    nproc: int = 0
    oom_score_adj: int = 0
    ring_bytes: int = 0


class Session:
    """All requests of one connection, at the same time if wanted.

    Everything received is checked. The first violation ends the session: every call that waits,
    and every later one, raises :class:`AgentProtocolError`. When the sandbox ends they raise
    :class:`SandboxGoneError` with its cause. Methods must be called from the event loop that
    opened the session.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.files = Files(link)

    @classmethod
    async def open(cls, sock: socket.socket, *, heartbeat: float = INTERVAL) -> Session:
        """Take over a connected socket. ``heartbeat``: seconds between pings while waiting."""
        return cls(await Link.open(sock, heartbeat))

    # The connection and the shim.

    @property
    def gone(self) -> asyncio.Future[ExitRecord]:
        """Done when the session is over: the shim's record, or the error that ended it.

        Shield it (``asyncio.shield``, ``asyncio.wait``) instead of awaiting it directly, as
        awaiting cancels it with the waiter.
        """
        return self._link.gone

    @property
    def failure(self) -> FourwallsError | None:
        """Why the session is over, or ``None`` while it is not."""
        return self._link.failure

    @property
    def state(self) -> State | None:
        """The last the shim said of itself."""
        return self._link.state

    async def hello(self, options: HelloOptions, *, timeout: float = 60.0) -> HelloOk:
        """Greet the agent: once, before anything else. ``timeout`` in seconds."""
        nonce = os.urandom(16)
        message = Hello(
            nonce=nonce,
            env=options.env,
            user=options.user,
            workdir=options.workdir,
            limits=HelloLimits(
                nproc=options.nproc,
                oom_score_adj=options.oom_score_adj,
                ring_bytes=options.ring_bytes,
            ),
        )
        answer = await self._link.greet(nonce, message, timeout)
        if answer.generation != GENERATION:
            error = AgentProtocolError(
                f"the agent speaks generation {answer.generation}, this host {GENERATION}"
            )
            self._link.connection.abort(error)
            raise error
        return answer

    async def set_lease(self, deadline_ns: int, *, timeout: float = 10.0) -> State:
        """Set the moment (CLOCK_BOOTTIME, 0 = none) at which the shim ends the sandbox."""
        return await self._link.ask_shim(Kind.LEASE, Lease(deadline_ns=deadline_ns), timeout)

    async def status(self, *, timeout: float = 10.0) -> State:
        """Ask the shim for its state."""
        return await self._link.ask_shim(Kind.STATUS, None, timeout)

    async def end(self, cause: str = "killed") -> ExitRecord:
        """End the sandbox and wait for the shim's record; at once if it has ended already."""
        if not self.gone.done():
            self._link.send(Kind.KILL, 0, Kill(cause=cause))
        return await asyncio.shield(self.gone)

    def close(self) -> None:
        """Close the connection. What that means for the sandbox is the shim's mode."""
        self._link.connection.abort()

    def detach(self) -> None:
        """Give every stream up, then close the connection.

        To the agent a stream left open is somebody who reads slowly: its process would wait.
        """
        self._link.abandon_all()
        self._link.connection.abort()

    # Processes.

    async def exec(self, request: ExecRequest) -> ProcessStream:
        """Start a process and follow it."""
        return await ProcessStream.start(self._link, request)

    async def attach(
        self,
        *,
        pid: int | None = None,
        tag: str | None = None,
        offsets: tuple[int, int] | None = None,
    ) -> ProcessStream:
        """Follow a process that runs, or has ended not long ago."""
        return await ProcessStream.attach(self._link, pid=pid, tag=tag, offsets=offsets)

    async def exec_input(
        self, data: bytes, *, pid: int | None = None, tag: str | None = None
    ) -> None:
        """Write to the standard input of a process; returns when it is in the pipe."""
        for start in range(0, len(data), MAX_INPUT):
            message = ExecInput(pid=pid, tag=tag, data=data[start : start + MAX_INPUT])
            await self._link.request(Kind.EXEC_INPUT, message, process=True, timeout=None)

    async def exec_close_stdin(self, *, pid: int | None = None, tag: str | None = None) -> None:
        """Close the standard input of a process."""
        message = ExecCloseStdin(pid=pid, tag=tag)
        await self._link.request(Kind.EXEC_CLOSE_STDIN, message, process=True)

    async def exec_resize(
        self, cols: int, rows: int, *, pid: int | None = None, tag: str | None = None
    ) -> None:
        """Change the size of a process's terminal."""
        message = ExecResize(pid=pid, tag=tag, cols=cols, rows=rows)
        await self._link.request(Kind.EXEC_RESIZE, message, process=True)

    async def exec_signal(
        self,
        signal: int,
        *,
        pid: int | None = None,
        tag: str | None = None,
        tree: bool = False,
        timeout: float | None = REQUEST_TIMEOUT,
    ) -> None:
        """Send a signal to a process, or with ``tree`` kill it and all it has started."""
        message = ExecSignal(pid=pid, tag=tag, signal=signal, tree=tree)
        await self._link.request(Kind.EXEC_SIGNAL, message, process=True, timeout=timeout)

    async def exec_list(self, *, timeout: float | None = REQUEST_TIMEOUT) -> list[Process]:
        """The processes that were started by requests: running, and the last that ended."""
        answer = await self._link.fetch(Kind.EXEC_LIST, ExecList(), ProcessList, timeout=timeout)
        return answer.processes

    # The rest.

    async def dial(self, port: int) -> Tunnel:
        """Connect to a port on the sandbox's loopback."""
        return await Tunnel.dial(self._link, port)

    async def metrics(self, *, timeout: float | None = REQUEST_TIMEOUT) -> Metrics:
        """What the sandbox's kernel says of its use."""
        return await self._link.fetch(Kind.METRICS, MetricsRequest(), Metrics, timeout=timeout)

    async def shutdown(self, grace_ms: int = 2000) -> None:
        """Ask the agent to end all processes and itself, which it may do before it answers."""
        timeout = grace_ms / 1000 + REQUEST_TIMEOUT
        await self._link.request(Kind.SHUTDOWN, Shutdown(grace_ms=grace_ms), timeout=timeout)
