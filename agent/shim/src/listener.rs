//! `<dir>/agent.sock`, where the next client of a sandbox connects. Only processes of the shim's own
//! user get in; the mode of the directory keeps the others from coming near.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::sys::{self, Context, Result};

pub const NAME: &str = "agent.sock";

pub struct Listener {
    socket: UnixListener,
}

impl Listener {
    pub fn bind(directory: BorrowedFd<'_>) -> Result<Self> {
        // What a predecessor left; a directory in its place makes the bind fail.
        let _ = sys::unlink_at(directory, Path::new(NAME), 0);
        // Through the descriptor, because a socket address is short and a directory's path need not be.
        let path = format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd());
        let socket = UnixListener::bind(path).context(|| NAME)?;
        socket.set_nonblocking(true).context(|| NAME)?;
        Ok(Listener { socket })
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next client that may be one.
    pub fn accept(&self) -> Option<OwnedFd> {
        loop {
            let (stream, _) = self.socket.accept().ok()?;
            let client = OwnedFd::from(stream);
            if peer_uid(&client).is_ok_and(|uid| uid == own_uid()) {
                return Some(client);
            }
        }
    }
}

fn own_uid() -> libc::uid_t {
    // SAFETY: cannot fail and touches no memory.
    unsafe { libc::geteuid() }
}

fn peer_uid(client: &OwnedFd) -> io::Result<libc::uid_t> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = std::mem::size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer has room for `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            client.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut size,
        )
    };
    sys::check(result.into())?;
    Ok(credentials.uid)
}
