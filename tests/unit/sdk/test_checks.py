"""What callers pass in is refused before anything is sent, with the limit and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.sdk import checks, paths


@pytest.mark.parametrize(
    ("check", "value", "says"),
    [
        (checks.shell_command, "", "empty"),
        (checks.shell_command, "  \n", "empty"),
        (checks.shell_command, "echo \0", "NUL"),
        (checks.shell_command, "\ud800", "no text"),
        (checks.argv, [], "empty"),
        (checks.argv, [""], "empty"),
        (checks.argv, ["a", "b\0"], "NUL"),
        (checks.argv, ["a", 1], "must be a string, not int"),
        (checks.argv, 5, "a string or a list"),
        (checks.argv, {"a": "b"}, "a string or a list"),
        (checks.environment, {"": "x"}, "not allowed"),
        (checks.environment, {"A=B": "x"}, "not allowed"),
        (checks.environment, {"A\0": "x"}, "not allowed"),
        (checks.environment, {5: "x"}, "not allowed"),
        (checks.environment, {"\udcff": "x"}, "not UTF-8"),
        (checks.environment, {"A": "x\0"}, "NUL"),
        (checks.environment, {"A": 1}, "must be a string"),
        (checks.environment, [("A", "b")], "must map"),
        (checks.timeout, -1, "between 0"),
        (checks.timeout, math.nan, "between 0"),
        (checks.timeout, math.inf, "between 0"),
        (checks.timeout, 1e12, "between 0"),
        (checks.timeout, "5", "number of seconds"),
        (checks.timeout, True, "number of seconds"),
        (checks.user, "", "printable"),
        (checks.user, "a\nb", "printable"),
        (checks.user, "u" * 257, "printable"),
        (checks.user, 0, "must be a string"),
        (checks.pid, 0, "between"),
        (checks.pid, 2**31, "between"),
        (checks.pid, 1.0, "whole number"),
        (checks.pid, True, "whole number"),
        (checks.port, 65536, "between"),
        (checks.payload, None, "str or bytes"),
        (paths.check_path, "", "empty"),
        (paths.check_path, "a\0b", "NUL"),
        (paths.check_path, "n" * 5000, "5000 bytes: at most 4095"),
        (paths.check_path, "/tmp/" + "n" * 256, "256 bytes: at most 255"),
        (paths.check_path, "\ud83d", "no text"),
        (paths.check_path, 7, "must be a string"),
        (paths.check_path, None, "must be a string"),
    ],
)
def test_refused(check: Callable[[object], object], value: object, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says) as caught:
        check(value)
    assert len(str(caught.value)) < 300


def test_timeouts() -> None:
    assert checks.timeout(None) == checks.timeout(0) == 0.0
    assert checks.timeout(2) == 2.0
    # What would round to 0 milliseconds must not become "no limit".
    assert checks.timeout(1e-9) == 0.001
    assert checks.request_timeout(None) == 60.0
    assert checks.request_timeout(0) is None


def test_sizes_of_commands_name_the_remedy() -> None:
    checks.command_size([b"x" * checks.MAX_STRING], {"A": b"x" * (checks.MAX_STRING - 2)})
    for argv, envs in (
        ([b"x" * (checks.MAX_STRING + 1)], {}),
        ([b"x"], {"A": b"x" * (checks.MAX_STRING - 1)}),
        ([b"x" * 100_000] * 22, {}),
    ):
        with pytest.raises(InvalidArgumentError, match="at most") as caught:
            checks.command_size(argv, envs)
        assert "write it to a file first" in str(caught.value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", b"/"),
        ("//etc///passwd/", b"/etc/passwd"),
        ("/a/./b/../c", b"/a/b/../c"),
        ("notes.txt", b"/home/u/notes.txt"),
        ("~", b"/home/u"),
        ("~/x", b"/home/u/x"),
        ("./x", b"/home/u/x"),
        ("\udcff\udcfe", b"/home/u/\xff\xfe"),
        (b"/raw\xff", b"/raw\xff"),
    ],
)
def test_absolute(path: str | bytes, expected: bytes) -> None:
    assert paths.absolute(paths.check_path(path), b"/home/u") == expected


def test_whose_home() -> None:
    assert paths.needs_home(b"/x") is None
    assert paths.needs_home(b"x/~") == b""
    assert paths.needs_home(b"~") == b""
    assert paths.needs_home(b"~root/x") == b"root"


@given(st.binary(max_size=200), st.binary(max_size=10))
def test_passwd_is_untrusted(passwd: bytes, user: bytes) -> None:
    home = paths.home_in_passwd(passwd, user)
    assert home is None or home.startswith(b"/")


def test_home_in_passwd() -> None:
    passwd = b"root:x:0:0::/root:\nodd\nuser:x:1000:1000::/home/user:/bin/bash\nbad:x:1:1::rel:\n"
    assert paths.home_in_passwd(passwd, b"user") == b"/home/user"
    assert paths.home_in_passwd(passwd, b"1000") == b"/home/user"
    assert paths.home_in_passwd(passwd, b"bad") is None
    assert paths.home_in_passwd(passwd, b"nobody") is None


@given(st.binary(min_size=1, max_size=100).filter(lambda raw: b"\0" not in raw))
def test_names_go_there_and_back(raw: bytes) -> None:
    assert checks.text_bytes(paths.to_text(raw), "name") == raw
