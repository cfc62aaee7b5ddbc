"""The event loop behind the sync SDK: one thread in each process, started when first needed."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Final, TypeVar

from fourwalls.model.errors import FourwallsError, SandboxError

Result = TypeVar("Result")

_EXIT_TIMEOUT: Final = 5.0


class Runner:
    """Runs coroutines on a loop of its own and waits for them from other threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._closing: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="fourwalls", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``. A caller that is interrupted cancels it."""
        if os.getpid() != self._pid:
            work.close()
            raise SandboxError(
                "this sandbox belongs to the process that made it, not to its forked child",
                remedy="create a sandbox in the child, or connect to one made with detach=True",
            )
        if threading.get_ident() == self._thread.ident:
            work.close()
            raise SandboxError(
                "a sync call from a callback of the SDK would wait for itself",
                remedy="use AsyncSandbox there, or call from another thread",
            )
        if self._loop.is_closed():
            work.close()
            raise SandboxError("the interpreter is ending: no more calls to a sandbox")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Interrupted by a signal; nothing when the call itself has failed.
            future.cancel()
            raise

    def drop(self, iterator: AsyncGenerator[Any, None]) -> None:
        """Close an iterator nobody reads any more; nothing to be done when it is too late."""
        if threading.get_ident() == self._thread.ident:
            # Found by the garbage collector, which runs in whatever thread it likes.
            self._closing.add(task := self._loop.create_task(_close(iterator)))
            task.add_done_callback(self._closing.discard)
            return
        with contextlib.suppress(FourwallsError):
            self.call(_close(iterator))

    def close(self) -> None:
        """Cancel everything and end the thread."""
        if os.getpid() != self._pid or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._finish)
        self._thread.join(_EXIT_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()

    def _finish(self) -> None:
        self._last = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()


async def _close(iterator: AsyncGenerator[Any, None]) -> None:
    with contextlib.suppress(FourwallsError):
        await iterator.aclose()


_lock = threading.Lock()
_current: Runner | None = None


def runner() -> Runner:
    """This process's runner."""
    global _current
    with _lock:
        if _current is None:
            _current = Runner()
        return _current


def _forget_in_child() -> None:
    # The thread did not come along, and the lock may be held by one that did not either.
    global _current, _lock
    _lock = threading.Lock()
    _current = None


def _close_at_exit() -> None:
    if _current is not None:
        _current.close()


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(_close_at_exit)
