//! inotify: watches on a directory or a tree, and events with names relative to its root.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// One change, as the kernel tells it.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Kind of event on the wire, and the name below the root.
    Event(&'static str, Vec<u8>),
    /// The kernel dropped events.
    Overflow,
}

/// A watched directory, with what is below it when `recursive`.
#[derive(Debug)]
pub struct Tree {
    fd: OwnedFd,
    root: PathBuf,
    recursive: bool,
    /// Directory of each watch, relative to the root; empty is the root.
    dirs: HashMap<i32, Vec<u8>>,
    /// Directories that moved away and may arrive elsewhere in the tree, by cookie.
    moved: BTreeMap<u32, Vec<u8>>,
}

const INTEREST: u32 = libc::IN_CREATE
    | libc::IN_MODIFY
    | libc::IN_ATTRIB
    | libc::IN_DELETE
    | libc::IN_DELETE_SELF
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO;

/// Bytes of struct `inotify_event` before the name.
const EVENT_HEAD: usize = 16;

/// Bytes of events taken at once.
const BUFFER: usize = 16 * 1024;

impl Tree {
    /// Watch `root`, which must be a directory.
    pub fn new(root: &Path, recursive: bool) -> io::Result<Self> {
        // SAFETY: takes a number.
        let fd = sys::own(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?;
        let root = root.to_owned();
        let mut tree = Self {
            fd,
            root,
            recursive,
            dirs: HashMap::new(),
            moved: BTreeMap::new(),
        };
        tree.watch(Vec::new(), true)?;
        if recursive {
            tree.descend(Vec::new(), &mut |_| {})?;
        }
        Ok(tree)
    }

    /// Descriptor to wait on.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// What has happened since the last call.
    pub fn read(&mut self) -> io::Result<Vec<Change>> {
        let mut buffer = vec![0; BUFFER];
        let count = match sys::read(self.fd(), &mut buffer) {
            Ok(count) => count,
            Err(error) if sys::would_block(&error) => 0,
            Err(error) => return Err(error),
        };
        let mut changes = Vec::new();
        let mut rest = &buffer[..count];
        while rest.len() >= EVENT_HEAD {
            let word = |at: usize| [rest[at], rest[at + 1], rest[at + 2], rest[at + 3]];
            let watch = i32::from_ne_bytes(word(0));
            let (mask, cookie) = (u32::from_ne_bytes(word(4)), u32::from_ne_bytes(word(8)));
            let end = EVENT_HEAD + u32::from_ne_bytes(word(12)) as usize;
            let name = rest.get(EVENT_HEAD..end).unwrap_or_default();
            let name = CStr::from_bytes_until_nul(name).map_or(&b""[..], CStr::to_bytes);
            self.take(watch, mask, cookie, name, &mut changes);
            rest = rest.get(end..).unwrap_or_default();
        }
        // Both halves of a move within the tree come together; what is left has moved out of it.
        for (_, dir) in std::mem::take(&mut self.moved) {
            self.forget(&dir);
        }
        Ok(changes)
    }

    fn take(&mut self, watch: i32, mask: u32, cookie: u32, name: &[u8], changes: &mut Vec<Change>) {
        if mask & libc::IN_Q_OVERFLOW != 0 {
            changes.push(Change::Overflow);
            return;
        }
        if mask & libc::IN_IGNORED != 0 {
            self.dirs.remove(&watch);
            return;
        }
        let Some(dir) = self.dirs.get(&watch) else {
            return;
        };
        let path = below(dir, name);
        let is_dir = mask & libc::IN_ISDIR != 0;
        if mask & libc::IN_DELETE_SELF != 0 {
            // Below the root the parent tells of it.
            if dir.is_empty() {
                changes.push(Change::Event("remove", Vec::new()));
            }
            return;
        }
        if is_dir && name.is_empty() && !dir.is_empty() {
            // A change of a directory's own mode: its parent tells of it.
            return;
        }
        let kind = if mask & (libc::IN_CREATE | libc::IN_MOVED_TO) != 0 {
            "create"
        } else if mask & libc::IN_MODIFY != 0 {
            "write"
        } else if mask & libc::IN_DELETE != 0 {
            "remove"
        } else if mask & libc::IN_MOVED_FROM != 0 {
            "rename"
        } else {
            "chmod"
        };
        changes.push(Change::Event(kind, path.clone()));
        if !(is_dir && self.recursive) {
            return;
        }
        if mask & libc::IN_MOVED_FROM != 0 {
            self.moved.insert(cookie, path);
        } else if mask & libc::IN_MOVED_TO != 0 && self.moved.contains_key(&cookie) {
            if let Some(from) = self.moved.remove(&cookie) {
                self.rename(&from, &path);
            }
        } else if kind == "create" {
            // What was made in it before it was watched is told of now.
            let mut found = |path: &[u8]| changes.push(Change::Event("create", path.to_vec()));
            let watched = self.watch(path.clone(), false);
            if watched
                .and_then(|()| self.descend(path, &mut found))
                .is_err()
            {
                changes.push(Change::Overflow);
            }
        }
    }

    /// Watch all directories below `dir`, and name all entries.
    fn descend(&mut self, dir: Vec<u8>, found: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut waiting = vec![dir];
        while let Some(dir) = waiting.pop() {
            // What is gone by now needs no watch.
            let Ok(entries) = fs::read_dir(self.absolute(&dir)) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = below(&dir, entry.file_name().as_bytes());
                found(&path);
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    self.watch(path.clone(), false)?;
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }

    /// Watch one directory; below the root it is no matter if it is gone.
    fn watch(&mut self, dir: Vec<u8>, must: bool) -> io::Result<()> {
        let path = CString::new(self.absolute(&dir).as_os_str().as_bytes())?;
        let mut mask = INTEREST | libc::IN_ONLYDIR | libc::IN_EXCL_UNLINK;
        if !must {
            mask |= libc::IN_DONT_FOLLOW;
        }
        // SAFETY: the path ends with NUL.
        match sys::check(unsafe { libc::inotify_add_watch(self.fd(), path.as_ptr(), mask) }) {
            Ok(watch) => {
                self.dirs.insert(watch, dir);
                Ok(())
            }
            Err(error) if must || error.raw_os_error() == Some(libc::ENOSPC) => Err(error),
            Err(_) => Ok(()),
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        for dir in self.dirs.values_mut() {
            if let Some(rest) = inside(dir, from) {
                *dir = [to, rest].concat();
            }
        }
    }

    fn forget(&mut self, from: &[u8]) {
        let fd = self.fd();
        self.dirs.retain(|watch, dir| {
            let gone = inside(dir, from).is_some();
            if gone {
                // SAFETY: takes two numbers.
                unsafe { libc::inotify_rm_watch(fd, *watch) };
            }
            !gone
        });
    }

    fn absolute(&self, dir: &[u8]) -> PathBuf {
        if dir.is_empty() {
            self.root.clone()
        } else {
            self.root.join(OsStr::from_bytes(dir))
        }
    }
}

fn below(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match (dir.is_empty(), name.is_empty()) {
        (true, _) => name.to_vec(),
        (_, true) => dir.to_vec(),
        _ => [dir, b"/", name].concat(),
    }
}

/// What follows `from` in `dir`, when `dir` is `from` or below it.
fn inside<'a>(dir: &'a [u8], from: &[u8]) -> Option<&'a [u8]> {
    dir.strip_prefix(from)
        .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below() {
        assert_eq!(below(b"", b"a"), b"a");
        assert_eq!(below(b"a/b", b"c"), b"a/b/c");
        assert_eq!(below(b"a", b""), b"a");
        assert_eq!(inside(b"a/b", b"a"), Some(&b"/b"[..]));
        assert_eq!(inside(b"a", b"a"), Some(&b""[..]));
        assert_eq!(inside(b"ab", b"a"), None);
    }
}
