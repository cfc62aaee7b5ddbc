//! `FILE_MOVE`.

use std::fs;
use std::io;
use std::path::Path;

use fourwalls_protocol::request::FileMove;
use fourwalls_protocol::wire;

use super::copy::copy_tree;
use super::entry::Describer;
use super::make::make_parents;
use super::path::FilePathBuf;
use super::remove::remove;
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

/// Rename; between file systems copy, then remove. Something at the destination stays until then.
fn rename(source: &Path, destination: &Path) -> io::Result<()> {
    match fs::rename(source, destination) {
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {}
        other => return other,
    }
    let mut name = destination.file_name().unwrap_or_default().to_owned();
    name.push(".moving");
    let aside = destination.with_file_name(name);
    let moved = copy_tree(source, &aside).and_then(|()| fs::rename(&aside, destination));
    if let Err(error) = moved {
        // The source is untouched, so nothing is lost with the half of a copy.
        let _ = remove(&aside);
        return Err(error);
    }
    remove(source).map(drop)
}
