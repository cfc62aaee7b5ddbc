"""Running the command line inside the test's process."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fourwalls.cli import output
from fourwalls.cli.entry import run_command_line


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Call it with the arguments of ``fourwalls``."""

    def call(*arguments: str, stdin: str = "") -> Ran:
        monkeypatch.setitem(output._state, "json_errors", False)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = run_command_line(list(arguments))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def no_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """An installation with nothing in it."""
    monkeypatch.setenv("FOURWALLS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("FOURWALLS_RUN", str(tmp_path / "run"))
