//! Paths as they come over the wire: bytes, absolute, without NUL.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A path that has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePathBuf(PathBuf);

impl FilePathBuf {
    /// Check a path.
    pub fn new(bytes: &[u8]) -> Result<Self, Failure> {
        let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
        if bytes.first() != Some(&b'/') {
            return Err(Failure::invalid(format!(
                "{:?} is not an absolute path",
                shown()
            )));
        }
        if bytes.contains(&0) {
            return Err(Failure::invalid(format!("{:?} holds a NUL byte", shown())));
        }
        Ok(Self(PathBuf::from(OsStr::from_bytes(bytes))))
    }

    /// As the standard library wants it.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// As people and the kernel read it.
    pub fn shown(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_without_nul() {
        for good in [&b"/"[..], b"/a/../b", b"/\xff\xfe", b"//x"] {
            assert_eq!(
                FilePathBuf::new(good)
                    .unwrap()
                    .as_path()
                    .as_os_str()
                    .as_bytes(),
                good
            );
        }
        for bad in [&b""[..], b"a", b"./a", b"~/a", b"/a\0b", b"\0"] {
            assert_eq!(FilePathBuf::new(bad).unwrap_err().code, "invalid");
        }
    }
}
