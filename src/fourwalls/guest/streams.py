"""Streams: what one request waits for. Each knows which frames may answer it, and no others."""

from __future__ import annotations

import asyncio
from typing import Protocol

from fourwalls.guest.errors import to_exception
from fourwalls.guest.frame import TERMINAL, Kind
from fourwalls.guest.messages import Error, decode
from fourwalls.model.errors import AgentProtocolError, FourwallsError


class Stream(Protocol):
    """The receiving side of one request."""

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        """Take in a frame; true when it was the last one of the stream."""

    def fail(self, error: FourwallsError) -> None:
        """The connection is over; nothing more comes."""


def unexpected(kind: int) -> AgentProtocolError:
    """A frame that is legal elsewhere but answers nothing that was asked."""
    try:
        name = Kind(kind).name
    except ValueError:
        name = f"{kind:#04x}"
    return AgentProtocolError(f"the agent sent {name} where it answers nothing")


def read_error(body: memoryview, *, process: bool) -> FourwallsError:
    """The exception an ERROR frame stands for."""
    return to_exception(decode(body, Error), process=process)


class Reply:
    """Waits for one terminal frame: RESULT when ``result``, else OK; or ERROR."""

    def __init__(self, *, result: bool, process: bool = False) -> None:
        self._expected = Kind.RESULT if result else Kind.OK
        self._process = process
        self.body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        if kind == self._expected:
            if not self.body.done():
                self.body.set_result(bytes(body))
        elif kind == Kind.ERROR:
            self.fail(read_error(body, process=self._process))
        else:
            raise unexpected(kind)
        return True

    def fail(self, error: FourwallsError) -> None:
        if not self.body.done():
            self.body.set_exception(error)


class Abandoned:
    """A request nobody waits for any more: swallows frames until the agent ends the stream."""

    def receive(self, kind: int, channel: int, body: memoryview) -> bool:
        return kind in TERMINAL

    def fail(self, error: FourwallsError) -> None:
        pass
