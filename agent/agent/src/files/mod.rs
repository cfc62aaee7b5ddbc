//! File requests: one file each. Threads do the work; the loop sends what they found.
//!
//! They run as root of the sandbox. What they create, parents included, is given to the user of the
//! request.

pub mod change;
mod copy;
pub mod entry;
pub mod list;
pub mod make;
pub mod moving;
pub mod path;
pub mod read;
pub mod remove;
pub mod write;

use fourwalls_protocol::request::FilePath;
use fourwalls_protocol::{kind, reply, wire};
use serde::Serialize;

use crate::agent::Agent;
use crate::failure::Failure;
use crate::streams::Stream;
use crate::users::{Accounts, User};
use entry::Describer;
use path::FilePathBuf;

/// Streams open at a time, of all kinds. A file or a directory in transfer holds up to half a
/// megabyte.
pub const STREAM_LIMIT: usize = 1024;

impl Agent {
    /// Have a request answered by a thread with `RESULT` or `ERROR`.
    pub fn answer_later<T, F>(&mut self, stream: u32, work: F)
    where
        T: Serialize + Send + 'static,
        F: FnOnce() -> Result<T, Failure> + Send + 'static,
    {
        let serial = self.streams.open(stream, Stream::Waiting);
        self.workers.submit(Box::new(move || {
            let result = work();
            Box::new(move |agent: &mut Agent| {
                if agent.streams.same(stream, serial).is_some() {
                    agent.streams.close(stream);
                    match result {
                        Ok(answer) => agent.link.send(kind::RESULT, stream, &answer),
                        Err(failure) => agent.link.fail(stream, failure),
                    }
                }
                Ok(())
            })
        }));
    }

    /// The user a file request is for: its own, else the session's.
    pub fn file_user(
        &self,
        wanted: Option<String>,
    ) -> impl FnOnce() -> Result<User, Failure> + use<> {
        let name = wanted.unwrap_or_else(|| self.session.user.clone());
        move || find_user(&name)
    }

    /// `FILE_STAT`.
    pub fn file_stat(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FilePath = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        self.answer_later(stream, move || -> Result<reply::Entry, Failure> {
            Describer::new().entry(&path)
        });
        Ok(())
    }
}

/// A user by name or number.
pub fn find_user(name: &str) -> Result<User, Failure> {
    let unknown = || Failure::invalid(format!("unknown user {name:?}"));
    Accounts::read().find(name).ok_or_else(unknown)
}
