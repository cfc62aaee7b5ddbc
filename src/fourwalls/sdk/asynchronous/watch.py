"""Watching a directory."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable

from fourwalls.guest.listing import Watch
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.values import FilesystemEvent, FilesystemEventType, filesystem_event

EventCallback = Callable[[FilesystemEvent], Awaitable[None] | None]
ExitCallback = Callable[[Exception | None], Awaitable[None] | None]

_OVERFLOW = FilesystemEvent("", FilesystemEventType.OVERFLOW)


class AsyncWatchHandle:
    """A directory that is watched: iterate over the events, or take them with a callback."""

    def __init__(
        self,
        shared: Shared,
        watch: Watch,
        on_event: EventCallback | None = None,
        on_exit: ExitCallback | None = None,
    ) -> None:
        self._watch = watch
        if on_event is not None:
            shared.spawn(self._call(on_event, on_exit))

    async def _call(self, on_event: EventCallback, on_exit: ExitCallback | None) -> None:
        failure: Exception | None = None
        try:
            async for event in self:
                answer = on_event(event)
                if inspect.isawaitable(answer):
                    await answer
        except Exception as error:
            failure = error
            self._watch.close()
        if on_exit is not None:
            answer = on_exit(failure)
            if inspect.isawaitable(answer):
                await answer

    def _overflowed(self) -> bool:
        lost, self._watch.overflow = self._watch.overflow, False
        return lost

    async def __aiter__(self) -> AsyncGenerator[FilesystemEvent, None]:
        while True:
            event = await self._watch.next_event()
            if self._overflowed():
                yield _OVERFLOW
            if event is None:
                return
            known = filesystem_event(event)
            if known is not None:
                yield known

    def get_new_events(self) -> list[FilesystemEvent]:
        """The events since the last call, without waiting."""
        known = [filesystem_event(event) for event in self._watch.pending()]
        events = [event for event in known if event is not None]
        return [_OVERFLOW, *events] if self._overflowed() else events

    async def take_new_events(self) -> list[FilesystemEvent]:
        """The same as :meth:`get_new_events`."""
        return self.get_new_events()

    async def stop(self) -> None:
        """Stop watching."""
        self._watch.close()
