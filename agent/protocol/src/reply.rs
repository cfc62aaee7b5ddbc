//! Bodies towards the host.

use serde::{Deserialize, Serialize};

use crate::request::Environment;
use crate::wire::Bytes;

/// Answer to `HELLO`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HelloOk {
    /// Generation spoken from here on.
    pub generation: u32,
    /// The nonce of the `HELLO`.
    pub nonce: Bytes,
    /// Version of the agent.
    pub version: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of the agent's process.
    pub pid: u32,
}

/// Terminal: failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Error {
    /// A word of the code table.
    pub code: String,
    /// What the kernel said; 0 = nothing.
    pub errno: i32,
    /// How far a start came; empty = no start.
    pub stage: String,
    /// For people.
    pub message: String,
}

/// The process is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Started {
    /// Its number.
    pub pid: u32,
    /// Where output begins on this stream: stdout or pty, stderr.
    pub offsets: (u64, u64),
}

/// Terminal: the process has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exit {
    /// Exit status, -1 when signalled.
    pub code: i32,
    /// Number of the signal, 0 = none.
    pub signal: i32,
    /// It ran out of time.
    pub timed_out: bool,
    /// It dumped core.
    pub core: bool,
    /// It failed and the root file system is full.
    pub disk_full: bool,
}

/// Part of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entries {
    /// At most 256.
    pub entries: Vec<Entry>,
}

/// Changes in a watched directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Events {
    /// In the order they happened.
    pub events: Vec<Event>,
    /// Some were lost.
    pub overflow: bool,
}

/// One change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// `create write remove rename chmod`.
    pub kind: String,
    /// Relative to the watched directory; empty = the directory itself.
    pub name: Bytes,
}

/// The file is open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartedRead {
    /// Size of the file at this moment.
    pub size: u64,
}

/// Result of `EXEC_LIST`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessList {
    /// Running ones and those whose status is kept, in the order of their start.
    pub processes: Vec<Process>,
}

/// What is known of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Name it was given.
    pub tag: Option<String>,
    /// Program and arguments.
    pub argv: Vec<Bytes>,
    /// Environment of the request.
    pub env: Environment,
    /// Directory it started in.
    pub cwd: Bytes,
    /// User it runs as.
    pub user: String,
    /// Whether it has a terminal.
    pub pty: bool,
    /// Whether it has not ended.
    pub running: bool,
    /// Exit status, -1 when signalled.
    pub code: i32,
    /// Number of the signal, 0 = none.
    pub signal: i32,
}

/// Result of `FILE_MKDIR`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MkdirResult {
    /// It was not there before.
    pub created: bool,
    /// What is there now.
    pub entry: Entry,
}

/// Result of `FILE_REMOVE`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveResult {
    /// There was something to remove.
    pub existed: bool,
}

/// One directory entry; a symlink's own values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// Last part of the path.
    pub name: Bytes,
    /// Absolute path, as asked.
    pub path: Bytes,
    /// `file dir symlink fifo socket char block`.
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// Permission bits, 07777.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Name of the owner, or its number.
    pub owner: String,
    /// Name of the group, or its number.
    pub group: String,
    /// Nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Where a symlink leads, resolved where it resolves.
    pub target: Option<Bytes>,
    /// Kind of what it leads to.
    pub target_kind: Option<String>,
}

/// Result of `METRICS`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Processors.
    pub cpu_count: u32,
    /// Bytes.
    pub mem_total: u64,
    /// Bytes in use, without cache.
    pub mem_used: u64,
    /// Bytes of cache.
    pub mem_cache: u64,
    /// Bytes of the root file system.
    pub disk_total: u64,
    /// Bytes in use there.
    pub disk_used: u64,
    /// Processes that exist.
    pub processes: u32,
    /// Milliseconds since the agent started.
    pub uptime_ms: u64,
}
