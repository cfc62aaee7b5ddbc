"""Starting a shim with exactly the descriptors it expects."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
from pathlib import Path

import msgspec

from fourwalls.boundaries.shim.spec import LaunchSpec
from fourwalls.linux.scope import Scope

# Descriptors are moved up here before the child maps them down to 0..4, so that none is overwritten
# by another on the way.
_FIRST_SAFE_FD = 10

# Handles of shims nobody waits for any more: detached ones that live on, or zombies.
_left: list[int] = []


class RunningShim:
    """A started shim: the sandbox lives exactly as long as it does."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self._pid = pid
        self._control: socket.socket | None = control
        self._reaped = True
        self._pidfd = os.pidfd_open(pid)
        self._reaped = False

    def __del__(self) -> None:
        # Whoever had us never waited; the next start looks whether it has ended.
        if not self._reaped:
            _left.append(self._pidfd)

    @property
    def pid(self) -> int:
        return self._pid

    def connect(self) -> socket.socket:
        if self._control is None:
            raise RuntimeError("the control connection was taken already")
        control, self._control = self._control, None
        return control

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._reaped:
            ended: asyncio.Future[None] = loop.create_future()

            def notice() -> None:
                if not ended.done():
                    ended.set_result(None)

            # A descriptor of its own, so that two waiters do not share one registration.
            pidfd = os.dup(self._pidfd)
            loop.add_reader(pidfd, notice)
            try:
                await ended
            finally:
                loop.remove_reader(pidfd)
                os.close(pidfd)
            self._reap()

    def _reap(self) -> None:
        if self._reaped:
            return
        self._reaped = True
        # The program around us may reap every child by itself.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
        os.close(self._pidfd)

    def kill(self) -> None:
        """SIGTERM: the shim ends the sandbox with cause ``killed`` and cleans up."""
        if self._control is not None:
            self._control.close()
        if not self._reaped:
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)


def start_shim(shim: Path, spec: LaunchSpec, lock_fd: int, scope: Scope) -> RunningShim:
    """Start ``shim`` with ``spec``; it gets a duplicate of ``lock_fd``. Costs about 1 ms."""
    _reap_left()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    fds: list[int] = []
    try:
        spec_fd = os.memfd_create("fourwalls-spec", os.MFD_CLOEXEC)
        fds.append(spec_fd)
        os.write(spec_fd, msgspec.msgpack.encode(spec.as_map()))
        os.lseek(spec_fd, 0, os.SEEK_SET)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        fds.append(null)
        sources = (spec_fd, null, null, theirs.fileno(), lock_fd)
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_SAFE_FD) for fd in sources]
        fds.extend(high)
        pid = os.posix_spawn(
            str(shim),
            [shim.name],
            {},
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(high)],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        for fd in fds:
            os.close(fd)
    running = RunningShim(pid, ours)
    scope.add(f"shim {pid}", running.kill)
    return running


def _reap_left() -> None:
    for pidfd in list(_left):
        try:
            ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG) is not None
        except ChildProcessError:  # somebody else's, or reaped by the program around us
            ended = True
        if ended:
            _left.remove(pidfd)
            os.close(pidfd)
