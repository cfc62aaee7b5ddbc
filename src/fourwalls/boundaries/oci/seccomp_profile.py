"""The system calls a container may make: an allow-list, everything else is ENOSYS.

ENOSYS by default makes a C library fall back to an older call; EPERM is for the calls that
programs use to probe for privilege, so that they report it as what it is. Names the runtime's
libseccomp does not know are ignored by it, so new calls may stand here early.
"""

from __future__ import annotations

from typing import Any

_FILES = """
access cachestat chdir chmod chown chroot close close_range copy_file_range creat dup dup2 dup3
faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl
fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat
getcwd getdents getdents64 getxattr getxattrat ioctl lchown lgetxattr link linkat listxattr
listxattrat llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod mknodat newfstatat
open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink
readlinkat readv removexattr removexattrat rename renameat renameat2 rmdir sendfile setxattr
setxattrat splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask
unlink unlinkat utime utimensat utimes write writev
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
"""

_MEMORY = """
brk madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap
mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect
process_mrelease remap_file_pages get_mempolicy set_mempolicy mbind
"""

_PROCESSES = """
arch_prctl capget capset execve execveat exit exit_group fork get_robust_list get_thread_area getcpu
getegid geteuid getgid getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid
getrlimit getrusage getsid gettid getuid ioprio_get ioprio_set kill landlock_add_rule
landlock_create_ruleset landlock_restrict_self pause pidfd_open pidfd_send_signal prctl prlimit64
ptrace restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min
sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp
set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setpgid
setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid sigaltstack tgkill tkill
uname vfork wait4 waitid
"""

_WAITING_AND_TIME = """
alarm clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_pwait
epoll_pwait2 epoll_wait eventfd eventfd2 futex futex_requeue futex_wait futex_waitv futex_wake
getitimer gettimeofday nanosleep poll ppoll pselect6 select setitimer signalfd signalfd4 time
timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
timerfd_gettime timerfd_settime times getrandom sysinfo
io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit
"""

_COMMUNICATION = """
accept accept4 bind connect getpeername getsockname getsockopt listen mq_getsetattr mq_notify
mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2 recvfrom
recvmmsg recvmsg semctl semget semop semtimedop sendmmsg sendmsg sendto setsockopt shmat shmctl
shmdt shmget shutdown socketpair
"""

ALLOWED = tuple(
    sorted(
        {
            *_FILES.split(),
            *_MEMORY.split(),
            *_PROCESSES.split(),
            *_WAITING_AND_TIME.split(),
            *_COMMUNICATION.split(),
        }
    )
)

# Calls whose refusal programs should see as a refusal.
_REFUSED = """
add_key bpf fsconfig fsmount fsopen fspick io_uring_enter io_uring_register io_uring_setup
kcmp keyctl modify_ldt mount mount_setattr move_mount name_to_handle_at open_by_handle_at
open_tree perf_event_open pidfd_getfd pivot_root process_vm_readv process_vm_writev
request_key setns syslog umount umount2 unshare userfaultfd vmsplice
"""

REFUSED = tuple(sorted(_REFUSED.split()))

# UNIX, INET, INET6. Not VSOCK (a way to the hypervisor), ALG, PACKET and the rest. NETLINK speaks
# to two dozen parts of the kernel; programs need the one that lists interfaces and routes.
ALLOWED_SOCKET_FAMILIES = (1, 2, 10)
_AF_NETLINK, _NETLINK_ROUTE = 16, 0

# PER_LINUX, PER_LINUX32, and "only tell me". No flag: ADDR_NO_RANDOMIZE and the like weaken.
ALLOWED_PERSONALITIES = (0x0, 0x8, 0xFFFFFFFF)

_CLONE_NEW_ANYTHING = 0x7E020000
_ENOSYS = 38
_EPERM = 1

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


def seccomp_profile(machine: str) -> dict[str, Any]:
    """The OCI ``linux.seccomp`` object for ``machine`` (``uname -m``), native calls only."""

    def when(index: int, value: int) -> list[dict[str, Any]]:
        return [{"index": index, "value": value, "op": "SCMP_CMP_EQ"}]

    rules: list[dict[str, Any]] = [
        {"names": list(ALLOWED), "action": "SCMP_ACT_ALLOW"},
        {
            "names": ["clone"],
            "action": "SCMP_ACT_ALLOW",
            "args": [
                {
                    "index": 0,
                    "value": _CLONE_NEW_ANYTHING,
                    "valueTwo": 0,
                    "op": "SCMP_CMP_MASKED_EQ",
                }
            ],
        },
        # Its flags stand in memory, where a filter cannot look; callers fall back to clone.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
    ]
    rules += [
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": when(0, family)}
        for family in ALLOWED_SOCKET_FAMILIES
    ]
    rules.append(
        {
            "names": ["socket"],
            "action": "SCMP_ACT_ALLOW",
            "args": [*when(0, _AF_NETLINK), *when(2, _NETLINK_ROUTE)],
        }
    )
    rules += [
        {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": when(0, value)}
        for value in ALLOWED_PERSONALITIES
    ]
    rules.append({"names": list(REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM})
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": _ENOSYS,
        "architectures": [_ARCHITECTURES[machine]],
        "syscalls": rules,
    }
