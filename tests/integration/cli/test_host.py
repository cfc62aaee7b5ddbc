"""The verbs about this host."""

from __future__ import annotations

import json
import subprocess

import pytest

from .conftest import FOURWALLS, Run


def test_boundaries(fourwalls: Run) -> None:
    found = json.loads(fourwalls("boundaries", "--json").stdout)
    names = [offer["name"] for offer in found["boundaries"]]
    assert names == ["isolate", "container", "gvisor", "microvm"]
    assert [offer["in_this_version"] for offer in found["boundaries"]] == [False, True, True, False]
    for offer in found["boundaries"]:
        assert offer["available"] == (offer["in_this_version"] and not offer["missing"])
    text = fourwalls("boundaries").stdout.decode()
    assert all(name in text for name in names)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines()[:8])) <= 100


def test_doctor(fourwalls: Run) -> None:
    done = fourwalls("doctor", "--json", "--clean", "--self-test")
    found = json.loads(done.stdout)
    missing = [check for check in found["checks"] if check["status"] == "missing"]
    assert done.returncode == bool(missing)
    assert found["ready"] is (not missing)
    assert all(check["remedy"] for check in missing)
    assert found["cleaned"]["stuck"] == []


def test_setup_is_done(fourwalls: Run) -> None:
    done = fourwalls("setup", "--check")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"Everything is there.\n"


def test_demo(fourwalls: Run) -> None:
    done = fourwalls("demo", "--json")
    assert done.returncode == 0
    trials = json.loads(done.stdout)["boundaries"]
    assert any(trial["ran"] for trial in trials)
    for trial in trials:
        if not trial["ran"]:
            assert trial["failure"]
            continue
        assert trial["result"] == 17984
        assert trial["kernel"]
        assert len(trial["attempts"]) == 20
        assert [a for a in trial["attempts"] if a["verdict"] == "let_through"] == []


def test_templates(fourwalls: Run) -> None:
    listed = json.loads(fourwalls("template", "list", "--json").stdout)
    assert "base" in [name for stored in listed for name in stored["names"]]
    shown = json.loads(fourwalls("template", "show", "base", "--json").stdout)
    assert shown["digest"] in [stored["digest"] for stored in listed]


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["kill", "--all"], ["exec", "a" * 20, "--", "true"], ["doctor", "--clean"],
     ["run", "--", "true"], ["setup"]],
)  # fmt: skip
def test_not_root(arguments: list[str]) -> None:
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, *FOURWALLS, "version"], capture_output=True).returncode != 0:
        pytest.skip("this checkout is for root's eyes only")
    done = subprocess.run(
        [*nobody, *FOURWALLS, *arguments],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (125, b"")
    assert b"root" in done.stderr
    assert b"internal error" not in done.stderr
