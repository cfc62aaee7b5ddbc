"""One real build of ``base``, by two builders at once, after one was killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fourwalls.images.build import build_recipe
from fourwalls.images.importing import import_directory
from fourwalls.images.manifest import Manifest
from fourwalls.images.mounts import mounted, unmount_idle
from fourwalls.images.names import TemplateName
from fourwalls.images.progress import Report
from fourwalls.images.recipe import Recipe, load_recipe
from fourwalls.images.store import TemplateStore
from fourwalls.images.workspace import sweep, workspace
from fourwalls.linux.mount import mounts_below
from fourwalls.linux.places import Places
from fourwalls.model.errors import TemplateError


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """An installation where ``base`` gets built; the tests below run in this order."""
    top = tmp_path_factory.mktemp("build")
    return Places(top / "run", top / "state")


@pytest.fixture
def base(shared: Places) -> Iterator[Path]:
    yield mounted(shared, TemplateStore(shared).get("base"))
    unmount_idle(shared, set())


@pytest.mark.timeout(300)
def test_a_killed_build_leaves_nothing(shared: Places) -> None:
    builder = _builder(shared)
    assert builder.stderr is not None
    for line in builder.stderr:
        if "installing essential" in line:
            break
    scratch = next(shared.building.glob("work-*"))
    inside = _processes_below(scratch)
    assert len(inside) > 2
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    builder.stderr.close()
    deadline = time.monotonic() + 5
    while _processes_below(scratch) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _processes_below(scratch) == []
    assert mounts_below(shared.state) == []
    assert TemplateStore(shared).list() == []
    assert sweep(shared) == [scratch.name]
    assert not scratch.exists()


@pytest.mark.timeout(600)  # a minute on an idle machine
def test_two_builds_at_once_give_one_template(shared: Places) -> None:
    with _builder(shared) as first, _builder(shared) as second:
        try:
            said = [builder.communicate()[1] for builder in (first, second)]
        except BaseException:
            first.kill()
            second.kill()
            raise
    assert (first.returncode, second.returncode) == (0, 0), said
    assert sum("waiting for its result" in words for words in said) == 1
    assert sum("installing" in words for words in said) == 1
    (stored,) = TemplateStore(shared).list()
    assert [str(name) for name in stored.names] == ["base"]
    assert stored.manifest.source.recipe_digest == load_recipe("base")[1].digest
    assert stored.manifest.size_bytes < 400_000_000
    assert list(shared.building.glob("work-*")) == []


def test_base_has_what_it_promises(base: Path) -> None:
    checks = {
        "python3 --version": "Python 3.",
        "node --version": "v",
        "git --version": "git version",
        "curl --version": "curl ",
        "bash --version": "GNU bash",
        "ps --version": "ps from procps",
        "sudo --version": "Sudo version",
        "id -un": "user",
        "sudo -n id -u": "0",
        "python3 -c 'import os; print(os.path.expanduser(\"~\"))'": "/home/user",
        "python3 -c 'import locale; print(locale.getpreferredencoding())'": "utf-8",
    }
    for command, beginning in checks.items():
        done = _run_in(base, f"cd; {command}")
        assert done.stdout.lower().startswith(beginning.lower()), (command, done)
    assert (base / "etc/sudoers.d/user").read_text() == "user ALL=(ALL:ALL) NOPASSWD: ALL\n"
    assert (base / "home/user").stat().st_uid == 1000
    assert (base / "usr/bin/sudo").stat().st_mode & 0o4000
    assert (base / "etc/ssl/certs/ca-certificates.crt").stat().st_size > 100_000


def test_base_keeps_nothing_of_its_making(base: Path) -> None:
    assert [path for path in (base / "var/log").rglob("*") if path.is_file()] == []
    for empty in ("dev", "run", "var/tmp", "var/lib/apt/lists", "var/cache/apt"):
        assert list((base / empty).iterdir()) == []
    # Keeps gVisor from mounting memory over it.
    assert [path.name for path in (base / "tmp").iterdir()] == [".fourwalls"]
    assert (base / "etc/machine-id").read_text() == ""
    assert (base / "etc/resolv.conf").read_text() == ""
    assert os.uname().nodename not in (base / "etc/hostname").read_text()
    now = time.time()
    assert all(path.lstat().st_mtime < now - 600 for path in (base / "etc").iterdir())


def test_python_starts_from_valid_byte_code(base: Path) -> None:
    done = _run_in(base, "python3 -v -c 'import json, asyncio'")
    assert done.stderr.count(" matches ") > 50
    assert "stale" not in done.stderr


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    "FOURWALLS_SLOW_TESTS" not in os.environ, reason="a second build: set FOURWALLS_SLOW_TESTS"
)
def test_base_is_reproducible(shared: Places, own: Places) -> None:
    name, recipe = load_recipe("base")
    again = build_recipe(own, recipe, name)
    assert again.digest == TemplateStore(shared).get("base").digest


def test_a_failing_build_says_why_and_leaves_nothing(
    own: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOURWALLS_MIRROR", "http://127.0.0.1:9/debian")
    monkeypatch.setenv("FOURWALLS_SECURITY_MIRROR", "none")
    recipe = Recipe(release="trixie", packages=["bash"])
    with pytest.raises(TemplateError, match="mmdebstrap failed") as error:
        build_recipe(own, recipe, TemplateName.parse("unlucky"))
    assert error.value.remedy is not None
    assert "FOURWALLS_MIRROR" in error.value.remedy
    assert TemplateStore(own).list() == []


def test_who_waited_builds_only_if_the_other_failed(
    own: Places, rootfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[str] = []
    begun = threading.Event()

    def fake_build(
        places: Places, _: Recipe, name: TemplateName, reference: str, report: Report
    ) -> Manifest:
        builds.append(str(name))
        begun.set()
        time.sleep(0.3)
        if len(builds) == 1:
            raise TemplateError("no luck")
        return import_directory(places, rootfs, name)

    def build(name: str) -> None:
        with suppress(TemplateError):
            build_recipe(own, recipe, TemplateName.parse(name))

    monkeypatch.setattr("fourwalls.images.build._build", fake_build)
    recipe = Recipe(release="trixie", packages=["bash"])
    threads = [threading.Thread(target=build, args=(name,)) for name in ("a", "b", "c")]
    threads[0].start()
    assert begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 2
    (stored,) = TemplateStore(own).list()
    assert [str(name) for name in stored.names] == ["b", "c"]


def test_a_workspace_in_use_is_not_swept(own: Places) -> None:
    with workspace(own) as first:
        (first / "f").touch()
        with workspace(own) as second:
            assert second != first
            assert sweep(own) == []
        assert (first / "f").exists()
        assert not second.exists()
    assert not first.exists()
    assert (own.building.stat().st_mode & 0o777) == 0o700


def _run_in(base: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line as ``user``, with devices and processes as a sandbox has them."""
    enter = (
        'mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc"'
        ' && exec chroot --userspec=user "$0" /bin/bash -c "$1"'
    )
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", enter, str(base), command],
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": "/home/user",
            "LANG": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def _builder(places: Places) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fourwalls.images.build", "base"],
        env={
            **os.environ,
            "FOURWALLS_RUN": str(places.run),
            "FOURWALLS_STATE": str(places.state),
        },
        stderr=subprocess.PIPE,
        text=True,
    )


def _processes_below(directory: Path) -> list[int]:
    """Processes whose working or root directory is below ``directory``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            places = (os.readlink(entry / "cwd"), os.readlink(entry / "root"))
        except OSError:
            continue
        if any(place.startswith(str(directory)) for place in places):
            found.append(int(entry.name))
    return found
