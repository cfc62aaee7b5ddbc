"""The table of verbs, what each costs to import, and that the documentation knows them all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from fourwalls.cli import template
from fourwalls.cli.entry import root
from fourwalls.cli.verbs import VERBS

from .conftest import Ran

_DOCUMENT = Path(__file__).parents[3] / "docs" / "cli.md"


def _commands() -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(root)
    for name in VERBS:
        command = root.get_command(ctx, name)
        assert command is not None
        yield name, command
    for name in template.VERBS:
        command = template.template.get_command(ctx, name)
        assert command is not None
        yield f"template {name}", command


@pytest.mark.parametrize("name", [*VERBS, *(f"template {verb}" for verb in template.VERBS)])
def test_every_verb_helps(name: str, cli: Callable[..., Ran]) -> None:
    ran = cli(*name.split(), "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: fourwalls {name}")
    assert ran.err == ""


def test_every_verb_and_option_is_documented() -> None:
    text = _DOCUMENT.read_text()
    missing = []
    for name, command in _commands():
        verb = name.split()[-1]
        if f"fourwalls {name}" not in text and f"`{name}" not in text and f"## {verb}" not in text:
            missing.append(name)
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                missing += [
                    f"{name} {option}"
                    for option in parameter.opts
                    if option.startswith("--") and option not in text
                ]
    assert not missing


def test_every_option_has_help() -> None:
    for name, command in _commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts}"


def test_short_help_is_the_verbs_own_or_shorter() -> None:
    for _, help_ in {**VERBS, **template.VERBS}.values():
        assert help_.endswith(".")
        assert len(help_) <= 60


def test_version_imports_next_to_nothing() -> None:
    code = (
        "import sys; from fourwalls.cli.entry import run_command_line as r; r(['version']);"
        "print([m for m in ('rich', 'asyncio', 'msgspec', 'json', 'subprocess',"
        " 'fourwalls.sdk', 'fourwalls.host') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"


def test_version_is_quick() -> None:
    def once() -> float:
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "fourwalls.cli", "version"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = os.times()
        return (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )

    # The time it computes, the best of a few: the machine may be busy, the program must not be.
    assert min(once() for _ in range(5)) < 0.15


def test_completion_knows_verbs_and_values() -> None:
    def complete(words: str, index: int) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "fourwalls.cli"],
            env={
                "PATH": "/usr/bin:/bin",
                "_FOURWALLS_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(index),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert complete("fourwalls bo", 1) == ["boundaries"]
    assert complete("fourwalls run --boundary ", 3) == [
        "auto", "isolate", "container", "gvisor", "microvm",
    ]  # fmt: skip
    assert "--min-boundary" in complete("fourwalls run --m", 2)
    assert complete("fourwalls template sh", 2) == ["show"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, cli: Callable[..., Ran]) -> None:
    ran = cli("completion", shell)
    assert ran.code == 0
    assert "_FOURWALLS_COMPLETE" in ran.out
