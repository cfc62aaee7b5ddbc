"""The sandbox itself, for callers that wait."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import TracebackType

from fourwalls.model.sandbox import SandboxInfo
from fourwalls.sdk.asynchronous.sandbox import DEFAULT_TIMEOUT, AsyncSandbox
from fourwalls.sdk.asynchronous.tunnel import AsyncTunnel
from fourwalls.sdk.synchronous.blocking import Blocking, Facade
from fourwalls.sdk.synchronous.commands import Commands
from fourwalls.sdk.synchronous.files import Files
from fourwalls.sdk.synchronous.pty import Pty
from fourwalls.sdk.synchronous.runner import Runner, runner


class Tunnel(Facade[AsyncTunnel]):
    """Connected to a port on the sandbox's loopback; use it with ``with``."""

    read = Blocking(AsyncTunnel.read)
    write = Blocking(AsyncTunnel.write)
    write_eof = Blocking(AsyncTunnel.write_eof)
    close = Blocking(AsyncTunnel.close)

    def __enter__(self) -> Tunnel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Sandbox(Facade[AsyncSandbox]):
    """One sandbox. Make it with :meth:`create`; ``with`` kills it at the end.

    ``commands``, ``files`` and ``pty`` act inside it. Its methods may be called from any thread,
    but not from a forked child.
    """

    def __init__(self, inner: AsyncSandbox, runner: Runner) -> None:
        super().__init__(inner, runner)
        self.commands = Commands(inner.commands, runner)
        self.files = Files(inner.files, runner)
        self.pty = Pty(inner.pty, runner)

    @classmethod
    def create(
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
    ) -> Sandbox:
        """A new sandbox, ready to use; as :meth:`AsyncSandbox.create`."""
        thread = runner()
        inner = AsyncSandbox.create(
            template,
            timeout,
            metadata,
            envs,
            boundary=boundary,
            min_boundary=min_boundary,
            size=size,
            detach=detach,
            cpu=cpu,
            memory_mb=memory_mb,
            disk_mb=disk_mb,
            pids=pids,
        )
        return cls(thread.call(inner), thread)

    @classmethod
    def connect(cls, sandbox_id: str, timeout: float | None = None) -> Sandbox:
        """Connect to a sandbox made with ``detach``; as :meth:`AsyncSandbox.connect`."""
        thread = runner()
        return cls(thread.call(AsyncSandbox.connect(sandbox_id, timeout)), thread)

    @staticmethod
    def list() -> builtins.list[SandboxInfo]:
        """All sandboxes of this host, whoever made them, the oldest first."""
        return runner().call(AsyncSandbox.list())

    @property
    def sandbox_id(self) -> str:
        """Its name: 20 characters of a-z and 0-9."""
        return self._inner.sandbox_id

    @property
    def boundary(self) -> str:
        """The wall around it, as it is in effect."""
        return self._inner.boundary

    @property
    def info(self) -> SandboxInfo:
        """What is known of it, without asking it."""
        return self._inner.info

    def get_host(self, port: int) -> str:
        """Host names for ports need a server in front; here is none."""
        return self._inner.get_host(port)

    def tunnel(self, port: int) -> Tunnel:
        """Connect to a port on its loopback. Raises :class:`NotFoundError` if nobody listens."""
        return Tunnel(self._runner.call(self._inner.tunnel(port)), self._runner)

    get_info = Blocking(AsyncSandbox.get_info)
    is_running = Blocking(AsyncSandbox.is_running)
    get_metrics = Blocking(AsyncSandbox.get_metrics)
    set_timeout = Blocking(AsyncSandbox.set_timeout)
    wait = Blocking(AsyncSandbox.wait)
    kill = Blocking(AsyncSandbox.kill)
    detach = Blocking(AsyncSandbox.detach)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sandbox_id} {self.boundary}>"
