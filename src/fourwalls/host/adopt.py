"""Connecting to a sandbox that another process made (with ``detach``)."""

from __future__ import annotations

import socket

from fourwalls.guest.session import Session
from fourwalls.host.live import LiveSandbox
from fourwalls.host.record import read_record
from fourwalls.linux import dirlock
from fourwalls.linux.cgroup import host_layout
from fourwalls.linux.places import Places
from fourwalls.model.errors import SandboxNotFoundError
from fourwalls.model.ids import parse_sandbox_id

_SOCKET = "agent.sock"


async def adopt(sandbox_id: str, places: Places) -> LiveSandbox:
    """Take over the sandbox. Whoever was connected before is disconnected.

    Its commands run on; attach to them from an offset. Raises :class:`SandboxNotFoundError`.
    """
    directory = places.sandboxes / parse_sandbox_id(sandbox_id)
    record = read_record(directory)
    if record is None or not dirlock.is_held(directory):
        raise SandboxNotFoundError(f"no sandbox {sandbox_id} runs on this host")
    if not record.detach:
        raise SandboxNotFoundError(
            f"sandbox {sandbox_id} belongs to the process that made it",
            remedy="create it with detach=True to connect from elsewhere",
        )
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(directory / _SOCKET))
    except OSError:
        connection.close()
        raise SandboxNotFoundError(f"sandbox {sandbox_id} has just ended") from None
    session = await Session.open(connection)
    live = LiveSandbox(directory, record, session, None, host_layout())
    try:
        await live.greet()
    except BaseException:
        session.close()
        raise
    return live
