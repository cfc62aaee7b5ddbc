"""A command that runs, for callers that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fourwalls.sdk.asynchronous.handle import AsyncCommandHandle
from fourwalls.sdk.output import Chunk
from fourwalls.sdk.synchronous.blocking import Blocking, Facade
from fourwalls.sdk.values import CommandResult

TextCallback = Callable[[str], object]
BytesCallback = Callable[[bytes], object]


class CommandHandle(Facade[AsyncCommandHandle]):
    """A running command. Its output is read all the time, whether anybody waits or not.

    ``for stdout, stderr, pty in handle`` yields the pieces as they come, from the first one;
    :meth:`wait` gives the result. Disconnecting, or losing the handle, ends nothing.
    """

    @property
    def pid(self) -> int:
        """The process's id inside the sandbox."""
        return self._inner.pid

    @property
    def stdout(self) -> str:
        """What was printed so far and kept."""
        return self._inner.stdout

    @property
    def stderr(self) -> str:
        """What was printed to standard error so far and kept."""
        return self._inner.stderr

    @property
    def exit_code(self) -> int | None:
        """None while the command runs; -1 when a signal ended it."""
        return self._inner.exit_code

    @property
    def error(self) -> str | None:
        """Why the command ended, when not with exit code 0."""
        return self._inner.error

    @property
    def offsets(self) -> tuple[int, int]:
        """Bytes received of stdout (or the terminal) and stderr, for ``commands.connect``."""
        return self._inner.offsets

    def __iter__(self) -> Iterator[Chunk]:
        pieces = self._inner.pieces()
        try:
            while True:
                try:
                    yield self._runner.call(pieces.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._runner.drop(pieces)

    def wait(
        self,
        on_pty: BytesCallback | None = None,
        on_stdout: TextCallback | None = None,
        on_stderr: TextCallback | None = None,
    ) -> CommandResult:
        """Wait for the end, calling the callbacks from this thread with what is printed.

        Raises :class:`CommandExitError` when the exit code is not 0 or a signal ended it,
        :class:`CommandTimeoutError` when its time was over.
        """
        if on_pty or on_stdout or on_stderr:
            for stdout, stderr, pty in self:
                if stdout is not None and on_stdout is not None:
                    on_stdout(stdout)
                elif stderr is not None and on_stderr is not None:
                    on_stderr(stderr)
                elif pty is not None and on_pty is not None:
                    on_pty(pty)
        return self._runner.call(self._inner.wait())

    kill = Blocking(AsyncCommandHandle.kill)
    disconnect = Blocking(AsyncCommandHandle.disconnect)
    send_stdin = Blocking(AsyncCommandHandle.send_stdin)
    close_stdin = Blocking(AsyncCommandHandle.close_stdin)
