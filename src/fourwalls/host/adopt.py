"""Connecting to a sandbox that another process made (with ``detach``)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from fourwalls.guest.errors import printable
from fourwalls.guest.session import Session
from fourwalls.host.live import LiveSandbox
from fourwalls.host.record import read_exit, read_record
from fourwalls.linux import dirlock
from fourwalls.linux.cgroup import host_layout
from fourwalls.linux.places import Places
from fourwalls.model.errors import FourwallsError, SandboxGoneError, SandboxNotFoundError
from fourwalls.model.ids import parse_sandbox_id

_SOCKET = "agent.sock"


async def adopt(sandbox_id: str, places: Places) -> LiveSandbox:
    """Take over the sandbox. Whoever was connected before is disconnected.

    Its commands run on; attach to them from an offset. Raises :class:`SandboxNotFoundError`, or
    :class:`SandboxGoneError` with the cause for one that has ended not long ago.
    """
    directory = places.sandboxes / parse_sandbox_id(sandbox_id)
    record = read_record(directory)
    if record is None or not dirlock.is_held(directory):
        raise _not_there(sandbox_id, directory)
    if not record.detach:
        raise SandboxNotFoundError(
            f"sandbox {sandbox_id} belongs to the process that made it",
            remedy="create it with detach=True to connect from elsewhere",
        )
    try:
        connection = _connect(directory)
    except OSError:
        raise _not_there(sandbox_id, directory) from None
    session = await Session.open(connection)
    live = LiveSandbox(places, record, session, None, host_layout())
    try:
        await live.greet()
        # The shim told its state to whoever was connected when it started.
        await session.status()
    except BaseException:
        session.close()
        raise
    return live


def _connect(directory: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Through a descriptor: a socket's address is short, and a path need not be.
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            connection.connect(f"/proc/self/fd/{fd}/{_SOCKET}")
        finally:
            os.close(fd)
    except BaseException:
        connection.close()
        raise
    return connection


def _not_there(sandbox_id: str, directory: Path) -> FourwallsError:
    ended = read_exit(directory)
    if ended is None:
        return SandboxNotFoundError(f"no sandbox {sandbox_id} runs on this host")
    cause = ended.cause.value
    return SandboxGoneError(
        f"sandbox {sandbox_id} ended ({cause}): {printable(ended.message)}", cause=cause
    )
