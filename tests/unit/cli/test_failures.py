"""What goes wrong: the code, the words, the JSON."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable

import pytest

from fourwalls.cli.exit_codes import exit_code_of, guest_exit_code
from fourwalls.model.errors import (
    BoundaryUnavailableError,
    CommandStartError,
    CommandTimeoutError,
    FourwallsError,
    InvalidArgumentError,
    SandboxStartError,
    TemplateNotFoundError,
)

from .conftest import Ran


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FourwallsError("x"), 125),
        (BoundaryUnavailableError("x"), 125),
        (TemplateNotFoundError("x"), 125),
        (SandboxStartError("x"), 125),
        (InvalidArgumentError("x"), 2),
        (CommandTimeoutError("x"), 124),
        (CommandStartError("x", stage="exec", errno=errno.ENOENT), 127),
        (CommandStartError("x", stage="exec", errno=errno.EACCES), 126),
        (CommandStartError("x", stage="cwd", errno=errno.ENOENT), 125),
        (CommandStartError("x", stage="user"), 125),
    ],
)
def test_exit_codes(error: FourwallsError, code: int) -> None:
    assert exit_code_of(error) == code


def test_a_signal_is_told_like_a_shell_does() -> None:
    assert guest_exit_code(-1, 9) == 137
    assert guest_exit_code(3, None) == 3


def test_no_verb_shows_help(cli: Callable[..., Ran]) -> None:
    ran = cli()
    assert (ran.code, ran.out) == (2, "")
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], "unknown command 'frobnicate': one of run, shell,"),
        (["template", "frob"], "one of build, list, show, rm, import"),
        (["run", "--size", "huge", "--", "true"], "'small', 'medium', 'large', 'xlarge'"),
        (["run", "--boundary", "wood", "--", "true"], "'auto', 'isolate', 'container'"),
        (["run", "--memory", "lots", "--", "true"], "a number of MiB, or like 512M or 2G"),
        (["run", "--memory", "1", "--", "true"], "must be between 64 and"),
        (["run", "--cpus", "nan", "--", "true"], "cpus must be between 0.05 and 512"),
        (["run", "--pids", "2", "--", "true"], "pids must be between 32 and"),
        (["run", "--timeout", "0", "--", "true"], "timeout must be more than 0"),
        (["run", "--timeout", "inf", "--", "true"], "timeout must be more than 0"),
        (["run", "-e", "NO_SUCH_VARIABLE_HERE", "--", "true"], "write NAME=VALUE"),
        (["run", "--file", "/no/such/file", "--", "true"], "/no/such/file does not exist"),
        (["run", "--out", "/x:/no/such/dir/x", "--", "true"], "/no/such/dir does not exist"),
        (["run", "/no/such/script.py"], "put -- before it"),
        (["run", "--"], "no command stands behind --"),
        (["run", "-c", "1", "--", "true"], "takes neither --code"),
        (["run"], "nothing to run"),
        (["kill"], "give either ids or --all"),
        (["kill", "../../etc"], "not a sandbox id"),
        (["shell"], "needs a terminal"),
        (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
        (["template", "show", "No Name"], "not allowed"),
    ],
)
@pytest.mark.usefixtures("no_host")
def test_the_command_line_is_wrong(
    arguments: list[str], words: str, cli: Callable[..., Ran]
) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (["run", "--json", "--boundary", "wood", "--", "true"], 2, "usage"),
        (["run", "--no-such-option", "--json"], 2, "usage"),
        (["run", "--json", "--memory", "1", "--", "true"], 2, "invalid_argument"),
        (["run", "--json", "-b", "microvm", "--", "true"], 125, "boundary_unavailable"),
        (["template", "show", "--json", "nothing"], 125, "template_not_found"),
        (["exec", "--json", "a" * 20, "--", "true"], 125, "sandbox_not_found"),
    ],
)
@pytest.mark.usefixtures("no_host")
def test_failures_as_json(
    arguments: list[str], code: int, name: str, cli: Callable[..., Ran]
) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.err) == (code, "")
    document = json.loads(ran.out)
    assert list(document) == ["error"]
    assert sorted(document["error"]) == ["code", "message", "remedy"]
    assert document["error"]["code"] == name


def test_a_name_that_is_no_text_is_told_all_the_same(cli: Callable[..., Ran]) -> None:
    ran = cli("run", "/no/such\udcff\x1b[2J.py")
    assert (ran.code, ran.out) == (2, "")
    assert "\x1b" not in ran.err
    assert "put -- before it" in ran.err
    ran = cli("run", "--json", "/no/such\udcff.py")
    assert json.loads(ran.out)["error"]["code"] == "invalid_argument"
    ran.out.encode()


def test_what_others_said_moves_no_cursor(
    cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise SandboxStartError("the runtime said:\n\x1b]0;title\x07\x1b[31m", remedy="\x1b[2J")

    monkeypatch.setattr("fourwalls.host.offers.offers", fail)
    ran = cli("boundaries")
    assert ran.code == 125
    assert ran.err.startswith("error: the runtime said:\n")
    assert "\x1b" not in ran.err
    assert "\x07" not in ran.err


def test_json_of_the_program_is_not_ours(cli: Callable[..., Ran]) -> None:
    ran = cli("run", "--boundary", "wood", "--", "program", "--json")
    assert (ran.code, ran.out) == (2, "")


def test_an_internal_error_is_told_in_one_line(
    cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("nobody expected this")

    monkeypatch.setattr("fourwalls.host.offers.offers", fail)
    ran = cli("boundaries")
    assert (ran.code, ran.out) == (125, "")
    assert ran.err.startswith("error: internal error: ZeroDivisionError: nobody expected this\n")
    assert "Traceback" not in ran.err
    monkeypatch.setenv("FOURWALLS_DEBUG", "1")
    assert "Traceback" in cli("boundaries").err


def test_interrupted(cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fourwalls.host.offers.offers", interrupt)
    assert cli("boundaries").code == 130
