//! `FILE_WRITE`: new content of a file, written in place as it comes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{fchown, FileTypeExt, OpenOptionsExt, PermissionsExt};

use fourwalls_protocol::reply::Entry;
use fourwalls_protocol::request::{Credit, FileWrite};
use fourwalls_protocol::{kind, wire};

use super::entry::Describer;
use super::make::make_parents;
use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::credit::Window;
use crate::failure::{Failure, Fatal};
use crate::streams::Stream;
use crate::users::User;

/// What may be on its way to a file.
const WINDOW: u64 = 2 * 1024 * 1024;

const DEFAULT_MODE: u32 = 0o644;

/// A file being written.
#[derive(Debug)]
struct Writer {
    file: File,
    path: FilePathBuf,
}

/// A `FILE_WRITE` stream. The writer is either here or with a thread.
#[derive(Debug)]
pub struct Writing {
    writer: Option<Writer>,
    /// Payload and where it begins in each body.
    queue: Vec<(Vec<u8>, usize)>,
    window: Window,
    ended: bool,
}

impl Writer {
    fn open(path: FilePathBuf, user: &User, request: &FileWrite) -> Result<Self, Failure> {
        make_parents(path.as_path(), user)?;
        let failed = |error: io::Error| Failure::from_io(path.shown(), &error);
        let mode = request.mode.map(|mode| mode & 0o7777);
        let mut options = OpenOptions::new();
        // Without O_NONBLOCK a pipe that nobody reads would hold the thread for ever.
        options
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .mode(mode.unwrap_or(DEFAULT_MODE));
        if request.append {
            options.append(true);
        } else {
            options.write(true);
        }
        let (file, created) = match options.clone().create_new(true).open(path.as_path()) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match options
                    .clone()
                    .truncate(!request.append)
                    .open(path.as_path())
                {
                    // A symlink to what is not there yet.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => (
                        options.create(true).open(path.as_path()).map_err(failed)?,
                        true,
                    ),
                    other => (other.map_err(failed)?, false),
                }
            }
            Err(error) => return Err(failed(error)),
        };
        let kind = file.metadata().map_err(failed)?.file_type();
        if kind.is_fifo() || kind.is_socket() {
            return Err(Failure::invalid(format!("{} is a pipe", path.shown())));
        }
        if created {
            fchown(&file, Some(user.uid), Some(user.gid)).map_err(failed)?;
        }
        if let Some(mode) = mode {
            // Also after the change of owner, which takes set-id bits away.
            file.set_permissions(PermissionsExt::from_mode(mode))
                .map_err(failed)?;
        }
        Ok(Self { file, path })
    }

    fn write(&mut self, pieces: &[(Vec<u8>, usize)]) -> Result<usize, Failure> {
        let mut count = 0;
        for (bytes, at) in pieces {
            let written = self.file.write_all(&bytes[*at..]);
            written.map_err(|error| Failure::from_io(self.path.shown(), &error))?;
            count += bytes.len() - at;
        }
        Ok(count)
    }

    fn close(self) -> Result<Entry, Failure> {
        drop(self.file);
        Describer::new().entry(&self.path)
    }
}

impl Agent {
    /// `FILE_WRITE`.
    pub fn file_write(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let mut request: FileWrite = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        let user = self.file_user(request.user.take());
        let writing = Writing {
            writer: None,
            queue: Vec::new(),
            window: Window::new(WINDOW),
            ended: false,
        };
        let serial = self.streams.open(stream, Stream::Write(writing));
        self.workers.submit(Box::new(move || {
            let opened = user().and_then(|user| Writer::open(path, &user, &request));
            Box::new(move |agent: &mut Agent| {
                let Some(Stream::Write(writing)) = agent.streams.same(stream, serial) else {
                    return Ok(());
                };
                match opened {
                    Ok(writer) => {
                        writing.writer = Some(writer);
                        agent.link.signal(kind::READY, 0, stream);
                        agent.continue_writing(stream);
                    }
                    Err(failure) => agent.fail_writing(stream, failure),
                }
                Ok(())
            })
        }));
        Ok(())
    }

    /// `DATA` of an upload.
    pub fn write_data(&mut self, stream: u32, body: Vec<u8>) -> Result<(), Fatal> {
        let Some(Stream::Write(writing)) = self.streams.get(stream) else {
            return Ok(());
        };
        let (offset, payload) = wire::decode_data(&body).map_err(|e| Fatal::Protocol(e.0))?;
        if writing.ended {
            return Err(Fatal::Protocol("DATA after EOF".to_owned()));
        }
        writing
            .window
            .receive(offset, payload.len())
            .map_err(Fatal::Protocol)?;
        let at = body.len() - payload.len();
        writing.queue.push((body, at));
        self.continue_writing(stream);
        Ok(())
    }

    /// `EOF` of an upload.
    pub fn write_eof(&mut self, stream: u32) {
        if let Some(Stream::Write(writing)) = self.streams.get(stream) {
            writing.ended = true;
            self.continue_writing(stream);
        }
    }

    fn continue_writing(&mut self, stream: u32) {
        let serial = self.streams.serial(stream);
        let Some(Stream::Write(writing)) = self.streams.get(stream) else {
            return;
        };
        if let Some(bytes) = writing.window.grant().filter(|_| !writing.ended) {
            self.link.send(kind::CREDIT, stream, &Credit { bytes });
        }
        if writing.queue.is_empty() && !writing.ended {
            return;
        }
        let Some(mut writer) = writing.writer.take() else {
            return;
        };
        let pieces = std::mem::take(&mut writing.queue);
        if pieces.is_empty() {
            self.workers.submit(Box::new(move || {
                let closed = writer.close();
                Box::new(move |agent: &mut Agent| {
                    if agent.streams.same(stream, serial).is_some() {
                        match closed {
                            Ok(entry) => {
                                agent.streams.close(stream);
                                agent.link.send(kind::RESULT, stream, &entry);
                            }
                            Err(failure) => agent.fail_writing(stream, failure),
                        }
                    }
                    Ok(())
                })
            }));
            return;
        }
        self.workers.submit(Box::new(move || {
            let written = writer.write(&pieces);
            Box::new(move |agent: &mut Agent| {
                let Some(Stream::Write(writing)) = agent.streams.same(stream, serial) else {
                    return Ok(());
                };
                match written {
                    Ok(count) => {
                        writing.window.consumed(count);
                        writing.writer = Some(writer);
                        agent.continue_writing(stream);
                    }
                    Err(failure) => agent.fail_writing(stream, failure),
                }
                Ok(())
            })
        }));
    }

    fn fail_writing(&mut self, stream: u32, failure: Failure) {
        self.streams.close(stream);
        self.link.fail(stream, failure);
    }
}
