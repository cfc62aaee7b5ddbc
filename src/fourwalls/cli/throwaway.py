"""A sandbox for one job: made, used, ended, and what is said about it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from fourwalls.cli import output
from fourwalls.cli.exit_codes import OUR_FAILURE
from fourwalls.cli.job import Job, Outcome, Runner
from fourwalls.cli.streams import Sink
from fourwalls.host.create import create
from fourwalls.linux.places import Places
from fourwalls.model.cause import Cause

if TYPE_CHECKING:
    from fourwalls.host.live import LiveSandbox
    from fourwalls.model.sandbox import CreateRequest, SandboxInfo

_WORDS = {
    Cause.TIMEOUT.value: "the program was killed: its time was over (--timeout)",
    Cause.LEASE_EXPIRED.value: "the sandbox was ended: its time was over (--timeout)",
    Cause.OOM.value: "the program was killed: out of memory (--memory)",
    Cause.DISK_FULL.value: "the disk of the sandbox is full (--disk)",
    Cause.KILLED.value: "the sandbox was killed from outside",
}


async def run_throwaway(
    request: CreateRequest, job: Job, *, keep: float | None, as_json: bool, quiet: bool
) -> int:
    """Do ``job`` in a sandbox of its own; the exit code. ``keep``: seconds it lives on."""
    began = time.monotonic()
    live = await create(request, Places.from_environment())
    start_ms = (time.monotonic() - began) * 1000
    kept = False
    try:
        if not quiet and not as_json and sys.stderr.isatty():
            info = live.info
            output.words(f"[{info.boundary.value}, {start_ms:.0f} ms: {info.boundary_reason}]")
        code = await run_in(live, job, start_ms=start_ms, as_json=as_json, quiet=quiet)
        if keep is not None and live.session.failure is None:
            await live.set_timeout(keep)
            kept = True
            live.detach()
            if not quiet:
                output.words(f"kept for {keep:g} s: {live.id}")
    finally:
        if not kept:
            await live.kill()
    return code


async def run_in(
    live: LiveSandbox, job: Job, *, start_ms: float, as_json: bool, quiet: bool
) -> int:
    """Do ``job`` in ``live`` and say how it went; the exit code."""
    began = time.monotonic()
    sinks = (None, None) if as_json else (Sink(sys.stdout.fileno()), Sink(sys.stderr.fileno()))
    outcome = await Runner(live, job, *sinks).run()
    total_ms = start_ms + (time.monotonic() - began) * 1000
    if as_json:
        output.data_json(_document(outcome, live.info, start_ms, total_ms))
    else:
        _tell(outcome, quiet)
    failed = outcome.copy_failure is not None and outcome.exit_code == 0
    return OUR_FAILURE if failed else outcome.exit_code


def _tell(outcome: Outcome, quiet: bool) -> None:
    if not quiet:
        for note in outcome.notes:
            output.words(output.printable(note))
        if outcome.cause in _WORDS:
            output.words(f"fourwalls: {_WORDS[outcome.cause]}")
    if outcome.copy_failure is not None:
        failure = outcome.copy_failure
        output.failure(failure.code, f"--out: {failure.message}", failure.remedy)


def _document(
    outcome: Outcome, info: SandboxInfo, start_ms: float, total_ms: float
) -> dict[str, Any]:
    first = outcome.first_output_ms
    document: dict[str, Any] = {
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
        "stdout_dropped": outcome.stdout_dropped,
        "stderr_dropped": outcome.stderr_dropped,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "cause": outcome.cause,
        "boundary": info.boundary.value,
        "reason": info.boundary_reason,
        "sandbox_id": info.sandbox_id,
        "template": info.template,
        "timings": {
            "start_ms": round(start_ms, 1),
            "first_output_ms": None if first is None else round(first, 1),
            "run_ms": round(outcome.run_ms, 1),
            "total_ms": round(total_ms, 1),
        },
        "files": outcome.files,
        "notes": outcome.notes,
    }
    if outcome.copy_failure is not None:
        failure = outcome.copy_failure
        document["error"] = output.error_document(failure.code, failure.message, failure.remedy)
    return document
