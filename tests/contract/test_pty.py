"""Terminals."""

from __future__ import annotations

import asyncio

from fourwalls import AsyncSandbox, PtySize


async def test_a_shell_on_a_terminal(sandbox: AsyncSandbox) -> None:
    seen = bytearray()
    handle = await sandbox.pty.create(PtySize(cols=80, rows=24), on_data=seen.extend)

    async def until(text: bytes) -> None:
        async with asyncio.timeout(40):
            while text not in seen:
                await asyncio.sleep(0.02)

    await sandbox.pty.send_stdin(handle.pid, b"stty size; tty; echo $TERM; locale charmap\n")
    await until(b"UTF-8")
    assert b"24 80" in seen
    assert b"/dev/pts/" in seen
    assert b"xterm-256color" in seen
    await sandbox.pty.resize(handle.pid, PtySize(cols=120, rows=40))
    await sandbox.pty.send_stdin(handle.pid, b"stty size\n")
    await until(b"40 120")
    await sandbox.pty.send_stdin(handle.pid, b"echo begin''ning; sleep 100\n")
    await until(b"beginning")
    # Before the program has the terminal, the shell would get the interrupt instead.
    await asyncio.sleep(1)
    await sandbox.pty.send_stdin(handle.pid, b"\x03")
    await sandbox.pty.send_stdin(handle.pid, b"echo inter''rupted\n")
    await until(b"interrupted")
    assert await sandbox.pty.kill(handle.pid)
