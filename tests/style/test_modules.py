"""The house rules for source files, as far as a machine can hold to them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "fourwalls"
MODULES = sorted(path for path in SOURCES.rglob("*.py") if SOURCES / "_bin" not in path.parents)
RUST = sorted(path for path in (ROOT / "agent").glob("*/src/**/*.rs"))
LONGEST = 400
# They say that something is used, not what it is.
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "core", "misc", "tools"}


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":", "?"))


def test_none_is_too_long() -> None:
    lengths = {shown(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.parametrize("files", [MODULES, RUST], ids=["python", "rust"])
def test_names_say_what_is_inside(files: list[Path]) -> None:
    parts = {part for path in files for part in path.relative_to(ROOT).with_suffix("").parts}
    assert parts & NAMES_THAT_SAY_NOTHING == set()


def test_no_module_imports_at_random() -> None:
    """``from x import *`` and imports of test code are nowhere."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert "*" not in [alias.name for alias in node.names], shown(path)
                assert not (node.module or "").startswith("tests"), shown(path)
