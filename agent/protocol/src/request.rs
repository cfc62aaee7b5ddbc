//! Bodies towards the agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::wire::Bytes;

/// Names and values of an environment.
pub type Environment = BTreeMap<String, Bytes>;

/// First frame of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// Lowest generation the host speaks.
    pub generation_min: u32,
    /// Highest generation the host speaks.
    pub generation_max: u32,
    /// Sixteen bytes that come back in the answer.
    pub nonce: Bytes,
    /// Default environment of every process.
    pub env: Environment,
    /// Default user; empty is root.
    pub user: String,
    /// Default directory of processes.
    pub workdir: Option<Bytes>,
    /// Limits of every process.
    pub limits: Limits,
}

/// Limits every process starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// `RLIMIT_NPROC`; 0 leaves it.
    pub nproc: u64,
    /// `oom_score_adj`.
    pub oom_score_adj: i32,
    /// Bytes kept per output channel; 0 is the default.
    pub ring_bytes: u64,
}

/// Adds to what the peer may send.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credit {
    /// Payload bytes.
    pub bytes: u64,
}

/// Size of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PtySize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// Start a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecStart {
    /// Program and arguments.
    pub argv: Vec<Bytes>,
    /// Added to the default environment.
    pub env: Environment,
    /// Directory to start in.
    pub cwd: Option<Bytes>,
    /// User to run as.
    pub user: Option<String>,
    /// A pipe as stdin, else `/dev/null`.
    pub stdin: bool,
    /// A terminal instead of pipes.
    pub pty: Option<PtySize>,
    /// A name to find the process by.
    pub tag: Option<String>,
    /// Milliseconds until the process and its tree are killed; 0 = never.
    pub timeout_ms: u64,
    /// First grant for the agent.
    pub credit: u64,
    /// Soft and hard limit by name.
    pub rlimits: BTreeMap<String, (u64, u64)>,
}

/// Join a process, running or finished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecAttach {
    /// The process by number.
    pub pid: Option<u32>,
    /// The process by tag.
    pub tag: Option<String>,
    /// Where to begin: stdout or pty, stderr; nil = from now on.
    pub offsets: Option<(u64, u64)>,
    /// First grant for the agent.
    pub credit: u64,
}

/// Bytes for the input of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecInput {
    /// The process by number.
    pub pid: Option<u32>,
    /// The process by tag.
    pub tag: Option<String>,
    /// The bytes.
    pub data: Bytes,
}

/// Close the input of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecCloseStdin {
    /// The process by number.
    pub pid: Option<u32>,
    /// The process by tag.
    pub tag: Option<String>,
}

/// New size of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecResize {
    /// The process by number.
    pub pid: Option<u32>,
    /// The process by tag.
    pub tag: Option<String>,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// Signal a process or its tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecSignal {
    /// The process by number.
    pub pid: Option<u32>,
    /// The process by tag.
    pub tag: Option<String>,
    /// Number of the signal.
    pub signal: u8,
    /// All of its tree, not only the process.
    pub tree: bool,
}

/// A request that needs nothing said: `EXEC_LIST`, `METRICS`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nothing {}

/// A request about one path: `FILE_STAT`, `FILE_REMOVE`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePath {
    /// Absolute path.
    pub path: Bytes,
}

/// What is in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileList {
    /// Absolute path.
    pub path: Bytes,
    /// Levels to go down, at least 1.
    pub depth: u32,
}

/// Content of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRead {
    /// Absolute path.
    pub path: Bytes,
    /// First byte.
    pub offset: u64,
    /// Number of bytes; nil = to the end.
    pub length: Option<u64>,
    /// First grant for the agent.
    pub credit: u64,
}

/// New content of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWrite {
    /// Absolute path.
    pub path: Bytes,
    /// Owner of what is made.
    pub user: Option<String>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Add at the end instead of starting anew.
    pub append: bool,
}

/// Make a directory and its parents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileMkdir {
    /// Absolute path.
    pub path: Bytes,
    /// Owner of what is made.
    pub user: Option<String>,
    /// Permission bits.
    pub mode: Option<u32>,
}

/// Rename.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileMove {
    /// Absolute path.
    pub source: Bytes,
    /// Absolute path.
    pub destination: Bytes,
    /// Owner of the parents that are made.
    pub user: Option<String>,
}

/// Mode and owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileChange {
    /// Absolute path.
    pub path: Bytes,
    /// Permission bits.
    pub mode: Option<u32>,
    /// New owner.
    pub user: Option<String>,
}

/// Changes in a directory, until cancelled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWatch {
    /// Absolute path.
    pub path: Bytes,
    /// What is below, too.
    pub recursive: bool,
}

/// A byte tunnel to a port of the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TunnelDial {
    /// TCP port on the loopback.
    pub port: u16,
    /// First grant for the agent.
    pub credit: u64,
}

/// The end, asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shutdown {
    /// Milliseconds between SIGTERM and SIGKILL.
    pub grace_ms: u64,
}
