"""Runs inside a sandbox: attempts what the boundary should refuse, prints JSON {attempt: outcome}.

An outcome is the name of an errno, ``ok`` where the call went through, or what was found. An
attempt that would change this process has one of its own, so that it does not change the next.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import platform
import socket
import struct
import sys
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# x86_64, then the generic table (aarch64); -1 where there is no such call.
NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "listmount": (458, 458),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, -1),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "statmount": (457, 457),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
NEW = {
    "NS": 0x00020000,
    "CGROUP": 0x02000000,
    "UTS": 0x04000000,
    "IPC": 0x08000000,
    "USER": 0x10000000,
    "PID": 0x20000000,
    "NET": 0x40000000,
    "TIME": 0x00000080,
}
SIGCHLD = 17
AT_FDCWD = -100
CLOCK_REALTIME = 0
ZEROS = ctypes.create_string_buffer(4096)
FAMILIES = {
    "AX25": 3,
    "APPLETALK": 5,
    "X25": 9,
    "KEY": 15,
    "PACKET": 17,
    "RDS": 21,
    "PPPOX": 24,
    "CAN": 29,
    "TIPC": 30,
    "BLUETOOTH": 31,
    "ALG": 38,
    "NFC": 39,
    "VSOCK": 40,
    "XDP": 44,
}
DEVICES = {
    "mem": (1, 1),
    "kmsg": (1, 11),
    "sda": (8, 0),
    "vda": (254, 0),
    "loop0": (7, 0),
    "loop-control": (10, 237),
    "kvm": (10, 232),
    "fuse": (10, 229),
    "net/tun": (10, 200),
    "vhost-net": (10, 238),
    "vhost-vsock": (10, 241),
    "userfaultfd": (10, 126),
    "uinput": (10, 223),
    "port": (1, 4),
}
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/proc/1/oom_score_adj",
    "/proc/1/mem",
    "/proc/1/fd/1",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/memory/release_agent",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/cgroup.procs",
    "/.fourwalls/agent",
)
SECRETS = (
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpageflags",
    "/proc/modules",
    "/proc/partitions",
    "/proc/sched_debug",
    "/proc/slabinfo",
    "/proc/swaps",
    "/proc/timer_list",
    "/proc/vmallocinfo",
    "/proc/1/environ",
    "/proc/1/maps",
    "/sys/kernel/notes",
    "/sys/kernel/vmcoreinfo",
    "/sys/kernel/debug",
    "/sys/firmware/dmi",
    "/sys/class/net/lo/address",
)


def call(name: str, *arguments: object) -> str:
    number = NUMBERS[name][COLUMN]
    if number < 0:
        return "ENOSYS"
    ctypes.set_errno(0)
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *given)
    if name == "clone" and result == 0:
        os._exit(0)
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def outcome_of(work: Callable[[], object]) -> str:
    try:
        return str(work() or "ok")
    except OSError as error:
        return errno.errorcode[error.errno] if error.errno else type(error).__name__


def attempted(work: Callable[[], object]) -> str:
    """The outcome of ``work`` in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, outcome_of(work).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        text = answer.read().decode()
    _, status = os.waitpid(child, 0)
    return text or f"signal {os.WTERMSIG(status)}"


def clone3(flags: int) -> str:
    arguments = struct.pack("<11Q", flags, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, 0)
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(435), arguments, ctypes.c_long(len(arguments)))
    if result == 0:
        os._exit(0)
    return "ok" if result > 0 else errno.errorcode[ctypes.get_errno()]


def process_vm(name: str, pid: int) -> str:
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("<QQ", ctypes.addressof(buffer), 8)
    return call(name, pid, local, 1, local, 1, 0)


def victim(work: Callable[[int], str]) -> str:
    """``work`` on a sleeping process of the same user that is no child of the one that tries."""
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/sleep", ["sleep", "30"])
    try:
        return attempted(lambda: work(pid))
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def foreign(code: bytes) -> str:
    """Machine code that makes a system call by another ABI."""
    if COLUMN:
        return "no such ABI"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return "ok" if run() > 0 else "refused"


def calls() -> dict[str, Callable[[], object]]:
    """System calls that change the machine, look into others, or make new walls to climb."""
    path = b"/tmp"
    here: dict[str, Callable[[], object]] = {
        "mount tmpfs": lambda: call("mount", b"none", path, b"tmpfs", 0, None),
        "mount proc": lambda: call("mount", b"none", path, b"proc", 0, None),
        "mount bind": lambda: call("mount", b"/etc", path, None, 4096, None),
        "remount agent": lambda: call("mount", None, b"/.fourwalls/agent", None, 32 | 4096, None),
        "umount2 agent": lambda: call("umount2", b"/.fourwalls/agent", 2),
        "umount2 /proc/sys": lambda: call("umount2", b"/proc/sys", 2),
        "pivot_root": lambda: call("pivot_root", path, path),
        "fsopen": lambda: call("fsopen", b"tmpfs", 0),
        "fsconfig": lambda: call("fsconfig", 0, 0, None, None, 0),
        "fsmount": lambda: call("fsmount", 0, 0, 0),
        "fspick": lambda: call("fspick", AT_FDCWD, path, 0),
        "open_tree": lambda: call("open_tree", AT_FDCWD, path, 1),
        "open_tree_attr": lambda: call("open_tree_attr", AT_FDCWD, path, 1, None, 0),
        "move_mount": lambda: call("move_mount", AT_FDCWD, path, AT_FDCWD, path, 0),
        "mount_setattr": lambda: call("mount_setattr", AT_FDCWD, path, 0, ZEROS, 32),
        "statmount": lambda: call("statmount", ZEROS, ZEROS, 256, 0),
        "listmount": lambda: call("listmount", ZEROS, ZEROS, 1, 0),
        "clone3": lambda: clone3(0),
        "setns": lambda: call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0),
        "bpf": lambda: call("bpf", 0, struct.pack("<5I", 2, 4, 4, 1, 0) + bytes(108), 128),
        "perf_event_open": lambda: call("perf_event_open", ZEROS, 0, -1, -1, 0),
        "userfaultfd": lambda: call("userfaultfd", 1),
        "io_uring_setup": lambda: call("io_uring_setup", 4, ZEROS),
        "io_uring_enter": lambda: call("io_uring_enter", 0, 0, 0, 0, None, 0),
        "io_uring_register": lambda: call("io_uring_register", 0, 0, None, 0),
        "keyctl": lambda: call("keyctl", 0, -3, 1),
        "add_key": lambda: call("add_key", b"user", b"probe", b"x", 1, -2),
        "request_key": lambda: call("request_key", b"user", b"probe", None, -2),
        "name_to_handle_at": lambda: call(
            "name_to_handle_at", AT_FDCWD, path, ctypes.create_string_buffer(256), ZEROS, 0
        ),
        "open_by_handle_at": lambda: call(
            "open_by_handle_at", AT_FDCWD, struct.pack("<Ii", 8, 1) + bytes(8), 0
        ),
        "lookup_dcookie": lambda: call("lookup_dcookie", 0, ZEROS, 4096),
        "fanotify_init": lambda: call("fanotify_init", 0, 0),
        "kcmp": lambda: call("kcmp", os.getpid(), os.getppid(), 2, 0, 0),
        "process_vm_readv pid 1": lambda: process_vm("process_vm_readv", 1),
        "process_vm_writev pid 1": lambda: process_vm("process_vm_writev", 1),
        "process_vm_readv other": lambda: victim(lambda p: process_vm("process_vm_readv", p)),
        "pidfd_getfd pid 1": lambda: call("pidfd_getfd", os.pidfd_open(1), 1, 0),
        "pidfd_getfd other": lambda: victim(lambda p: call("pidfd_getfd", os.pidfd_open(p), 0, 0)),
        "ptrace attach pid 1": lambda: call("ptrace", 16, 1, None, None),
        "ptrace seize pid 1": lambda: call("ptrace", 0x4206, 1, None, None),
        "process_madvise": lambda: call("process_madvise", os.pidfd_open(1), ZEROS, 1, 20, 0),
        "move_pages": lambda: call("move_pages", 1, 1, ZEROS, None, ZEROS, 2),
        "migrate_pages": lambda: call("migrate_pages", 1, 64, ZEROS, ZEROS),
        "syslog read all": lambda: call("syslog", 3, ZEROS, 4096),
        "syslog clear": lambda: call("syslog", 5, None, 0),
        "kexec_load": lambda: call("kexec_load", 0, 0, None, 0),
        "kexec_file_load": lambda: call("kexec_file_load", -1, -1, 0, None, 0),
        "init_module": lambda: call("init_module", ZEROS, 4096, b""),
        "finit_module": lambda: call("finit_module", 0, b"", 0),
        "delete_module": lambda: call("delete_module", b"none", 0),
        "reboot": lambda: call("reboot", 0xFEE1DEAD, 672274793, 0, None),
        "settimeofday": lambda: call("settimeofday", struct.pack("<qq", 1, 0), None),
        "clock_settime": lambda: call("clock_settime", CLOCK_REALTIME, struct.pack("<qq", 1, 0)),
        "clock_adjtime": lambda: call(
            "clock_adjtime", CLOCK_REALTIME, struct.pack("<I", 1) + bytes(204)
        ),
        "adjtimex": lambda: call("adjtimex", struct.pack("<I", 1) + bytes(204)),
        "swapon": lambda: call("swapon", b"/tmp/none", 0),
        "swapoff": lambda: call("swapoff", b"/tmp/none"),
        "acct": lambda: call("acct", b"/tmp/none"),
        "quotactl": lambda: call("quotactl", 0x800001 << 8, b"/dev/vda", 0, ZEROS),
        "quotactl_fd": lambda: call("quotactl_fd", 0, 0, 0, None),
        "sethostname": lambda: call("sethostname", b"probe", 5),
        "setdomainname": lambda: call("setdomainname", b"probe", 5),
        "vhangup": lambda: call("vhangup"),
        "iopl": lambda: call("iopl", 3),
        "ioperm": lambda: call("ioperm", 0x80, 1, 1),
        "modify_ldt": lambda: call("modify_ldt", 0, ZEROS, 16),
        "vmsplice": lambda: call("vmsplice", os.pipe()[1], struct.pack("<QQ", 0, 0), 1, 0),
        # getpid: by int 0x80, and with the bit of the x32 ABI.
        "32-bit call": lambda: foreign(b"\xb8\x14\0\0\0\xcd\x80\xc3"),
        "x32 call": lambda: foreign(b"\xb8\x27\0\0\x40\x0f\x05\xc3"),
        "chroot /": lambda: call("chroot", b"/"),
        "chroot /proc/1/root": lambda: call("chroot", b"/proc/1/root"),
    }
    for name, flag in NEW.items():
        here[f"unshare {name}"] = lambda flag=flag: call("unshare", flag)
        if name != "TIME":
            here[f"clone {name}"] = lambda flag=flag: call("clone", flag | SIGCHLD, 0, 0, 0, 0)
        here[f"clone3 {name}"] = lambda flag=flag: clone3(flag)
    for value in (0x0, 0x8, 0xFFFFFFFF, 0x40000, 0x400000, 0x100000, 0x10000000):
        here[f"personality {value:#x}"] = lambda value=value: call("personality", value)
    return here


def sockets() -> dict[str, Callable[[], object]]:
    kinds: dict[str, Callable[[], object]] = {
        f"socket {name}": lambda number=number: socket.socket(number, socket.SOCK_DGRAM).close()
        for name, number in FAMILIES.items()
    }
    raw = socket.SOCK_RAW
    kinds |= {
        "socket UNIX": lambda: socket.socket(socket.AF_UNIX).close(),
        "socket INET": lambda: socket.socket(socket.AF_INET).close(),
        "socket INET6": lambda: socket.socket(socket.AF_INET6).close(),
        "socket INET raw icmp": lambda: socket.socket(socket.AF_INET, raw, 1).close(),
        "socket INET6 raw icmp": lambda: socket.socket(socket.AF_INET6, raw, 58).close(),
        "socket INET raw": lambda: socket.socket(socket.AF_INET, raw, 255).close(),
        "socket PACKET raw": lambda: socket.socket(17, raw, 0x300).close(),
        "socket NETLINK route": lambda: socket.socket(16, raw, 0).close(),
        "socket NETLINK netfilter": lambda: socket.socket(16, raw, 12).close(),
        "socket NETLINK audit": lambda: socket.socket(16, raw, 9).close(),
    }
    return kinds


def opened(path: str, flags: int) -> str:
    fd = os.open(path, flags | os.O_NONBLOCK)
    try:
        return "ok" if flags & os.O_WRONLY else "readable" if os.read(fd, 4096) else "empty"
    finally:
        os.close(fd)


def made_device(major: int, minor: int, kind: int) -> str:
    """Make a device and open it: only the second is a danger."""
    path = f"/tmp/device-{os.getpid()}"
    os.mknod(path, kind | 0o666, os.makedev(major, minor))
    try:
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        return f"made, open {errno.errorcode[error.errno or 0]}"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    os.close(fd)
    return "made and opened"


def files() -> dict[str, Callable[[], object]]:
    """Devices, settings of the kernel, and what tells about the host."""
    found: dict[str, Callable[[], object]] = {}
    for name, (major, minor) in DEVICES.items():
        kind = 0o060000 if name in ("sda", "vda", "loop0") else 0o020000
        found[f"open /dev/{name}"] = lambda name=name: opened(f"/dev/{name}", os.O_RDONLY)
        found[f"mknod {name}"] = lambda a=major, b=minor, kind=kind: made_device(a, b, kind)
    for path in SETTINGS:
        found[f"write {path}"] = lambda path=path: opened(path, os.O_WRONLY)
    for path in SECRETS:
        found[f"read {path}"] = lambda path=path: opened(path, os.O_RDONLY)
    return found


# What changes the process that does it, or may kill it.
CHANGING = (
    "unshare",
    "chroot",
    "personality",
    "mount",
    "umount",
    "pivot",
    "ptrace",
    "setns",
    "32-bit",
    "x32",
)
ATTEMPTS = {"calls": calls, "sockets": sockets, "files": files}


if __name__ == "__main__":
    chosen = ATTEMPTS[sys.argv[1]]()
    outcomes = {
        name: attempted(work) if name.startswith(CHANGING) else outcome_of(work)
        for name, work in chosen.items()
    }
    print(json.dumps(outcomes, indent=0))
