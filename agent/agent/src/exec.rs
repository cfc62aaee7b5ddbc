//! `EXEC_START` and `EXEC_ATTACH`: a process begins, or is joined, and what it says is passed on.

use std::time::{Duration, Instant};

use fourwalls_protocol::request::{Credit, ExecAttach, ExecStart};
use fourwalls_protocol::{kind, reply, wire};

use crate::agent::Agent;
use crate::channel::Channel;
use crate::failure::{Failure, Fatal};
use crate::input::{Input, Origin, Progress};
use crate::plan::{self, Stdio};
use crate::process::Process;
use crate::streams::{Stream, Turn};
use crate::sys;
use crate::users::Accounts;

/// What a stream may send for the input of a process before it is written.
const INPUT_WINDOW: u64 = 256 * 1024;

/// Streams that show one process at a time.
const ATTACHMENT_LIMIT: usize = 64;

impl Agent {
    /// Start a process and show it on the stream.
    pub fn exec_start(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: ExecStart = wire::decode(body)?;
        let wanted = request.user.as_deref().unwrap_or(&self.session.user);
        let user = Accounts::read()
            .find(wanted)
            .ok_or_else(|| Failure::start("user", 0, format!("unknown user {wanted:?}")))?;
        let mut stdio = match request.pty {
            Some(size) => Stdio::terminal(size, user.uid)?,
            None => Stdio::pipes(request.stdin)?,
        };
        let marker = new_marker();
        let plan = plan::decide(&request, &self.session, &user, &marker, &stdio)?;
        let launched = self.launcher.launch(&plan).map_err(|error| {
            let what = match error.stage {
                "cwd" => plan.dirs.last(),
                "exec" => plan.argv.first(),
                _ => None,
            };
            let what = what.map_or(error.stage.into(), |what| what.to_string_lossy());
            Failure::start(error.stage, error.errno, what)
        })?;
        stdio
            .keep_parent_ends()
            .map_err(|error| Failure::from_io("the pipes of the process", &error))?;
        let id = self.books.next_id();
        let cwd = plan
            .dirs
            .get(launched.dir)
            .map(|dir| dir.as_bytes().to_vec());
        let timeout = Duration::from_millis(request.timeout_ms);
        let credit = request.credit;
        let about = plan::about(request, user.name, cwd.unwrap_or_default());
        let input = Input::new(id, stdio.input, about.pty);
        let mut process = Process::new(id, launched.pid, about, marker, input);
        let ring_bytes = self.session.ring_bytes;
        process.channels = stdio
            .channels
            .into_iter()
            .map(|(number, fd)| Channel::new(number, fd, ring_bytes))
            .collect();
        if !timeout.is_zero() {
            process.deadline = Instant::now().checked_add(timeout);
        }
        self.books.insert(process);
        self.show(stream, id, Some((0, 0)), credit)
    }

    /// Show a process, running or finished, on the stream.
    pub fn exec_attach(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: ExecAttach = wire::decode(body)?;
        let id = self.find_process(request.pid, request.tag.as_deref())?;
        self.show(stream, id, request.offsets, request.credit)
    }

    fn show(
        &mut self,
        stream: u32,
        id: u32,
        offsets: Option<(u64, u64)>,
        credit: u64,
    ) -> Result<(), Failure> {
        let Some(process) = self.books.get(id) else {
            return Err(Failure::new("not_found", "no such process"));
        };
        if process.attachments.len() >= ATTACHMENT_LIMIT {
            return Err(Failure::new(
                "limit",
                "too many streams are attached to the process",
            ));
        }
        let offsets = process
            .attach(stream, offsets, credit, INPUT_WINDOW)
            .map_err(Failure::invalid)?;
        self.link.send(
            kind::STARTED,
            stream,
            &reply::Started {
                pid: process.pid,
                offsets,
            },
        );
        if process.input.is_open() {
            let grant = process
                .attachment(stream)
                .and_then(|shown| shown.window.grant());
            if let Some(bytes) = grant {
                self.link.send(kind::CREDIT, stream, &Credit { bytes });
            }
        }
        let armed = process.arm(&self.poller);
        self.streams.open(stream, Stream::Process(id));
        self.streams.mark_ready(stream);
        armed.map_err(|_| Failure::new("limit", "the kernel watches no more descriptors"))
    }

    /// A process by number or tag.
    pub fn find_process(&self, pid: Option<u32>, tag: Option<&str>) -> Result<u32, Failure> {
        self.books.find(pid, tag).ok_or_else(|| match (pid, tag) {
            (Some(pid), _) => Failure::new("not_found", format!("no process {pid}")),
            (None, Some(tag)) => Failure::new("not_found", format!("no process tagged {tag:?}")),
            (None, None) => Failure::invalid("neither pid nor tag is given"),
        })
    }

    /// A stream shows the process no longer; the process goes on.
    pub fn detach(&mut self, id: u32, stream: u32) -> Result<(), Fatal> {
        if let Some(process) = self.books.get(id) {
            process.detach(stream);
            // It may have been held up by this stream.
            process.arm(&self.poller)?;
        }
        self.books.trim(&self.poller);
        Ok(())
    }

    /// `DATA` for the input of a process.
    pub fn process_data(&mut self, id: u32, stream: u32, body: Vec<u8>) -> Result<(), Fatal> {
        let (offset, payload) = wire::decode_data(&body).map_err(|e| Fatal::Protocol(e.0))?;
        let Some(process) = self.books.get(id) else {
            return Ok(());
        };
        if let Some(shown) = process.attachment(stream) {
            shown
                .window
                .receive(offset, payload.len())
                .map_err(Fatal::Protocol)?;
        }
        let at = body.len() - payload.len();
        process.input.push(body, at, Origin::Stream(stream));
        self.write_input(id)
    }

    /// Write what waits for the input of a process, and tell those it came from.
    pub fn write_input(&mut self, id: u32) -> Result<(), Fatal> {
        let Some(process) = self.books.get(id) else {
            return Ok(());
        };
        for progress in process.input.write(&self.poller)? {
            match progress {
                Progress::Used(stream, count) => {
                    let Some(shown) = process.attachment(stream) else {
                        continue;
                    };
                    shown.window.consumed(count);
                    if let Some(bytes) = shown.window.grant() {
                        self.link.send(kind::CREDIT, stream, &Credit { bytes });
                    }
                }
                Progress::Written(stream) => {
                    if self.streams.close(stream).is_some() {
                        self.link.signal(kind::OK, 0, stream);
                    }
                }
                Progress::Refused(stream) => {
                    if self.streams.close(stream).is_some() {
                        let message = "the process has closed its input";
                        self.link.fail(stream, Failure::invalid(message));
                    }
                }
            }
        }
        Ok(())
    }

    /// An output channel has something to say.
    pub fn read_channel(&mut self, id: u32, index: usize) -> Result<(), Fatal> {
        let Some(process) = self.books.get(id) else {
            return Ok(());
        };
        if process.read(index, &self.poller) {
            for shown in &process.attachments {
                self.streams.mark_ready(shown.stream);
            }
            self.settle(id);
        }
        Ok(())
    }

    /// See whether a process that has ended has said everything.
    pub fn settle(&mut self, id: u32) {
        let Some(process) = self.books.get(id) else {
            return;
        };
        if process.settle(Instant::now()) {
            for shown in &process.attachments {
                self.streams.mark_ready(shown.stream);
            }
            self.books.trim(&self.poller);
        }
    }

    /// Let a stream that shows a process send its next frame.
    pub fn process_turn(&mut self, id: u32, stream: u32) -> Result<Turn, Fatal> {
        let Some(process) = self.books.get(id) else {
            return Ok(Turn::Nothing);
        };
        let turn = process.take_turn(stream, &mut self.link)?;
        match turn {
            Turn::Sent => process.arm(&self.poller)?,
            Turn::Over => self.detach(id, stream)?,
            Turn::Nothing => {}
        }
        Ok(turn)
    }
}

/// Sixteen hexadecimal digits nobody can foresee.
fn new_marker() -> String {
    let mut bytes = [0; 8];
    sys::random(&mut bytes);
    format!("{:016x}", u64::from_ne_bytes(bytes))
}
