//! `FILE_MOVE`.

use std::fs;
use std::path::Path;

use fourwalls_protocol::request::FileMove;
use fourwalls_protocol::wire;

use super::entry::Describer;
use super::make::make_parents;
use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::failure::Failure;

impl Agent {
    /// `FILE_MOVE`.
    pub fn file_move(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FileMove = wire::decode(body)?;
        let source = FilePathBuf::new(&request.source)?;
        let destination = FilePathBuf::new(&request.destination)?;
        let user = self.file_user(request.user);
        self.answer_later(stream, move || {
            let failed = |error| Failure::from_io(source.shown(), &error);
            // Before anything is made for a source that is not there.
            fs::symlink_metadata(source.as_path()).map_err(failed)?;
            make_parents(destination.as_path(), &user()?)?;
            rename(source.as_path(), destination.as_path()).map_err(failed)?;
            Describer::new().entry(&destination)
        });
        Ok(())
    }
}

fn rename(source: &Path, destination: &Path) -> std::io::Result<()> {
    fs::rename(source, destination)
}
