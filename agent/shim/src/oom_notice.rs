//! The moment a sandbox runs out of memory, where only all of it can end.
//!
//! Behind some boundaries the kernel cannot kill one process of the guest: whatever it picks is a
//! piece of the sandbox's own kernel, and what is left may live on half. There the first shortage
//! ends the sandbox, so that the outcome is always the same. On v2 the group does that by itself
//! (`memory.oom.group`); on v1 the kernel tells an eventfd (cgroup-v1/memory.rst, section 10).

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::sys::{self, Context, Result};

/// Readable once the group of `oom_control` (its file's full path) has run out of memory.
pub fn watch(directory: BorrowedFd<'_>, oom_control: &str) -> Result<OwnedFd> {
    // SAFETY: takes two numbers.
    let raw = sys::check_int(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
        .context(|| "eventfd")?;
    let notice = sys::own(raw);
    let control =
        sys::open(Path::new(oom_control), libc::O_RDONLY).context(|| oom_control.to_owned())?;
    let order = format!("{} {}", notice.as_raw_fd(), control.as_raw_fd());
    crate::cgroup::write_file(directory, "cgroup.event_control", &order)
        .context(|| "cgroup.event_control")?;
    Ok(notice)
}
