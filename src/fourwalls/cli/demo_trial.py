"""One boundary of the demo: the program goes in, and what comes out is judged."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from fourwalls.linux.binaries import SHIM
from fourwalls.model.boundary import Boundary
from fourwalls.model.errors import (
    CommandExitError,
    CommandTimeoutError,
    FourwallsError,
    SandboxGoneError,
)
from fourwalls.sdk import AsyncSandbox

# What each attempt is called in the table, in the order of the program.
TITLES: Mapping[str, str] = {
    "read_host_file": "read a file of the host",
    "find_host_process": "see processes of the host",
    "attach_to_host_process": "trace a process of the host",
    "connect_to_host": "connect to a port of the host",
    "connect_to_internet": "connect to the internet",
    "open_disk": "open the host's disk",
    "open_memory": "open the host's memory",
    "open_kvm": "open /dev/kvm",
    "set_core_pattern": "write core_pattern",
    "set_clock": "set the clock",
    "mount": "mount a file system",
    "load_module": "load a kernel module",
    "new_user_namespace": "make a user namespace",
    "load_bpf": "bpf",
    "use_io_uring": "io_uring",
    "use_perf": "perf events",
    "use_keyring": "kernel keyring",
    "fill_disk": "fill the disk",
    "fork_without_end": "fork without end",
    "take_memory": "take all memory",
}
_BOMBS = ("fork_without_end", "take_memory")
# With a kernel of its own these touch nothing but that kernel.
_OWN_KERNEL = frozenset(
    {"mount", "new_user_namespace", "load_bpf", "use_io_uring", "use_perf", "use_keyring",
     "set_core_pattern", "set_clock"}
)  # fmt: skip
_WITH_OWN_KERNEL = frozenset({Boundary.GVISOR, Boundary.MICROVM})

_CAUSES = {"oom": "out of memory"}

_MEMORY_MIB = 512
_DISK_MIB = 128
_PIDS = 64
_PROGRAM = "/root/demo_program.py"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Attempt:
    """``verdict``: refused, contained (it happened, but only inside), or let_through."""

    name: str
    verdict: str
    answer: str


@dataclass
class Trial:
    """What the program did behind one boundary. ``failure`` when it did not run."""

    boundary: Boundary
    wall: str
    failure: str = ""
    kernel: str = ""
    result: int | None = None
    start_ms: float | None = None
    first_output_ms: float | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def refused(self) -> int:
        return sum(attempt.verdict == "refused" for attempt in self.attempts)

    @property
    def let_through(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.verdict == "let_through"]


@contextlib.contextmanager
def bait() -> Iterator[dict[str, Any]]:
    """Things on this host for the program to look for: a file, a port, a process, a disk."""
    with (
        tempfile.TemporaryDirectory(prefix="fourwalls-demo-") as directory,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        secret = Path(directory, "secret")
        secret.write_text("the host's secret")
        os.chmod(directory, 0o755)  # so that only the wall keeps it
        yield {
            "file": str(secret),
            "port": server.getsockname()[1],
            "pid": os.getpid(),
            "process": SHIM[:15],
            "disk": _a_disk(),
            "disk_mib": _DISK_MIB * 2,
            "memory_mib": _MEMORY_MIB * 2,
            "forks": _PIDS * 2,
        }


async def run_trial(trial: Trial, given: dict[str, Any]) -> None:
    """Fill in ``trial``. A failure to start is written there, not raised."""
    source = (resources.files("fourwalls.cli") / "demo_program.py").read_text()
    began = time.monotonic()
    try:
        async with await _sandbox(trial.boundary) as sandbox:
            trial.start_ms = (time.monotonic() - began) * 1000
            await sandbox.files.write(_PROGRAM, source)
            await _escape(sandbox, trial, given, began)
        # Each of these may take its sandbox along.
        for name in _BOMBS:
            async with await _sandbox(trial.boundary) as sandbox:
                await sandbox.files.write(_PROGRAM, source)
                trial.attempts.append(await _bomb(sandbox, trial.boundary, name, given))
    except SandboxGoneError as gone:
        trial.failure = f"the sandbox ended early: {gone.cause}"
    except FourwallsError as error:
        trial.failure = error.message


async def _sandbox(boundary: Boundary) -> AsyncSandbox:
    return await AsyncSandbox.create(
        boundary=boundary.value,
        memory_mb=_MEMORY_MIB,
        disk_mb=_DISK_MIB,
        pids=_PIDS,
        timeout=_TIMEOUT_S * 4,
    )


async def _escape(sandbox: AsyncSandbox, trial: Trial, given: dict[str, Any], began: float) -> None:
    def note(_: str) -> None:
        if trial.first_output_ms is None:
            trial.first_output_ms = (time.monotonic() - began) * 1000

    command = ["python3", _PROGRAM, json.dumps(given)]
    done = await sandbox.commands.run(command, user="root", on_stdout=note, timeout=_TIMEOUT_S)
    for line in _documents(done.stdout):
        if "name" in line:
            trial.attempts.append(judge(trial.boundary, line))
        trial.kernel = str(line.get("kernel", trial.kernel))
        trial.result = line.get("result", trial.result)


async def _bomb(
    sandbox: AsyncSandbox, boundary: Boundary, name: str, given: dict[str, Any]
) -> Attempt:
    command = ["python3", _PROGRAM, json.dumps(given), name]
    try:
        done = await sandbox.commands.run(command, user="root", timeout=_TIMEOUT_S)
    except CommandExitError as error:
        return Attempt(name, "refused", f"it was ended: {_CAUSES.get(error.cause, error.cause)}")
    except CommandTimeoutError:
        return Attempt(name, "refused", f"it was ended after {_TIMEOUT_S:g} s")
    except SandboxGoneError as gone:
        return Attempt(
            name, "refused", f"its sandbox was ended: {_CAUSES.get(gone.cause, gone.cause)}"
        )
    for line in _documents(done.stdout):
        return judge(boundary, line)
    return Attempt(name, "refused", "no answer")


def _a_disk() -> list[int]:
    """Numbers of a disk of this host."""
    for device in sorted(Path("/sys/block").glob("*/dev")):
        if not device.parent.name.startswith(("loop", "ram", "zram")):
            with contextlib.suppress(OSError, ValueError):
                return [int(number) for number in device.read_text().split(":")]
    return [8, 0]


def judge(boundary: Boundary, line: Mapping[str, Any]) -> Attempt:
    """What an answer of the program means for the host. The program is not trusted to say it."""
    name, answer = str(line.get("name", "")), str(line.get("answer", ""))[:60]
    if not line.get("done"):
        return Attempt(name, "refused", answer)
    if boundary in _WITH_OWN_KERNEL and name in _OWN_KERNEL:
        return Attempt(name, "contained", f"{answer}, in its own kernel only")
    return Attempt(name, "let_through", answer)


def _documents(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            document = json.loads(line)
            if isinstance(document, dict):
                found.append(document)
    return found
