"""From how a process ended to the result or the error a caller gets."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable
from typing import Final

from fourwalls.guest.messages import Exit
from fourwalls.guest.process import STDERR, STDOUT
from fourwalls.model.cause import Cause
from fourwalls.model.errors import CommandExitError, CommandTimeoutError
from fourwalls.sdk.output import Output
from fourwalls.sdk.values import CommandResult

# A shell reports a child that was killed by an exit code of its own.
_SHELL_KILLED: Final = 128 + signals.SIGKILL
_SHOWN: Final = 2000


class LimitWatch:
    """Tells which limit of the sandbox was met since this was made, as the host sees it."""

    def __init__(self, oom_kills: Callable[[], int], disk_full: Callable[[], bool]) -> None:
        self._oom_kills = oom_kills
        self._before = oom_kills()
        self.disk_full = disk_full

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed a process for want of memory meanwhile."""
        return self._oom_kills() > self._before


def _describe(exit_: Exit) -> str | None:
    """The words E2B uses."""
    if exit_.signal:
        try:
            name = signals.strsignal(exit_.signal) or str(exit_.signal)
        except ValueError:
            name = str(exit_.signal)
        return f"signal: {name.lower()}" + (" (core dumped)" if exit_.core else "")
    return f"exit status {exit_.code}" if exit_.code else None


def _cause(exit_: Exit, *, killed: bool, limits: LimitWatch) -> Cause:
    if exit_.timed_out:
        return Cause.TIMEOUT
    was_killed = exit_.signal == signals.SIGKILL or exit_.code == _SHELL_KILLED
    if was_killed and limits.out_of_memory():
        return Cause.OOM
    if killed and exit_.signal == signals.SIGKILL:
        return Cause.KILLED
    # Behind some boundaries the guest cannot tell how full its disk is; the host always can.
    if exit_.disk_full or (exit_.code and limits.disk_full()):
        return Cause.DISK_FULL
    return Cause.SIGNALED if exit_.signal else Cause.EXITED


def make_result(exit_: Exit, output: Output, *, killed: bool, limits: LimitWatch) -> CommandResult:
    """What is known of a command that has ended."""
    return CommandResult(
        stdout=output.text(STDOUT),
        stderr=output.text(STDERR),
        exit_code=exit_.code,
        error=_describe(exit_),
        cause=_cause(exit_, killed=killed, limits=limits).value,
        signal=exit_.signal or None,
        stdout_dropped=output.dropped(STDOUT),
        stderr_dropped=output.dropped(STDERR),
    )


def timeout_error(timeout: float, stdout: str, stderr: str) -> CommandTimeoutError:
    """The command's time was over."""
    return CommandTimeoutError(
        f"the command was killed after its timeout of {timeout:g} s"
        if timeout
        else "the command was killed after its timeout",
        stdout=stdout,
        stderr=stderr,
        remedy="give a longer timeout, or 0 for none",
    )


def check_result(result: CommandResult, timeout: float) -> CommandResult:
    """The result of a command that ended well; raises for every other."""
    if result.cause == Cause.TIMEOUT.value:
        raise timeout_error(timeout, result.stdout, result.stderr)
    if result.error is None:
        return result
    how = f"code {result.exit_code}" if result.signal is None else result.error
    why = {
        Cause.OOM.value: ": the sandbox ran out of memory",
        Cause.DISK_FULL.value: ": the sandbox's disk is full",
    }.get(result.cause, "")
    tail = result.stderr[-_SHOWN:]
    raise CommandExitError(
        f"the command exited with {how}{why}" + (f" and error:\n{tail}" if tail else ""),
        exit_code=result.exit_code,
        stdout=result.stdout,
        stderr=result.stderr,
        signal=result.signal,
        cause=result.cause,
    )
