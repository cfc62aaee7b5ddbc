//! A process in the books: its output rings, who is attached, how it ended.

use std::time::{Duration, Instant};

use fourwalls_protocol::frame::DATA_PAYLOAD_LIMIT;
use fourwalls_protocol::request::{Environment, PtySize};
use fourwalls_protocol::wire::Bytes;
use fourwalls_protocol::{kind, reply};

use crate::channel::Channel;
use crate::credit::{Allowance, Window};
use crate::failure::Fatal;
use crate::input::Input;
use crate::link::Link;
use crate::poller::Poller;
use crate::pty;
use crate::streams::Turn;

/// How long output is awaited after the end when something else holds the pipes open.
pub const DRAIN: Duration = Duration::from_millis(200);

/// A stream that shows a process.
#[derive(Debug)]
pub struct Attachment {
    /// Its number.
    pub stream: u32,
    /// What it may send.
    pub allowance: Allowance,
    /// What it may receive for the input.
    pub window: Window,
    cursors: [u64; 2],
    /// Offsets up to which it sends before it says `EXIT`, once they are known.
    until: Option<[u64; 2]>,
    eof_sent: [bool; 2],
    turn: usize,
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// When.
    pub at: Instant,
    /// Exit status, -1 when signalled.
    pub code: i32,
    /// Signal, or 0.
    pub signal: i32,
    /// Whether it dumped core.
    pub core: bool,
    /// Whether it failed with the root file system full.
    pub disk_full: bool,
}

/// What a process was started as.
#[derive(Debug, Clone)]
pub struct About {
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
}

/// A process in the books.
#[derive(Debug)]
pub struct Process {
    /// Number in the books, never used again.
    pub id: u32,
    /// Number in the kernel.
    pub pid: u32,
    /// What it was started as.
    pub about: About,
    /// Marker in the environment of all that descends from it.
    pub marker: String,
    /// Its input.
    pub input: Input,
    /// Streams that show it.
    pub attachments: Vec<Attachment>,
    /// When it runs out of time.
    pub deadline: Option<Instant>,
    /// It ran out of time.
    pub timed_out: bool,
    /// How it ended.
    pub ended: Option<Ended>,
    /// Output channels: stdout and stderr, or the terminal.
    pub channels: Vec<Channel>,
    /// The output that belongs to the process is in.
    settled: bool,
}

impl Process {
    /// A process that has just started.
    pub fn new(id: u32, pid: u32, about: About, marker: String, input: Input) -> Self {
        Self {
            id,
            pid,
            about,
            marker,
            input,
            attachments: Vec::new(),
            deadline: None,
            timed_out: false,
            ended: None,
            channels: Vec::new(),
            settled: false,
        }
    }

    /// Show the process on a stream, from the given offsets or from now on.
    pub fn attach(
        &mut self,
        stream: u32,
        offsets: Option<(u64, u64)>,
        credit: u64,
        window: u64,
    ) -> Result<(u64, u64), String> {
        let wanted = offsets.map(|(first, second)| [first, second]);
        let mut cursors = [0; 2];
        for (index, channel) in self.channels.iter().enumerate() {
            let end = channel.ring.end();
            let from = wanted.map_or(end, |offsets| offsets[index]);
            if from > end {
                return Err(format!("offset {from} is beyond the {end} bytes of output"));
            }
            cursors[index] = from.max(channel.ring.start());
        }
        self.attachments.push(Attachment {
            stream,
            allowance: Allowance::new(credit),
            window: Window::new(window),
            cursors,
            until: self.settled.then(|| self.ends()),
            eof_sent: [false; 2],
            turn: 0,
        });
        Ok((cursors[0], cursors[1]))
    }

    /// The attachment of a stream.
    pub fn attachment(&mut self, stream: u32) -> Option<&mut Attachment> {
        self.attachments
            .iter_mut()
            .find(|attachment| attachment.stream == stream)
    }

    /// Do not show it on that stream any longer.
    pub fn detach(&mut self, stream: u32) {
        self.attachments
            .retain(|attachment| attachment.stream != stream);
    }

    /// Wait for output wherever there is room for it.
    pub fn arm(&mut self, poller: &Poller) -> Result<(), Fatal> {
        for index in 0..self.channels.len() {
            if self.room(index) > 0 {
                self.channels[index].arm(poller, self.id, index)?;
            }
        }
        Ok(())
    }

    /// Take what a channel has to say; true when it said something or closed.
    pub fn read(&mut self, index: usize, poller: &Poller) -> bool {
        let room = self.room(index);
        self.channels
            .get_mut(index)
            .is_some_and(|channel| channel.read(room, poller))
    }

    /// Tell its terminal a new size; `None` when it has none.
    pub fn resize(&self, size: PtySize) -> Option<std::io::Result<()>> {
        let terminal = self.channels.first().filter(|_| self.about.pty)?;
        let terminal = terminal.fd()?;
        let resized = pty::resize(terminal, size);
        if resized.is_ok() && self.ended.is_none() {
            pty::tell_resized(terminal, self.pid);
        }
        Some(resized)
    }

    /// The process has ended.
    pub fn end(&mut self, ended: Ended, poller: &Poller) {
        self.channels.iter_mut().for_each(Channel::set_target);
        self.ended = Some(ended);
        self.deadline = None;
        if !self.about.pty {
            self.input.close(poller);
        }
    }

    /// When to look whether output is still awaited.
    pub fn drain_deadline(&self, now: Instant) -> Option<Instant> {
        let ended = self.ended.filter(|_| !self.settled)?;
        Some(ended.at + DRAIN).filter(|deadline| *deadline > now)
    }

    /// Whether it has ended and output is awaited.
    pub fn is_draining(&self) -> bool {
        self.ended.is_some() && !self.settled
    }

    /// Decide whether all output that belongs to the process is in; true when it just became so.
    pub fn settle(&mut self, now: Instant) -> bool {
        let Some(ended) = self.ended.filter(|_| !self.settled) else {
            return false;
        };
        let waited = now >= ended.at + DRAIN;
        if !self
            .channels
            .iter()
            .all(|channel| channel.is_complete(waited))
        {
            return false;
        }
        for channel in self
            .channels
            .iter_mut()
            .filter(|channel| channel.is_closed())
        {
            channel.ring.shrink();
        }
        let ends = self.ends();
        for attachment in &mut self.attachments {
            attachment.until = Some(ends);
        }
        self.settled = true;
        true
    }

    /// Whether nobody waits for anything of it any more.
    pub fn is_history(&self) -> bool {
        self.settled && self.attachments.is_empty()
    }

    /// Let a stream send its next frame.
    pub fn take_turn(&mut self, stream: u32, link: &mut Link) -> Result<Turn, Fatal> {
        let Some(attachment) = self.attachments.iter_mut().find(|a| a.stream == stream) else {
            return Ok(Turn::Nothing);
        };
        let count = self.channels.len();
        let mut all_sent = true;
        for step in 0..count {
            let index = (attachment.turn + step) % count;
            let channel = &self.channels[index];
            let end = attachment
                .until
                .map_or(channel.ring.end(), |until| until[index]);
            let cursor = &mut attachment.cursors[index];
            let pending = usize::try_from(end.saturating_sub(*cursor)).unwrap_or(usize::MAX);
            if pending == 0 {
                if channel.is_closed() && !attachment.eof_sent[index] {
                    attachment.eof_sent[index] = true;
                    link.channel_ended(channel.number, stream);
                }
                continue;
            }
            all_sent = false;
            let now = attachment
                .allowance
                .at_most(pending.min(DATA_PAYLOAD_LIMIT));
            if now > 0 {
                link.send_data(
                    stream,
                    channel.number,
                    *cursor,
                    channel.ring.slices(*cursor, now),
                )?;
                *cursor += now as u64;
                attachment.allowance.spend(now);
                attachment.turn = (index + 1) % count;
                return Ok(Turn::Sent);
            }
        }
        match self.ended {
            Some(ended) if all_sent && attachment.until.is_some() => {
                let exit = reply::Exit {
                    code: ended.code,
                    signal: ended.signal,
                    timed_out: self.timed_out,
                    core: ended.core,
                    disk_full: ended.disk_full,
                };
                link.send(kind::EXIT, stream, &exit);
                Ok(Turn::Over)
            }
            _ => Ok(Turn::Nothing),
        }
    }

    /// Stop everything that waits for it: it leaves the books.
    pub fn close(&mut self, poller: &Poller) {
        self.input.close(poller);
        for channel in &mut self.channels {
            channel.close(poller);
        }
    }

    /// Memory its rings hold.
    pub fn ring_memory(&self) -> usize {
        self.channels
            .iter()
            .map(|channel| channel.ring.memory())
            .sum()
    }

    fn room(&self, index: usize) -> usize {
        let Some(channel) = self.channels.get(index) else {
            return 0;
        };
        let unsent = |attachment: &&Attachment| {
            attachment
                .until
                .is_none_or(|until| attachment.cursors[index] < until[index])
        };
        let cursors = self
            .attachments
            .iter()
            .filter(unsent)
            .map(|a| a.cursors[index]);
        let keep_from = cursors.min().unwrap_or(channel.ring.end());
        channel.ring.room(keep_from)
    }

    fn ends(&self) -> [u64; 2] {
        let mut ends = [0; 2];
        for (end, channel) in ends.iter_mut().zip(&self.channels) {
            *end = channel.ring.end();
        }
        ends
    }
}
