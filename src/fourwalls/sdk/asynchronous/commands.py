"""Running commands in a sandbox, and acting on those that run."""

from __future__ import annotations

import errno
import signal as signals
from collections.abc import Mapping, Sequence
from typing import Final, Literal, overload

import msgspec

from fourwalls.guest.process import ExecRequest, ProcessStream
from fourwalls.model.errors import CommandStartError, InvalidArgumentError, ProcessNotFoundError
from fourwalls.sdk import checks
from fourwalls.sdk.asynchronous.handle import (
    AsyncCommandHandle,
    BytesCallback,
    Callbacks,
    TextCallback,
)
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.outcome import LimitWatch
from fourwalls.sdk.output import check_limit
from fourwalls.sdk.values import CommandResult, ProcessInfo, process_info

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds a command may run, unless the caller says otherwise."""

_BASH: Final = b"/bin/bash"
_SH: Final = b"/bin/sh"


class AsyncCommands:
    """The commands of one sandbox."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    @overload
    async def run(
        self,
        cmd: str | Sequence[str],
        background: Literal[False] | None = None,
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: TextCallback | None = None,
        on_stderr: TextCallback | None = None,
        stdin: bool | str | bytes | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        request_timeout: float | None = None,
        *,
        tag: str | None = None,
        output_limit: int | None = None,
    ) -> CommandResult: ...

    @overload
    async def run(
        self,
        cmd: str | Sequence[str],
        background: Literal[True],
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: TextCallback | None = None,
        on_stderr: TextCallback | None = None,
        stdin: bool | str | bytes | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        request_timeout: float | None = None,
        *,
        tag: str | None = None,
        output_limit: int | None = None,
    ) -> AsyncCommandHandle: ...

    async def run(
        self,
        cmd: str | Sequence[str],
        background: bool | None = None,
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: TextCallback | None = None,
        on_stderr: TextCallback | None = None,
        stdin: bool | str | bytes | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        request_timeout: float | None = None,
        *,
        tag: str | None = None,
        output_limit: int | None = None,
    ) -> CommandResult | AsyncCommandHandle:
        """Run a command and wait for its end, or with ``background`` return its handle.

        ``cmd``: a string is a line for the login shell (bash, else sh), a list is run directly.
        ``stdin``: text or bytes are written and the input closed; True keeps it open for
        ``send_stdin``. ``timeout`` in seconds, 0 for none: the command is then killed with all
        it has started; ``request_timeout`` bounds its start alone. ``output_limit``: bytes of
        each stream that are kept; callbacks get all.

        Raises :class:`CommandStartError` when the command never ran, and like
        :meth:`AsyncCommandHandle.wait` when it did not end well.
        """
        handle = await self.start(
            cmd,
            envs=envs,
            user=user,
            cwd=cwd,
            callbacks=Callbacks(on_stdout, on_stderr),
            stdin=stdin,
            timeout=timeout,
            request_timeout=request_timeout,
            tag=tag,
            output_limit=output_limit,
        )
        if background:
            return handle
        try:
            return await handle.wait()
        except BaseException:
            # Cancelled, or a callback failed: nobody has a handle to end it with.
            if handle.exit_code is None:
                self._shared.spawn(handle.kill_quietly())
            raise

    async def start(
        self,
        cmd: str | Sequence[str],
        *,
        envs: Mapping[str, str] | None,
        user: str | None,
        cwd: str | None,
        callbacks: Callbacks,
        stdin: bool | str | bytes | None,
        timeout: float | None,
        request_timeout: float | None,
        tag: str | None,
        output_limit: int | None,
    ) -> AsyncCommandHandle:
        """Check everything, then start the command."""
        argv = checks.shell_command(cmd) if isinstance(cmd, str) else checks.argv(cmd)
        environment = checks.environment(envs)
        checks.command_size([argv] if isinstance(argv, bytes) else argv, environment)
        limit = check_limit(output_limit)
        seconds = checks.timeout(timeout)
        owner = checks.user(user)
        data = None if stdin is None or isinstance(stdin, bool) else checks.payload(stdin, "stdin")
        request = ExecRequest(
            argv=self.shell([b"-l", b"-c", argv]) if isinstance(argv, bytes) else argv,
            env=environment,
            cwd=None if cwd is None else await self._shared.resolve(cwd, owner, "cwd"),
            user=owner,
            stdin=data is not None or stdin is True,
            tag=None if tag is None else checks.word(tag, "tag"),
            timeout=seconds,
        )
        limits = LimitWatch(self._shared.live.oom_kills, self._shared.live.disk_full)
        async with self._shared.bounded(request_timeout):
            stream = await self.start_request(request, login=isinstance(argv, bytes))
        handle = AsyncCommandHandle(
            self._shared,
            stream,
            limit=limit,
            timeout=seconds,
            callbacks=callbacks,
            stdin=request.stdin,
            limits=limits,
        )
        if data is not None:
            handle.feed(data)
        return handle

    def shell(self, arguments: list[bytes]) -> list[bytes]:
        """The sandbox's shell with these arguments."""
        return [_BASH if self._shared.has_bash else _SH, *arguments]

    async def start_request(self, request: ExecRequest, *, login: bool) -> ProcessStream:
        """Start a process; ``login`` says that it runs bash, for which sh may stand in."""
        try:
            return await self._shared.session.exec(request)
        except CommandStartError as error:
            no_bash = error.stage == "exec" and error.errno == errno.ENOENT
            if not login or not no_bash or not self._shared.has_bash:
                raise
        self._shared.has_bash = False
        argv = self.shell(request.argv[1:])
        return await self._shared.session.exec(msgspec.structs.replace(request, argv=argv))

    async def list(self, request_timeout: float | None = None) -> list[ProcessInfo]:
        """The commands and terminals that run now."""
        processes = await self._shared.session.exec_list(
            timeout=checks.request_timeout(request_timeout)
        )
        return [process_info(process) for process in processes if process.running]

    async def connect(
        self,
        pid: int | None = None,
        timeout: float | None = 0,
        on_stdout: TextCallback | None = None,
        on_stderr: TextCallback | None = None,
        on_pty: BytesCallback | None = None,
        request_timeout: float | None = None,
        *,
        tag: str | None = None,
        offsets: tuple[int, int] | None = None,
        output_limit: int | None = None,
    ) -> AsyncCommandHandle:
        """Follow a command that runs, or has ended not long ago, by pid or by tag.

        ``offsets`` (from :attr:`AsyncCommandHandle.offsets`, or ``(0, 0)`` for all there is)
        says from where; None means from now on. ``timeout``: seconds until the handle
        disconnects by itself, 0 for never; the command goes on.
        """
        if (pid is None) == (tag is None):
            raise InvalidArgumentError("give either a pid or a tag")
        limit = check_limit(output_limit)
        seconds = checks.timeout(timeout)
        start = None
        if offsets is not None:
            first, second = (checks.whole(offset, "an offset", 0, 2**63) for offset in offsets)
            start = first, second
        async with self._shared.bounded(request_timeout):
            stream = await self._shared.session.attach(
                pid=None if pid is None else checks.pid(pid),
                tag=None if tag is None else checks.word(tag, "tag"),
                offsets=start,
            )
        return AsyncCommandHandle(
            self._shared,
            stream,
            limit=limit,
            timeout=seconds,
            callbacks=Callbacks(on_stdout, on_stderr, on_pty),
            attached=True,
        )

    async def kill(self, pid: int, request_timeout: float | None = None) -> bool:
        """Kill a command and everything it has started; false when there is none."""
        seconds = checks.request_timeout(request_timeout)
        try:
            await self._shared.session.exec_signal(
                signals.SIGKILL, pid=checks.pid(pid), tree=True, timeout=seconds
            )
        except ProcessNotFoundError:
            return False
        return True

    async def send_stdin(
        self, pid: int, data: str | bytes, request_timeout: float | None = 0
    ) -> None:
        """Write to a command's standard input, waiting until it is in the pipe."""
        raw, number = checks.payload(data), checks.pid(pid)
        async with self._shared.bounded(request_timeout):
            await self._shared.session.exec_input(raw, pid=number)

    async def close_stdin(self, pid: int, request_timeout: float | None = None) -> None:
        """Close a command's standard input."""
        number = checks.pid(pid)
        async with self._shared.bounded(request_timeout):
            await self._shared.session.exec_close_stdin(pid=number)
