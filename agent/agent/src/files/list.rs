//! `FILE_LIST`: a directory, depth-first, names in byte order, in batches.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use fourwalls_protocol::reply::{Entries, Entry};
use fourwalls_protocol::request::FileList;
use fourwalls_protocol::{kind, wire};

use super::entry::Describer;
use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::failure::{Failure, Fatal};
use crate::streams::{Stream, Turn};

/// Entries in one frame.
const BATCH: usize = 256;

/// Bytes in one frame; an entry is at most some twelve thousand.
const BATCH_BYTES: usize = 512 * 1024;

/// A walk under way: the directories it is in, with the names still to come, last name first.
#[derive(Debug)]
struct Walk {
    levels: Vec<(PathBuf, Vec<OsString>)>,
    depth: usize,
    describer: Describer,
}

/// A `FILE_LIST` stream. The walk is either here or with a thread.
#[derive(Debug)]
pub struct Listing {
    walk: Option<Walk>,
    batch: Option<Vec<Entry>>,
    failure: Option<Failure>,
    over: bool,
}

impl Walk {
    fn begin(path: &FilePathBuf, depth: u32) -> Result<Self, Failure> {
        let names = names(path.as_path()).map_err(|e| Failure::from_io(path.shown(), &e))?;
        Ok(Self {
            levels: vec![(path.as_path().to_owned(), names)],
            depth: usize::try_from(depth).unwrap_or(usize::MAX),
            describer: Describer::new(),
        })
    }

    /// The next entries; none when all have been given.
    fn batch(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        while entries.len() < BATCH && bytes < BATCH_BYTES {
            let Some((dir, names)) = self.levels.last_mut() else {
                break;
            };
            let Some(name) = names.pop() else {
                self.levels.pop();
                continue;
            };
            let path = dir.join(name);
            // What is gone by now is not there.
            let Ok(entry) = self.describer.describe(&path) else {
                continue;
            };
            if entry.kind == "dir" && self.levels.len() < self.depth {
                // A directory that cannot be read is listed and not entered.
                if let Ok(names) = self::names(&path) {
                    self.levels.push((path, names));
                }
            }
            bytes += 256 + entry.name.len() + entry.path.len();
            bytes += entry.target.as_ref().map_or(0, |target| target.len());
            entries.push(entry);
        }
        entries
    }
}

/// Names in a directory, last one first.
fn names(path: &std::path::Path) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name());
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

impl Agent {
    /// `FILE_LIST`.
    pub fn file_list(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FileList = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        if request.depth == 0 {
            return Err(Failure::invalid("a depth of 0 lists nothing"));
        }
        let listing = Listing {
            walk: None,
            batch: None,
            failure: None,
            over: false,
        };
        self.streams.open(stream, Stream::List(listing));
        self.continue_listing(stream, move || Walk::begin(&path, request.depth));
        Ok(())
    }

    fn continue_listing<F>(&mut self, stream: u32, walk: F)
    where
        F: FnOnce() -> Result<Walk, Failure> + Send + 'static,
    {
        let serial = self.streams.serial(stream);
        self.workers.submit(Box::new(move || {
            let result = walk().map(|mut walk| (walk.batch(), walk));
            Box::new(move |agent: &mut Agent| {
                let Some(Stream::List(listing)) = agent.streams.same(stream, serial) else {
                    return Ok(());
                };
                match result {
                    Ok((batch, _)) if batch.is_empty() => listing.over = true,
                    Ok((batch, walk)) => {
                        listing.batch = Some(batch);
                        listing.walk = Some(walk);
                    }
                    Err(failure) => listing.failure = Some(failure),
                }
                agent.streams.mark_ready(stream);
                Ok(())
            })
        }));
    }

    /// Let the stream send its next frame.
    pub fn list_turn(&mut self, stream: u32) -> Result<Turn, Fatal> {
        let Some(Stream::List(listing)) = self.streams.get(stream) else {
            return Ok(Turn::Nothing);
        };
        if let Some(failure) = listing.failure.take() {
            self.link.fail(stream, failure);
            return Ok(Turn::Over);
        }
        if listing.over {
            self.link.signal(kind::OK, 0, stream);
            return Ok(Turn::Over);
        }
        let Some(entries) = listing.batch.take() else {
            return Ok(Turn::Nothing);
        };
        let walk = listing.walk.take();
        self.link.send(kind::ENTRIES, stream, &Entries { entries });
        if let Some(walk) = walk {
            self.continue_listing(stream, move || Ok(walk));
        }
        Ok(Turn::Sent)
    }
}
