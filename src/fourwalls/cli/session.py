"""An interactive session: keys in, screen out, the size of the window passed on."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING

from fourwalls.cli import output
from fourwalls.cli.exit_codes import TIMEOUT, guest_exit_code
from fourwalls.cli.streams import Sink, read_some
from fourwalls.cli.terminal import Escape, raw_terminal, terminal_size
from fourwalls.host.create import create
from fourwalls.linux.places import Places
from fourwalls.model.cause import Cause
from fourwalls.model.errors import CommandExitError, FourwallsError, SandboxGoneError
from fourwalls.sdk import AsyncSandbox, PtySize

if TYPE_CHECKING:
    from fourwalls.model.sandbox import CreateRequest
    from fourwalls.sdk.asynchronous.handle import AsyncCommandHandle

_ENDED = 137


async def run_session(
    request: CreateRequest, *, user: str | None, cwd: str | None, quiet: bool
) -> int:
    """A shell in a sandbox of its own; its exit code."""
    began = time.monotonic()
    async with AsyncSandbox(await create(request, Places.from_environment())) as sandbox:
        info = sandbox.info
        if not quiet:
            took = (time.monotonic() - began) * 1000
            output.words(f"[{info.boundary.value}, {took:.0f} ms: {info.boundary_reason}]")
        sink = Sink(sys.stdout.fileno())
        cols, rows = terminal_size()
        with raw_terminal():
            handle = await sandbox.pty.create(
                PtySize(rows=rows, cols=cols), on_data=sink.write, user=user, cwd=cwd,
                timeout=0, output_limit=0,
            )  # fmt: skip
            return await _attend(sandbox, handle)


async def _attend(sandbox: AsyncSandbox, handle: AsyncCommandHandle) -> int:
    loop = asyncio.get_running_loop()
    resizing: set[asyncio.Task[None]] = set()

    def resize() -> None:
        task = loop.create_task(_resize(sandbox, handle))
        resizing.add(task)
        task.add_done_callback(resizing.discard)

    keys = asyncio.create_task(_pass_keys(handle))
    end = asyncio.create_task(_exit_code(handle))
    loop.add_signal_handler(signal.SIGWINCH, resize)
    try:
        await asyncio.wait([keys, end], return_when=asyncio.FIRST_COMPLETED)
        if not end.done():
            return _ENDED  # by the escape, or as our own terminal has gone
        return end.result()
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        for task in (keys, end, *resizing):
            task.cancel()
        await asyncio.gather(keys, end, *resizing, return_exceptions=True)


async def _pass_keys(handle: AsyncCommandHandle) -> None:
    escape = Escape()
    fd = sys.stdin.fileno()
    with contextlib.suppress(FourwallsError, OSError):
        while data := await read_some(fd):
            if escape.seen(data):
                return
            await handle.send_stdin(data)
        return
    # The shell is ending: how it did is for the other task to tell.
    await asyncio.Event().wait()


async def _resize(sandbox: AsyncSandbox, handle: AsyncCommandHandle) -> None:
    cols, rows = terminal_size()
    with contextlib.suppress(FourwallsError):
        await sandbox.pty.resize(handle.pid, PtySize(rows=rows, cols=cols))


async def _exit_code(handle: AsyncCommandHandle) -> int:
    try:
        return (await handle.wait()).exit_code
    except CommandExitError as error:
        return guest_exit_code(error.exit_code, error.signal)
    except SandboxGoneError as gone:
        if gone.cause == Cause.LEASE_EXPIRED.value:
            output.words("\r\nthe sandbox was ended: its time was over (--timeout)\r")
            return TIMEOUT
        output.words(f"\r\nthe sandbox ended: {gone.cause}\r")
        return _ENDED
