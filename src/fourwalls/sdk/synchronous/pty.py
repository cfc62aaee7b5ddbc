"""Terminals, for callers that wait."""

from __future__ import annotations

from collections.abc import Mapping

from fourwalls.sdk.asynchronous.commands import DEFAULT_TIMEOUT
from fourwalls.sdk.asynchronous.pty import AsyncPty
from fourwalls.sdk.synchronous.blocking import Blocking, Facade
from fourwalls.sdk.synchronous.handle import CommandHandle
from fourwalls.sdk.values import PtySize


class Pty(Facade[AsyncPty]):
    """The terminals of one sandbox. Iterate over the handle for what they print."""

    def create(
        self,
        size: PtySize,
        user: str | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        request_timeout: float | None = None,
        *,
        cmd: str | None = None,
        tag: str | None = None,
        output_limit: int | None = None,
    ) -> CommandHandle:
        """Open a terminal; as :meth:`AsyncPty.create`."""
        inner = self._inner.create(
            size,
            None,
            user,
            cwd,
            envs,
            timeout,
            request_timeout,
            cmd=cmd,
            tag=tag,
            output_limit=output_limit,
        )
        return CommandHandle(self._runner.call(inner), self._runner)

    def connect(
        self,
        pid: int,
        timeout: float | None = 0,
        request_timeout: float | None = None,
        *,
        offsets: tuple[int, int] | None = None,
    ) -> CommandHandle:
        """Follow a terminal that is open."""
        inner = self._inner.connect(pid, None, timeout, request_timeout, offsets=offsets)
        return CommandHandle(self._runner.call(inner), self._runner)

    send_stdin = Blocking(AsyncPty.send_stdin)
    resize = Blocking(AsyncPty.resize)
    kill = Blocking(AsyncPty.kill)
