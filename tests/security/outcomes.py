"""What each attempt of probe.py ends with, behind each boundary: one outcome each, whole tables.

A call that gVisor answers with ``ok`` was answered by the sentry: ``test_probe`` looks at the host.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from fourwalls.boundaries.oci.render import MASKED_PATHS
from fourwalls.model.boundary import Boundary

from .probe import SECRETS

Outcomes = dict[str, str]


def _each(outcome: str, names: str) -> Outcomes:
    """All of the names, separated by semicolons, end with this outcome."""
    return {" ".join(name.split()): outcome for name in textwrap.dedent(names).split(";")}


# By seccomp, before any argument is looked at, so that root fares no better than a user. ``chroot``
# is allowed by it and needs a capability that nobody has, as do raw sockets and mknod.
_CONTAINER = {
    **_each(
        "ENOSYS",
        """
        open_tree_attr; statmount; listmount; clone3; lookup_dcookie; fanotify_init;
        process_madvise; move_pages; migrate_pages; kexec_load; kexec_file_load; init_module;
        finit_module; delete_module; reboot; settimeofday; clock_settime; clock_adjtime; adjtimex;
        swapon; swapoff; acct; quotactl; quotactl_fd; sethostname; setdomainname; vhangup; iopl;
        ioperm; clone NS; clone3 NS; clone CGROUP; clone3 CGROUP; clone UTS; clone3 UTS;
        clone IPC; clone3 IPC; clone USER; clone3 USER; clone PID; clone3 PID; clone NET;
        clone3 NET; clone3 TIME; personality 0x40000; personality 0x400000; personality 0x100000;
        personality 0x10000000; socket AX25; socket APPLETALK; socket X25; socket KEY;
        socket PACKET; socket RDS; socket PPPOX; socket CAN; socket TIPC; socket BLUETOOTH;
        socket ALG; socket NFC; socket VSOCK; socket XDP; socket PACKET raw;
        socket NETLINK netfilter; socket NETLINK audit
        """,
    ),
    **_each(
        "EPERM",
        """
        mount tmpfs; mount proc; mount bind; remount agent; umount2 agent; umount2 /proc/sys;
        pivot_root; fsopen; fsconfig; fsmount; fspick; open_tree; move_mount; mount_setattr;
        setns; bpf; perf_event_open; userfaultfd; io_uring_setup; io_uring_enter;
        io_uring_register; keyctl; add_key; request_key; name_to_handle_at; open_by_handle_at;
        kcmp; process_vm_readv pid 1; process_vm_writev pid 1; process_vm_readv other;
        pidfd_getfd pid 1; pidfd_getfd other; ptrace attach pid 1; ptrace seize pid 1;
        syslog read all; syslog clear; modify_ldt; vmsplice; chroot /; unshare NS; unshare CGROUP;
        unshare UTS; unshare IPC; unshare USER; unshare PID; unshare NET; unshare TIME;
        socket INET raw icmp; socket INET6 raw icmp; socket INET raw; mknod mem; mknod kmsg;
        mknod sda; mknod vda; mknod loop0; mknod loop-control; mknod kvm; mknod fuse;
        mknod net/tun; mknod vhost-net; mknod vhost-vsock; mknod userfaultfd; mknod uinput;
        mknod port
        """,
    ),
    **_each(
        "ENOENT",
        """
        open /dev/mem; open /dev/kmsg; open /dev/sda; open /dev/vda; open /dev/loop0;
        open /dev/loop-control; open /dev/kvm; open /dev/fuse; open /dev/net/tun;
        open /dev/vhost-net; open /dev/vhost-vsock; open /dev/userfaultfd; open /dev/uinput;
        open /dev/port
        """,
    ),
    **_each(
        "ok",
        """
        personality 0x0; personality 0x8; personality 0xffffffff; socket UNIX; socket INET;
        socket INET6; socket NETLINK route
        """,
    ),
    **_each("signal 31", "32-bit call; x32 call"),
    **_each("EACCES", "chroot /proc/1/root"),
}

# Settings of the host's kernel belong to the host's root; what its kernel does not have is absent
# here, too.
_SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
)
_NOT_MOUNTED = _each(
    "ENOENT",
    """
    write /proc/sys/fs/binfmt_misc/register; write /sys/kernel/uevent_helper;
    write /sys/fs/cgroup/memory/release_agent; write /sys/fs/cgroup/memory/memory.limit_in_bytes;
    write /sys/fs/cgroup/cgroup.procs; read /sys/kernel/notes; read /sys/kernel/vmcoreinfo;
    read /sys/kernel/debug; read /sys/firmware/dmi; read /sys/class/net/lo/address
    """,
)
# The agent: no other process may look into it, whoever it belongs to.
_AGENT = _each(
    "EACCES",
    """
    write /proc/1/oom_score_adj; write /proc/1/mem; write /proc/1/fd/1; write /.fourwalls/agent;
    read /proc/1/environ; read /proc/1/maps
    """,
)


def _container_files() -> Outcomes:
    settings = {
        f"write {path}": "EACCES" if Path(path).exists() else "ENOENT" for path in _SETTINGS
    }
    masked = {
        f"read {path}": "empty" if Path(path).exists() else "ENOENT"
        for path in MASKED_PATHS
        if path in SECRETS
    }
    return {**settings, **masked, **_NOT_MOUNTED, **_AGENT}


_GVISOR = {
    **_each(
        "EPERM",
        """
        mount tmpfs; mount proc; mount bind; remount agent; umount2 agent; umount2 /proc/sys;
        pivot_root; setns; bpf; lookup_dcookie; kcmp; process_vm_readv pid 1;
        process_vm_writev pid 1; process_vm_readv other; ptrace attach pid 1; ptrace seize pid 1;
        move_pages; migrate_pages; kexec_load; kexec_file_load; init_module; finit_module;
        delete_module; reboot; settimeofday; clock_settime; clock_adjtime; adjtimex; swapon;
        swapoff; acct; quotactl; sethostname; setdomainname; vhangup; iopl; ioperm; modify_ldt;
        chroot /; chroot /proc/1/root; unshare NS; unshare UTS; clone UTS; clone3 UTS;
        unshare IPC; clone IPC; clone3 IPC; unshare PID; clone PID; clone3 PID; unshare NET;
        clone NET; clone3 NET; socket PACKET; socket INET raw icmp; socket INET6 raw icmp;
        socket INET raw; socket PACKET raw; open /dev/fuse
        """,
    ),
    **_each(
        "ENOENT",
        """
        open /dev/mem; open /dev/kmsg; open /dev/sda; open /dev/vda; open /dev/loop0;
        open /dev/loop-control; open /dev/kvm; open /dev/vhost-net; open /dev/vhost-vsock;
        open /dev/userfaultfd; open /dev/uinput; open /dev/port;
        write /proc/sys/kernel/core_pattern; write /proc/sys/kernel/modprobe;
        write /proc/sys/vm/drop_caches; write /proc/sys/fs/binfmt_misc/register;
        write /proc/irq/default_smp_affinity; write /sys/kernel/uevent_helper;
        write /sys/fs/cgroup/memory/release_agent;
        write /sys/fs/cgroup/memory/memory.limit_in_bytes; write /sys/fs/cgroup/cgroup.procs;
        read /proc/config.gz; read /proc/diskstats; read /proc/interrupts; read /proc/iomem;
        read /proc/ioports; read /proc/kallsyms; read /proc/kcore; read /proc/key-users;
        read /proc/keys; read /proc/kmsg; read /proc/kpageflags; read /proc/modules;
        read /proc/partitions; read /proc/sched_debug; read /proc/slabinfo; read /proc/swaps;
        read /proc/timer_list; read /proc/vmallocinfo; read /sys/kernel/notes;
        read /sys/kernel/vmcoreinfo; read /sys/kernel/debug; read /sys/firmware/dmi;
        read /sys/class/net/lo/address
        """,
    ),
    **_each(
        "ENOSYS",
        """
        fsopen; fsconfig; fsmount; fspick; open_tree; open_tree_attr; move_mount; mount_setattr;
        statmount; listmount; userfaultfd; io_uring_setup; io_uring_enter; io_uring_register;
        fanotify_init; pidfd_getfd pid 1; pidfd_getfd other; process_madvise; syslog clear;
        quotactl_fd; vmsplice
        """,
    ),
    **_each(
        "ok",
        """
        clone3; keyctl; syslog read all; clone NS; clone3 NS; unshare CGROUP; unshare USER;
        clone USER; clone3 USER; unshare TIME; socket UNIX; socket INET; socket INET6;
        socket NETLINK route
        """,
    ),
    **_each(
        "EAFNOSUPPORT",
        """
        socket AX25; socket APPLETALK; socket X25; socket KEY; socket RDS; socket PPPOX;
        socket CAN; socket TIPC; socket BLUETOOTH; socket ALG; socket NFC; socket VSOCK;
        socket XDP
        """,
    ),
    **_each(
        "made, open ENXIO",
        """
        mknod mem; mknod kmsg; mknod sda; mknod vda; mknod loop0; mknod loop-control; mknod kvm;
        mknod vhost-net; mknod vhost-vsock; mknod userfaultfd; mknod uinput; mknod port
        """,
    ),
    **_each(
        "EACCES",
        """
        add_key; request_key; write /proc/sys/kernel/hostname;
        write /proc/sys/vm/overcommit_memory; write /proc/sys/net/ipv4/ip_forward;
        write /proc/sysrq-trigger; write /proc/1/oom_score_adj; write /proc/1/mem;
        write /proc/1/fd/1; write /.fourwalls/agent
        """,
    ),
    **_each(
        "EINVAL",
        """
        clone CGROUP; clone3 CGROUP; clone3 TIME; personality 0x0; personality 0x8;
        personality 0xffffffff; personality 0x40000; personality 0x400000; personality 0x100000;
        personality 0x10000000
        """,
    ),
    **_each("readable", "read /proc/cmdline; read /proc/1/environ; read /proc/1/maps"),
    **_each("ENOTSUP", "name_to_handle_at; open_by_handle_at"),
    **_each("refused", "32-bit call; x32 call"),
    **_each("EPROTONOSUPPORT", "socket NETLINK netfilter; socket NETLINK audit"),
    **_each("made and opened", "mknod fuse; mknod net/tun"),
    **_each("ENODEV", "perf_event_open"),
    **_each("EBADFD", "open /dev/net/tun"),
}

# The sentry's own files, which root there may open for writing.
_GVISOR_ROOT = {
    "write /proc/sys/kernel/hostname": "ok",
    "write /proc/sys/vm/overcommit_memory": "ok",
    "write /proc/sys/net/ipv4/ip_forward": "ok",
    "write /proc/sysrq-trigger": "ok",
    "write /proc/1/oom_score_adj": "ok",
    # The agent's own pipe: see test_agent.
    "write /proc/1/fd/1": "ok",
    "write /.fourwalls/agent": "EROFS",
}


def expected(boundary: Boundary, user: str) -> Outcomes:
    """The whole table for one boundary and user."""
    if boundary is Boundary.CONTAINER:
        table = {**_CONTAINER, **_container_files()}
        return {**table, "write /proc/1/oom_score_adj": "ok"} if user == "root" else table
    return {**_GVISOR, **_GVISOR_ROOT} if user == "root" else _GVISOR
