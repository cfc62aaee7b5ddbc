"""What stands beside a sandbox on the host: the shim, the run directory, the records."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary

from .host_view import processes_of, status_of

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
SECRET = "do-not-tell-4711"


def as_nobody(script: str, *arguments: str) -> str:
    """What another user of this host gets from a script, with what it complains about."""
    done = subprocess.run(
        [*NOBODY, "sh", "-c", script, "sh", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=20,
        check=False,
    )
    return done.stdout.decode(errors="replace")


@contextmanager
def other_user() -> Iterator[None]:
    """This process without root, for as long as it lasts."""
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


async def test_the_shim_stands_outside(sandbox: AsyncSandbox) -> None:
    seen = await processes_of(sandbox)
    assert seen.shim not in seen.pids
    assert sandbox.sandbox_id not in Path(f"/proc/{seen.shim}/cgroup").read_text()
    assert status_of(seen.shim)["Uid"].split() == ["0"] * 4
    assert Path(f"/proc/{seen.shim}/environ").read_bytes() == b""
    # Nothing of the caller is open in it but the lock and the connection.
    for link in Path(f"/proc/{seen.shim}/fd").iterdir():
        target = os.readlink(link)
        known = ("/dev/null", "/dev/loop", "socket:", "pipe:", "anon_inode:", "user:", "/memfd:")
        assert target.startswith(known) or sandbox.sandbox_id in target, target
    for pid in seen.pids:
        parts = status_of(pid)
        assert parts["Uid"].split()[0] != "0"


async def test_nothing_of_the_caller_is_inherited(
    sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Open files and variables of the program that makes a sandbox stay with it."""
    monkeypatch.setenv("FOURWALLS_TEST_SECRET", SECRET)
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with secret.open() as file, socket.create_server(("127.0.0.1", 0)) as server:
        for one in (file, server):
            os.set_inheritable(one.fileno(), True)
        async with await AsyncSandbox.create(boundary=sandbox.boundary, timeout=60) as other:
            seen = await processes_of(other)
            for pid in (seen.shim, *seen.pids):
                targets = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
                assert str(secret) not in targets
                assert os.readlink(f"/proc/self/fd/{server.fileno()}") not in targets
                assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()


async def test_other_users_of_the_host_get_nothing(boundary: Boundary, places: Places) -> None:
    sandbox = await AsyncSandbox.create(
        boundary=boundary.value,
        timeout=60,
        detach=True,
        envs={"SECRET": SECRET},
        metadata={"note": SECRET},
    )
    try:
        directory = places.sandboxes / sandbox.sandbox_id
        seen = await processes_of(sandbox)
        listing = as_nobody(f"ls {places.sandboxes} {places.slots} {places.scratch}")
        assert sandbox.sandbox_id not in listing
        names = [
            "sandbox.json",
            "lock",
            "exit.json",
            "bundle/config.json",
            "runsc",
            "init.pid",
            "disk",
            "rootfs/etc/passwd",
            "lower/etc/passwd",
            "../../crun",
        ]
        script = "for f; do cat $f; ls $f; echo x > $f; done; rm -rf $1; mkdir $1.new"
        said = as_nobody(script, *(f"{directory}/{name}" for name in names))
        assert SECRET not in said
        assert "root:x:0:0" not in said
        assert (directory / "sandbox.json").is_file()
        pids = " ".join(str(pid) for pid in (seen.shim, *seen.pids))
        script = (
            f"for p in {pids}; do cat /proc/$p/environ; ls /proc/$p/root/ /proc/$p/fd;"
            " kill -9 $p; done"
        )
        assert SECRET not in as_nobody(script)
        assert await sandbox.is_running()
        # The socket lets nobody else near.
        with other_user(), socket.socket(socket.AF_UNIX) as stranger:
            refused = stranger.connect_ex(str(directory / "agent.sock"))
        assert refused == errno.EACCES
        # Were its mode ever wrong, the shim looks at who comes.
        (directory / "agent.sock").chmod(0o666)
        with other_user(), socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(5)
            stranger.connect(str(directory / "agent.sock"))
            assert stranger.recv(1) == b""
        assert await sandbox.is_running()
    finally:
        await sandbox.kill()


async def test_modes(boundary: Boundary, places: Places) -> None:
    sandbox = await AsyncSandbox.create(boundary=boundary.value, timeout=60, detach=True)
    try:
        directory = places.sandboxes / sandbox.sandbox_id
        modes = {
            name: stat.S_IMODE(path.stat().st_mode)
            for name, path in (
                ("sandboxes", places.sandboxes),
                ("slots", places.slots),
                ("templates", places.template_mounts),
                ("scratch", places.scratch),
                ("disks", places.disks),
                ("directory", directory),
                ("bundle", directory / "bundle"),
                ("record", directory / "sandbox.json"),
                ("lock", directory / "lock"),
            )
        }
        assert modes == {
            "sandboxes": 0o711,
            "slots": 0o711,
            "templates": 0o700,
            "scratch": 0o711,
            "disks": 0o700,
            "directory": 0o711,
            "bundle": 0o700,
            "record": 0o600,
            "lock": 0o600,
        }
        owners = {path.lstat().st_uid for path in directory.rglob("*")}
        assert owners == {0}
    finally:
        await sandbox.kill()


async def test_mounts_do_not_reach_the_host(sandbox: AsyncSandbox) -> None:
    assert sandbox.sandbox_id not in Path("/proc/self/mountinfo").read_text()


async def test_the_disk_cannot_be_found(sandbox: AsyncSandbox, places: Places) -> None:
    """The image has no name any more: nobody can mount or read it by path."""
    assert [p for p in places.scratch.iterdir() if sandbox.sandbox_id in p.name] == []


@pytest.mark.parametrize("name", ["../../etc", "..", "a/b", "A" * 20, "a" * 19, "", "a" * 20 + "/"])
async def test_an_id_is_no_path(name: str) -> None:
    from fourwalls import InvalidArgumentError

    with pytest.raises(InvalidArgumentError):
        await AsyncSandbox.connect(name)
