//! Images shown under a sandbox's own uid range: a private clone of the image's mount, id-mapped and
//! read-only. The image itself is shared and never changed.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use crate::sys::{self, Context, Result};

/// User namespaces made so far, by their range; the steps of one sandbox nearly always share one.
#[derive(Default)]
pub struct UserNamespaces {
    made: Vec<(u32, u32, OwnedFd)>,
}

impl UserNamespaces {
    pub fn get(&mut self, base: u32, count: u32) -> Result<&OwnedFd> {
        let known = self
            .made
            .iter()
            .position(|entry| (entry.0, entry.1) == (base, count));
        let index = match known {
            Some(index) => index,
            None => {
                let namespace = make_user_namespace(base, count)
                    .context(|| format!("user namespace for {base}+{count}"))?;
                self.made.push((base, count, namespace));
                self.made.len() - 1
            }
        };
        Ok(&self.made[index].2)
    }
}

/// A namespace lives by its descriptor alone, so the child that opened it may go at once. It waits on
/// a pipe whose other end only the shim holds: should the shim die, the child does too.
fn make_user_namespace(base: u32, count: u32) -> Result<OwnedFd> {
    let (wait_end, hold_end) = sys::pipe().context(|| "pipe")?;
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    let no_pointer = std::ptr::null::<u8>();
    // SAFETY: fork semantics (no shared memory, no new stack); the child only reads and exits.
    let pid = sys::check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            no_pointer,
            no_pointer,
            no_pointer,
            no_pointer,
        )
    })
    .context(|| "clone")?;
    if pid == 0 {
        // SAFETY: raw calls on the child's own descriptors, then exit without unwinding.
        unsafe {
            libc::close(hold_end.as_raw_fd());
            let mut byte = 0u8;
            libc::read(wait_end.as_raw_fd(), (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
    let pid = pid as libc::pid_t;
    let map = format!("0 {base} {count}\n");
    let opened = write_map(pid, "uid_map", &map)
        .and_then(|()| write_map(pid, "gid_map", &map))
        .and_then(|()| {
            let path = PathBuf::from(format!("/proc/{pid}/ns/user"));
            sys::open(&path, libc::O_RDONLY).context(|| "opening the namespace")
        });
    drop(hold_end);
    sys::reap_blocking(pid);
    opened
}

fn write_map(pid: libc::pid_t, name: &str, map: &str) -> Result<()> {
    std::fs::write(format!("/proc/{pid}/{name}"), map).context(|| name.to_owned())
}

pub fn bind(source: &Path, target: &Path, namespace: &OwnedFd, suid: bool) -> Result<()> {
    let clone = open_tree(source).context(|| format!("cloning the mount {}", source.display()))?;
    set_attributes(&clone, namespace, suid)
        .context(|| format!("mapping the ids of {}", source.display()))?;
    move_mount(&clone, target).context(|| format!("mounting at {}", target.display()))
}

fn open_tree(source: &Path) -> std::io::Result<OwnedFd> {
    let source = sys::c_path(source)?;
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    // SAFETY: the path is NUL-terminated and outlives the call.
    let raw = sys::check(unsafe {
        libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags)
    })?;
    Ok(sys::own(raw as RawFd))
}

fn set_attributes(mount: &OwnedFd, namespace: &OwnedFd, suid: bool) -> std::io::Result<()> {
    let mut set = libc::MOUNT_ATTR_IDMAP | libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV;
    if !suid {
        set |= libc::MOUNT_ATTR_NOSUID;
    }
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: namespace.as_raw_fd() as u64,
    };
    let empty = CString::default();
    // SAFETY: the path and the attributes outlive the call; the size is that of the structure.
    sys::check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            std::mem::size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

fn move_mount(mount: &OwnedFd, target: &Path) -> std::io::Result<()> {
    let (empty, target) = (CString::default(), sys::c_path(target)?);
    // SAFETY: both paths are NUL-terminated and outlive the call.
    sys::check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            empty.as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
    .map(drop)
}
