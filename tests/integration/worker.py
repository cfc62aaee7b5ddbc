"""A program that makes, uses and ends sandboxes for ever, to be killed at any moment."""

from __future__ import annotations

import asyncio
import sys

from fourwalls import AsyncSandbox, SandboxGoneError


async def main(boundaries: list[str], detach: bool) -> None:
    # One round first, so that what is loaded late is loaded.
    number = 0
    while True:
        boundary = boundaries[number % len(boundaries)]
        try:
            sandbox = await AsyncSandbox.create(boundary=boundary, timeout=60, detach=detach)
            await sandbox.commands.run("echo out; sleep 0.01")
            await sandbox.files.write("/tmp/x", b"y" * 100_000)
            await sandbox.kill()
        except SandboxGoneError:
            pass  # its shim was the victim this time
        if number == 0:
            print("ready", flush=True)
        number += 1


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2].split(","), sys.argv[1] == "detach"))
