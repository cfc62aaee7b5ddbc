"""Running commands, for callers that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, overload

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.sdk.asynchronous.commands import DEFAULT_TIMEOUT, AsyncCommands
from fourwalls.sdk.synchronous.blocking import Blocking, Facade
from fourwalls.sdk.synchronous.handle import CommandHandle, TextCallback
from fourwalls.sdk.values import CommandResult


class Commands(Facade[AsyncCommands]):
    """The commands of one sandbox."""

    @overload
    def run(
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
    def run(
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
    ) -> CommandHandle: ...

    def run(
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
    ) -> CommandResult | CommandHandle:
        """Run a command and wait for its end, or with ``background`` return its handle.

        As :meth:`AsyncCommands.run`; callbacks are called from this thread, so only in the
        foreground: pass them to :meth:`CommandHandle.wait` otherwise.
        """
        follow = bool(on_stdout or on_stderr)
        if not background and not follow:
            result = self._inner.run(
                cmd,
                None,
                envs,
                user,
                cwd,
                stdin=stdin,
                timeout=timeout,
                request_timeout=request_timeout,
                tag=tag,
                output_limit=output_limit,
            )
            return self._runner.call(result)
        started = self._inner.run(
            cmd,
            True,
            envs,
            user,
            cwd,
            stdin=stdin,
            timeout=timeout,
            request_timeout=request_timeout,
            tag=tag,
            output_limit=output_limit,
        )
        if background and follow:
            started.close()
            raise InvalidArgumentError(
                "callbacks of a background command would have no thread to run in",
                remedy="pass them to wait() of the handle, or iterate over the handle",
            )
        inner = self._runner.call(started)
        handle = CommandHandle(inner, self._runner)
        if background:
            return handle
        try:
            return handle.wait(on_stdout=on_stdout, on_stderr=on_stderr)
        except BaseException:
            # Interrupted, or a callback failed: nobody has a handle to end it with.
            if inner.exit_code is None:
                self._runner.call(inner.kill_quietly())
            raise

    def connect(
        self,
        pid: int | None = None,
        timeout: float | None = 0,
        request_timeout: float | None = None,
        *,
        tag: str | None = None,
        offsets: tuple[int, int] | None = None,
        output_limit: int | None = None,
    ) -> CommandHandle:
        """Follow a command that was started before; as :meth:`AsyncCommands.connect`."""
        inner = self._inner.connect(
            pid,
            timeout,
            request_timeout=request_timeout,
            tag=tag,
            offsets=offsets,
            output_limit=output_limit,
        )
        return CommandHandle(self._runner.call(inner), self._runner)

    list = Blocking(AsyncCommands.list)
    kill = Blocking(AsyncCommands.kill)
    send_stdin = Blocking(AsyncCommands.send_stdin)
    close_stdin = Blocking(AsyncCommands.close_stdin)
