"""Standard streams that are closed or full, and a state directory that does not serve."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_US = [sys.executable, "-m", "fourwalls.cli"]


def _shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line, "sh", *_US],
        env={**os.environ, "PYTHONUNBUFFERED": "", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("verb", ["version", "--version", "version --json", "boundaries", "--help"])
def test_a_full_disk_behind_our_output_is_told(verb: str) -> None:
    ran = _shell(f'"$@" {verb} >/dev/full')
    assert ran.returncode == 125, ran.stderr
    assert "No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "internal" not in ran.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_nowhere(closed: str) -> None:
    ran = _shell(f'"$@" boundaries {closed}')
    assert (ran.returncode, ran.stderr) == (0, "")


def test_errors_nobody_can_read_keep_their_code() -> None:
    assert _shell('"$@" run -b isolate -c 1 2>/dev/full').returncode == 125


def test_a_state_directory_that_is_none_is_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = _shell('"$@" template show base', FOURWALLS_STATE=str(tmp_path / "file"))
    assert ran.returncode == 125
    assert "Not a directory" in ran.stderr
    assert "FOURWALLS_STATE" in ran.stderr
    assert "internal" not in ran.stderr


def test_an_interrupt_at_any_time_shows_no_traceback() -> None:
    # The interpreter's own start, before the first line of ours, is not in our hands.
    waiting = (
        "import time, sys; sys.meta_path.insert(0, type('Slow', (), {'find_spec': staticmethod("
    )
    waiting += "lambda name, *rest: print(name, flush=True) or time.sleep(30)"
    waiting += " if name == 'fourwalls.cli.entry' else None)})()); import fourwalls.cli as us;"
    process = subprocess.Popen(
        [sys.executable, "-c", waiting + "sys.exit(us.main())", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "interrupted\n")
