//! Terminals.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use fourwalls_protocol::request::PtySize;

use crate::sys;

/// The two ends of a new terminal.
#[derive(Debug)]
pub struct Pty {
    /// The end of whoever shows it.
    pub master: OwnedFd,
    /// The end of the program.
    pub slave: OwnedFd,
}

/// Make a terminal that belongs to `uid`.
pub fn open(size: PtySize, uid: u32) -> io::Result<Pty> {
    let flags = libc::O_RDWR | libc::O_NOCTTY;
    let master = sys::open(c"/dev/ptmx", flags).or_else(|_| sys::open(c"/dev/pts/ptmx", flags))?;
    let unlocked: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int.
    sys::check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) })?;
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGPTN writes one unsigned int.
    sys::check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) })?;
    let path = CString::new(format!("/dev/pts/{number}"))?;
    let slave = sys::open(&path, flags)?;
    // The user may open it again by name. Where the owner cannot be changed that is all that is lost.
    // SAFETY: fchown takes numbers; -1 leaves the group that devpts chose.
    unsafe { libc::fchown(slave.as_raw_fd(), uid, u32::MAX) };
    resize(&slave, size)?;
    Ok(Pty { master, slave })
}

/// Tell the terminal its size.
pub fn resize(end: &OwnedFd, size: PtySize) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCSWINSZ reads one winsize.
    sys::check(unsafe { libc::ioctl(end.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).map(drop)
}

/// Tell the programs in front on the terminal that its size is another one.
///
/// Linux does it by itself, gVisor does not. To hear it twice does no harm.
pub fn tell_resized(end: &OwnedFd, session: u32) {
    let mut group: libc::pid_t = 0;
    // SAFETY: TIOCGPGRP writes one pid.
    let result = unsafe { libc::ioctl(end.as_raw_fd(), libc::TIOCGPGRP, &raw mut group) };
    if result < 0 || group <= 1 {
        group = session as libc::pid_t;
    }
    // SAFETY: takes two numbers; the group is above 1, so -1 is never meant.
    unsafe { libc::kill(-group, libc::SIGWINCH) };
}
