"""The untrusted program of the demo: it computes something, then tries to get out.

It is put into each sandbox and run there as root, with what it shall look for as JSON in its first
argument. It stands alone: nothing of Fourwalls is in a sandbox.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# System calls without a wrapper in libc: x86_64, aarch64.
_NUMBERS = {
    "init_module": (175, 105),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "perf_event_open": (298, 241),
}
_CLONE_NEWUSER = 0x10000000
_PTRACE_ATTACH = 16

_libc = ctypes.CDLL(None, use_errno=True)


def compute() -> int:
    """How many primes there are below 200 000."""
    sieve = bytearray([1]) * 200_000
    sieve[0:2] = b"\0\0"
    for n in range(2, 448):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, len(sieve), n)))
    return sum(sieve)


def _check(result: int) -> str:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return "done"


def _syscall(name: str, *arguments: Any) -> str:
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    return _check(_libc.syscall(_NUMBERS[name][column], *arguments))


def read_host_file(given: dict[str, Any]) -> str:
    """A file that every user of the host can read."""
    return f"read {Path(given['file']).read_text()[:20]!r}"


def find_host_process(given: dict[str, Any]) -> str:
    """The process that watches over this sandbox."""
    seen = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    for pid in seen:
        with contextlib.suppress(OSError):
            if given["process"] in Path(f"/proc/{pid}/comm").read_text():
                return f"found pid {pid}"
    raise OSError(errno.ESRCH, f"{len(seen)} processes seen, all its own")


def attach_to_host_process(given: dict[str, Any]) -> str:
    pid = ctypes.c_long(given["pid"])
    return _check(_libc.ptrace(ctypes.c_long(_PTRACE_ATTACH), pid, None, None))


def open_disk(given: dict[str, Any]) -> str:
    """The host's disks, by the names they have, and by a device node of one's own."""
    for name in ("sda", "vda", "nvme0n1", "xvda"):
        with contextlib.suppress(OSError):
            os.close(os.open(f"/dev/{name}", os.O_RDONLY))
            return f"opened /dev/{name}"
    os.mknod("/tmp/disk", 0o060600, os.makedev(*given["disk"]))
    os.close(os.open("/tmp/disk", os.O_RDONLY))
    return "opened a device node"


def open_memory(given: dict[str, Any]) -> str:
    with contextlib.suppress(OSError):
        os.close(os.open("/proc/kcore", os.O_RDONLY))
        if os.stat("/proc/kcore").st_size:
            return "opened /proc/kcore"
    os.close(os.open("/dev/mem", os.O_RDWR))
    return "opened /dev/mem"


def open_kvm(given: dict[str, Any]) -> str:
    os.close(os.open("/dev/kvm", os.O_RDWR))
    return "opened /dev/kvm"


def mount(given: dict[str, Any]) -> str:
    os.makedirs("/tmp/mounted", exist_ok=True)
    return _check(_libc.mount(b"proc", b"/tmp/mounted", b"proc", 0, None))


def new_user_namespace(given: dict[str, Any]) -> str:
    """Root in a namespace of its own is how many kernel bugs are reached."""
    child = os.fork()
    if child == 0:
        os._exit(ctypes.get_errno() if _libc.unshare(_CLONE_NEWUSER) else 0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, os.strerror(status))
    return "done"


def set_core_pattern(given: dict[str, Any]) -> str:
    """The program the host's kernel starts, as root, when something crashes."""
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return "opened for writing"


def set_clock(given: dict[str, Any]) -> str:
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return "done"


def load_module(given: dict[str, Any]) -> str:
    return _syscall("init_module", b"", 0, b"")


def use_keyring(given: dict[str, Any]) -> str:
    return _syscall("keyctl", 0, -3, 1)


def load_bpf(given: dict[str, Any]) -> str:
    attributes = ctypes.create_string_buffer(b"\1\0\0\0\4\0\0\0\4\0\0\0\1\0\0\0", 128)
    return _syscall("bpf", 0, attributes, 128)


def use_io_uring(given: dict[str, Any]) -> str:
    return _syscall("io_uring_setup", 4, ctypes.create_string_buffer(120))


def use_perf(given: dict[str, Any]) -> str:
    attributes = ctypes.create_string_buffer(b"\0\0\0\0\x70", 112)
    return _syscall("perf_event_open", attributes, 0, -1, -1, 0)


def connect_to_host(given: dict[str, Any]) -> str:
    """A port that listens on the host's loopback."""
    socket.create_connection(("127.0.0.1", given["port"]), timeout=2).close()
    return "connected"


def connect_to_internet(given: dict[str, Any]) -> str:
    socket.create_connection(("1.1.1.1", 53), timeout=2).close()
    return "connected"


def fill_disk(given: dict[str, Any]) -> str:
    written = 0
    try:
        with open("/var/tmp/fill", "wb", buffering=0) as file:
            while written < given["disk_mib"] * 2**20:
                written += file.write(bytes(2**20))
    except OSError as error:
        raise OSError(error.errno, f"full after {written // 2**20} MiB") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink("/var/tmp/fill")
    return f"wrote {written // 2**20} MiB"


def fork_without_end(given: dict[str, Any]) -> str:
    """Children that only wait, until there are no more; they go with this process."""
    children = []
    try:
        for _ in range(given["forks"]):
            child = os.fork()
            if child == 0:
                time.sleep(30)
                os._exit(0)
            children.append(child)
    except OSError as error:
        raise OSError(error.errno, f"stopped after {len(children)} processes") from None
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
    return f"made {len(children)} processes"


def take_memory(given: dict[str, Any]) -> str:
    """More than there is. This ends the process, or its sandbox."""
    held = [bytearray(2**20) for _ in range(given["memory_mib"])]
    return f"took {len(held)} MiB"


ATTEMPTS: dict[str, Callable[[dict[str, Any]], str]] = {
    function.__name__: function
    for function in (
        read_host_file,
        find_host_process,
        attach_to_host_process,
        connect_to_host,
        connect_to_internet,
        open_disk,
        open_memory,
        open_kvm,
        set_core_pattern,
        set_clock,
        mount,
        load_module,
        new_user_namespace,
        load_bpf,
        use_io_uring,
        use_perf,
        use_keyring,
        fill_disk,
    )
}
# Run by themselves, as they may end more than the attempt.
BOMBS = {function.__name__: function for function in (fork_without_end, take_memory)}


def attempt(function: Callable[[dict[str, Any]], str], given: dict[str, Any]) -> dict[str, Any]:
    """What came of it: ``done`` with words, or ``refused`` with what the kernel said."""
    try:
        return {"done": True, "answer": function(given)}
    except OSError as error:
        return {"done": False, "answer": error.strerror or str(error)}
    except Exception as error:
        return {"done": False, "answer": f"{type(error).__name__}: {error}"}


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    given = json.loads(arguments[0])
    if len(arguments) > 1:
        say({"name": arguments[1], **attempt(BOMBS[arguments[1]], given)})
        return
    say({"kernel": platform.release()})
    say({"result": compute()})
    for name, function in ATTEMPTS.items():
        say({"name": name, **attempt(function, given)})


if __name__ == "__main__":
    main(sys.argv[1:])
