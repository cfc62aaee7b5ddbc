"""One command in one sandbox: copy in, run, copy out. What `run` and `exec` have in common."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from fourwalls.cli.exit_codes import TIMEOUT, guest_exit_code
from fourwalls.cli.streams import read_some
from fourwalls.guest.inbox import Gap, Output
from fourwalls.guest.messages import Exit
from fourwalls.guest.process import ExecRequest, ProcessStream
from fourwalls.host.copy_in import copy_in
from fourwalls.host.copy_out import CopyOut
from fourwalls.host.live import LiveSandbox
from fourwalls.model.cause import Cause
from fourwalls.model.errors import FourwallsError, PathNotFoundError, SandboxError, SandboxGoneError
from fourwalls.sdk.asynchronous.shared import Shared
from fourwalls.sdk.outcome import LimitWatch, make_result
from fourwalls.sdk.output import DEFAULT_LIMIT
from fourwalls.sdk.output import Output as Kept

_KILLED: Final = 137
# The agent enforces the timeout; if it does not answer so much later, it is not to be trusted.
_GRACE_S: Final = 15.0


class Writer(Protocol):
    """Where output goes as it comes."""

    async def write(self, data: bytes) -> None: ...


@dataclass(frozen=True)
class Script:
    """A file to put into the sandbox and run: its name there, and the words that go before it."""

    name: str
    content: bytes
    interpreter: list[bytes]


@dataclass(frozen=True)
class InputFile:
    """A file or directory of the host, and its place in the sandbox (None: the same name)."""

    source: Path
    target: str | None


@dataclass(frozen=True)
class OutputFile:
    """A file or directory of the sandbox, and where it goes on the host."""

    source: str
    destination: Path


@dataclass(frozen=True)
class Job:
    """What to do in a sandbox. ``stdin``: descriptor to read from, or None for no input."""

    argv: list[bytes]
    script: Script | None = None
    user: str | None = None
    cwd: str | None = None
    envs: dict[str, str] = field(default_factory=dict)
    timeout: float = 300.0
    stdin: int | None = None
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[OutputFile, ...] = ()


@dataclass
class Outcome:
    """How it ended. ``exit_code`` as a shell would say it; times in milliseconds."""

    exit_code: int = 0
    signal: int | None = None
    cause: str = Cause.EXITED.value
    stdout: str = ""
    stderr: str = ""
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    first_output_ms: float | None = None
    run_ms: float = 0.0
    files: list[dict[str, object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    copy_failure: FourwallsError | None = None


class Runner:
    """Does one job in a live sandbox. Without ``stdout`` and ``stderr`` the output is kept."""

    def __init__(
        self, live: LiveSandbox, job: Job, stdout: Writer | None, stderr: Writer | None
    ) -> None:
        self._live = live
        self._job = job
        self._writers = {1: stdout, 2: stderr}
        self._shared = Shared(live)
        self._user = job.user or live.default_user
        self._kept = Kept(DEFAULT_LIMIT)
        self.outcome = Outcome()

    async def run(self) -> Outcome:
        """Everything in its order."""
        try:
            for item in self._job.inputs:
                await self._copy_in(item)
            argv = [*await self._prepare_script(), *self._job.argv]
            await self._execute(argv)
            await self._copy_out()
        finally:
            await self._shared.close()
        return self.outcome

    async def _prepare_script(self) -> list[bytes]:
        script = self._job.script
        if script is None:
            return []
        # In a directory of the user's own, so that imports find what --file has put there.
        path = await self._shared.resolve(f"~/{script.name}", self._user)
        stream = await self._shared.session.files.write(path, user=self._user, mode=0o700)
        try:
            await stream.write(script.content)
            await stream.finish()
        finally:
            stream.close()
        return [*script.interpreter, path]

    async def _execute(self, argv: list[bytes]) -> None:
        limits = LimitWatch(self._live.oom_kills, self._live.disk_full)
        request = ExecRequest(
            argv=argv,
            env={name: value.encode() for name, value in self._job.envs.items()},
            cwd=await self._cwd(),
            user=self._job.user,
            stdin=self._job.stdin is not None,
            timeout=self._job.timeout,
        )
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._job.timeout + _GRACE_S):
                stream = await self._shared.session.exec(request)
                async with self._feeding(stream):
                    exit_ = await self._follow(stream, began)
        except TimeoutError:
            raise SandboxError(
                "the sandbox did not end the command in time and was ended itself"
            ) from None
        except SandboxGoneError as gone:
            self._sandbox_ended(gone)
            exit_ = None
        self.outcome.run_ms = (time.monotonic() - began) * 1000
        result = make_result(exit_ or Exit(), self._kept, killed=False, limits=limits)
        self.outcome.stdout, self.outcome.stderr = result.stdout, result.stderr
        self.outcome.stdout_dropped = result.stdout_dropped
        self.outcome.stderr_dropped = result.stderr_dropped
        if exit_ is not None:
            self.outcome.cause, self.outcome.signal = result.cause, result.signal
            timed_out = result.cause == Cause.TIMEOUT.value
            code = guest_exit_code(result.exit_code, result.signal)
            self.outcome.exit_code = TIMEOUT if timed_out else code

    async def _cwd(self) -> bytes | None:
        if self._job.cwd is None:
            return None
        return await self._shared.resolve(self._job.cwd, self._user, "cwd")

    async def _follow(self, stream: ProcessStream, began: float) -> Exit | None:
        async for event in stream:
            if isinstance(event, Output):
                if self.outcome.first_output_ms is None:
                    self.outcome.first_output_ms = (time.monotonic() - began) * 1000
                writer = self._writers.get(event.channel)
                if writer is None:
                    self._kept.add(event.channel, event.data, followed=False)
                else:
                    await writer.write(event.data)
            elif isinstance(event, Gap):
                self._kept.lose(event.channel, event.missing)
            elif isinstance(event, Exit):
                return event
        return None

    @contextlib.asynccontextmanager
    async def _feeding(self, stream: ProcessStream) -> AsyncIterator[None]:
        if self._job.stdin is None:
            yield
            return
        task = asyncio.create_task(_feed(self._job.stdin, stream))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _sandbox_ended(self, gone: SandboxGoneError) -> None:
        """The whole sandbox is gone. Some causes are answers, the rest are failures of ours."""
        codes = {
            Cause.OOM.value: _KILLED,
            Cause.KILLED.value: _KILLED,
            Cause.LEASE_EXPIRED.value: TIMEOUT,
        }
        if gone.cause not in codes:
            raise gone
        self.outcome.cause = gone.cause
        self.outcome.exit_code = codes[gone.cause]
        self.outcome.signal = 9 if codes[gone.cause] == _KILLED else None

    async def _copy_in(self, item: InputFile) -> None:
        name = item.source.resolve().name or "root"
        target = await self._resolve(item.target or name)
        if (item.target or "").endswith("/") or (
            not item.source.is_dir() and await self._is_directory(target)
        ):
            target = target.rstrip(b"/") + b"/" + name.encode("utf-8", "surrogateescape")
        done = await copy_in(self._shared.session.files, item.source, target, user=self._user)
        self.outcome.notes += [f"not copied: {what}" for what in done.left_out]

    async def _copy_out(self) -> None:
        for item in self._job.outputs:
            limit = self._live.info.resources.disk_bytes
            copy = CopyOut(self._shared.session.files, limit)
            try:
                await copy.copy(await self._resolve(item.source), item.destination)
            except FourwallsError as error:
                # The program's own answer is not lost over this; the caller hears of both.
                self.outcome.copy_failure = error
                continue
            finally:
                self.outcome.notes += [f"not copied: {what}" for what in copy.done.left_out]
            self.outcome.files.append(
                {
                    "path": item.source,
                    "destination": str(item.destination),
                    "files": copy.done.files,
                    "bytes": copy.done.size,
                }
            )

    async def _resolve(self, path: str) -> bytes:
        """Relative paths start where the command does."""
        base = self._job.cwd or self._live.workdir
        if base and not path.startswith(("/", "~")):
            path = f"{base.rstrip('/')}/{path}"
        return await self._shared.resolve(path, self._user)

    async def _is_directory(self, path: bytes) -> bool:
        try:
            entry = await self._shared.session.files.stat(path)
        except PathNotFoundError:
            return False
        return entry.kind == "dir" or entry.target_kind == "dir"


async def _feed(fd: int, stream: ProcessStream) -> None:
    # A program need not read its input; whoever waits for it is told how it ended.
    with contextlib.suppress(FourwallsError, OSError):
        while data := await read_some(fd):
            await stream.send_stdin(data)
        await stream.close_stdin()
