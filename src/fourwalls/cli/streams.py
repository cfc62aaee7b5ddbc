"""Standard streams beside an event loop: bytes in, bytes out, and never a blocked loop."""

from __future__ import annotations

import asyncio
import os
import queue
import stat
import threading

from fourwalls.cli.output import OutputError, writing

_PIECE = 64 * 1024


def is_piped(fd: int = 0) -> bool:
    """Whether something is given on standard input: a pipe, a file, a socket."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


async def read_some(fd: int) -> bytes:
    """The next bytes of ``fd``, empty at its end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def notice() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(fd, notice)
    except PermissionError:  # a regular file, which never makes anyone wait
        await asyncio.sleep(0)
        return os.read(fd, _PIECE)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
    return os.read(fd, _PIECE)


class Sink:
    """A descriptor written to by a thread of its own: a slow reader stops only its own output.

    A daemon thread, so that a reader who never reads cannot keep us from ending.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._work: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, daemon=True, name=f"sink-{fd}").start()

    async def write(self, data: bytes) -> None:
        """Return when ``data`` is written; raises BrokenPipeError or OutputError."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._work.put((data, done))
        await done

    def _run(self) -> None:
        while True:
            data, done = self._work.get()
            failure: OSError | None = None
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError as error:
                failure = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, failure)
            except RuntimeError:
                return  # the loop is closed: nobody waits


def _settle(done: asyncio.Future[None], failure: OSError | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(None)
        return
    try:
        with writing():
            raise failure
    except (BrokenPipeError, OutputError) as told:
        done.set_exception(told)
