"""The process of a shim, as its parent sees it."""

from __future__ import annotations

import gc
import os
import socket

from fourwalls.boundaries.shim import launch
from fourwalls.boundaries.shim.launch import RunningShim


def spawn(program: str, *arguments: str) -> RunningShim:
    ours, theirs = socket.socketpair()
    theirs.close()
    running = RunningShim(os.posix_spawn(program, [program, *arguments], {}), ours)
    running.connect().close()
    return running


def test_a_shim_nobody_waits_for_becomes_no_zombie() -> None:
    ended, living = spawn("/bin/true"), spawn("/bin/sleep", "60")
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    pid, other = ended.pid, living.pid
    del ended, living
    gc.collect()
    launch._reap_left()
    assert not os.path.exists(f"/proc/{pid}")
    assert len(launch._left) == 1, "the other one lives on"
    os.kill(other, 9)
    os.waitid(os.P_PID, other, os.WEXITED | os.WNOWAIT)
    launch._reap_left()
    assert not launch._left
    assert not os.path.exists(f"/proc/{other}")


async def test_two_wait_for_one_shim() -> None:
    running = spawn("/bin/true")
    await running.wait()
    await running.wait()
    running.kill()
    del running
    gc.collect()
    assert not launch._left
