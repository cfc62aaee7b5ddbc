from __future__ import annotations

import pytest

from fourwalls.model.errors import InvalidArgumentError
from fourwalls.model.script import inline_command, interpreter_of


@pytest.mark.parametrize(
    ("name", "beginning", "language", "words"),
    [
        ("a.py", b"", None, [b"python3"]),
        ("a.PY", b"", None, [b"python3"]),
        ("a.mjs", b"", None, [b"node"]),
        ("a.sh", b"", None, [b"sh"]),
        ("a.sh", b"#!/bin/bash -eu\n", None, [b"/bin/bash", b"-eu"]),
        ("tool", b"#! /usr/bin/env -S a  b \nx", None, [b"/usr/bin/env", b"-S a  b"]),
        ("tool", b"#!/bin/sh", None, [b"/bin/sh"]),
        ("tool", b"", "node", [b"node"]),
        ("a.py", b"#!/bin/sh\n", "bash", [b"bash"]),
        ("a.py", b"#!\n", None, [b"python3"]),
    ],
)
def test_interpreters(
    name: str, beginning: bytes, language: str | None, words: list[bytes]
) -> None:
    assert interpreter_of(name, beginning, language) == words


def test_nobody_knows_how_to_run_it() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'a\.txt'.*\.py") as caught:
        interpreter_of("a.txt", b"hello", None)
    assert "--language" in (caught.value.remedy or "")
    with pytest.raises(InvalidArgumentError, match="one of python, node, bash, sh"):
        interpreter_of("a", b"", "perl")


def test_inline() -> None:
    assert inline_command("1", "node") == [b"node", b"-e", b"1"]
