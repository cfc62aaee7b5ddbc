"""Terminals: a shell with a screen."""

from __future__ import annotations

from collections.abc import Mapping

from fourwalls.guest.process import ExecRequest
from fourwalls.model.errors import CapabilityError, InvalidArgumentError
from fourwalls.sdk import checks
from fourwalls.sdk.asynchronous.commands import DEFAULT_TIMEOUT, AsyncCommands
from fourwalls.sdk.asynchronous.handle import AsyncCommandHandle, BytesCallback, Callbacks
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.outcome import LimitWatch
from fourwalls.sdk.output import check_limit
from fourwalls.sdk.values import PtySize

_ENVIRONMENT = {"TERM": b"xterm-256color", "LANG": b"C.UTF-8", "LC_ALL": b"C.UTF-8"}


def check_size(size: object) -> tuple[int, int]:
    """Columns and rows, as the wire wants them."""
    if not isinstance(size, PtySize):
        raise InvalidArgumentError(f"size must be a PtySize, not {type(size).__name__}")
    return checks.whole(size.cols, "cols", 1, 65535), checks.whole(size.rows, "rows", 1, 65535)


class AsyncPty:
    """The terminals of one sandbox. What they print comes as bytes in the place of ``pty``."""

    def __init__(self, shared: Shared, commands: AsyncCommands) -> None:
        self._shared = shared
        self._commands = commands

    async def create(
        self,
        size: PtySize,
        on_data: BytesCallback | None = None,
        user: str | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        request_timeout: float | None = None,
        *,
        cmd: str | None = None,
        tag: str | None = None,
        output_limit: int | None = None,
    ) -> AsyncCommandHandle:
        """Open a terminal with a login shell, or with ``cmd`` run by it.

        ``timeout`` in seconds, 0 for none: the terminal is then killed.
        """
        if not self._shared.live.capabilities.pty:
            raise CapabilityError(f"boundary {self._shared.live.boundary.value} has no terminals")
        cols, rows = check_size(size)
        environment = _ENVIRONMENT | checks.environment(envs)
        line = None if cmd is None else checks.shell_command(cmd)
        checks.command_size([line] if line else [], environment)
        limit = check_limit(output_limit)
        seconds = checks.timeout(timeout)
        owner = checks.user(user)
        request = ExecRequest(
            argv=self._commands.shell([b"-i", b"-l"] if line is None else [b"-l", b"-c", line]),
            env=environment,
            cwd=None if cwd is None else await self._shared.resolve(cwd, owner, "cwd"),
            user=owner,
            stdin=True,
            pty=(cols, rows),
            tag=None if tag is None else checks.word(tag, "tag"),
            timeout=seconds,
        )
        limits = LimitWatch(self._shared.live.oom_kills, self._shared.live.disk_full)
        async with self._shared.bounded(request_timeout):
            stream = await self._commands.start_request(request, login=True)
        return AsyncCommandHandle(
            self._shared,
            stream,
            limit=limit,
            timeout=seconds,
            callbacks=Callbacks(on_pty=on_data),
            stdin=True,
            limits=limits,
        )

    async def connect(
        self,
        pid: int,
        on_data: BytesCallback | None = None,
        timeout: float | None = 0,
        request_timeout: float | None = None,
        *,
        offsets: tuple[int, int] | None = None,
    ) -> AsyncCommandHandle:
        """Follow a terminal that is open; see :meth:`AsyncCommands.connect`."""
        return await self._commands.connect(
            pid, timeout, on_pty=on_data, request_timeout=request_timeout, offsets=offsets
        )

    async def send_stdin(
        self, pid: int, data: str | bytes, request_timeout: float | None = 0
    ) -> None:
        """Type into a terminal."""
        await self._commands.send_stdin(pid, data, request_timeout)

    async def resize(self, pid: int, size: PtySize, request_timeout: float | None = None) -> None:
        """Change a terminal's size."""
        cols, rows = check_size(size)
        number = checks.pid(pid)
        async with self._shared.bounded(request_timeout):
            await self._shared.session.exec_resize(cols, rows, pid=number)

    async def kill(self, pid: int, request_timeout: float | None = None) -> bool:
        """Close a terminal and kill what runs in it; false when there is none."""
        return await self._commands.kill(pid, request_timeout)
