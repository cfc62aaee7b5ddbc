"""Exit codes of our own. Everything else that `run`, `exec` and `shell` return is the guest's."""

from __future__ import annotations

import errno

from fourwalls.model.errors import (
    CommandStartError,
    CommandTimeoutError,
    FourwallsError,
    InvalidArgumentError,
)

# `doctor` and `setup --check`: something is missing on this host.
MISSING = 1
USAGE = 2
TIMEOUT = 124
OUR_FAILURE = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
INTERRUPTED = 130
# As if SIGPIPE had ended us.
READER_LEFT = 141

_SIGNAL_BASE = 128


def exit_code_of(error: FourwallsError) -> int:
    """The exit code that stands for ``error``."""
    match error:
        case InvalidArgumentError():
            return USAGE
        case CommandTimeoutError():
            return TIMEOUT
        case CommandStartError(stage="exec"):
            return NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
        case _:
            return OUR_FAILURE


def guest_exit_code(exit_code: int, signal: int | None) -> int:
    """What a shell would say: the program's own code, or 128 and the signal that ended it."""
    return _SIGNAL_BASE + signal if signal else exit_code
