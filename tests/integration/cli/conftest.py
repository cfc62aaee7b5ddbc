"""The command line as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOURWALLS = [sys.executable, "-m", "fourwalls.cli"]

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def fourwalls(tmp_path: Path) -> Run:
    """Run it in ``tmp_path`` with the arguments, and wait."""

    def call(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [*FOURWALLS, *arguments], capture_output=True, cwd=tmp_path, timeout=100, **given
        )

    return call
