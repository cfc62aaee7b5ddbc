"""A sandbox of each boundary for the contract tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from fourwalls import AsyncSandbox
from fourwalls.model.boundary import Boundary


@pytest_asyncio.fixture
async def sandbox(boundary: Boundary) -> AsyncIterator[AsyncSandbox]:
    """A small sandbox behind ``boundary``; gone after the test."""
    made = await AsyncSandbox.create(boundary=boundary.value, timeout=120)
    try:
        yield made
    finally:
        await made.kill()
