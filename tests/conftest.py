"""What all tests share: an installation of their own, the boundaries of this host, no leaks."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fourwalls.boundaries import registry
from fourwalls.linux.cgroup import host_layout
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary

from .leaks import Inventory

# Directories whose tests start sandboxes.
_WITH_SANDBOXES = ("contract", "integration", "security", "e2b")


@pytest.fixture(scope="session")
def run_directory() -> Iterator[Path]:
    """A run directory of this test run, so that it meets no other installation."""
    path = Path(f"/run/fourwalls-test-{os.getpid()}")
    path.mkdir(mode=0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _installation(run_directory: Path) -> Iterator[None]:
    """Templates come from the installed state; sandboxes live in the run directory."""
    previous = os.environ.get("FOURWALLS_RUN")
    os.environ["FOURWALLS_RUN"] = str(run_directory)
    yield
    from fourwalls.images.mounts import unmount_idle

    own = Places.from_environment()
    unmount_idle(own, set())
    for root in set(host_layout().roots.values()):
        with contextlib.suppress(OSError):
            os.rmdir(f"{root}/fourwalls/{own.instance}")
    if previous is None:
        del os.environ["FOURWALLS_RUN"]
    else:
        os.environ["FOURWALLS_RUN"] = previous


@pytest.fixture(scope="session")
def places(_installation: None) -> Places:
    return Places.from_environment()


@pytest.fixture(autouse=True)
def _nothing_leaks(request: pytest.FixtureRequest, places: Places) -> Iterator[None]:
    """After every test that may start sandboxes nothing of them remains."""
    parts = Path(str(request.fspath)).relative_to(Path(__file__).parent).parts
    if parts[0] not in _WITH_SANDBOXES:
        yield
        return
    before = Inventory.take(places)
    yield
    left = Inventory.settle(places, before)
    assert not left, "left behind: " + "; ".join(left)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``boundary`` runs once for every boundary of this version."""
    if "boundary" in metafunc.fixturenames:
        metafunc.parametrize("boundary", [b.value for b in registry.known()], indirect=True)


@pytest.fixture
def boundary(request: pytest.FixtureRequest) -> Boundary:
    """One boundary; skipped with the host's reason where the host cannot run it."""
    chosen = Boundary(request.param)
    probe = registry.driver(chosen).probe()
    if not probe.available:
        reasons = "; ".join(f"{m.what} ({m.remedy})" for m in probe.missing)
        pytest.skip(f"{chosen.value} cannot run on this host: {reasons}")
    return chosen
