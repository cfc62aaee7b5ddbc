"""What is tried inside a sandbox, and what comes of it: whole tables, one outcome each."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from fourwalls import AsyncSandbox
from fourwalls.model.boundary import Boundary

from .conftest import Inside
from .outcomes import expected

# What the attempts would change here if they got through.
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/hostname",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/overcommit_memory",
    "/proc/swaps",
)


def of_the_host() -> dict[str, str]:
    found = {path: Path(path).read_text() for path in SETTINGS}
    return {**found, "name": socket.gethostname()}


@pytest.mark.parametrize("user", ["user", "root"])
async def test_every_attempt_ends_as_the_table_says(
    boundary: Boundary, inside: Inside, user: str
) -> None:
    before, clock = of_the_host(), time.time() - time.monotonic()
    found = {}
    for kind in ("calls", "sockets", "files"):
        found |= await inside("probe", kind, user=user)
    assert found == expected(boundary, user)
    assert of_the_host() == before
    assert abs(time.time() - time.monotonic() - clock) < 1


async def test_settings_that_can_be_written_are_the_sandboxs_own(sandbox: AsyncSandbox) -> None:
    before = of_the_host()
    script = (
        "for f in /proc/sys/kernel/hostname /proc/sys/kernel/domainname"
        " /proc/sys/net/ipv4/ip_forward /proc/sys/vm/overcommit_memory /proc/sysrq-trigger;"
        " do echo 1 > $f; done 2>/dev/null; true"
    )
    await sandbox.commands.run(script, user="root")
    assert of_the_host() == before


async def test_a_namespace_of_gvisor_leads_nowhere(sandbox: AsyncSandbox) -> None:
    """Where a user namespace can be made, being root of it changes nothing of this."""
    if sandbox.boundary != "gvisor":
        pytest.skip("refused there: see the table")
    before = of_the_host()
    script = (
        "unshare -Urm sh -c 'id -u; hostname stolen; mount -t tmpfs none /mnt && echo mounted;"
        " mount -t sysfs none /mnt; mknod /tmp/disk b 254 0; head -c 1 /tmp/disk;"
        " head -c 1 /dev/vda; ls /sys/class/net /sys/block' 2>&1; true"
    )
    said = (await sandbox.commands.run(script)).stdout
    assert said.startswith("0\n")
    assert "No such device or address" in said
    assert of_the_host() == before
