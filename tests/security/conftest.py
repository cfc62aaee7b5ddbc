"""A sandbox of each boundary, and programs of this folder that run inside it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fourwalls import AsyncSandbox
from fourwalls.model.boundary import Boundary

HERE = Path(__file__).parent

Inside = Callable[..., Awaitable[Any]]


@pytest_asyncio.fixture
async def sandbox(boundary: Boundary) -> AsyncIterator[AsyncSandbox]:
    """A small sandbox behind ``boundary``; gone after the test."""
    made = await AsyncSandbox.create(boundary=boundary.value, timeout=120)
    try:
        yield made
    finally:
        await made.kill()


@pytest.fixture
def inside(sandbox: AsyncSandbox) -> Inside:
    """Run ``<program>.py`` of this folder inside the sandbox: the JSON it prints."""

    async def run(program: str, *arguments: str, user: str = "user") -> Any:
        name = f"/tmp/{program}.py"
        if not await sandbox.files.exists(name):
            await sandbox.files.write(name, (HERE / f"{program}.py").read_bytes())
        done = await sandbox.commands.run(["python3", "-I", "-S", name, *arguments], user=user)
        return json.loads(done.stdout)

    return run
