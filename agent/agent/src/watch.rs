//! `FILE_WATCH`: changes in a directory until the host has seen enough.

use std::collections::VecDeque;

use fourwalls_protocol::kind;
use fourwalls_protocol::reply::{Event, Events};
use fourwalls_protocol::request::FileWatch;
use fourwalls_protocol::wire::{self, Bytes};

use crate::agent::Agent;
use crate::failure::{Failure, Fatal};
use crate::files::path::FilePathBuf;
use crate::inotify::{Change, Tree};
use crate::poller::{Interest, Poller, Source};
use crate::streams::{Stream, Turn};

/// Events that wait to be sent; more are an overflow.
const WAITING: usize = 4096;

/// Events in one frame: with the longest names they stay below a megabyte.
const BATCH: usize = 128;

/// A `FILE_WATCH` stream.
#[derive(Debug)]
pub struct Watching {
    tree: Option<Tree>,
    waiting: VecDeque<(&'static str, Vec<u8>)>,
    overflow: bool,
}

impl Watching {
    /// Stop watching.
    pub fn close(self, poller: &Poller) {
        if let Some(tree) = self.tree {
            poller.remove(tree.fd());
        }
    }

    fn add(&mut self, change: Change) {
        match change {
            Change::Overflow => self.overflow = true,
            Change::Event(kind, name) => {
                // The same again, before the first was sent, says nothing new.
                let repeated = self
                    .waiting
                    .back()
                    .is_some_and(|(k, n)| *k == kind && *n == name);
                if !repeated && self.waiting.len() >= WAITING {
                    self.overflow = true;
                } else if !repeated {
                    self.waiting.push_back((kind, name));
                }
            }
        }
    }
}

impl Agent {
    /// `FILE_WATCH`.
    pub fn file_watch(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FileWatch = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        let watching = Watching {
            tree: None,
            waiting: VecDeque::new(),
            overflow: false,
        };
        let serial = self.streams.open(stream, Stream::Watch(watching));
        self.workers.submit(Box::new(move || {
            let tree = Tree::new(path.as_path(), request.recursive).map_err(|error| {
                let mut failure = Failure::from_io(path.shown(), &error);
                if failure.errno == libc::ENOSPC {
                    // Not the disk: the number of watches.
                    failure = Failure {
                        code: "limit",
                        ..failure
                    };
                }
                failure
            });
            Box::new(move |agent: &mut Agent| {
                let Some(Stream::Watch(watching)) = agent.streams.same(stream, serial) else {
                    return Ok(());
                };
                match tree {
                    Ok(tree) => {
                        agent
                            .poller
                            .add(tree.fd(), Source::Watch(stream), Interest::Read)?;
                        watching.tree = Some(tree);
                        agent.link.signal(kind::READY, 0, stream);
                    }
                    Err(failure) => {
                        agent.streams.close(stream);
                        agent.link.fail(stream, failure);
                    }
                }
                Ok(())
            })
        }));
        Ok(())
    }

    /// Something happened in a watched directory.
    pub fn read_watch(&mut self, stream: u32) -> Result<(), Fatal> {
        let Some(Stream::Watch(watching)) = self.streams.get(stream) else {
            return Ok(());
        };
        if let Some(tree) = &mut watching.tree {
            for change in tree.read()? {
                watching.add(change);
            }
        }
        self.streams.mark_ready(stream);
        Ok(())
    }

    /// Let the stream send its next frame.
    pub fn watch_turn(&mut self, stream: u32) -> Turn {
        let Some(Stream::Watch(watching)) = self.streams.get(stream) else {
            return Turn::Nothing;
        };
        if watching.waiting.is_empty() && !watching.overflow {
            return Turn::Nothing;
        }
        let count = watching.waiting.len().min(BATCH);
        let events = watching
            .waiting
            .drain(..count)
            .map(|(kind, name)| Event {
                kind: kind.to_owned(),
                name: Bytes::from(name),
            })
            .collect();
        // Told with the last event before the gap.
        let overflow = watching.waiting.is_empty() && std::mem::take(&mut watching.overflow);
        self.link
            .send(kind::EVENTS, stream, &Events { events, overflow });
        Turn::Sent
    }
}
