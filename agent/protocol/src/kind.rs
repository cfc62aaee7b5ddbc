//! The numbers of the frame kinds, generation 1.

/// First frame of a connection.
pub const HELLO: u8 = 0x01;
/// Answered by [`PONG`] on the same stream number.
pub const PING: u8 = 0x02;
/// Adds to what the peer may send; both directions.
pub const CREDIT: u8 = 0x03;
/// Early end of a stream.
pub const CANCEL: u8 = 0x04;
/// Payload of a channel; both directions.
pub const DATA: u8 = 0x05;
/// A channel is closed; both directions.
pub const EOF: u8 = 0x06;
/// Start a process.
pub const EXEC_START: u8 = 0x10;
/// Join a process, running or finished.
pub const EXEC_ATTACH: u8 = 0x11;
/// Bytes for the input of a process.
pub const EXEC_INPUT: u8 = 0x12;
/// Close the input of a process.
pub const EXEC_CLOSE_STDIN: u8 = 0x13;
/// New size of a terminal.
pub const EXEC_RESIZE: u8 = 0x14;
/// Signal a process or its tree.
pub const EXEC_SIGNAL: u8 = 0x15;
/// All processes that are known.
pub const EXEC_LIST: u8 = 0x16;
/// One directory entry.
pub const FILE_STAT: u8 = 0x20;
/// What is in a directory.
pub const FILE_LIST: u8 = 0x21;
/// Content of a file.
pub const FILE_READ: u8 = 0x22;
/// New content of a file.
pub const FILE_WRITE: u8 = 0x23;
/// Make a directory and its parents.
pub const FILE_MKDIR: u8 = 0x24;
/// Rename.
pub const FILE_MOVE: u8 = 0x25;
/// Remove, recursively.
pub const FILE_REMOVE: u8 = 0x26;
/// Mode and owner.
pub const FILE_CHANGE: u8 = 0x27;
/// Changes in a directory, until cancelled.
pub const FILE_WATCH: u8 = 0x28;
/// A byte tunnel to a port of the guest.
pub const TUNNEL_DIAL: u8 = 0x30;
/// Load of the guest.
pub const METRICS: u8 = 0x40;
/// The end, asked for.
pub const SHUTDOWN: u8 = 0x42;
/// The client is gone; sent by the shim.
pub const DETACH: u8 = 0x43;

/// Answer to [`HELLO`].
pub const HELLO_OK: u8 = 0x80;
/// Terminal: done, nothing to say.
pub const OK: u8 = 0x81;
/// Answer to [`PING`].
pub const PONG: u8 = 0x82;
/// Terminal: failed.
pub const ERROR: u8 = 0x83;
/// Terminal: done, with a result.
pub const RESULT: u8 = 0x84;
/// The process is there.
pub const STARTED: u8 = 0x85;
/// Terminal: the process has ended.
pub const EXIT: u8 = 0x86;
/// Part of a directory.
pub const ENTRIES: u8 = 0x87;
/// Changes in a watched directory.
pub const EVENTS: u8 = 0x88;
/// The upload, watch or tunnel is there.
pub const READY: u8 = 0x89;
/// The file is open.
pub const STARTED_READ: u8 = 0x8A;

/// From here on kinds are between host and shim alone.
pub const SHIM_FIRST: u8 = 0xF0;

/// Channel 0: the only one, or stdin.
pub const CHANNEL_INPUT: u8 = 0;
/// Channel 1: stdout.
pub const CHANNEL_STDOUT: u8 = 1;
/// Channel 2: stderr.
pub const CHANNEL_STDERR: u8 = 2;
/// Channel 3: the terminal.
pub const CHANNEL_PTY: u8 = 3;
