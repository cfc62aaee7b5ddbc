"""A sandbox that this process is connected to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

import msgspec

from fourwalls.boundaries import registry
from fourwalls.boundaries.base import Running
from fourwalls.boundaries.oci.sandbox_files import SandboxFiles
from fourwalls.guest.session import HelloOptions, Session
from fourwalls.host.end import stop_shim, until_gone
from fourwalls.host.record import SandboxRecord, boottime_deadline_ns, write_record
from fourwalls.linux import cgroup_tree, dirlock
from fourwalls.linux.cgroup import CgroupLayout
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary, Capabilities
from fourwalls.model.errors import AgentProtocolError, SandboxGoneError
from fourwalls.model.lifecycle import State
from fourwalls.model.sandbox import ExitRecord, SandboxInfo, check_timeout

# How long the shim may take to say that all is cleared away. One whose agent takes nothing does not
# hear us any more, and is told by a signal then.
_ANSWER_TIMEOUT_S = 10.0

# With fewer free blocks (4 KiB) a write may fail: ext4 keeps some back for writes that are under
# way, more when they are large (179 were left of a disk of 64 MiB).
_FULL_BLOCKS = 256


class LiveSandbox:
    """The session of one sandbox, its record, and the process that keeps it alive.

    ``running`` is None when the sandbox was adopted: then the shim is nobody's child here.
    """

    def __init__(
        self,
        places: Places,
        record: SandboxRecord,
        session: Session,
        running: Running | None,
        layout: CgroupLayout,
    ) -> None:
        self.directory = places.sandboxes / record.sandbox_id
        self.session = session
        self._places = places
        self._record = record
        self._running = running
        self._layout = layout
        self._oom_file = cgroup_tree.oom_file(layout, record.cgroup)
        self._leaving: asyncio.Task[None] | None = None
        session.gone.add_done_callback(self._session_over)

    @property
    def id(self) -> str:
        return self._record.sandbox_id

    @property
    def boundary(self) -> Boundary:
        return Boundary(self._record.boundary)

    @property
    def capabilities(self) -> Capabilities:
        return registry.driver(self.boundary).capabilities()

    @property
    def info(self) -> SandboxInfo:
        return self._record.info(State.GONE if self.session.gone.done() else State.RUNNING)

    @property
    def default_user(self) -> str:
        return self._record.user

    @property
    def workdir(self) -> str | None:
        return self._record.workdir

    async def greet(self) -> None:
        """Say hello to the agent: the sandbox is ready when this returns."""
        limits = registry.driver(self.boundary).guest_limits(self._record.resources)
        await self.session.hello(
            HelloOptions(
                env={name: value.encode() for name, value in self._record.envs.items()},
                user=self._record.user,
                workdir=self._record.workdir.encode() if self._record.workdir else None,
                nproc=limits.nproc,
                oom_score_adj=limits.oom_score_adj,
            )
        )

    async def set_timeout(self, seconds: float) -> None:
        """Let the lease end ``seconds`` from now."""
        end_at = time.time() + check_timeout(seconds)
        record = msgspec.structs.replace(self._record, end_at=end_at)
        await self.session.set_lease(boottime_deadline_ns(end_at))
        self._record = record
        write_record(self.directory, record)

    def oom_kills(self) -> int:
        """Processes the host's kernel has killed in this sandbox for want of memory."""
        return cgroup_tree.oom_kills(self._oom_file)

    def disk_full(self) -> bool:
        """Whether nothing more fits on the sandbox's disk."""
        # The disk is mounted in the shim's mount namespace alone; its root leads there.
        shim = self.session.state.shim_pid if self.session.state else 0
        try:
            disk = os.statvfs(f"/proc/{shim}/root{SandboxFiles(self.directory).disk}")
        except OSError:
            return False
        return disk.f_bavail < _FULL_BLOCKS or disk.f_favail == 0

    def usage(self) -> tuple[int, int, int]:
        """Memory in use, the cache in it (bytes), and cpu time used (µs), as the host counts."""
        return cgroup_tree.usage(self._layout, self._record.cgroup)

    async def wait(self) -> ExitRecord:
        """Wait for the end, however it comes."""
        try:
            record = await asyncio.shield(self.session.gone)
        except (SandboxGoneError, AgentProtocolError):
            if self._running is not None:
                # The connection is lost or not to be trusted: make sure of the end ourselves.
                with contextlib.suppress(ProcessLookupError):
                    self._running.kill()
                await self._running.wait()
            raise
        if self._running is not None:
            await self._running.wait()
        return record

    async def kill(self, cause: str = "killed") -> ExitRecord | None:
        """End the sandbox and return when nothing of it is left.

        None if it was not there, or ended without a word. Raises :class:`SandboxError` when it
        does not end.
        """
        record: ExitRecord | None = None
        try:
            with contextlib.suppress(SandboxGoneError, AgentProtocolError, TimeoutError):
                async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                    record = await self.session.end(cause)
        finally:
            self.session.close()
            if self._running is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._running.kill()
            elif record is None and dirlock.is_held(self.directory):
                stop_shim(self.directory)
            if self._running is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                        await self._running.wait()
            await until_gone(self._places, self.directory)
        return record

    def _session_over(self, gone: asyncio.Future[ExitRecord]) -> None:
        if not gone.cancelled() and isinstance(gone.exception(), AgentProtocolError):
            # Also one that outlives its connections: what lies is not given another one.
            if self._running is None:
                stop_shim(self.directory)
            else:
                with contextlib.suppress(ProcessLookupError):
                    self._running.kill()
        if self._running is not None:
            # Nobody may ever ask for the end: the shim must not stay behind as a zombie.
            self._leaving = asyncio.ensure_future(self._running.wait())

    def detach(self) -> None:
        """Let go of the connection. A sandbox that was made with ``detach`` lives on."""
        self.session.detach()
