//! Recursive removal that stays where it was pointed at: no symlink is followed, no mount entered,
//! and a tree of any depth takes a fixed number of descriptors.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// Directories deeper than this are moved up to the top first: whoever made the tree chose its depth.
const DEPTH_LIMIT: usize = 32;

/// Removes what stands at `path`, which may be missing.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // The way to the tree is the caller's own; the tree itself is not trusted.
    let parent = match sys::open(parent, libc::O_PATH | libc::O_DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let name = Path::new(name);
    if remove_leaf(parent.as_fd(), name)? {
        return Ok(());
    }
    let top = open_below(parent.as_fd(), name)?;
    let mut removal = Removal {
        top: top.as_fd(),
        moved: 0,
    };
    // Trees moved up are found by another pass over the top.
    loop {
        let before = removal.moved;
        removal.empty(top.as_fd(), 0)?;
        if removal.moved == before {
            break;
        }
    }
    sys::unlink_at(parent.as_fd(), name, libc::AT_REMOVEDIR)
}

struct Removal<'a> {
    top: BorrowedFd<'a>,
    moved: u64,
}

impl Removal<'_> {
    fn empty(&mut self, directory: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        for name in names(directory)? {
            if remove_leaf(directory, &name)? {
                continue;
            }
            if depth >= DEPTH_LIMIT {
                self.moved += 1;
                let target =
                    PathBuf::from(format!(".removed-{}-{}", std::process::id(), self.moved));
                sys::rename_at(directory, &name, self.top, &target)?;
                continue;
            }
            let child = open_below(directory, &name)?;
            self.empty(child.as_fd(), depth + 1)?;
            sys::unlink_at(directory, &name, libc::AT_REMOVEDIR)?;
        }
        Ok(())
    }
}

/// True when `name` was no directory, or is gone already.
fn remove_leaf(directory: BorrowedFd<'_>, name: &Path) -> io::Result<bool> {
    match sys::unlink_at(directory, name, 0) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EISDIR | libc::EPERM)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a directory without following a link and without entering a mount.
fn open_below(directory: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let name = sys::c_path(name)?;
    // SAFETY: the structure is plain data for which all zeroes are valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_XDEV;
    // SAFETY: the path and the structure outlive the call; the size is that of the structure.
    let raw = sys::check(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            directory.as_raw_fd(),
            name.as_ptr(),
            &raw const how,
            std::mem::size_of::<libc::open_how>(),
        )
    })?;
    Ok(sys::own(raw as RawFd))
}

/// The entries of a directory, read whole before any of them is removed.
fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<PathBuf>> {
    let own = sys::open_at(
        directory,
        Path::new("."),
        libc::O_RDONLY | libc::O_DIRECTORY,
        0,
    )?;
    // SAFETY: the descriptor is a directory; on success the stream owns it.
    let stream = unsafe { libc::fdopendir(own.as_raw_fd()) };
    if stream.is_null() {
        return Err(io::Error::last_os_error());
    }
    let _ = own.into_raw_fd();
    let mut found = Vec::new();
    loop {
        // SAFETY: the stream is open and used by nobody else.
        let entry = unsafe { libc::readdir(stream) };
        if entry.is_null() {
            break;
        }
        // SAFETY: the kernel's name is NUL-terminated and valid until the next call on the stream.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }.to_bytes();
        if name != b"." && name != b".." {
            found.push(PathBuf::from(OsStr::from_bytes(name)));
        }
    }
    // SAFETY: the stream is open; it is not used afterwards.
    unsafe { libc::closedir(stream) };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_removed_and_not_followed_and_depth_does_not_matter() {
        let base = std::env::temp_dir().join(format!("fourwalls-removal-{}", std::process::id()));
        let (tree, outside) = (base.join("tree"), base.join("outside"));
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("kept"), b"x").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        // Deeper than any path or descriptor limit allows in one go.
        let mut at = sys::open(&tree, libc::O_RDONLY).unwrap();
        for _ in 0..1500 {
            let name = c"deeper";
            // SAFETY: the name is NUL-terminated.
            let made = unsafe { libc::mkdirat(at.as_raw_fd(), name.as_ptr(), 0o700) };
            assert_eq!(made, 0);
            at = sys::open_at(at.as_fd(), Path::new("deeper"), libc::O_RDONLY, 0).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(outside.join("kept").exists());
        remove_tree(&base).unwrap();
        remove_tree(&base).unwrap();
        assert!(!base.exists());
    }
}
