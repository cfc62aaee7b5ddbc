"""Running a coroutine so that every way of stopping us still ends what it has started."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import click

Result = TypeVar("Result")

_SIGNAL_BASE = 128


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run ``work``. Ctrl-C, SIGTERM and SIGHUP cancel it; its clean-up is waited for."""
    return asyncio.run(_guarded(work))


async def _guarded(work: Coroutine[Any, Any, Result]) -> Result:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    came: list[int] = []

    def stop(number: int) -> None:
        if not came:
            came.append(number)
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    try:
        return await work
    except asyncio.CancelledError:
        if came:
            raise click.exceptions.Exit(_SIGNAL_BASE + came[0]) from None
        raise
