//! The few system calls the standard library has no safe word for.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void};

/// The result of a call that gives -1 and errno.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The same for calls that count bytes.
fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Take over a descriptor a call has just made.
pub fn own(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the call succeeded, so `fd` is open, and nobody else knows of it yet.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a call would have had to wait.
pub fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// A pipe, closed on exec: reading end, writing end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(fds[0])?, own(fds[1])?))
}

/// Make calls on `fd` return instead of waiting.
pub fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl on a number reads and writes no memory of ours.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    if flags & libc::O_NONBLOCK == 0 {
        // SAFETY: as above.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    }
    Ok(())
}

/// Close `fd` in programs that are started.
pub fn set_close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl on a number reads and writes no memory of ours.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// A second descriptor for the same thing, closed on exec.
pub fn duplicate(fd: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl on an open descriptor reads and writes no memory of ours.
    own(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })
}

/// Ask for a larger pipe; it is no loss when it is refused.
pub fn enlarge_pipe(fd: RawFd, bytes: c_int) {
    // SAFETY: fcntl on a number reads and writes no memory of ours.
    unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, bytes) };
}

/// Bytes that wait in a pipe or terminal, 0 where that cannot be told.
pub fn bytes_waiting(fd: RawFd) -> usize {
    let mut count: c_int = 0;
    // SAFETY: FIONREAD writes one int, which `count` is.
    let result = unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut count) };
    if result < 0 {
        0
    } else {
        usize::try_from(count).unwrap_or(0)
    }
}

/// read(2).
pub fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `len` bytes into the buffer.
    check_size(unsafe { libc::read(fd, buffer.as_mut_ptr().cast::<c_void>(), buffer.len()) })
}

/// write(2).
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads at most `len` bytes from the buffer.
    check_size(unsafe { libc::write(fd, bytes.as_ptr().cast::<c_void>(), bytes.len()) })
}

/// readv(2) into two pieces, the second of which may be empty.
pub fn read_vectored(fd: RawFd, pieces: [&mut [u8]; 2]) -> io::Result<usize> {
    let vectors = pieces.map(|piece| libc::iovec {
        iov_base: piece.as_mut_ptr().cast::<c_void>(),
        iov_len: piece.len(),
    });
    let count = if vectors[1].iov_len == 0 { 1 } else { 2 };
    // SAFETY: both vectors describe live, disjoint, writable slices.
    check_size(unsafe { libc::readv(fd, vectors.as_ptr(), count) })
}

/// writev(2) of a head and two pieces.
pub fn write_vectored(fd: RawFd, pieces: [&[u8]; 3]) -> io::Result<usize> {
    let vectors = pieces.map(|piece| libc::iovec {
        iov_base: piece.as_ptr().cast_mut().cast::<c_void>(),
        iov_len: piece.len(),
    });
    let count = if vectors[2].iov_len == 0 { 2 } else { 3 };
    // SAFETY: all vectors describe live slices, and writev only reads them.
    check_size(unsafe { libc::writev(fd, vectors.as_ptr(), count) })
}

/// Wait until `fd` is ready for `events`, at most `milliseconds`.
pub fn wait_for(fd: RawFd, events: i16, milliseconds: c_int) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one pollfd is given, one is announced.
    Ok(check(unsafe { libc::poll(&raw mut poll, 1, milliseconds) })? > 0)
}

/// Open a path of our own choice.
pub fn open(path: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the path ends with NUL.
    own(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0) })
}

/// A descriptor that becomes readable when `wake` is called.
pub fn event() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes two numbers.
    own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// A descriptor that becomes readable when a child ends. SIGCHLD stays blocked from here on.
pub fn child_signals() -> io::Result<OwnedFd> {
    let set = signal_set(&[libc::SIGCHLD]);
    // SAFETY: `set` is initialised; no old mask is asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })?;
    // SAFETY: `set` is initialised.
    own(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })
}

/// A set of the given signals.
pub fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, and sigemptyset initialises it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Send a signal to a process.
pub fn kill(pid: u32, signal: c_int) -> io::Result<()> {
    // SAFETY: kill takes two numbers.
    check(unsafe { libc::kill(pid as libc::pid_t, signal) }).map(drop)
}

/// Send a signal to every process there is, but this one.
pub fn kill_all(signal: c_int) {
    // SAFETY: kill takes two numbers. Nobody left is no failure.
    unsafe { libc::kill(-1, signal) };
}

/// A child that has ended, if there is one: its number and wait status.
pub fn reap() -> io::Result<Option<(u32, c_int)>> {
    let mut status = 0;
    // SAFETY: waitpid writes one int.
    let pid = check(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) })?;
    Ok(u32::try_from(pid)
        .ok()
        .filter(|pid| *pid != 0)
        .map(|pid| (pid, status)))
}

/// Blocks and inodes of the file system at `/`.
pub fn root_usage() -> Option<libc::statfs> {
    // SAFETY: statfs is plain data, and the call fills it.
    unsafe {
        let mut usage: libc::statfs = std::mem::zeroed();
        (libc::statfs(c"/".as_ptr(), &raw mut usage) == 0).then_some(usage)
    }
}

/// Release of the running kernel.
pub fn kernel_release() -> String {
    // SAFETY: utsname is plain data; uname fills it with strings that end with NUL.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        if libc::uname(&raw mut name) < 0 {
            return String::new();
        }
        CStr::from_ptr(name.release.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

/// Random bytes that nobody can foresee.
pub fn random(buffer: &mut [u8]) {
    // SAFETY: the kernel writes at most `len` bytes into the buffer.
    let got = unsafe { libc::getrandom(buffer.as_mut_ptr().cast::<c_void>(), buffer.len(), 0) };
    debug_assert_eq!(usize::try_from(got), Ok(buffer.len()));
}

/// The ids this thread has for files from now on; the thread's other ids stay.
pub fn set_file_system_ids(user: u32, group: u32) {
    // SAFETY: both take a number and change nothing but this thread. They do not report failure; who
    // may not change them goes on with the ids there are. The group goes first: without the user's
    // privilege it could not be changed any more, and coming back the other way round is as well,
    // since what allows it are the capabilities of the thread and not these ids.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, group);
        libc::syscall(libc::SYS_setfsuid, user);
    }
}
