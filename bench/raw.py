"""The raw runtime, as a coroutine: see raw_worker.py for what it does."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Self

from fourwalls import AsyncSandbox
from fourwalls.boundaries.gvisor.render import SENTRY_MEMORY_BYTES

RUNTIMES = {"container": "crun", "gvisor": "runsc"}


class RawRuntime:
    """Raw runs on the bundle of a sandbox that lives as long as this object."""

    def __init__(self, donor: AsyncSandbox, process: asyncio.subprocess.Process) -> None:
        self._donor = donor
        self._process = process

    @classmethod
    async def start(cls, boundary: str) -> Self:
        donor = await AsyncSandbox.create(boundary=boundary, timeout=3600)
        live = donor._live
        state = await live.session.status()
        limits = live.info.resources
        memory = limits.memory_bytes + (SENTRY_MEMORY_BYTES if boundary == "gvisor" else 0)
        pids = limits.pids * (6 if boundary == "gvisor" else 1) + 200
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.raw_worker",
            RUNTIMES[boundary],
            str(state.shim_pid),
            str(live.directory),
            str(memory),
            str(pids),
            str(limits.cpus),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return cls(donor, process)

    async def run(self, count: int = 1) -> dict[str, Any]:
        """``count`` runs at once; seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"count": count}).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return answer

    async def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()
        await self._donor.kill()
