"""What the package promises about itself: names, imports, versions."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fourwalls
import fourwalls.sdk
from fourwalls.boundaries import registry
from fourwalls.model.errors import all_errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", fourwalls.__all__)
def test_everything_promised_can_be_imported(name: str) -> None:
    assert getattr(fourwalls, name) is not None


def test_nothing_else_is_promised() -> None:
    assert fourwalls.__all__ == sorted(set(fourwalls.__all__))
    assert dir(fourwalls) == fourwalls.__all__
    for name in ("Boundary", "Places", "nonsense"):
        with pytest.raises(AttributeError, match=name):
            getattr(fourwalls, name)


def test_the_sdk_promises_what_it_has() -> None:
    public = {name for name, value in vars(fourwalls.sdk).items() if isinstance(value, type)}
    assert set(fourwalls.sdk.__all__) == public


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has loaded of ours and of others after a statement."""
    program = (
        f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/"
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_but_itself() -> None:
    assert modules_after("import fourwalls") - {"__future__"} == {"fourwalls"}


def test_an_error_class_loads_no_sdk() -> None:
    loaded = modules_after("from fourwalls import SandboxGoneError")
    ours = {name for name in loaded if name.startswith("fourwalls")}
    assert ours == {"fourwalls", "fourwalls.model", "fourwalls.model.errors"}


def test_the_sdk_loads_no_driver_and_no_command_line() -> None:
    loaded = modules_after("from fourwalls import Sandbox")
    for name in ("click", "rich", "fourwalls.cli", "fourwalls.images.build"):
        assert name not in loaded, name
    for name in ("container", "gvisor"):
        assert f"fourwalls.boundaries.{name}.driver" not in loaded


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: str(error.code))
def test_every_error_code_is_documented(error: type[fourwalls.FourwallsError]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \| (.+) \|$", TABLE, re.MULTILINE)
    (row,) = [row for row in rows if row[0] == error.code]
    assert row[1] == error.__name__
    assert row[2]
    assert row[3]


TABLE = (DOCS / "errors.md").read_text()


def test_no_error_is_documented_that_does_not_exist() -> None:
    codes = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", TABLE, re.MULTILINE)
    assert sorted(codes) == sorted((error.code, error.__name__) for error in all_errors())


@pytest.mark.parametrize("name", [one.value for one in registry.known()])
def test_every_boundary_is_documented(name: str) -> None:
    page = (DOCS / "boundaries" / f"{name}.md").read_text()
    assert page.startswith(f"# `{name}`\n")
    assert "**Use it**" in page
    assert f"## `{name}`" in (DOCS / "threat-model.md").read_text()


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    workspace = tomllib.loads((ROOT / "agent" / "Cargo.toml").read_text())
    agent = workspace["workspace"]["package"]["version"]
    for crate in ("agent", "protocol", "shim"):
        manifest = tomllib.loads((ROOT / "agent" / crate / "Cargo.toml").read_text())
        assert manifest["package"]["version"] == {"workspace": True}
    assert (project, agent) == (fourwalls.__version__, fourwalls.__version__)


def test_the_changelog_knows_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[({re.escape(fourwalls.__version__)}|Unreleased)\]", text, re.M)
