//! The requests that are open, and whose turn it is to send.

use std::collections::{BTreeMap, VecDeque};

use crate::files::list::Listing;
use crate::files::read::Reading;
use crate::files::write::Writing;
use crate::tunnel::Tunnel;
use crate::watch::Watching;

/// What a stream is doing.
#[derive(Debug)]
pub enum Stream {
    /// Waiting for one answer.
    Waiting,
    /// Attached to the process with this number in the books.
    Process(u32),
    /// Sending a file.
    Read(Reading),
    /// Receiving a file.
    Write(Writing),
    /// Sending a directory.
    List(Listing),
    /// Sending changes.
    Watch(Watching),
    /// Both, with a socket.
    Tunnel(Tunnel),
}

#[derive(Debug)]
struct Open {
    serial: u64,
    queued: bool,
    stream: Stream,
}

/// All open streams of the session.
#[derive(Debug, Default)]
pub struct Streams {
    open: BTreeMap<u32, Open>,
    ready: VecDeque<u32>,
    serial: u64,
}

impl Streams {
    /// Open a stream. The serial tells it from a later one of the same number, for jobs that come
    /// back when the session they were for is over.
    pub fn open(&mut self, id: u32, stream: Stream) -> u64 {
        self.serial += 1;
        self.open.insert(
            id,
            Open {
                serial: self.serial,
                queued: false,
                stream,
            },
        );
        self.serial
    }

    /// Whether the number is in use.
    pub fn contains(&self, id: u32) -> bool {
        self.open.contains_key(&id)
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// The stream of that number.
    pub fn get(&mut self, id: u32) -> Option<&mut Stream> {
        self.open.get_mut(&id).map(|open| &mut open.stream)
    }

    /// The stream of that number, if it is still the same.
    pub fn same(&mut self, id: u32, serial: u64) -> Option<&mut Stream> {
        self.open
            .get_mut(&id)
            .filter(|open| open.serial == serial)
            .map(|open| &mut open.stream)
    }

    /// The serial of a stream.
    pub fn serial(&self, id: u32) -> u64 {
        self.open.get(&id).map_or(0, |open| open.serial)
    }

    /// The stream has ended.
    pub fn close(&mut self, id: u32) -> Option<Stream> {
        self.open.remove(&id).map(|open| open.stream)
    }

    /// All streams end: the session is over.
    pub fn close_all(&mut self) -> Vec<(u32, Stream)> {
        self.ready.clear();
        std::mem::take(&mut self.open)
            .into_iter()
            .map(|(id, open)| (id, open.stream))
            .collect()
    }

    /// The stream may have something to send.
    pub fn mark_ready(&mut self, id: u32) {
        if let Some(open) = self.open.get_mut(&id) {
            if !open.queued {
                open.queued = true;
                self.ready.push_back(id);
            }
        }
    }

    /// Whether a stream may have something to send.
    pub fn any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whose turn it is.
    pub fn next_ready(&mut self) -> Option<u32> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(open) = self.open.get_mut(&id) {
                open.queued = false;
                return Some(id);
            }
        }
        None
    }
}

/// What came of a stream's turn to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Something left; there may be more.
    Sent,
    /// Nothing to send for now.
    Nothing,
    /// The terminal frame left.
    Over,
}
