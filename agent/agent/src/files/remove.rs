//! `FILE_REMOVE`: recursive, never through a symlink, however deep.
//!
//! The walk holds one directory open at a time and knows the way back by identity, so neither the
//! depth of a tree nor someone who moves parts of it meanwhile leads it astray.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fourwalls_protocol::reply::RemoveResult;
use fourwalls_protocol::request::FilePath;
use fourwalls_protocol::wire;

use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::failure::Failure;
use crate::sys;

impl Agent {
    /// `FILE_REMOVE`.
    pub fn file_remove(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FilePath = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        self.answer_later(stream, move || {
            let existed = remove(path.as_path());
            let existed = existed.map_err(|error| Failure::from_io(path.shown(), &error))?;
            Ok(RemoveResult { existed })
        });
        Ok(())
    }
}

/// Remove whatever is at `path`; whether there was something.
pub fn remove(path: &Path) -> io::Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        // The root, or a path that ends in `..`.
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    };
    let name = c_string(name)?;
    let parent = match sys::open(&c_string(parent.as_os_str())?, DIRECTORY) {
        Ok(parent) => parent,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match unlink(&parent, &name, 0) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if may_be_directory(&error) => remove_tree(parent, name, &error).map(|()| true),
        Err(error) => Err(error),
    }
}

const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY;

/// Identity of a directory.
type Identity = (u64, u64);

fn remove_tree(parent: OwnedFd, name: CString, reason: &io::Error) -> io::Result<()> {
    let mut way: Vec<(CString, Identity)> = Vec::new();
    let Some(mut here) = enter(&parent, &name)? else {
        return Err(io::Error::from_raw_os_error(
            reason.raw_os_error().unwrap_or(libc::EPERM),
        ));
    };
    way.push((name, identity(&parent)?));
    drop(parent);
    while let Some((name, above)) = way.last() {
        if let Some((name, below)) = clear_files(&here)? {
            way.push((name, identity(&here)?));
            here = below;
            continue;
        }
        let up = open_at(&here, c"..")?;
        if identity(&up)? != *above {
            // Moved while we were below: what is above now is not ours to touch.
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        match unlink(&up, name, libc::AT_REMOVEDIR) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        here = up;
        way.pop();
    }
    Ok(())
}

/// Remove the files in a directory until there is a directory to enter first.
fn clear_files(here: &OwnedFd) -> io::Result<Option<(CString, OwnedFd)>> {
    loop {
        let mut removed = false;
        for name in some_names(here)? {
            match unlink(here, &name, 0) {
                Ok(()) => removed = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if may_be_directory(&error) => match enter(here, &name)? {
                    Some(below) => return Ok(Some((name, below))),
                    None => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
        if !removed {
            return Ok(None);
        }
    }
}

/// Linux says EISDIR, POSIX says EPERM.
fn may_be_directory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EISDIR | libc::EPERM))
}

/// Open a directory below, if it is one.
fn enter(here: &OwnedFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    match open_at(here, name) {
        Ok(below) => Ok(Some(below)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_at(here: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with NUL.
    sys::own(unsafe { libc::openat(here.as_raw_fd(), name.as_ptr(), flags) })
}

fn unlink(here: &OwnedFd, name: &CStr, flags: i32) -> io::Result<()> {
    // SAFETY: the name ends with NUL.
    sys::check(unsafe { libc::unlinkat(here.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

fn identity(dir: &OwnedFd) -> io::Result<Identity> {
    // SAFETY: stat is plain data, and fstat fills it.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        sys::check(libc::fstat(dir.as_raw_fd(), &raw mut stat))?;
        Ok((stat.st_dev, stat.st_ino))
    }
}

/// The first names in an open directory: those before them are gone by the next call.
fn some_names(here: &OwnedFd) -> io::Result<Vec<CString>> {
    // A descriptor of its own begins at the beginning.
    let own = open_at(here, c".")?;
    let mut buffer = vec![0_u8; 32 * 1024];
    let mut names = Vec::new();
    while names.is_empty() {
        let count = read_entries(&own, &mut buffer)?;
        if count == 0 {
            break;
        }
        let mut rest = &buffer[..count];
        // linux_dirent64: inode 8, offset 8, length 2, type 1, name with NUL.
        while rest.len() > 19 {
            let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            let (entry, later) = rest.split_at(length.clamp(19, rest.len()));
            rest = later;
            if let Ok(name) = CStr::from_bytes_until_nul(&entry[19..]) {
                if name != c"." && name != c".." {
                    names.push(name.to_owned());
                }
            }
        }
    }
    Ok(names)
}

fn read_entries(dir: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `len` bytes into the buffer.
    let count = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            dir.as_raw_fd(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
