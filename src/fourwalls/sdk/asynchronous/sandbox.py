"""The sandbox itself: making it, finding it, ending it."""

from __future__ import annotations

import builtins
import time
from collections.abc import Mapping
from types import TracebackType

from fourwalls.guest.session import Session
from fourwalls.host.adopt import adopt
from fourwalls.host.create import create
from fourwalls.host.listing import running_sandboxes
from fourwalls.host.live import LiveSandbox
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary
from fourwalls.model.errors import (
    AgentProtocolError,
    CapabilityError,
    InvalidArgumentError,
    SandboxGoneError,
)
from fourwalls.model.ids import parse_sandbox_id
from fourwalls.model.sandbox import (
    CreateRequest,
    ExitRecord,
    SandboxInfo,
    check_envs,
    check_metadata,
    check_timeout,
)
from fourwalls.model.sizes import resources
from fourwalls.sdk import checks
from fourwalls.sdk.asynchronous.commands import AsyncCommands
from fourwalls.sdk.asynchronous.files import AsyncFiles
from fourwalls.sdk.asynchronous.pty import AsyncPty
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.asynchronous.tunnel import AsyncTunnel
from fourwalls.sdk.values import SandboxMetrics

DEFAULT_TIMEOUT = 300.0
"""Seconds a sandbox lives, unless the caller says otherwise."""


class AsyncSandbox:
    """One sandbox. Make it with :meth:`create`; ``async with`` kills it at the end.

    ``commands``, ``files`` and ``pty`` act inside it.
    """

    def __init__(self, live: LiveSandbox) -> None:
        self._live = live
        self._shared = Shared(live)
        self._cpu_sample = (time.monotonic(), 0)
        self.commands = AsyncCommands(self._shared)
        self.files = AsyncFiles(self._shared)
        self.pty = AsyncPty(self._shared, self.commands)

    @classmethod
    async def create(
        cls,
        template: str = "base",
        timeout: float = DEFAULT_TIMEOUT,
        metadata: Mapping[str, str] | None = None,
        envs: Mapping[str, str] | None = None,
        *,
        boundary: str = "auto",
        min_boundary: str | None = None,
        size: str = "small",
        detach: bool = False,
        cpu: float | None = None,
        memory_mb: int | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
    ) -> AsyncSandbox:
        """A new sandbox, ready to use.

        ``boundary`` names the wall, or ``auto`` takes the strongest that runs at native speed
        here, at least ``min_boundary`` (default ``gvisor``). ``size`` is small, medium, large or
        xlarge; ``cpu``, ``memory_mb``, ``disk_mb`` and ``pids`` override it (MiB). ``timeout``:
        seconds until the sandbox is ended. It ends with this process unless ``detach``.

        Raises :class:`BoundaryUnavailableError` when the boundary cannot be had (never a weaker
        one), :class:`TemplateNotFoundError`, :class:`SandboxStartError`.
        """
        request = CreateRequest(
            template=checks.word(template, "template"),
            boundary=None if boundary == "auto" else _boundary(boundary),
            min_boundary=None if min_boundary is None else _boundary(min_boundary),
            resources=resources(
                checks.word(size, "size"),
                cpus=cpu,
                memory_mib=memory_mb,
                disk_mib=disk_mb,
                pids=pids,
            ),
            timeout_s=check_timeout(timeout),
            envs=check_envs(envs or {}),
            metadata=check_metadata(metadata or {}),
            detach=bool(detach),
        )
        return cls(await create(request, Places.from_environment()))

    @classmethod
    async def connect(cls, sandbox_id: str, timeout: float | None = None) -> AsyncSandbox:
        """Connect to a sandbox that was made with ``detach``, disconnecting who was before.

        ``timeout``: seconds until it is ended, counted from now; None leaves that as it is.
        Raises :class:`SandboxNotFoundError`, and :class:`SandboxGoneError` with the cause for one
        that has ended not long ago.
        """
        seconds = None if timeout is None else check_timeout(timeout)
        sandbox = cls(await adopt(parse_sandbox_id(sandbox_id), Places.from_environment()))
        if seconds is not None:
            await sandbox.set_timeout(seconds)
        return sandbox

    @staticmethod
    async def list() -> list[SandboxInfo]:
        """All sandboxes of this host, whoever made them, the oldest first."""
        return running_sandboxes(Places.from_environment())

    # What it is.

    @property
    def sandbox_id(self) -> str:
        """Its name: 20 characters of a-z and 0-9."""
        return self._live.id

    @property
    def boundary(self) -> str:
        """The wall around it, as it is in effect."""
        return self._live.boundary.value

    @property
    def info(self) -> SandboxInfo:
        """What is known of it, without asking it."""
        return self._live.info

    async def get_info(self, request_timeout: float | None = None) -> SandboxInfo:
        """The same as :attr:`info`, which needs no request."""
        checks.request_timeout(request_timeout)
        return self._live.info

    async def is_running(self, request_timeout: float | None = None) -> bool:
        """Whether it still lives; asks the process that keeps it."""
        try:
            state = await self._session.status(
                timeout=checks.request_timeout(request_timeout, 10.0) or 3600.0
            )
        except (SandboxGoneError, AgentProtocolError):
            return False
        return state.phase == "running"

    async def get_metrics(
        self, request_timeout: float | None = None
    ) -> builtins.list[SandboxMetrics]:
        """Its use of resources now: a list with one element.

        ``cpu_used_pct`` is the mean since the last call, or since this object was made.
        """
        guest = await self._session.metrics(timeout=checks.request_timeout(request_timeout))
        memory, cache, cpu = self._live.usage()
        (before, cpu_before), now = self._cpu_sample, time.monotonic()
        self._cpu_sample = (now, cpu)
        return [
            SandboxMetrics(
                cpu_count=guest.cpu_count,
                cpu_used_pct=round((cpu - cpu_before) / max(now - before, 1e-3) / 1e4, 2),
                mem_total=self._live.info.resources.memory_bytes,
                mem_used=memory,
                mem_cache=cache,
                disk_total=guest.disk_total,
                disk_used=guest.disk_used,
                processes=guest.processes,
            )
        ]

    # Its life.

    async def set_timeout(self, timeout: float, request_timeout: float | None = None) -> None:
        """Let it live ``timeout`` seconds from now."""
        seconds = check_timeout(timeout)
        async with self._shared.bounded(request_timeout):
            await self._live.set_timeout(seconds)

    async def wait(self) -> ExitRecord:
        """Wait for its end, however it comes: what the shim wrote down of it."""
        return await self._live.wait()

    async def kill(self) -> bool:
        """End it and return when nothing of it is left; false when it had ended before."""
        alive = self._session.failure is None
        await self._live.kill()
        await self._shared.close()
        return alive

    async def detach(self) -> None:
        """Let go of it. It lives on if it was made with ``detach``, and ends otherwise."""
        self._live.detach()
        await self._shared.close()

    # Ports.

    async def tunnel(self, port: int) -> AsyncTunnel:
        """Connect to a port on its loopback. Raises :class:`NotFoundError` if nobody listens."""
        return AsyncTunnel(await self._session.dial(checks.port(port)))

    def get_host(self, port: int) -> str:
        """Host names for ports need a server in front; here is none."""
        checks.port(port)
        raise CapabilityError(
            "a sandbox without a server has no host name",
            remedy=f"connect to the port with sandbox.tunnel({port})",
        )

    @property
    def _session(self) -> Session:
        return self._live.session

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sandbox_id} {self.boundary}>"


def _boundary(name: object) -> Boundary:
    if isinstance(name, Boundary):
        return name
    if not isinstance(name, str):
        raise InvalidArgumentError(f"a boundary is named by a string, not {type(name).__name__}")
    return Boundary.parse(name)
