//! What waits to be written to the input of a process.
//!
//! It is bounded without a limit of its own: streams send what they were granted, and a request
//! carries one piece and waits for its answer.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::failure::Fatal;
use crate::poller::{Interest, Poller, Source};
use crate::sys;

/// What end-of-file is on a terminal: Ctrl-D.
const TERMINAL_EOF: u8 = 4;

/// Where bytes came from, and so who is to be told that they are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `DATA` on an attached stream: gets its credit back.
    Stream(u32),
    /// `EXEC_INPUT`: is answered when all is written.
    Request(u32),
    /// The agent itself.
    Nobody,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    at: usize,
    origin: Origin,
}

/// What became of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of a stream have been written, or will never be.
    Used(u32, usize),
    /// All of a request's bytes are written.
    Written(u32),
    /// The input closed before a request's bytes were written.
    Refused(u32),
}

/// The input of one process.
#[derive(Debug)]
pub struct Input {
    process: u32,
    fd: Option<OwnedFd>,
    terminal: bool,
    queue: VecDeque<Piece>,
    armed: bool,
    closing: bool,
}

impl Input {
    /// An input that writes to `fd`; without one it is closed.
    pub fn new(process: u32, fd: Option<OwnedFd>, terminal: bool) -> Self {
        Self {
            process,
            fd,
            terminal,
            queue: VecDeque::new(),
            armed: false,
            closing: false,
        }
    }

    /// Whether more may come.
    pub fn is_open(&self) -> bool {
        self.fd.is_some() && !self.closing
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.queue
            .iter()
            .map(|piece| piece.bytes.len() - piece.at)
            .sum()
    }

    /// Add bytes, from `at` on.
    pub fn push(&mut self, bytes: Vec<u8>, at: usize, origin: Origin) {
        self.queue.push_back(Piece { bytes, at, origin });
    }

    /// No more will come. The pipe closes when all is written; a terminal gets its end-of-file
    /// character and stays.
    pub fn finish(&mut self) {
        if self.terminal {
            self.push(vec![TERMINAL_EOF], 0, Origin::Nobody);
        } else {
            self.closing = true;
        }
    }

    /// Write what can be written.
    pub fn write(&mut self, poller: &Poller) -> Result<Vec<Progress>, Fatal> {
        let mut progress = Vec::new();
        while let Some(piece) = self.queue.front_mut() {
            let Some(fd) = &self.fd else {
                self.refuse(&mut progress);
                break;
            };
            match sys::write(fd.as_raw_fd(), &piece.bytes[piece.at..]) {
                Ok(count) => {
                    piece.at += count;
                    if let Origin::Stream(stream) = piece.origin {
                        progress.push(Progress::Used(stream, count));
                    }
                    if piece.at == piece.bytes.len() {
                        if let Origin::Request(stream) = piece.origin {
                            progress.push(Progress::Written(stream));
                        }
                        self.queue.pop_front();
                    }
                }
                Err(error) if sys::would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The reader is gone.
                Err(_) => {
                    self.close(poller);
                    self.refuse(&mut progress);
                }
            }
        }
        if self.queue.is_empty() && self.closing {
            self.close(poller);
        }
        self.rearm(poller)?;
        Ok(progress)
    }

    /// Close the pipe, whatever waits.
    pub fn close(&mut self, poller: &Poller) {
        if let Some(fd) = self.fd.take() {
            if self.armed {
                poller.remove(fd.as_raw_fd());
            }
        }
        self.armed = false;
    }

    fn refuse(&mut self, progress: &mut Vec<Progress>) {
        for piece in self.queue.drain(..) {
            match piece.origin {
                Origin::Stream(stream) => {
                    progress.push(Progress::Used(stream, piece.bytes.len() - piece.at));
                }
                Origin::Request(stream) => progress.push(Progress::Refused(stream)),
                Origin::Nobody => {}
            }
        }
    }

    fn rearm(&mut self, poller: &Poller) -> Result<(), Fatal> {
        let Some(fd) = &self.fd else {
            return Ok(());
        };
        let wanted = !self.queue.is_empty();
        if wanted && !self.armed {
            poller.add(
                fd.as_raw_fd(),
                Source::ProcessInput(self.process),
                Interest::Write,
            )?;
        } else if !wanted && self.armed {
            poller.remove(fd.as_raw_fd());
        }
        self.armed = wanted;
        Ok(())
    }
}
