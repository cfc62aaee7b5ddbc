"""``run`` on every boundary of this host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fourwalls.model.boundary import Boundary

from .conftest import FOURWALLS, Run


def test_ways_to_run(boundary: Boundary, fourwalls: Run, tmp_path: Path) -> None:
    where = ["run", "-b", boundary.value]
    (tmp_path / "tool").write_text("#!/bin/sh -e\necho $0 $1; cat; exit 5\n")
    done = fourwalls(*where, "tool", "--json", stdin=b"in\xff\n")
    assert (done.returncode, done.stdout) == (5, b"/home/user/tool --json\nin\xff\n")
    done = fourwalls(*where, "-c", "import sys; print(6 * 7, sys.argv[1:])", "a", "b")
    assert (done.returncode, done.stdout) == (0, b"42 ['a', 'b']\n")
    done = fourwalls(*where, "-l", "node", stdin=b"console.log(process.argv.length)")
    assert (done.returncode, done.stdout) == (0, b"2\n")
    done = fourwalls(*where, "-e", "A=1", "-w", "/tmp", "-u", "root", "--", "sh", "-c",
                     "echo $A $PWD $(id -u); echo bad >&2; exit 3")  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (3, b"1 /tmp 0\n", b"bad\n")


@pytest.mark.parametrize(
    ("command", "code"),
    [(["no-such-program"], 127), (["/etc/passwd"], 126), (["sh", "-c", "kill -9 $$"], 137)],
)
def test_exit_codes(boundary: Boundary, command: list[str], code: int, fourwalls: Run) -> None:
    assert fourwalls("run", "-b", boundary.value, "--", *command).returncode == code


def test_the_time_is_over(boundary: Boundary, fourwalls: Run) -> None:
    done = fourwalls("run", "-b", boundary.value, "--timeout", "0.5", "--", "sleep", "60")
    assert (done.returncode, done.stdout) == (124, b"")
    assert b"its time was over" in done.stderr


def test_json(boundary: Boundary, fourwalls: Run, tmp_path: Path) -> None:
    done = fourwalls("run", "-b", boundary.value, "--json", "-o", "/tmp/out", "--", "sh", "-c",
                     "echo a >/tmp/out; echo b; echo c >&2; exit 2")  # fmt: skip
    assert (done.returncode, done.stderr) == (2, b"")
    answer = json.loads(done.stdout)
    assert sorted(answer) == [
        "boundary", "cause", "exit_code", "files", "notes", "reason", "sandbox_id", "signal",
        "stderr", "stderr_dropped", "stdout", "stdout_dropped", "template", "timings",
    ]  # fmt: skip
    assert (answer["stdout"], answer["stderr"], answer["exit_code"]) == ("b\n", "c\n", 2)
    assert (answer["cause"], answer["signal"]) == ("exited", None)
    assert (answer["boundary"], answer["reason"]) == (boundary.value, "asked for")
    assert answer["files"] == [
        {"path": "/tmp/out", "destination": "out", "files": 1, "bytes": 2}
    ]  # fmt: skip
    times = answer["timings"]
    assert 0 < times["first_output_ms"] <= times["run_ms"] < times["total_ms"]
    assert (tmp_path / "out").read_text() == "a\n"


def test_files_in_and_out(boundary: Boundary, fourwalls: Run, tmp_path: Path) -> None:
    (tmp_path / "d/sub").mkdir(parents=True)
    (tmp_path / "d/sub/a").write_bytes(b"\0\xff")
    (tmp_path / "d/link").symlink_to("/etc/passwd")
    done = fourwalls("run", "-b", boundary.value, "-f", "d", "-f", "d/sub/a:/tmp/", "-o", "d:back",
                     "-o", "/tmp/a", "--", "sh", "-c", "ln -s /etc/shadow d/evil; mkfifo d/pipe;"
                     "chmod 4755 d/sub/a; stat -c %U d d/sub/a /tmp/a")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"user\n" * 3)
    assert (tmp_path / "back/sub/a").read_bytes() == b"\0\xff"
    assert (tmp_path / "back/sub/a").stat().st_mode & 0o7000 == 0
    assert (tmp_path / "a").read_bytes() == b"\0\xff"
    assert sorted(os.listdir(tmp_path / "back")) == ["sub"]
    for left_out in (b"d/link: a symlink", b"d/evil: symlink", b"d/pipe: fifo"):
        assert left_out in done.stderr


def test_what_cannot_be_copied_out(boundary: Boundary, fourwalls: Run, tmp_path: Path) -> None:
    where = ["run", "-b", boundary.value, "-o", "/tmp/x"]
    assert fourwalls(*where, "--", "true").returncode == 125
    assert fourwalls(*where, "--", "false").returncode == 1
    done = fourwalls(*where, "--", "ln", "-s", "/etc/passwd", "/tmp/x")
    assert (done.returncode, b"is a symlink" in done.stderr) == (125, True)
    done = fourwalls(*where, "--", "truncate", "-s", "100G", "/tmp/x")
    assert (done.returncode, b"holds no more" in done.stderr) == (125, True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped(boundary: Boundary, number: signal.Signals) -> None:
    # That nothing is left is checked after every test.
    process = subprocess.Popen(
        [*FOURWALLS, "run", "-b", boundary.value, "--", "sh", "-c", "echo up; exec sleep 60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        assert process.wait(timeout=20) == 128 + number


def test_the_reader_leaves(boundary: Boundary) -> None:
    process = subprocess.Popen(
        [*FOURWALLS, "run", "-b", boundary.value, "--", "yes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line == b"y\n", process.stderr.read()
        process.stdout.close()
        assert process.wait(timeout=20) == 141
        assert process.stderr.read() == b""


def test_kept_sandboxes(boundary: Boundary, fourwalls: Run) -> None:
    kept = fourwalls("run", "-b", boundary.value, "--keep", "60", "--json", "--", "touch", "/tmp/x")
    name = json.loads(kept.stdout)["sandbox_id"]
    assert name in fourwalls("list", "-q").stdout.decode().split()
    assert fourwalls("exec", name, "--", "ls", "/tmp/x").stdout == b"/tmp/x\n"
    assert fourwalls("exec", name, "--", "sh", "-c", "exit 9").returncode == 9
    assert fourwalls("kill", name).returncode == 0
    assert fourwalls("exec", name, "--", "true").returncode == 125


def test_killed_from_outside(boundary: Boundary, fourwalls: Run) -> None:
    with subprocess.Popen(
        [*FOURWALLS, "run", "-b", boundary.value, "--", "sh", "-c", "echo up; exec sleep 60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        (name,) = fourwalls("list", "-q").stdout.decode().split()
        assert fourwalls("kill", name).returncode == 0
        assert process.wait(timeout=20) == 137
        assert b"killed from outside" in process.stderr.read()


def test_out_of_memory(boundary: Boundary, fourwalls: Run) -> None:
    code = "held = [bytearray(2**20) for _ in range(1000)]"
    done = fourwalls("run", "-b", boundary.value, "--memory", "192", "--json", "-c", code)
    answer = json.loads(done.stdout)
    assert answer["cause"] == "oom"
    assert answer["exit_code"] == done.returncode != 0


def test_slow_input_is_not_waited_for(boundary: Boundary) -> None:
    began = time.monotonic()
    with subprocess.Popen(
        [*FOURWALLS, "run", "-b", boundary.value, "--", "true"], stdin=subprocess.PIPE
    ) as process:
        assert process.wait(timeout=30) == 0
    assert time.monotonic() - began < 30
