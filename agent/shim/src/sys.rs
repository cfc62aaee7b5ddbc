//! Thin, safe wrappers around the system calls the shim needs. Every other module stays free of
//! pointer work as far as it can.

use std::ffi::CString;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Failures travel as text: their only readers are the exit record and the person behind it.
pub type Result<T> = std::result::Result<T, String>;

/// Adds what was attempted to an error of the system.
pub trait Context<T> {
    fn context<D: Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context<D: Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| format!("{}: {error}", what()))
    }
}

/// The return value of a system call, or the error it left in errno.
pub fn check(value: libc::c_long) -> io::Result<libc::c_long> {
    if value < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

pub fn check_int(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

fn check_size(value: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}

pub fn c_string(bytes: impl AsRef<[u8]>) -> io::Result<CString> {
    CString::new(bytes.as_ref())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte in a string"))
}

pub fn c_path(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str().as_bytes())
}

/// Takes ownership of a descriptor a system call has just returned.
pub fn own(raw: RawFd) -> OwnedFd {
    // SAFETY: callers pass the fresh result of a successful system call; nobody else holds it.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

/// Takes a descriptor this process was started with; none of them is meant for a child.
pub fn inherited(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: a plain flag call; it fails when the descriptor is not open.
    check_int(unsafe { libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    Ok(own(raw))
}

/// Makes the number of `old` a copy of `new`.
pub fn replace(old: &OwnedFd, new: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are alive; the number of `old` stays open throughout.
    check_int(unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) }).map(drop)
}

/// Away from the terminal and the process group of the caller; a leader already is.
pub fn become_session_leader() {
    // SAFETY: no memory is involved.
    unsafe { libc::setsid() };
}

/// Closes every descriptor from `first` on. Only before anything has been opened.
pub fn close_from(first: RawFd) -> io::Result<()> {
    let all = libc::c_uint::MAX;
    // SAFETY: nothing in this process holds one of them yet.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, all, 0) }).map(drop)
}

pub fn set_file_mask(mask: libc::mode_t) {
    // SAFETY: cannot fail and touches no memory.
    unsafe { libc::umask(mask) };
}

/// Processes whose parent dies become children of this one.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: a plain attribute of the process.
    check_int(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// The "current directory" anchor of the *at calls.
pub fn cwd() -> BorrowedFd<'static> {
    // SAFETY: AT_FDCWD is a constant that the kernel accepts in place of a descriptor, never closed.
    unsafe { BorrowedFd::borrow_raw(libc::AT_FDCWD) }
}

pub fn open_at(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    let raw = unsafe {
        libc::openat(
            dir.as_raw_fd(),
            path.as_ptr(),
            flags | libc::O_CLOEXEC,
            libc::c_uint::from(mode),
        )
    };
    check_int(raw).map(own)
}

pub fn open(path: &Path, flags: libc::c_int) -> io::Result<OwnedFd> {
    open_at(cwd(), path, flags, 0)
}

pub fn mkdir(path: &Path, mode: libc::mode_t) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    check_int(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(drop)
}

/// unlinkat(2); `flags` is 0 or AT_REMOVEDIR.
pub fn unlink_at(dir: BorrowedFd<'_>, path: &Path, flags: libc::c_int) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    check_int(unsafe { libc::unlinkat(dir.as_raw_fd(), path.as_ptr(), flags) }).map(drop)
}

pub fn rename_at(
    from_dir: BorrowedFd<'_>,
    from: &Path,
    to_dir: BorrowedFd<'_>,
    to: &Path,
) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    // SAFETY: both paths are NUL-terminated and outlive the call.
    check_int(unsafe {
        libc::renameat(
            from_dir.as_raw_fd(),
            from.as_ptr(),
            to_dir.as_raw_fd(),
            to.as_ptr(),
        )
    })
    .map(drop)
}

pub fn mount(
    source: &str,
    target: &Path,
    file_system: &str,
    flags: libc::c_ulong,
    data: impl AsRef<[u8]>,
) -> io::Result<()> {
    let (source, target) = (c_string(source)?, c_path(target)?);
    let (file_system, data) = (c_string(file_system)?, c_string(data)?);
    // SAFETY: all four strings are NUL-terminated and outlive the call.
    check_int(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            file_system.as_ptr(),
            flags,
            data.as_ptr().cast(),
        )
    })
    .map(drop)
}

/// Detaches a mount of this namespace; it goes for good with its last user.
pub fn detach(target: &Path) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    check_int(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) })
        .map(drop)
}

/// The magic number of the file system an open file lies on.
pub fn file_system_type(fd: &OwnedFd) -> io::Result<libc::c_long> {
    // SAFETY: the structure is plain data for which all zeroes are valid.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `answer` is writable.
    check_int(unsafe { libc::fstatfs(fd.as_raw_fd(), &mut answer) })?;
    Ok(answer.f_type)
}

pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    check_int(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(ends[0]), own(ends[1])))
}

/// Descriptor flags of one open file description; both ends of a pipe have one of their own.
pub fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: plain flag calls on a descriptor that is alive.
    let flags = check_int(unsafe { libc::fcntl(raw, libc::F_GETFL) })?;
    // SAFETY: as above.
    check_int(unsafe { libc::fcntl(raw, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Asks for a larger pipe; a refusal only costs speed.
pub fn enlarge_pipe(fd: &impl AsFd, bytes: libc::c_int) {
    // SAFETY: a plain call on a descriptor that is alive.
    unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable for its whole length.
    check_size(unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are readable for their whole length.
    check_size(unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

/// Reads from a socket without waiting, whatever the flags of its description.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is writable for its whole length.
    check_size(unsafe {
        libc::recv(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    })
}

/// Writes to a socket without waiting and without SIGPIPE.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are readable for their whole length.
    check_size(unsafe {
        libc::send(
            fd.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    })
}

/// A call that would have had to wait, as opposed to one that failed.
pub fn would_block(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// poll(2); a negative descriptor is skipped by the kernel. `None` waits for ever.
pub fn poll(entries: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    // Rounded up, so that a deadline has passed when the call returns.
    let milliseconds = timeout.map_or(-1, |left| {
        libc::c_int::try_from(left.as_micros().div_ceil(1000)).unwrap_or(libc::c_int::MAX)
    });
    // SAFETY: the entries are writable for their whole length.
    let result = unsafe {
        libc::poll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            milliseconds,
        )
    };
    match check_int(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// How a process ended: exit code, or -1 and the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: i32,
    pub signal: i32,
}

impl Ended {
    fn from_wait_status(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Ended {
                code: -1,
                signal: libc::WTERMSIG(status),
            }
        } else {
            Ended {
                code: libc::WEXITSTATUS(status),
                signal: 0,
            }
        }
    }
}

impl Display for Ended {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.signal != 0 {
            write!(out, "was killed by signal {}", self.signal)
        } else {
            write!(out, "left with exit status {}", self.code)
        }
    }
}

/// What waiting for any child gave.
pub enum Reaped {
    Process(libc::pid_t, Ended),
    NoneEnded,
    NoChildren,
}

pub fn reap_one() -> Reaped {
    let mut status = 0;
    // SAFETY: `status` is writable.
    match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
        0 => Reaped::NoneEnded,
        pid if pid > 0 => Reaped::Process(pid, Ended::from_wait_status(status)),
        _ => Reaped::NoChildren,
    }
}

/// Waits for one child that is certain to end.
pub fn reap_blocking(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is writable.
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

pub fn kill(pid: libc::pid_t) {
    // SAFETY: no memory is involved; callers pass pids of their own children.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// True while `pid` is an unreaped child of this process.
pub fn is_child(pid: libc::pid_t) -> bool {
    // SAFETY: siginfo_t is plain data for which all zeroes are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable.
    unsafe { libc::waitid(libc::P_PID, pid.unsigned_abs(), &mut info, flags) == 0 }
}

pub fn pidfd_open(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    let raw = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    Ok(own(raw as RawFd))
}

pub fn pidfd_kill(pidfd: &OwnedFd) {
    // SAFETY: the siginfo pointer may be null by the contract of the call.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
}

pub fn change_owner_and_mode(fd: &OwnedFd, uid: u32, gid: u32, mode: u32) -> io::Result<()> {
    // SAFETY: plain calls on a descriptor that is alive.
    check_int(unsafe { libc::fchown(fd.as_raw_fd(), uid, gid) })?;
    // SAFETY: as above.
    check_int(unsafe { libc::fchmod(fd.as_raw_fd(), mode) }).map(drop)
}

/// Blocks the signals the shim handles and returns the descriptor that reports them.
pub fn signal_descriptor(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain data; sigemptyset initialises it before use.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable.
    unsafe { libc::sigemptyset(&mut set) };
    for signal in signals {
        // SAFETY: `set` is an initialised set.
        unsafe { libc::sigaddset(&mut set, *signal) };
    }
    // SAFETY: `set` is initialised; the old mask is not asked for.
    check_int(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) })?;
    // SAFETY: `set` is initialised and outlives the call.
    check_int(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) }).map(own)
}

/// The number of the next pending signal, if one is pending.
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<libc::c_int> {
    let mut record = [0u8; std::mem::size_of::<libc::signalfd_siginfo>()];
    match read(fd, &mut record) {
        Ok(size) if size == record.len() => {
            // ssi_signo is the first field of the record.
            let number = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
            libc::c_int::try_from(number).ok()
        }
        _ => None,
    }
}
