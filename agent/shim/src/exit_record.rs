//! How a sandbox ended: the body of GONE and the content of `exit.json`.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::sys::{self, Context, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Exited,
    Oom,
    Killed,
    Timeout,
    LeaseExpired,
    BoundaryDied,
}

/// The step of a start that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    #[serde(rename = "")]
    None,
    Spec,
    Cgroup,
    Mounts,
    Runtime,
}

#[derive(Debug, Serialize)]
pub struct ExitRecord {
    pub id: String,
    pub cause: Cause,
    pub message: String,
    pub stage: Stage,
    pub exit_code: i32,
    pub signal: i32,
    pub oom_kills: u64,
    pub pids_refused: u64,
    pub stderr: String,
    pub started_at: f64,
    pub ended_at: f64,
}

/// Seconds since the epoch, in whole milliseconds: a number that every JSON reader reads alike.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_millis() as f64 / 1000.0)
}

impl ExitRecord {
    /// Written so that a reader finds the whole record or none, also after a power failure.
    pub fn write(&self, directory: BorrowedFd<'_>) -> Result<()> {
        let text = serde_json::to_vec(self).context(|| "encoding the exit record")?;
        let (temporary, name) = (Path::new(".exit.json.new"), Path::new("exit.json"));
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW;
        let file = sys::open_at(directory, temporary, flags, 0o600).context(|| ".exit.json.new")?;
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let written = sys::write(file.as_fd(), rest).context(|| "writing the exit record")?;
            rest = &rest[written..];
        }
        sync(file.as_fd()).context(|| "fsync of the exit record")?;
        sys::rename_at(directory, temporary, directory, name).context(|| "renaming exit.json")?;
        sync(directory).context(|| "fsync of the sandbox directory")
    }
}

fn sync(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: a plain call on a descriptor that is alive.
    sys::check(unsafe { libc::fsync(fd.as_raw_fd()) }.into()).map(drop)
}
