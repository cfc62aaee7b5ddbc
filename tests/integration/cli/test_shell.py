"""``shell`` in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Iterator

import pytest

from fourwalls.model.boundary import Boundary

from .conftest import FOURWALLS


class _Terminal:
    def __init__(self, *arguments: str) -> None:
        self.said = b""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.execv(FOURWALLS[0], [*FOURWALLS, *arguments])
        self.resize(30, 90)
        self._before = termios.tcgetattr(self._fd)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def expect(self, words: bytes, seconds: float = 30) -> None:
        start, deadline = len(self.said), time.monotonic() + seconds
        while words not in self.said[start:]:
            assert time.monotonic() < deadline, self.said
            if select.select([self._fd], [], [], 0.1)[0]:
                self.said += os.read(self._fd, 65536)

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self._fd) == self._before

    def wait(self) -> int:
        while True:
            try:
                self.said += os.read(self._fd, 65536)
            except OSError:
                break
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        return code

    def close(self) -> None:
        os.close(self._fd)
        if self._pid:
            os.waitpid(self._pid, 0)


@pytest.fixture
def terminal(boundary: Boundary) -> Iterator[_Terminal]:
    opened = _Terminal("shell", "-b", boundary.value, "-e", "PS1=ready> ")
    yield opened
    opened.close()


def test_a_session(terminal: _Terminal) -> None:
    terminal.expect(b"$ ")
    terminal.type(b"stty size; tty\r")
    terminal.expect(b"30 90")
    terminal.expect(b"$ ")
    terminal.resize(41, 121)
    for _ in range(20):  # the new size takes a moment
        terminal.type(b"stty size\r")
        terminal.expect(b"$ ")
        if b"41 121" in terminal.said:
            break
    assert b"41 121" in terminal.said
    terminal.type(b"sleep 100\r")
    time.sleep(0.5)
    terminal.type(b"\x03")
    terminal.expect(b"$ ")
    terminal.type(b"exit 7\r")
    assert terminal.wait() == 7


def test_the_way_out(terminal: _Terminal) -> None:
    terminal.expect(b"$ ")
    terminal.type(b"sleep 100\r")
    time.sleep(0.5)
    terminal.type(b"~.")
    assert terminal.wait() == 137


def test_the_terminal_goes_away(terminal: _Terminal) -> None:
    # That the sandbox goes with it is checked after every test.
    terminal.expect(b"$ ")
