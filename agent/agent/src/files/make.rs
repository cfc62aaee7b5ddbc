//! `FILE_MKDIR`, and the parents of whatever is made.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{lchown, DirBuilderExt, PermissionsExt};
use std::path::Path;

use fourwalls_protocol::reply::MkdirResult;
use fourwalls_protocol::request::FileMkdir;
use fourwalls_protocol::wire;

use super::entry::Describer;
use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::failure::Failure;
use crate::users::User;

const DEFAULT_MODE: u32 = 0o755;

impl Agent {
    /// `FILE_MKDIR`.
    pub fn file_mkdir(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FileMkdir = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        let user = self.file_user(request.user);
        self.answer_later(stream, move || {
            let created = make(&path, &user()?, request.mode)?;
            Ok(MkdirResult {
                created,
                entry: Describer::new().entry(&path)?,
            })
        });
        Ok(())
    }
}

fn make(path: &FilePathBuf, user: &User, mode: Option<u32>) -> Result<bool, Failure> {
    let created = make_all(path.as_path(), user)?;
    if let Some(mode) = mode.filter(|_| created) {
        fs::set_permissions(path.as_path(), PermissionsExt::from_mode(mode & 0o7777))
            .map_err(|error| Failure::from_io(path.shown(), &error))?;
    }
    Ok(created)
}

/// Make what is missing above `path`, for `user`.
pub fn make_parents(path: &Path, user: &User) -> Result<(), Failure> {
    path.parent()
        .map_or(Ok(false), |parent| make_all(parent, user))
        .map(drop)
}

/// Make `path` and what is missing above it; whether `path` was missing.
fn make_all(path: &Path, user: &User) -> Result<bool, Failure> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|dir| fs::metadata(dir).is_err_and(|e| e.kind() == io::ErrorKind::NotFound))
        .collect();
    let mut created = false;
    for dir in missing.iter().rev() {
        created =
            make_one(dir, user).map_err(|error| Failure::from_io(dir.to_string_lossy(), &error))?;
    }
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(created),
        Ok(_) => Err(Failure::from_io(
            path.to_string_lossy(),
            &io::Error::from_raw_os_error(libc::ENOTDIR),
        )),
        Err(error) => Err(Failure::from_io(path.to_string_lossy(), &error)),
    }
}

fn make_one(dir: &Path, user: &User) -> io::Result<bool> {
    match DirBuilder::new().mode(DEFAULT_MODE).create(dir) {
        Ok(()) => {
            lchown(dir, Some(user.uid), Some(user.gid))?;
            Ok(true)
        }
        // Someone else was faster, or `a/./b` was made as `a/b`.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
