"""What of the host can be seen from inside: processes, mounts, files, other sandboxes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox, FourwallsError, PathNotFoundError
from fourwalls.boundaries.oci.render import MASKED_PATHS, READONLY_PATHS
from fourwalls.linux import binaries
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary

from .conftest import Inside

ROOT = [".fourwalls", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "opt"]
ROOT += ["proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"]
NODES = ["full", "null", "random", "tty", "urandom", "zero"]
DEVICES = {
    "container": sorted([*NODES, "core", "fd", "ptmx", "pts", "shm", "stderr", "stdin", "stdout"]),
    # Of the sentry's own: no file system can be mounted with the first, no network has the second.
    "gvisor": sorted(
        [*NODES, "fuse", "net", "fd", "ptmx", "pts", "shm", "stderr", "stdin", "stdout"]
    ),
}


@pytest.mark.parametrize("user", ["user", "root"])
async def test_view(sandbox: AsyncSandbox, inside: Inside, places: Places, user: str) -> None:
    found = await inside("facts", "view", user=user)
    assert sorted(found["processes"].values()) == ["agent", "python3"]
    assert found["hostname"] == "sandbox"
    assert found["root"] == ROOT
    assert found["devices"] == DEVICES[sandbox.boundary]
    if sandbox.boundary == "gvisor":
        assert found["kernel"] == "4.4.0"
        assert found["boot_id"] != Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert str(places.run) not in found["mountinfo"]
        assert str(places.state) not in found["mountinfo"]
        assert {(target, kind, source) for _, target, kind, source in found["mounts"]} == GVISOR
        return
    # A kernel shared is a kernel known.
    assert found["kernel"] == os.uname().release
    assert found["sys"] == []
    assert all(line.endswith(":/") for line in found["cgroup"].splitlines())
    agent = binaries.staged(binaries.AGENT, places)
    expected = {
        ("/.fourwalls/agent", mount_relative(agent)),
        ("/", "/"),
        *((path, "/") for path in ("/proc", "/dev", "/dev/pts", "/dev/shm")),
        *((f"/dev/{name}", f"/{name}") for name in NODES),
        *((path, "/null") for path in MASKED_PATHS if Path(path).is_file()),
        *((path, "/") for path in MASKED_PATHS if Path(path).is_dir()),
        *((p, p.removeprefix("/proc")) for p in READONLY_PATHS if Path(p).exists()),
    }
    assert {(target, root) for root, target, _, _ in found["mounts"]} == expected
    # The two places of the host that are named: docs/boundaries/container.md says so.
    own = places.sandboxes / sandbox.sandbox_id
    leaks = [line for line in found["mountinfo"].splitlines() if str(places.run) in line]
    (line,) = leaks
    words = line.split("lowerdir=")[1].split(",")[:3]
    assert words == [f"{own}/lower", f"upperdir={own}/disk/upper", f"workdir={own}/disk/work"]
    for path in (*READONLY_PATHS, *MASKED_PATHS, "/.fourwalls/agent"):
        if Path(path).exists() or path.startswith("/."):
            assert "ro" in found["options"][path].split(","), path


# A base template of before /tmp/.fourwalls has memory mounted on /tmp, too: build it again.
GVISOR = {
    ("/", "overlay", "none"),
    ("/dev", "tmpfs", "none"),
    ("/dev/pts", "devpts", "none"),
    ("/dev/shm", "tmpfs", "none"),
    ("/proc", "proc", "none"),
    ("/sys", "sysfs", "none"),
    ("/.fourwalls/agent", "9p", "none"),
}


def mount_relative(path: Path) -> str:
    """The path as its file system calls it."""
    top = path
    while not os.path.ismount(top):
        top = top.parent
    return "/" + str(path.relative_to(top))


WRITABLE = ["/dev/full", "/dev/null", "/dev/pts/ptmx", "/dev/random", "/dev/urandom", "/dev/zero"]


@pytest.mark.parametrize("user", ["user", "root"])
async def test_what_can_be_written_besides_files(
    sandbox: AsyncSandbox, inside: Inside, user: str
) -> None:
    found = await inside("facts", "writable", "/proc", "/sys", "/dev", user=user)
    if sandbox.boundary == "container":
        # Over a masked file lies /dev/null.
        assert [path for path in found if path not in MASKED_PATHS] == WRITABLE
        return
    mine = [path for path in found if not path.startswith("/proc/")]
    assert mine == sorted([*WRITABLE, "/dev/fuse", "/dev/net/tun"])
    # The sentry's own settings, which test_probe writes to.
    assert (len(found) > len(mine)) == (user == "root")


TRICKS = (
    "/proc/1/root{}",
    "/proc/self/root/../../../../..{}",
    "/proc/self/cwd/../../../..{}",
    "/proc/1/cwd{}",
    "/.fourwalls/../..{}",
    "/.fourwalls/agent/..{}",
    "/dev/fd/../../../..{}",
    "/proc/thread-self/root{}",
    "/proc/1/task/1/root{}",
    "/proc/1/map_files/..{}",
    "{}",
)


async def test_no_path_leads_to_a_file_of_the_host(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.write_text("of the host\n")
    marker.chmod(0o666)
    for parent in marker.parents:
        if parent.stat().st_uid == 0 and parent != Path("/") and "pytest" in str(parent):
            parent.chmod(0o777)
    paths = [trick.format(marker) for trick in TRICKS]
    for user in ("user", "root"):
        script = 'for p; do cat "$p" && echo x > "$p"; done; ls -d /proc/*/root/* | wc -l'
        done = await sandbox.commands.run(["bash", "-c", script, "bash", *paths], user=user)
        assert "of the host" not in done.stdout
    for path in paths:
        with pytest.raises(FourwallsError):
            await sandbox.files.read(path)
    # By symlink, which the agent resolves inside, and by name in a search of everything.
    await sandbox.commands.run(["ln", "-s", str(marker), "/tmp/link"])
    with pytest.raises(PathNotFoundError):
        await sandbox.files.read("/tmp/link")
    search = "find / -xdev -name marker -o -name '*.img' 2>/dev/null; true"
    assert (await sandbox.commands.run(search, user="root")).stdout == ""
    assert marker.read_text() == "of the host\n"


async def test_symlinks_are_followed_inside_only(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    shadow = await sandbox.files.read("/etc/shadow")
    assert shadow != Path("/etc/shadow").read_text()
    await sandbox.commands.run("ln -s /etc/shadow /tmp/s; ln -s / /tmp/r; ln -s ../../.. /tmp/up")
    for path in ("/tmp/s", "/tmp/r/etc/shadow", "/tmp/up/etc/shadow", "/../../etc/shadow"):
        assert await sandbox.files.read(path) == shadow, path
    # Writing through one changes the sandbox's file alone.
    host = tmp_path / "passwd"
    host.write_text("of the host\n")
    await sandbox.commands.run(["mkdir", "-p", str(tmp_path)], user="root")
    await sandbox.commands.run(["ln", "-s", str(host), "/tmp/w"])
    await sandbox.files.write("/tmp/w", "of the guest\n", user="root")
    assert host.read_text() == "of the host\n"
    assert (await sandbox.commands.run(["cat", str(host)], user="root")).stdout == "of the guest\n"


def run_in(directory: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "fourwalls.cli", "run", "-q", *arguments],
        cwd=directory,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_run_out_follows_no_symlink(boundary: Boundary, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host\n")
    options = ("--boundary", boundary.value, "--out")
    script = f"mkdir out; ln -s {secret} out/link; ln -s /etc/shadow out/s; echo hi > out/file"
    done = run_in(tmp_path, *options, "out", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["file"]
    refused = run_in(tmp_path, *options, "link", "--", "ln", "-s", str(secret), "link")
    assert refused.returncode == 125
    assert b"symlink" in refused.stderr
    assert not (tmp_path / "link").exists()


async def test_the_agent_is_read_only(sandbox: AsyncSandbox, places: Places) -> None:
    agent = binaries.staged(binaries.AGENT, places)
    before = (agent.read_bytes(), agent.stat())
    script = (
        "cd /.fourwalls; echo x > agent; echo x >> agent; rm -f agent; mv agent /tmp/a;"
        " chmod 777 agent; chown 0 agent; ln agent /tmp/hard; touch agent; truncate -s 0 agent;"
        " setfattr -n user.x -v y agent; cp /bin/true agent; mv -f /bin/true agent"
    )
    await sandbox.commands.run(f"{script}; true", user="root")
    assert agent.read_bytes() == before[0]
    after = agent.stat()
    same = ("st_mode", "st_uid", "st_gid", "st_nlink", "st_mtime_ns", "st_ino", "st_size")
    assert [getattr(after, n) for n in same] == [getattr(before[1], n) for n in same]


async def test_processes_of_the_host_cannot_be_reached(sandbox: AsyncSandbox) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        for user in ("user", "root"):
            script = (
                f"kill -9 {bystander.pid} {os.getpid()}; kill -9 -{os.getpgrp()};"
                f" ls -d /proc/{bystander.pid} /proc/{os.getpid()}; renice 5 {bystander.pid};"
                " for p in /proc/[0-9]*; do cat $p/comm; done; true"
            )
            done = await sandbox.commands.run(["sh", "-c", script], user=user)
            assert set(done.stdout.split()) <= {"agent", "sh", "cat"}
        assert bystander.poll() is None
    finally:
        bystander.send_signal(signal.SIGKILL)
        bystander.wait()


async def test_two_sandboxes_do_not_see_each_other(
    boundary: Boundary, sandbox: AsyncSandbox
) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, timeout=60) as other:
        await sandbox.files.write("/tmp/mine", "mine", user="root")
        await sandbox.commands.run("echo mine > /dev/shm/mine", user="root")
        # Numbers in common are no common processes.
        sleeper = await sandbox.commands.run("sleep 77", background=True)
        script = (
            "ls /tmp/mine /dev/shm/mine; grep -l sleep /proc/[0-9]*/comm;"
            f" kill -9 {sleeper.pid}; kill -9 -1; true"
        )
        done = await other.commands.run(script, user="root")
        assert done.stdout == ""
        assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"
        assert sleeper.pid in [p.pid for p in await sandbox.commands.list()]
        # The same socket name, in two network namespaces.
        bind = (
            "import socket; s = socket.socket(socket.AF_UNIX); s.bind(b'\\0same');"
            "t = socket.socket(); t.bind(('127.0.0.1', 4567)); print('bound')"
        )
        for one in (sandbox, other):
            said = await one.commands.run(["python3", "-c", bind])
            assert said.stdout == "bound\n"
        await sleeper.kill()


async def test_the_template_is_not_written_to(
    boundary: Boundary, sandbox: AsyncSandbox, places: Places
) -> None:
    script = "rm -rf /usr/share /etc/passwd; echo hostile > /bin/true; echo x > /etc/hostname; true"
    await sandbox.commands.run(script, user="root")
    (template,) = [p for p in places.template_mounts.iterdir() if p.is_dir()]
    assert (template / "etc" / "passwd").is_file()
    with pytest.raises(OSError, match="Read-only"):
        (template / "etc" / "passwd").touch()
    async with await AsyncSandbox.create(boundary=boundary.value, timeout=60) as fresh:
        assert (await fresh.commands.run("true && ls -d /usr/share")).stdout == "/usr/share\n"
