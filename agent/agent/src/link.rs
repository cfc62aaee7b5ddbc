//! The byte stream to the host: stdin and stdout, framed, never waiting.
//!
//! What is short and urgent (answers, ends, credit) is queued and leaves first. `DATA` is never
//! queued: it is asked for when the link has room, so a flood in one stream delays others by one
//! frame at most.

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use fourwalls_protocol::frame::{Decoder, Direction, Frame, Header, HEADER_BYTES};
use fourwalls_protocol::{kind, wire};
use serde::Serialize;

use crate::failure::{Failure, Fatal};
use crate::sys;

const INPUT: RawFd = 0;
const OUTPUT: RawFd = 1;

/// Bytes taken from the link at once.
const READ_BYTES: usize = 64 * 1024;

/// While more answers than this wait to be sent, no more requests are read.
const QUEUE_LIMIT: usize = 1024 * 1024;

/// How long the end of a channel waits for company: a process closes its channels one by one and
/// ends an instant later. One wake-up of the host instead of three.
const LINGER: Duration = Duration::from_millis(1);

/// Header and offset of a `DATA` frame.
const DATA_HEAD: usize = HEADER_BYTES + 8;

/// Both directions of the link.
#[derive(Debug)]
pub struct Link {
    decoder: Decoder,
    /// On its way: the rest of what a write did not take, frames from the first byte on.
    sending: Vec<u8>,
    sent: usize,
    /// Whole frames that leave next.
    queue: Vec<u8>,
    /// When the first of them came, as long as all of them may linger.
    lingering: Option<Instant>,
}

impl Link {
    /// Prepare stdin and stdout.
    pub fn new() -> io::Result<Self> {
        for fd in [INPUT, OUTPUT] {
            sys::set_close_on_exec(fd)?;
            sys::set_nonblocking(fd)?;
        }
        // stderr is for the log alone; children have their own.
        sys::set_close_on_exec(2).ok();
        Ok(Self {
            decoder: Decoder::new(Direction::ToAgent),
            sending: Vec::new(),
            sent: 0,
            queue: Vec::new(),
            lingering: None,
        })
    }

    /// Descriptor to wait on for requests.
    pub fn input(&self) -> RawFd {
        INPUT
    }

    /// Descriptor to wait on for room.
    pub fn output(&self) -> RawFd {
        OUTPUT
    }

    /// Whether so many answers wait that no more requests should be read.
    pub fn is_congested(&self) -> bool {
        self.queue.len() > QUEUE_LIMIT
    }

    /// The frames that have come; none when there is nothing to read.
    pub fn receive(&mut self) -> Result<Vec<Frame>, Fatal> {
        // On the stack: an idle agent keeps no buffer.
        let mut buffer = [0; READ_BYTES];
        let count = match sys::read(INPUT, &mut buffer) {
            Ok(0) => return Err(Fatal::Gone),
            Ok(count) => count,
            Err(error) if sys::would_block(&error) => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Vec::new()),
            Err(error) => return Err(Fatal::Io(error)),
        };
        let mut input = &buffer[..count];
        let mut frames = Vec::new();
        loop {
            match self.decoder.next_frame(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return Ok(frames),
                Err(error) => return Err(Fatal::Protocol(error.to_string())),
            }
        }
    }

    /// Queue the end of an output channel, which is in no hurry.
    pub fn channel_ended(&mut self, channel: u8, stream: u32) {
        let since = self.queue.is_empty().then(Instant::now).or(self.lingering);
        self.signal(kind::EOF, channel, stream);
        self.lingering = since;
    }

    /// When what lingers has to leave.
    pub fn linger_deadline(&self) -> Option<Instant> {
        Some(self.lingering? + LINGER)
    }

    /// Let nothing linger any longer.
    pub fn hurry(&mut self) {
        self.lingering = None;
    }

    /// Queue a frame without a body.
    pub fn signal(&mut self, kind: u8, channel: u8, stream: u32) {
        self.hurry();
        let header = Header {
            length: 0,
            kind,
            channel,
            stream,
        };
        self.queue.extend_from_slice(&header.encode());
    }

    /// Queue a message.
    pub fn send<T: Serialize>(&mut self, kind: u8, stream: u32, message: &T) {
        self.hurry();
        match wire::encode(message) {
            Ok(body) if body.len() <= Direction::ToHost.body_limit() => {
                self.queue
                    .extend_from_slice(&Frame::new(kind, 0, stream, body).encode());
            }
            Ok(body) => {
                let failure =
                    Failure::new("too_large", format!("an answer of {} bytes", body.len()));
                self.fail(stream, failure);
            }
            Err(error) => self.fail(stream, Failure::new("internal", error.0)),
        }
    }

    /// Queue the end of a stream that failed.
    pub fn fail(&mut self, stream: u32, mut failure: Failure) {
        self.hurry();
        // A message may quote a path of any length.
        if failure.message.len() > 8192 {
            failure.message = failure.message.chars().take(2000).collect();
        }
        if let Ok(body) = wire::encode(&failure.into_reply()) {
            self.queue
                .extend_from_slice(&Frame::new(kind::ERROR, 0, stream, body).encode());
        }
    }

    /// Forget what has not been begun: the peer it was meant for is gone.
    pub fn forget_queue(&mut self) {
        self.queue.clear();
        self.hurry();
    }

    /// Send what is queued and does not linger; true when all of that is out and `DATA` may follow.
    pub fn flush(&mut self) -> Result<bool, Fatal> {
        loop {
            if self.sent == self.sending.len() {
                self.sending.clear();
                self.sent = 0;
                if self.queue.is_empty() {
                    // An idle agent keeps no buffers.
                    self.sending = Vec::new();
                    return Ok(true);
                }
                if self
                    .linger_deadline()
                    .is_some_and(|deadline| deadline > Instant::now())
                {
                    return Ok(true);
                }
                self.hurry();
                std::mem::swap(&mut self.sending, &mut self.queue);
            }
            match sys::write(OUTPUT, &self.sending[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if sys::would_block(&error) => return Ok(false),
                Err(error) => return output_error(error),
            }
        }
    }

    /// Send a `DATA` frame straight from where its bytes are. Only after [`Link::flush`] said yes.
    pub fn send_data(
        &mut self,
        stream: u32,
        channel: u8,
        offset: u64,
        payload: [&[u8]; 2],
    ) -> Result<(), Fatal> {
        let count = payload[0].len() + payload[1].len();
        let header = Header {
            length: (count + 8) as u32,
            kind: kind::DATA,
            channel,
            stream,
        };
        let mut head = [0; DATA_HEAD];
        head[..HEADER_BYTES].copy_from_slice(&header.encode());
        head[HEADER_BYTES..].copy_from_slice(&offset.to_le_bytes());
        let pieces = [&head[..], payload[0], payload[1]];
        let mut written = match sys::write_vectored(OUTPUT, pieces) {
            Ok(count) => count,
            Err(error) if sys::would_block(&error) => 0,
            Err(error) => return output_error(error).map(drop),
        };
        if written == DATA_HEAD + count {
            return Ok(());
        }
        // What the pipe did not take is copied: its source may move on before there is room.
        self.sending.clear();
        self.sent = 0;
        for piece in pieces {
            let skip = written.min(piece.len());
            written -= skip;
            self.sending.extend_from_slice(&piece[skip..]);
        }
        Ok(())
    }
}

fn output_error(error: io::Error) -> Result<bool, Fatal> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(false),
        io::ErrorKind::BrokenPipe => Err(Fatal::Gone),
        _ => Err(Fatal::Io(error)),
    }
}
