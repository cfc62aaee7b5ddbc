//! A host for tests: the real agent over two pipes.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use fourwalls_protocol::frame::{Decoder, Direction, Frame};
use fourwalls_protocol::wire::{self, Bytes};
use fourwalls_protocol::{kind, reply, request};
use serde::de::DeserializeOwned;
use serde::Serialize;

pub const PATIENCE: Duration = Duration::from_secs(10);

/// An agent and the host's side of its link.
pub struct Host {
    pub child: Child,
    input: Option<File>,
    output: File,
    decoder: Decoder,
    pending: VecDeque<Frame>,
    stream: u32,
}

/// What a process said and how it ended.
#[derive(Debug, Default)]
pub struct Output {
    pub pid: u32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: reply::Exit,
}

pub fn bytes(text: impl AsRef<[u8]>) -> Bytes {
    Bytes::from(text.as_ref().to_vec())
}

pub fn argv(words: &[&str]) -> Vec<Bytes> {
    words.iter().map(bytes).collect()
}

/// A shell script to start, with credit for all it may say.
pub fn script(text: &str) -> request::ExecStart {
    start(&["/bin/sh", "-c", text])
}

pub fn start(words: &[&str]) -> request::ExecStart {
    request::ExecStart {
        argv: argv(words),
        credit: u64::MAX,
        ..request::ExecStart::default()
    }
}

pub fn body<T: DeserializeOwned>(frame: &Frame) -> T {
    wire::decode(&frame.body).unwrap()
}

impl Host {
    /// An agent that has been greeted.
    pub fn new() -> Self {
        Self::with(&request::Hello::default())
    }

    pub fn with(hello: &request::Hello) -> Self {
        let mut host = Self::silent();
        let ok = host.hello(hello);
        assert_eq!(ok.generation, 1);
        host
    }

    /// An agent nobody has spoken to.
    pub fn silent() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fourwalls-agent"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env_clear()
            .spawn()
            .unwrap();
        let input = File::from(std::os::fd::OwnedFd::from(child.stdin.take().unwrap()));
        let output = File::from(std::os::fd::OwnedFd::from(child.stdout.take().unwrap()));
        Self {
            child,
            input: Some(input),
            output,
            decoder: Decoder::new(Direction::ToHost),
            pending: VecDeque::new(),
            stream: 0,
        }
    }

    pub fn hello(&mut self, hello: &request::Hello) -> reply::HelloOk {
        let nonce = bytes(format!("{:016}", self.stream));
        let hello = request::Hello {
            generation_min: 1,
            generation_max: 1,
            nonce: nonce.clone(),
            ..hello.clone()
        };
        self.send(kind::HELLO, 0, &hello);
        loop {
            let frame = self.next();
            if frame.header.kind == kind::HELLO_OK {
                let ok: reply::HelloOk = body(&frame);
                if ok.nonce == nonce {
                    return ok;
                }
            }
        }
    }

    pub fn next_stream(&mut self) -> u32 {
        self.stream += 1;
        self.stream
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn frame(&mut self, kind: u8, channel: u8, stream: u32, body: Vec<u8>) {
        self.write(&Frame::new(kind, channel, stream, body).encode());
    }

    pub fn send<T: Serialize>(&mut self, kind: u8, stream: u32, message: &T) {
        self.frame(kind, 0, stream, wire::encode(message).unwrap());
    }

    pub fn signal(&mut self, kind: u8, stream: u32) {
        self.frame(kind, 0, stream, Vec::new());
    }

    pub fn data(&mut self, stream: u32, offset: u64, payload: &[u8]) {
        self.frame(kind::DATA, 0, stream, wire::encode_data(offset, payload));
    }

    pub fn grant(&mut self, stream: u32, bytes: u64) {
        self.send(kind::CREDIT, stream, &request::Credit { bytes });
    }

    /// Open a stream with a request.
    pub fn open<T: Serialize>(&mut self, kind: u8, message: &T) -> u32 {
        let stream = self.next_stream();
        self.send(kind, stream, message);
        stream
    }

    /// The next frame, whatever it is.
    pub fn next(&mut self) -> Frame {
        self.next_within(PATIENCE).expect("no frame came in time")
    }

    pub fn next_within(&mut self, patience: Duration) -> Option<Frame> {
        let deadline = Instant::now() + patience;
        let mut buffer = vec![0; 1 << 20];
        loop {
            if let Some(frame) = self.pending.pop_front() {
                return Some(frame);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let mut poll = libc::pollfd {
                fd: self.output.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one pollfd is given, one is announced.
            let ready = unsafe { libc::poll(&raw mut poll, 1, left.as_millis() as i32) };
            if ready == 0 {
                return None;
            }
            let count = self.output.read(&mut buffer).unwrap();
            if count == 0 {
                return None;
            }
            let mut input = &buffer[..count];
            while let Some(frame) = self.decoder.next_frame(&mut input).unwrap() {
                self.pending.push_back(frame);
            }
        }
    }

    /// The next frame of a stream; those of others are put back in order.
    pub fn next_of(&mut self, stream: u32) -> Frame {
        self.next_of_within(stream, PATIENCE)
            .expect("no frame of the stream came in time")
    }

    pub fn next_of_within(&mut self, stream: u32, patience: Duration) -> Option<Frame> {
        let deadline = Instant::now() + patience;
        let mut others = VecDeque::new();
        let found = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.next_within(left) {
                Some(frame) if frame.header.stream == stream => break Some(frame),
                Some(frame) => others.push_back(frame),
                None => break None,
            }
        };
        others.append(&mut self.pending);
        self.pending = others;
        found
    }

    pub fn expect(&mut self, stream: u32, kind: u8) -> Frame {
        let frame = self.next_of(stream);
        if frame.header.kind != kind && frame.header.kind == kind::ERROR {
            panic!("expected {kind:#x}, got {:?}", body::<reply::Error>(&frame));
        }
        assert_eq!(frame.header.kind, kind, "{frame:?}");
        frame
    }

    pub fn expect_error(&mut self, stream: u32) -> reply::Error {
        let frame = self.next_of(stream);
        assert_eq!(frame.header.kind, kind::ERROR, "{frame:?}");
        body(&frame)
    }

    pub fn ask<T: Serialize, R: DeserializeOwned>(&mut self, kind: u8, message: &T) -> R {
        let stream = self.open(kind, message);
        body(&self.expect(stream, kind::RESULT))
    }

    pub fn ask_error<T: Serialize>(&mut self, kind: u8, message: &T) -> reply::Error {
        let stream = self.open(kind, message);
        self.expect_error(stream)
    }

    pub fn ask_ok<T: Serialize>(&mut self, kind: u8, message: &T) {
        let stream = self.open(kind, message);
        self.expect(stream, kind::OK);
    }

    /// Start a process; its stream and number.
    pub fn spawn(&mut self, start: &request::ExecStart) -> (u32, u32) {
        let stream = self.open(kind::EXEC_START, start);
        let started: reply::Started = body(&self.expect(stream, kind::STARTED));
        (stream, started.pid)
    }

    /// Collect what a stream says until the process has ended.
    pub fn finish(&mut self, stream: u32) -> Output {
        let mut output = Output::default();
        loop {
            let frame = self.next_of(stream);
            match frame.header.kind {
                kind::DATA => {
                    let (_, payload) = wire::decode_data(&frame.body).unwrap();
                    match frame.header.channel {
                        kind::CHANNEL_STDERR => output.stderr.extend_from_slice(payload),
                        _ => output.stdout.extend_from_slice(payload),
                    }
                }
                kind::EOF | kind::CREDIT => {}
                kind::EXIT => {
                    output.exit = body(&frame);
                    return output;
                }
                kind::ERROR => panic!("{:?}", body::<reply::Error>(&frame)),
                other => panic!("unexpected kind {other:#x}"),
            }
        }
    }

    /// Start a process and wait for its end.
    pub fn run(&mut self, start: &request::ExecStart) -> Output {
        let (stream, pid) = self.spawn(start);
        Output {
            pid,
            ..self.finish(stream)
        }
    }

    pub fn sh(&mut self, text: &str) -> Output {
        self.run(&script(text))
    }

    /// Text up to and including a marker on any channel of a stream.
    pub fn read_until(&mut self, stream: u32, marker: &str) -> String {
        let mut text = Vec::new();
        loop {
            let frame = self.next_of(stream);
            if frame.header.kind == kind::DATA {
                text.extend_from_slice(wire::decode_data(&frame.body).unwrap().1);
            }
            let shown = String::from_utf8_lossy(&text).into_owned();
            if shown.contains(marker) {
                return shown;
            }
            assert!(
                matches!(frame.header.kind, kind::DATA | kind::EOF | kind::CREDIT),
                "{frame:?} before {marker:?}; so far {shown:?}"
            );
        }
    }

    /// Close the link as a control plane that dies.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Exit status of the agent and its last words.
    pub fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the agent does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut text = String::new();
        let stderr: &mut ChildStderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        (status.code(), text)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.input = None;
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of its own, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fw-agent-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: impl AsRef<[u8]>) -> Bytes {
        use std::os::unix::ffi::OsStrExt;
        let path = self.0.join(std::ffi::OsStr::from_bytes(name.as_ref()));
        Bytes::from(path.as_os_str().as_bytes().to_vec())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a process exists and has not ended.
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
