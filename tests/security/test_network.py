"""There is no network but loopback: everything else fails at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fourwalls import AsyncSandbox

from .conftest import Inside

UNREACHABLE = {"container": "OSError 101", "gvisor": "OSError 113"}  # ENETUNREACH, EHOSTUNREACH
REFUSED = "ConnectionRefusedError 111"


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    """Services of the host: on its loopback and every address, and an abstract socket."""
    everywhere = socket.create_server(("0.0.0.0", 0))
    port = everywhere.getsockname()[1]
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0fourwalls-test-{port}")
    abstract.listen()
    made = [everywhere, abstract]
    for one in made:
        one.setblocking(False)
    yield made
    for one in made:
        one.close()


def addresses() -> list[str]:
    """Those of this host, as it would reach others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [probe.getsockname()[0]]


@pytest.mark.parametrize("user", ["user", "root"])
async def test_network(
    sandbox: AsyncSandbox, inside: Inside, listeners: list[socket.socket], user: str
) -> None:
    port = listeners[0].getsockname()[1]
    hosts = addresses()
    found = await inside("facts", "network", str(port), *hosts, user=user)
    assert found.pop("seconds") < 2
    unreachable = UNREACHABLE[sandbox.boundary]
    strangers = ["1.1.1.1:80", "8.8.8.8:53", "169.254.169.254:80", "10.0.0.1:22"]
    assert found == {
        **dict.fromkeys([*strangers, *(f"{host}:{port}" for host in hosts)], unreachable),
        "udp": unreachable,
        "ipv6": unreachable,
        "loopback": REFUSED,
        "abstract": REFUSED,
        "name": "gaierror",
        "interfaces": ["lo"],
        "routes": [],
    }
    for one in listeners:
        with pytest.raises(BlockingIOError):
            one.accept()


async def test_a_socket_file_of_the_host_is_not_there(
    sandbox: AsyncSandbox, listeners: list[socket.socket]
) -> None:
    shim = (await sandbox._live.session.status()).shim_pid
    script = (
        "ls -d /run/fourwalls* /run/systemd /var/run/docker.sock /run/containerd 2>/dev/null;"
        f" ls -d /proc/{shim} 2>/dev/null; cat /proc/net/unix | wc -l; true"
    )
    said = (await sandbox.commands.run(script, user="root")).stdout.split()
    # The header alone, or nothing.
    assert len(said) == 1
    assert int(said[0]) <= 1
