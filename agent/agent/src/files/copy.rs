//! Copying a tree, for moves between file systems.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{
    fchown, lchown, symlink, DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt,
    PermissionsExt,
};
use std::path::Path;

/// Levels a copy goes down. Paths end some way below that.
const DEPTH: u32 = 2048;

/// Copy `source` to `destination`, which must not exist, with owner, mode and time.
pub fn copy_tree(source: &Path, destination: &Path) -> io::Result<()> {
    // One after the other instead of recursion: a thread's stack is small.
    let mut open = vec![(source.to_owned(), destination.to_owned(), 0)];
    let mut made = Vec::new();
    while let Some((from, to, depth)) = open.pop() {
        let meta = fs::symlink_metadata(&from)?;
        let kind = meta.file_type();
        if kind.is_dir() {
            if depth >= DEPTH {
                return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
            }
            DirBuilder::new().mode(0o700).create(&to)?;
            for entry in fs::read_dir(&from)? {
                let name = entry?.file_name();
                open.push((from.join(&name), to.join(&name), depth + 1));
            }
            made.push((to, meta));
        } else if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
            lchown(&to, Some(meta.uid()), Some(meta.gid()))?;
        } else if kind.is_file() {
            copy_file(&from, &to, &meta)?;
        } else if kind.is_socket() {
            // Nobody listens on a copy.
        } else {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
    }
    // Last, so that filling a directory does not change its time, nor its mode get in the way.
    for (dir, meta) in made.iter().rev() {
        finish(&File::open(dir)?, meta)?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, meta: &fs::Metadata) -> io::Result<()> {
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(from)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    io::copy(&mut source, &mut target)?;
    finish(&target, meta)
}

fn finish(target: &File, meta: &fs::Metadata) -> io::Result<()> {
    fchown(target, Some(meta.uid()), Some(meta.gid()))?;
    // After the change of owner, which takes set-id bits away.
    target.set_permissions(PermissionsExt::from_mode(meta.mode() & 0o7777))?;
    target.set_modified(meta.modified()?)
}
