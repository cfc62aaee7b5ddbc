"""What the parts of one sandbox object share: the live sandbox, its tasks, its users' homes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from fourwalls.guest.session import Session
from fourwalls.host.live import LiveSandbox
from fourwalls.model.errors import InvalidArgumentError, SandboxError
from fourwalls.sdk.checks import encode
from fourwalls.sdk.checks import request_timeout as request_timeout_seconds
from fourwalls.sdk.paths import (
    MAX_PASSWD,
    absolute,
    check_path,
    home_in_passwd,
    needs_home,
    to_text,
)


class Shared:
    """One sandbox, for the parts of its object."""

    def __init__(self, live: LiveSandbox) -> None:
        self.live = live
        self.has_bash = True
        self._homes: dict[bytes, bytes] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def session(self) -> Session:
        return self.live.session

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` beside the caller, kept alive until it ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop everything that runs beside the callers."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def bounded(self, request_timeout: float | None) -> AsyncIterator[None]:
        """Let what is inside take so many seconds at most; None is the default, 0 no limit."""
        seconds = request_timeout_seconds(request_timeout)
        try:
            async with asyncio.timeout(seconds) as scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise SandboxError(
                f"the sandbox did not answer within {seconds:g} s",
                remedy="give a longer request_timeout, or 0 for none",
            ) from None

    async def resolve(self, path: object, user: str | None, what: str = "path") -> bytes:
        """The absolute form of a path the caller gave, below the home of ``user``."""
        raw = check_path(path, what)
        owner = needs_home(raw)
        if owner is None:
            return absolute(raw, b"/")
        name = owner or encode(user or self.live.default_user, "user")
        return absolute(raw, await self._home(name))

    async def _home(self, user: bytes) -> bytes:
        known = self._homes.get(user)
        if known is not None:
            return known
        home = home_in_passwd(await self._passwd(), user)
        if home is None:
            raise InvalidArgumentError(
                f"user {to_text(user)!r:.80} has no home directory in this sandbox",
                remedy="give an absolute path",
            )
        self._homes[user] = home
        return home

    async def _passwd(self) -> bytes:
        stream = await self.session.files.read(b"/etc/passwd", length=MAX_PASSWD)
        content = bytearray()
        async for piece in stream:
            content += piece
            if len(content) >= MAX_PASSWD:
                stream.close()
                break
        return bytes(content)
