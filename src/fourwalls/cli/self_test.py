"""``fourwalls doctor --self-test``: a real sandbox behind each boundary, within a time limit."""

from __future__ import annotations

import asyncio
import time

from fourwalls.cli.loop import run
from fourwalls.host.doctor import Check, Status
from fourwalls.host.offers import offers
from fourwalls.model.boundary import Boundary
from fourwalls.model.errors import FourwallsError
from fourwalls.sdk import AsyncSandbox

_LIMIT_S = 60.0
_WORD = "fourwalls"


def self_test() -> list[Check]:
    """One check for each boundary this host offers."""
    return run(_all())


async def _all() -> list[Check]:
    return [await _try(offer.boundary) for offer in offers().all if offer.available]


async def _try(boundary: Boundary) -> Check:
    name = f"self-test {boundary.value}"
    began = time.monotonic()
    remedy = f"fourwalls run --boundary {boundary.value} -- uname -a"
    try:
        async with asyncio.timeout(_LIMIT_S):
            async with await AsyncSandbox.create(boundary=boundary.value) as sandbox:
                started = time.monotonic() - began
                await sandbox.files.write("/tmp/word", _WORD)
                done = await sandbox.commands.run("cat /tmp/word && uname -r")
    except TimeoutError:
        return Check(name, Status.MISSING, f"no answer within {_LIMIT_S:g} s", remedy)
    except FourwallsError as error:
        return Check(name, Status.MISSING, error.message, error.remedy or remedy)
    if not done.stdout.startswith(_WORD):
        return Check(name, Status.MISSING, f"it answered {done.stdout[:60]!r}", remedy)
    kernel = done.stdout.removeprefix(_WORD).strip()
    total = time.monotonic() - began
    words = f"started in {started * 1000:.0f} ms, {total * 1000:.0f} ms in all, kernel {kernel}"
    return Check(name, Status.OK, words)
