"""Who a process of a sandbox is: inside, and as the host sees it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox
from fourwalls.boundaries.base import UID_COUNT
from fourwalls.boundaries.oci.render import ROOT_CAPABILITIES
from fourwalls.linux import slots
from fourwalls.linux.places import Places
from fourwalls.model.boundary import Boundary

from .conftest import Inside
from .host_view import processes_of, status_of

# CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, KILL 5, SETGID 6, SETUID 7, NET_BIND_SERVICE 10.
THE_EIGHT = "00000000000004fb"
NONE = "0000000000000000"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(user: str, home: str) -> dict[str, str]:
    return {
        "HOME": home,
        "LANG": "C.UTF-8",
        "LOGNAME": user,
        "PATH": PATH,
        "SHELL": "/bin/bash",
        "USER": user,
    }


@pytest.mark.parametrize(
    ("user", "home", "held", "groups"),
    [("user", "/home/user", NONE, [1000]), ("root", "/root", THE_EIGHT, [0])],
)
async def test_identity(
    sandbox: AsyncSandbox,
    inside: Inside,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    home: str,
    held: str,
    groups: list[int],
) -> None:
    monkeypatch.setenv("FOURWALLS_TEST_SECRET", "of the host")
    capabilities = {"CapInh": NONE, "CapPrm": held, "CapEff": held, "CapBnd": THE_EIGHT}
    found = await inside("facts", "identity", user=user)
    assert found["environment"].pop("FOURWALLS_EXEC")
    base = str(await first_id(sandbox))
    container = {
        "capabilities": {**capabilities, "CapAmb": NONE},
        "no_new_privs": 1,
        "seccomp": 2,
        "uid_map": ["0", base, str(UID_COUNT)],
        "gid_map": ["0", base, str(UID_COUNT)],
        "core": [0, 0],
        "groups": groups,
        "environment": environment(user, home),
        "pid 1": {
            "environment": ["PermissionError"],
            "arguments": ["/.fourwalls/agent", ""],
        },
        "agent's links": [] if user == "user" else ["PermissionError"] * len(AGENTS_FILES),
    }
    # The sentry's user namespace is the sandbox's own; inside it there is another, of its own.
    gvisor = {
        **container,
        "capabilities": capabilities,
        "seccomp": 0,
        "uid_map": ["0", "0", "4294967295"],
        "gid_map": ["0", "0", "4294967295"],
        "pid 1": {
            "environment": [f"PATH={PATH}", "HOME=/root", ""],
            "arguments": ["/.fourwalls/agent", ""],
        },
        "agent's links": [] if user == "user" else AGENTS_FILES,
    }
    assert found == {"container": container, "gvisor": gvisor}[sandbox.boundary]


# Its three pipes to the host, what it waits with, and the output of the command that looks.
AGENTS_FILES = sorted(["host"] * 3 + ["anon_inode"] * 3 + ["pipe"] * 2)


async def first_id(sandbox: AsyncSandbox) -> int:
    return (await processes_of(sandbox)).base


NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")


def namespace(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def gofer(pids: tuple[int, ...]) -> int:
    """gVisor's file server."""
    arguments = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}
    (pid,) = [pid for pid, words in arguments.items() if words.startswith(b"runsc-gofer")]
    return pid


async def test_processes_are_nobody_on_the_host(sandbox: AsyncSandbox) -> None:
    sleeper = await sandbox.commands.run("sleep 30", background=True, user="root")
    await sandbox.commands.run("true")
    seen = await processes_of(sandbox)
    assert seen.pids
    for pid in seen.pids:
        status = status_of(pid)
        ids = {int(word) for word in (status["Uid"] + " " + status["Gid"]).split()}
        assert 0 not in ids, status
        assert all(seen.base <= number < seen.base + UID_COUNT for number in ids), status
        assert status["NoNewPrivs"] == "1"
        # The sentry and its helpers are filtered, too.
        assert status["Seccomp"] == "2", status
        shared = {kind for kind in NAMESPACES if namespace(pid, kind) == namespace("self", kind)}
        # The sentry is a process like others of the host's pid namespace; its guest has none of it.
        sentry = sandbox.boundary == "gvisor" and pid != gofer(seen.pids)
        assert shared == ({"pid"} if sentry else set()), status["Name"]
    await sleeper.kill()


async def test_no_two_sandboxes_share_ids(boundary: Boundary, sandbox: AsyncSandbox) -> None:
    async with await AsyncSandbox.create(boundary=boundary.value, timeout=60) as other:
        first, second = sorted([await first_id(sandbox), await first_id(other)])
    assert second - first >= UID_COUNT


ELEVATIONS = """
    sudo -n id -u
    su -c 'id -u' root
    setpriv --reuid 0 id -u
    python3 -IS -c 'import os; os.setuid(0); print(os.getuid())'
    newgrp root
    passwd -d root
"""


async def test_set_user_id_programs_gain_nothing(sandbox: AsyncSandbox) -> None:
    attempts = [line.strip() for line in ELEVATIONS.strip().splitlines()]
    script = "".join(f"{attempt} </dev/null >/dev/null 2>&1; echo $?\n" for attempt in attempts)
    statuses = (await sandbox.commands.run(f"{script}true")).stdout.split()
    assert len(statuses) == len(attempts)
    assert "0" not in statuses, dict(zip(attempts, statuses, strict=True))
    # Neither does one that root leaves behind.
    copy = "cp /usr/bin/id /usr/local/bin/who && chmod 6755 /usr/local/bin/who"
    await sandbox.commands.run(copy, user="root")
    said = (await sandbox.commands.run("/usr/local/bin/who")).stdout
    assert said == "uid=1000(user) gid=1000(user) groups=1000(user)\n"


def test_the_eight_are_those_of_the_config() -> None:
    numbers = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6}
    numbers |= {"SETUID": 7, "NET_BIND_SERVICE": 10}
    mask = sum(1 << numbers[name.removeprefix("CAP_")] for name in ROOT_CAPABILITIES)
    assert f"{mask:016x}" == THE_EIGHT


async def test_the_slot_names_the_range(sandbox: AsyncSandbox, places: Places) -> None:
    (link,) = [p for p, owner in slots.claimed(places.slots).items() if owner == sandbox.sandbox_id]
    assert slots.id_base(int(link.name)) == await first_id(sandbox)
