"""Notices an agent that has stopped answering, while somebody waits for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

INTERVAL: Final = 5.0
"""Seconds between two pings."""

MISSED: Final = 3
"""Pings in a row without any frame from the agent after which it counts as dead."""


class Heartbeat:
    """Sends pings between :meth:`start` and :meth:`stop`; there is no timer otherwise.

    Anything the agent sends counts as a sign of life, so that a slow reader of a full stream does
    not make the agent look dead.
    """

    def __init__(
        self, ping: Callable[[], None], dead: Callable[[], None], interval: float = INTERVAL
    ) -> None:
        self._ping = ping
        self._dead = dead
        self._interval = interval
        self._timer: asyncio.TimerHandle | None = None
        self._alive = True
        self._missed = 0
        self._wanted = False

    def start(self) -> None:
        """A request is waiting. The timer that is running, if any, is kept."""
        self._wanted = True
        if self._timer is None:
            self._missed = 0
            self._alive = True
            self._schedule()

    def stop(self) -> None:
        """No request is waiting. The timer runs out by itself, as requests come in quick turns."""
        self._wanted = False

    def close(self) -> None:
        """The connection is over."""
        self._wanted = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sign_of_life(self) -> None:
        """The agent sent something."""
        self._alive = True

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._wanted:
            return
        self._missed = 0 if self._alive else self._missed + 1
        if self._missed >= MISSED:
            self._dead()
            return
        self._alive = False
        self._ping()
        self._schedule()
