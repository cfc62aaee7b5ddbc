//! What there is to say about one directory entry.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use fourwalls_protocol::reply::Entry;
use fourwalls_protocol::wire::Bytes;

use super::path::FilePathBuf;
use crate::failure::Failure;
use crate::users::Accounts;

/// Describes entries; reads the account files once and looks each number up once.
#[derive(Debug)]
pub struct Describer {
    accounts: Accounts,
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl Describer {
    pub fn new() -> Self {
        Self {
            accounts: Accounts::read(),
            users: HashMap::new(),
            groups: HashMap::new(),
        }
    }

    /// The entry at a path; a symlink itself.
    pub fn entry(&mut self, path: &FilePathBuf) -> Result<Entry, Failure> {
        self.describe(path.as_path())
            .map_err(|error| Failure::from_io(path.shown(), &error))
    }

    /// The same for a path that was put together here.
    pub fn describe(&mut self, path: &Path) -> std::io::Result<Entry> {
        let meta = fs::symlink_metadata(path)?;
        let (target, target_kind) = if meta.is_symlink() {
            follow(path)
        } else {
            (None, None)
        };
        let accounts = &self.accounts;
        let owner = self
            .users
            .entry(meta.uid())
            .or_insert_with(|| accounts.user_name(meta.uid()));
        let group = self
            .groups
            .entry(meta.gid())
            .or_insert_with(|| accounts.group_name(meta.gid()));
        let bytes = path.as_os_str().as_bytes();
        let name = path.file_name().map_or(&b"/"[..], |name| name.as_bytes());
        Ok(Entry {
            name: Bytes::from(name.to_vec()),
            path: Bytes::from(bytes.to_vec()),
            kind: kind_of(&meta).to_owned(),
            size: meta.size(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            owner: owner.clone(),
            group: group.clone(),
            mtime_ns: meta
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(meta.mtime_nsec()),
            target,
            target_kind,
        })
    }
}

fn follow(path: &Path) -> (Option<Bytes>, Option<String>) {
    let text = |path: &Path| Some(Bytes::from(path.as_os_str().as_bytes().to_vec()));
    if let (Ok(resolved), Ok(meta)) = (fs::canonicalize(path), fs::metadata(path)) {
        return (text(&resolved), Some(kind_of(&meta).to_owned()));
    }
    (fs::read_link(path).ok().and_then(|link| text(&link)), None)
}

fn kind_of(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    if kind.is_dir() {
        "dir"
    } else if kind.is_symlink() {
        "symlink"
    } else if kind.is_fifo() {
        "fifo"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_char_device() {
        "char"
    } else if kind.is_block_device() {
        "block"
    } else {
        "file"
    }
}
