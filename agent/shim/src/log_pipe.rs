//! What the runtime and the agent write to stderr: the beginning and the end are kept, whatever the
//! amount.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;

const HEAD_LIMIT: usize = 4 << 10;
const TAIL_LIMIT: usize = 64 << 10;

#[derive(Default)]
pub struct LogPipe {
    pipe: Option<OwnedFd>,
    log: Log,
}

impl LogPipe {
    pub fn new(pipe: OwnedFd) -> Self {
        LogPipe {
            pipe: Some(pipe),
            log: Log::default(),
        }
    }

    pub fn descriptor(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Takes one chunk. A flood gets its turn like everybody else, not more. True while there may be
    /// more.
    pub fn fill(&mut self) -> bool {
        let Some(pipe) = &self.pipe else {
            return false;
        };
        let mut chunk = [0u8; 16 << 10];
        match sys::read(pipe.as_fd(), &mut chunk) {
            Ok(0) => self.pipe = None,
            Ok(size) => {
                self.log.append(&chunk[..size]);
                return true;
            }
            Err(error) if sys::would_block(&error) => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    /// Takes what is left when nobody writes any more; bounded, should somebody still do.
    pub fn drain(&mut self) {
        for _ in 0..256 {
            if !self.fill() {
                break;
            }
        }
    }

    pub fn text(&self) -> String {
        self.log.text()
    }
}

#[derive(Default)]
struct Log {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Log {
    fn append(&mut self, mut bytes: &[u8]) {
        let room = HEAD_LIMIT - self.head.len();
        if room > 0 {
            let (first, rest) = bytes.split_at(room.min(bytes.len()));
            self.head.extend_from_slice(first);
            bytes = rest;
        }
        self.tail.extend(bytes);
        if self.tail.len() > TAIL_LIMIT {
            let excess = self.tail.len() - TAIL_LIMIT;
            self.tail.drain(..excess);
            self.dropped += excess as u64;
        }
    }

    fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.dropped > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.dropped).as_bytes());
        }
        bytes.extend(&self.tail);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut log = Log::default();
        log.append(b"start");
        for _ in 0..100 {
            log.append(&[b'x'; 10_000]);
        }
        log.append(b"end");
        let text = log.text();
        assert!(text.starts_with("startx"));
        assert!(text.ends_with("xend"));
        assert!(text.contains("bytes left out"));
        assert!(text.len() < HEAD_LIMIT + TAIL_LIMIT + 64);
        assert!(log.tail.capacity() <= 4 * TAIL_LIMIT);
    }
}
