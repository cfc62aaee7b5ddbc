//! One sample of every frame, and of every shape that differs.

use std::collections::BTreeMap;

use fourwalls_protocol::frame::{Direction, Frame};
use fourwalls_protocol::wire::{self, Bytes};
use fourwalls_protocol::{kind, reply, request};
use serde::Serialize;

type Sample = (&'static str, Direction, Frame);

fn bytes(text: &[u8]) -> Bytes {
    Bytes::from(text.to_vec())
}

fn ask<T: Serialize>(name: &'static str, kind: u8, stream: u32, message: &T) -> Sample {
    let body = wire::encode(message).unwrap();
    (name, Direction::ToAgent, Frame::new(kind, 0, stream, body))
}

fn tell<T: Serialize>(name: &'static str, kind: u8, stream: u32, message: &T) -> Sample {
    let body = wire::encode(message).unwrap();
    (name, Direction::ToHost, Frame::new(kind, 0, stream, body))
}

fn bare(name: &'static str, way: Direction, kind: u8, channel: u8, stream: u32) -> Sample {
    (name, way, Frame::new(kind, channel, stream, Vec::new()))
}

fn data(
    name: &'static str,
    way: Direction,
    channel: u8,
    stream: u32,
    at: u64,
    payload: &[u8],
) -> Sample {
    (
        name,
        way,
        Frame::new(kind::DATA, channel, stream, wire::encode_data(at, payload)),
    )
}

/// Every sample, in the order of the golden file.
pub fn all() -> Vec<Sample> {
    let mut samples = connection();
    samples.extend(exec());
    samples.extend(files());
    samples.extend(rest());
    samples.extend(answers());
    samples.extend(results());
    samples
}

fn connection() -> Vec<Sample> {
    let env = BTreeMap::from([
        ("LANG".to_owned(), bytes(b"C.UTF-8")),
        ("NOT_UTF8".to_owned(), bytes(b"\xff\xfe")),
    ]);
    let hello = request::Hello {
        generation_min: 1,
        generation_max: 1,
        nonce: bytes(b"0123456789abcdef"),
        env,
        user: "user".to_owned(),
        workdir: Some(bytes(b"/home/user")),
        limits: request::Limits {
            nproc: 1024,
            oom_score_adj: 500,
            ring_bytes: 1 << 20,
        },
    };
    let plain = request::Hello {
        workdir: None,
        env: BTreeMap::new(),
        limits: request::Limits {
            nproc: 0,
            oom_score_adj: -1000,
            ring_bytes: 0,
        },
        ..hello.clone()
    };
    vec![
        ask("hello", kind::HELLO, 0, &hello),
        ask("hello_plain", kind::HELLO, 0, &plain),
        bare("ping", Direction::ToAgent, kind::PING, 0, 0),
        bare(
            "ping_last_stream",
            Direction::ToAgent,
            kind::PING,
            0,
            u32::MAX,
        ),
        ask(
            "credit",
            kind::CREDIT,
            3,
            &request::Credit { bytes: 262_144 },
        ),
        bare("cancel", Direction::ToAgent, kind::CANCEL, 0, 3),
        data(
            "data_input",
            Direction::ToAgent,
            kind::CHANNEL_INPUT,
            3,
            0,
            b"print(1)\n",
        ),
        bare(
            "eof_input",
            Direction::ToAgent,
            kind::EOF,
            kind::CHANNEL_INPUT,
            3,
        ),
    ]
}

fn exec() -> Vec<Sample> {
    let start = request::ExecStart {
        argv: vec![bytes(b"/bin/echo"), bytes(b"\xe4\xf6\xfc")],
        env: BTreeMap::from([("A".to_owned(), bytes(b"1"))]),
        cwd: Some(bytes(b"/tmp")),
        user: Some("root".to_owned()),
        stdin: true,
        pty: None,
        tag: Some("build".to_owned()),
        timeout_ms: 60_000,
        credit: 1 << 20,
        rlimits: BTreeMap::from([("nofile".to_owned(), (1024, u64::MAX))]),
    };
    let pty = request::ExecStart {
        argv: vec![bytes(b"bash"), bytes(b"-l")],
        pty: Some(request::PtySize { cols: 80, rows: 24 }),
        ..request::ExecStart::default()
    };
    let by_pid = request::ExecAttach {
        pid: Some(42),
        offsets: Some((5_000_000_000, 0)),
        credit: 65_536,
        ..request::ExecAttach::default()
    };
    let by_tag = request::ExecAttach {
        tag: Some("build".to_owned()),
        ..request::ExecAttach::default()
    };
    vec![
        ask("exec_start", kind::EXEC_START, 1, &start),
        ask("exec_start_pty", kind::EXEC_START, 2, &pty),
        ask("exec_attach", kind::EXEC_ATTACH, 3, &by_pid),
        ask("exec_attach_tag", kind::EXEC_ATTACH, 4, &by_tag),
        ask(
            "exec_input",
            kind::EXEC_INPUT,
            5,
            &request::ExecInput {
                pid: Some(42),
                tag: None,
                data: bytes(b"yes\n"),
            },
        ),
        ask(
            "exec_close_stdin",
            kind::EXEC_CLOSE_STDIN,
            6,
            &request::ExecCloseStdin {
                pid: None,
                tag: Some("build".to_owned()),
            },
        ),
        ask(
            "exec_resize",
            kind::EXEC_RESIZE,
            7,
            &request::ExecResize {
                pid: Some(42),
                tag: None,
                cols: 120,
                rows: 40,
            },
        ),
        ask(
            "exec_signal",
            kind::EXEC_SIGNAL,
            8,
            &request::ExecSignal {
                pid: Some(42),
                tag: None,
                signal: 9,
                tree: true,
            },
        ),
        ask("exec_list", kind::EXEC_LIST, 9, &request::Nothing {}),
    ]
}

fn files() -> Vec<Sample> {
    let path = bytes(b"/home/user/caf\xe9");
    let user = Some("user".to_owned());
    vec![
        ask(
            "file_stat",
            kind::FILE_STAT,
            10,
            &request::FilePath { path: path.clone() },
        ),
        ask(
            "file_list",
            kind::FILE_LIST,
            11,
            &request::FileList {
                path: path.clone(),
                depth: 2,
            },
        ),
        ask(
            "file_read",
            kind::FILE_READ,
            12,
            &request::FileRead {
                path: path.clone(),
                offset: 7,
                length: Some(100),
                credit: 262_144,
            },
        ),
        ask(
            "file_read_all",
            kind::FILE_READ,
            13,
            &request::FileRead {
                path: path.clone(),
                offset: 0,
                length: None,
                credit: 0,
            },
        ),
        ask(
            "file_write",
            kind::FILE_WRITE,
            14,
            &request::FileWrite {
                path: path.clone(),
                user: user.clone(),
                mode: Some(0o644),
                append: false,
            },
        ),
        ask(
            "file_mkdir",
            kind::FILE_MKDIR,
            15,
            &request::FileMkdir {
                path: path.clone(),
                user: None,
                mode: Some(0o750),
            },
        ),
        ask(
            "file_move",
            kind::FILE_MOVE,
            16,
            &request::FileMove {
                source: path.clone(),
                destination: bytes(b"/tmp/x"),
                user,
            },
        ),
        ask(
            "file_remove",
            kind::FILE_REMOVE,
            17,
            &request::FilePath { path: path.clone() },
        ),
        ask(
            "file_change",
            kind::FILE_CHANGE,
            18,
            &request::FileChange {
                path: path.clone(),
                mode: Some(0o600),
                user: None,
            },
        ),
        ask(
            "file_watch",
            kind::FILE_WATCH,
            19,
            &request::FileWatch {
                path,
                recursive: true,
            },
        ),
    ]
}

fn rest() -> Vec<Sample> {
    vec![
        ask(
            "tunnel_dial",
            kind::TUNNEL_DIAL,
            20,
            &request::TunnelDial {
                port: 8080,
                credit: 262_144,
            },
        ),
        ask("metrics", kind::METRICS, 21, &request::Nothing {}),
        ask(
            "shutdown",
            kind::SHUTDOWN,
            22,
            &request::Shutdown { grace_ms: 2_000 },
        ),
        bare("detach", Direction::ToAgent, kind::DETACH, 0, 0),
    ]
}

fn answers() -> Vec<Sample> {
    let hello_ok = reply::HelloOk {
        generation: 1,
        nonce: bytes(b"0123456789abcdef"),
        version: "0.1.0".to_owned(),
        kernel: "6.12.48".to_owned(),
        pid: 1,
    };
    let not_started = reply::Error {
        code: "start_failed".to_owned(),
        errno: 2,
        stage: "exec".to_owned(),
        message: "cannot execute nonsense: No such file or directory".to_owned(),
    };
    let not_found = reply::Error {
        code: "not_found".to_owned(),
        errno: 0,
        stage: String::new(),
        message: "no process 42".to_owned(),
    };
    let killed = reply::Exit {
        code: -1,
        signal: 9,
        timed_out: true,
        core: false,
        disk_full: false,
    };
    let events = reply::Events {
        events: vec![
            reply::Event {
                kind: "create".to_owned(),
                name: bytes(b"a/b\xff"),
            },
            reply::Event {
                kind: "remove".to_owned(),
                name: bytes(b""),
            },
        ],
        overflow: true,
    };
    vec![
        tell("hello_ok", kind::HELLO_OK, 0, &hello_ok),
        bare("ok", Direction::ToHost, kind::OK, 0, 3),
        bare("pong", Direction::ToHost, kind::PONG, 0, 0),
        tell("error", kind::ERROR, 1, &not_started),
        tell("error_not_found", kind::ERROR, 8, &not_found),
        tell(
            "started",
            kind::STARTED,
            1,
            &reply::Started {
                pid: 42,
                offsets: (5_000_000_000, 0),
            },
        ),
        tell("exit", kind::EXIT, 1, &reply::Exit::default()),
        tell("exit_killed", kind::EXIT, 1, &killed),
        tell(
            "exit_disk_full",
            kind::EXIT,
            1,
            &reply::Exit {
                code: 1,
                disk_full: true,
                ..Default::default()
            },
        ),
        tell(
            "entries",
            kind::ENTRIES,
            11,
            &reply::Entries {
                entries: vec![entry(), symlink()],
            },
        ),
        tell("events", kind::EVENTS, 19, &events),
        bare("ready", Direction::ToHost, kind::READY, 0, 14),
        tell(
            "started_read",
            kind::STARTED_READ,
            12,
            &reply::StartedRead { size: 1 << 40 },
        ),
        tell(
            "credit_to_host",
            kind::CREDIT,
            14,
            &request::Credit { bytes: 1 << 20 },
        ),
        data(
            "data_stdout",
            Direction::ToHost,
            kind::CHANNEL_STDOUT,
            1,
            5_000_000_000,
            b"hi\xff\n",
        ),
        data(
            "data_stderr",
            Direction::ToHost,
            kind::CHANNEL_STDERR,
            1,
            0,
            b"oh",
        ),
        data(
            "data_pty",
            Direction::ToHost,
            kind::CHANNEL_PTY,
            2,
            0,
            b"$ ",
        ),
        data(
            "data_file",
            Direction::ToHost,
            kind::CHANNEL_INPUT,
            12,
            7,
            b"content",
        ),
        bare(
            "eof_stdout",
            Direction::ToHost,
            kind::EOF,
            kind::CHANNEL_STDOUT,
            1,
        ),
        bare(
            "eof_tunnel",
            Direction::ToHost,
            kind::EOF,
            kind::CHANNEL_INPUT,
            20,
        ),
    ]
}

fn results() -> Vec<Sample> {
    let processes = vec![
        reply::Process {
            pid: 42,
            tag: Some("build".to_owned()),
            argv: vec![bytes(b"make"), bytes(b"\xff")],
            env: BTreeMap::from([("A".to_owned(), bytes(b"1"))]),
            cwd: bytes(b"/tmp"),
            user: "user".to_owned(),
            pty: true,
            running: true,
            code: 0,
            signal: 0,
        },
        reply::Process {
            pid: 41,
            argv: vec![bytes(b"false")],
            cwd: bytes(b"/"),
            user: "root".to_owned(),
            code: -1,
            signal: 15,
            ..reply::Process::default()
        },
    ];
    let metrics = reply::Metrics {
        cpu_count: 2,
        mem_total: 1 << 33,
        mem_used: 123_456_789,
        mem_cache: 1_000_000,
        disk_total: 1 << 42,
        disk_used: 1 << 41,
        processes: 7,
        uptime_ms: 86_400_000,
    };
    vec![
        tell(
            "result_process_list",
            kind::RESULT,
            9,
            &reply::ProcessList { processes },
        ),
        tell("result_entry", kind::RESULT, 10, &entry()),
        tell("result_entry_symlink", kind::RESULT, 10, &symlink()),
        tell(
            "result_mkdir",
            kind::RESULT,
            15,
            &reply::MkdirResult {
                created: true,
                entry: entry(),
            },
        ),
        tell(
            "result_remove",
            kind::RESULT,
            17,
            &reply::RemoveResult { existed: true },
        ),
        tell("result_metrics", kind::RESULT, 21, &metrics),
    ]
}

fn entry() -> reply::Entry {
    reply::Entry {
        name: bytes(b"caf\xe9"),
        path: bytes(b"/home/user/caf\xe9"),
        kind: "file".to_owned(),
        size: 5_000_000_000,
        mode: 0o644,
        uid: 1000,
        gid: 1000,
        owner: "user".to_owned(),
        group: "user".to_owned(),
        mtime_ns: 1_764_536_400_123_456_789,
        target: None,
        target_kind: None,
    }
}

fn symlink() -> reply::Entry {
    reply::Entry {
        name: bytes(b"link"),
        path: bytes(b"/home/user/link"),
        kind: "symlink".to_owned(),
        size: 4,
        mode: 0o777,
        mtime_ns: -1,
        target: Some(bytes(b"/home/user/caf\xe9")),
        target_kind: Some("file".to_owned()),
        ..entry()
    }
}
