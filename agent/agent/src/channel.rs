//! One output channel of a process: a pipe or a terminal that is read into a ring.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::failure::Fatal;
use crate::poller::{Interest, Poller, Source};
use crate::ring::Ring;
use crate::sys;

/// A pipe whose reads bring this much belongs to someone with a lot to say.
const BUSY_READ: usize = 64 * 1024;
const BUSY_PIPE: libc::c_int = 512 * 1024;

/// One output channel.
#[derive(Debug)]
pub struct Channel {
    /// Number on the wire.
    pub number: u8,
    /// What is kept of it.
    pub ring: Ring,
    fd: Option<OwnedFd>,
    armed: bool,
    enlarged: bool,
    /// Offset up to which the process itself had written when it ended.
    target: u64,
}

impl Channel {
    /// A channel that is read from `fd`.
    pub fn new(number: u8, fd: OwnedFd, ring_bytes: usize) -> Self {
        let ring = Ring::new(ring_bytes);
        Self {
            number,
            ring,
            fd: Some(fd),
            armed: false,
            enlarged: false,
            target: 0,
        }
    }

    /// Our end, while it is open.
    pub fn fd(&self) -> Option<&OwnedFd> {
        self.fd.as_ref()
    }

    /// Whether no more will come.
    pub fn is_closed(&self) -> bool {
        self.fd.is_none()
    }

    /// Wait for output.
    pub fn arm(&mut self, poller: &Poller, process: u32, index: usize) -> Result<(), Fatal> {
        if let (false, Some(fd)) = (self.armed, &self.fd) {
            let source = Source::Channel { process, index };
            poller.add(fd.as_raw_fd(), source, Interest::Read)?;
            self.armed = true;
        }
        Ok(())
    }

    fn disarm(&mut self, poller: &Poller) {
        if let (true, Some(fd)) = (self.armed, &self.fd) {
            poller.remove(fd.as_raw_fd());
            self.armed = false;
        }
    }

    /// Do not read it any longer.
    pub fn close(&mut self, poller: &Poller) {
        self.disarm(poller);
        self.fd = None;
    }

    /// Take at most `room` bytes; without room the writer is left to wait. True when something came
    /// or the channel closed.
    pub fn read(&mut self, room: usize, poller: &Poller) -> bool {
        let Some(fd) = self.fd.as_ref().map(AsRawFd::as_raw_fd) else {
            return false;
        };
        if room == 0 {
            self.disarm(poller);
            return false;
        }
        match sys::read_vectored(fd, self.ring.spare(room)) {
            Ok(0) => self.close(poller),
            Ok(count) => {
                self.ring.commit(count);
                if count >= BUSY_READ && !self.enlarged {
                    self.enlarged = true;
                    sys::enlarge_pipe(fd, BUSY_PIPE);
                }
            }
            Err(error) if sys::would_block(&error) => return false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return false,
            // A terminal whose programs are gone gives EIO.
            Err(_) => self.close(poller),
        }
        true
    }

    /// The process has ended: what waits now is the last it has written itself.
    pub fn set_target(&mut self) {
        let waiting = self
            .fd
            .as_ref()
            .map_or(0, |fd| sys::bytes_waiting(fd.as_raw_fd()));
        self.target = self.ring.end() + waiting as u64;
    }

    /// Whether all that the process has written is in. While others hold the channel open, that can
    /// be told only after a while.
    pub fn is_complete(&self, waited: bool) -> bool {
        self.fd.is_none() || (waited && self.ring.end() >= self.target)
    }
}
