//! `FILE_CHANGE`: mode and owner, of what a symlink leads to.

use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};

use fourwalls_protocol::request::FileChange;
use fourwalls_protocol::wire;

use super::entry::Describer;
use super::find_user;
use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::failure::Failure;

impl Agent {
    /// `FILE_CHANGE`.
    pub fn file_change(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FileChange = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        self.answer_later(stream, move || {
            let failed = |error| Failure::from_io(path.shown(), &error);
            if let Some(name) = &request.user {
                let user = find_user(name)?;
                chown(path.as_path(), Some(user.uid), Some(user.gid)).map_err(failed)?;
            }
            // After the change of owner, which takes set-id bits away.
            if let Some(mode) = request.mode {
                let mode = PermissionsExt::from_mode(mode & 0o7777);
                fs::set_permissions(path.as_path(), mode).map_err(failed)?;
            }
            Describer::new().entry(&path)
        });
        Ok(())
    }
}
