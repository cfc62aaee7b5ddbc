//! The writable root: an overlay of the image and the sandbox's own disk.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::sys::{self, Context, Result};

pub fn mount(lower: &Path, upper: &Path, work: &Path, target: &Path) -> Result<()> {
    let mut options = Vec::new();
    for (key, path) in [
        ("lowerdir=", lower),
        (",upperdir=", upper),
        (",workdir=", work),
    ] {
        options.extend_from_slice(key.as_bytes());
        escape(path, &mut options);
    }
    sys::mount("overlay", target, "overlay", 0, options)
        .context(|| format!("overlay at {}", target.display()))
}

/// Commas part options and colons part lower directories; a backslash takes both meanings away.
fn escape(path: &Path, out: &mut Vec<u8>) {
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b',' | b':' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_escaped() {
        let mut out = Vec::new();
        escape(Path::new("/a,b:c\\d"), &mut out);
        assert_eq!(out, b"/a\\,b\\:c\\\\d");
    }
}
