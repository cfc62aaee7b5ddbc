//! Why a request failed, in the words of the code table.

use std::io;

use fourwalls_protocol::reply;
use fourwalls_protocol::wire::BodyError;

/// A request that failed; becomes an `ERROR` frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Word of the code table.
    pub code: &'static str,
    /// What the kernel said, or 0.
    pub errno: i32,
    /// How far the start of a process came, or empty.
    pub stage: &'static str,
    /// For people.
    pub message: String,
}

impl Failure {
    /// A failure the kernel has no part in.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            errno: 0,
            stage: "",
            message: message.into(),
        }
    }

    /// A request that makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid", message)
    }

    /// What the kernel answered to `what`.
    pub fn from_io(what: impl AsRef<str>, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        Self {
            code: code_of(errno),
            errno,
            stage: "",
            message: format!("{}: {}", what.as_ref(), words(errno)),
        }
    }

    /// A process that did not start.
    pub fn start(stage: &'static str, errno: i32, what: impl AsRef<str>) -> Self {
        let message = if errno == 0 {
            what.as_ref().to_owned()
        } else {
            format!("{}: {}", what.as_ref(), words(errno))
        };
        Self {
            code: "start_failed",
            errno,
            stage,
            message,
        }
    }

    /// The body of the frame.
    pub fn into_reply(self) -> reply::Error {
        reply::Error {
            code: self.code.to_owned(),
            errno: self.errno,
            stage: self.stage.to_owned(),
            message: self.message,
        }
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        Self::invalid(error.0)
    }
}

/// What the C library says about an errno, without the number Rust adds.
fn words(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn code_of(errno: i32) -> &'static str {
    match errno {
        libc::ENOENT | libc::ESRCH | libc::ENXIO => "not_found",
        libc::EEXIST | libc::ENOTEMPTY => "already_exists",
        libc::ENOTDIR => "not_a_directory",
        libc::EISDIR => "is_a_directory",
        libc::EACCES | libc::EPERM | libc::EROFS => "permission_denied",
        libc::ENOSPC | libc::EDQUOT => "no_space",
        libc::EINVAL | libc::ENAMETOOLONG | libc::ELOOP | libc::ESPIPE => "invalid",
        libc::EFBIG | libc::E2BIG => "too_large",
        libc::EBUSY | libc::ETXTBSY => "busy",
        libc::ECONNREFUSED => "refused",
        libc::EXDEV | libc::ENOSYS | libc::EOPNOTSUPP => "unsupported",
        libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN => "limit",
        _ => "internal",
    }
}

/// Why the agent itself ends.
#[derive(Debug)]
pub enum Fatal {
    /// The peer broke the protocol.
    Protocol(String),
    /// The other end of the link is gone.
    Gone,
    /// The host asked for it, and everything else has ended.
    Done,
    /// The kernel refuses what the loop cannot live without.
    Io(io::Error),
}

impl From<io::Error> for Fatal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
