"""The terminal we were started in: raw while a shell in a sandbox uses it, and always set back."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
import tty
from collections.abc import Iterator

# Soft reset, no mouse reports, no bracketed paste, the cursor visible, the main screen.
_CALM = b"\x1b[!p\x1b[?1000;1002;1003;1006;2004l\x1b[?25h\x1b[?1047l"


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Every key goes through as it is. The state before comes back, however the block ends."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd, termios.TCSADRAIN)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), _CALM)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def terminal_size() -> tuple[int, int]:
    """Columns and rows, each at least 1."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return 80, 24
    return max(size.columns, 1), max(size.lines, 1)


class Escape:
    """Finds ``~.`` at the beginning of a line: the way out when nothing answers any more."""

    def __init__(self) -> None:
        self._state = "line"

    def seen(self, data: bytes) -> bool:
        """Whether the escape is complete with ``data``."""
        for byte in data:
            if self._state == "tilde" and byte == ord("."):
                return True
            if byte in b"\r\n":
                self._state = "line"
            elif byte == ord("~") and self._state == "line":
                self._state = "tilde"
            else:
                self._state = "text"
        return False
