"""SIGKILL at random moments: after one pass of the reaper nothing of ours is left on the host."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fourwalls.boundaries import registry
from fourwalls.host.reaper import keeps_a_record, reap
from fourwalls.linux.places import Places
from tests.leaks import Inventory

ROUNDS = 50


def usable_boundaries() -> str:
    return ",".join(
        boundary.value
        for boundary in registry.known()
        if registry.driver(boundary).probe().available
    )


@contextmanager
def worker(mode: str) -> Iterator[subprocess.Popen[str]]:
    """A program with sandboxes in every stage of life."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.worker", mode, usable_boundaries()],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def shims(places: Places) -> list[int]:
    """Pids of the shims that hold a directory of this installation."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            if os.readlink(f"{entry.path}/fd/4").startswith(f"{places.sandboxes}/"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def one_pass_leaves_nothing(places: Places, before: Inventory) -> None:
    # An embedded sandbox ends by itself; what its end takes is not the reaper's business.
    deadline = time.monotonic() + 20
    while shims(places) and time.monotonic() < deadline:
        time.sleep(0.02)
    done = reap(places)
    assert not done.stuck
    for directory in places.sandboxes.iterdir():
        # How a detached sandbox ended is kept for an hour, when its program did not hear of it.
        if keeps_a_record(directory):
            shutil.rmtree(directory)
    left = Inventory.settle(places, before)
    assert not left, (left, done)


@pytest.mark.timeout(400)
def test_the_program_is_killed(places: Places) -> None:
    before = Inventory.take(places)
    chance = random.Random(20240729)
    for _ in range(ROUNDS):
        with worker("embedded") as process:
            time.sleep(chance.uniform(0, 0.6))
            process.send_signal(signal.SIGKILL)
            process.wait()
        one_pass_leaves_nothing(places, before)


@pytest.mark.timeout(400)
def test_the_shims_are_killed(places: Places) -> None:
    before = Inventory.take(places)
    chance = random.Random(1729)
    for _ in range(10):
        with worker("embedded") as process:
            for _ in range(5):
                time.sleep(chance.uniform(0, 0.3))
                for pid in shims(places):
                    os.kill(pid, signal.SIGKILL)
            process.send_signal(signal.SIGKILL)
        one_pass_leaves_nothing(places, before)


@pytest.mark.timeout(400)
def test_program_and_shims_are_killed_together(places: Places) -> None:
    before = Inventory.take(places)
    chance = random.Random(4)
    for _ in range(10):
        with worker("detach") as process:
            time.sleep(chance.uniform(0, 0.6))
            process.send_signal(signal.SIGKILL)
            process.wait()
            kill_all_shims(places)
        one_pass_leaves_nothing(places, before)


def kill_all_shims(places: Places) -> None:
    """Kill until none has been there for a while: one may just be starting, on its own by now."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.3:
        for pid in shims(places):
            quiet_since = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
