"""Runs inside a sandbox: what a process there is and what it can see, as JSON."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
import time

PR_GET_SECCOMP, PR_GET_NO_NEW_PRIVS = 21, 39
# Nobody's for sure, a resolver of the public, the gateway a cloud gives its machines.
STRANGERS = (("1.1.1.1", 80), ("8.8.8.8", 53), ("169.254.169.254", 80), ("10.0.0.1", 22))


def read(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError as error:
        return type(error).__name__


def identity() -> dict[str, object]:
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines())
    libc = ctypes.CDLL(None)
    return {
        "capabilities": {name: status[name] for name in status if name.startswith("Cap")},
        "no_new_privs": libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
        "seccomp": libc.prctl(PR_GET_SECCOMP, 0, 0, 0, 0),
        "uid_map": read("/proc/self/uid_map").split(),
        "gid_map": read("/proc/self/gid_map").split(),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "groups": os.getgroups(),
        "environment": dict(os.environ),
        "pid 1": {
            "environment": read("/proc/1/environ").split("\0"),
            "arguments": read("/proc/1/cmdline").split("\0"),
        },
        "agent's links": sorted(links("/proc/1/fd")) if os.geteuid() == 0 else [],
    }


def links(directory: str) -> list[str]:
    found = []
    for name in os.listdir(directory):
        try:
            found.append(os.readlink(f"{directory}/{name}").partition(":")[0])
        except OSError as error:
            found.append(type(error).__name__)
    return found


def view() -> dict[str, object]:
    mounts = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    return {
        "mounts": [(m[3], m[4], m[m.index("-") + 1], m[m.index("-") + 2]) for m in mounts],
        "options": {m[4]: m[5] for m in mounts},
        "mountinfo": read("/proc/self/mountinfo"),
        "cgroup": read("/proc/self/cgroup"),
        "processes": {
            p: read(f"/proc/{p}/comm").strip() for p in os.listdir("/proc") if p.isdigit()
        },
        "devices": sorted(os.listdir("/dev")),
        "root": sorted(os.listdir("/")),
        "sys": sorted(os.listdir("/sys")),
        "hostname": socket.gethostname(),
        "kernel": os.uname().release,
        "boot_id": read("/proc/sys/kernel/random/boot_id").strip(),
    }


def writable(*roots: str) -> list[str]:
    """Every file below that can be opened for writing, but for those of processes."""
    found = []
    for root in roots:
        for directory, below, names in os.walk(root):
            if directory == "/proc":
                below[:] = [name for name in below if not name.isdigit()]
            for name in names:
                path = os.path.join(directory, name)
                if os.path.islink(path):
                    continue
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
                    found.append(path)
                except OSError:
                    continue
    return sorted(found)


def attempt(family: int, kind: int, address: object) -> str:
    with socket.socket(family, kind) as opened:
        opened.settimeout(3)
        try:
            opened.connect(address)  # type: ignore[arg-type]
            return "connected"
        except OSError as error:
            return type(error).__name__ + f" {error.errno}"


def network(port: str, *hosts: str) -> dict[str, object]:
    started = time.monotonic()
    found: dict[str, object] = {
        f"{host}:{number}": attempt(socket.AF_INET, socket.SOCK_STREAM, (host, number))
        for host, number in (*STRANGERS, *((host, int(port)) for host in hosts))
    }
    found["udp"] = attempt(socket.AF_INET, socket.SOCK_DGRAM, STRANGERS[1])
    found["ipv6"] = attempt(socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700:4700::1111", 80))
    found["loopback"] = attempt(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port)))
    found["abstract"] = attempt(socket.AF_UNIX, socket.SOCK_STREAM, f"\0fourwalls-test-{port}")
    try:
        found["name"] = socket.gethostbyname("example.com")
    except OSError as error:
        found["name"] = type(error).__name__
    found["interfaces"] = [name for _, name in socket.if_nameindex()]
    found["routes"] = read("/proc/net/route").splitlines()[1:]
    found["seconds"] = time.monotonic() - started
    return found


if __name__ == "__main__":
    work = {"identity": identity, "view": view, "network": network, "writable": writable}[
        sys.argv[1]
    ]
    print(json.dumps(work(*sys.argv[2:])))
