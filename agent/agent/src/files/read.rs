//! `FILE_READ`: the content of a file, a piece ahead of what the host takes.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};

use fourwalls_protocol::frame::DATA_PAYLOAD_LIMIT;
use fourwalls_protocol::reply::StartedRead;
use fourwalls_protocol::request::FileRead;
use fourwalls_protocol::{kind, wire};

use super::path::FilePathBuf;
use crate::agent::Agent;
use crate::credit::Allowance;
use crate::failure::{Failure, Fatal};
use crate::streams::{Stream, Turn};

/// Pieces that have been read and not sent.
const AHEAD: usize = 2;

/// A file being read.
#[derive(Debug)]
struct Reader {
    file: File,
    path: FilePathBuf,
    offset: u64,
    left: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Chunk {
    offset: u64,
    bytes: Vec<u8>,
    sent: usize,
}

/// A `FILE_READ` stream. The reader is either here or with a thread.
#[derive(Debug)]
pub struct Reading {
    /// What may be sent.
    pub allowance: Allowance,
    reader: Option<Reader>,
    chunks: VecDeque<Chunk>,
    end: Option<Result<(), Failure>>,
}

impl Reader {
    fn open(path: FilePathBuf, offset: u64, length: Option<u64>) -> Result<(Self, u64), Failure> {
        let failed = |error: io::Error| Failure::from_io(path.shown(), &error);
        // Without O_NONBLOCK a pipe that nobody writes to would hold the thread for ever.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path.as_path());
        let file = file.map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.is_dir() {
            return Err(failed(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        if meta.file_type().is_fifo() {
            return Err(Failure::invalid(format!("{} is a pipe", path.shown())));
        }
        let left = length.unwrap_or(u64::MAX);
        Ok((
            Self {
                file,
                path,
                offset,
                left,
                buffer: Vec::new(),
            },
            meta.size(),
        ))
    }

    /// The next bytes; none at the end.
    fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(DATA_PAYLOAD_LIMIT);
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.resize(most, 0);
        let count = loop {
            match self.file.read_at(&mut bytes, self.offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let count = count.map_err(|error| Failure::from_io(self.path.shown(), &error))?;
        if count == 0 {
            return Ok(None);
        }
        bytes.truncate(count);
        let offset = self.offset;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(Some(Chunk {
            offset,
            bytes,
            sent: 0,
        }))
    }
}

impl Agent {
    /// `FILE_READ`.
    pub fn file_read(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: FileRead = wire::decode(body)?;
        let path = FilePathBuf::new(&request.path)?;
        let reading = Reading {
            allowance: Allowance::new(request.credit),
            reader: None,
            chunks: VecDeque::new(),
            end: None,
        };
        let serial = self.streams.open(stream, Stream::Read(reading));
        self.workers.submit(Box::new(move || {
            let opened = Reader::open(path, request.offset, request.length);
            Box::new(move |agent: &mut Agent| {
                let Some(Stream::Read(reading)) = agent.streams.same(stream, serial) else {
                    return Ok(());
                };
                match opened {
                    Ok((reader, size)) => {
                        agent
                            .link
                            .send(kind::STARTED_READ, stream, &StartedRead { size });
                        reading.reader = Some(reader);
                        agent.read_ahead(stream);
                    }
                    Err(failure) => reading.end = Some(Err(failure)),
                }
                agent.streams.mark_ready(stream);
                Ok(())
            })
        }));
        Ok(())
    }

    fn read_ahead(&mut self, stream: u32) {
        let serial = self.streams.serial(stream);
        let Some(Stream::Read(reading)) = self.streams.get(stream) else {
            return;
        };
        // One piece is read without credit: it may be the end, which needs none.
        let ahead = if reading.allowance.at_most(1) > 0 {
            AHEAD
        } else {
            1
        };
        if reading.chunks.len() >= ahead {
            return;
        }
        let Some(mut reader) = reading.reader.take() else {
            return;
        };
        self.workers.submit(Box::new(move || {
            let next = reader.next();
            Box::new(move |agent: &mut Agent| {
                let Some(Stream::Read(reading)) = agent.streams.same(stream, serial) else {
                    return Ok(());
                };
                match next {
                    Ok(Some(chunk)) => {
                        reading.chunks.push_back(chunk);
                        reading.reader = Some(reader);
                        agent.read_ahead(stream);
                    }
                    Ok(None) => reading.end = Some(Ok(())),
                    Err(failure) => reading.end = Some(Err(failure)),
                }
                agent.streams.mark_ready(stream);
                Ok(())
            })
        }));
    }

    /// Let the stream send its next frame.
    pub fn read_turn(&mut self, stream: u32) -> Result<Turn, Fatal> {
        let Some(Stream::Read(reading)) = self.streams.get(stream) else {
            return Ok(Turn::Nothing);
        };
        let Some(chunk) = reading.chunks.front_mut() else {
            return Ok(match reading.end.take() {
                None => Turn::Nothing,
                Some(Ok(())) => {
                    self.link.signal(kind::OK, 0, stream);
                    Turn::Over
                }
                Some(Err(failure)) => {
                    self.link.fail(stream, failure);
                    Turn::Over
                }
            });
        };
        let rest = &chunk.bytes[chunk.sent..];
        let count = reading.allowance.at_most(rest.len());
        if count == 0 {
            return Ok(Turn::Nothing);
        }
        let offset = chunk.offset + chunk.sent as u64;
        self.link
            .send_data(stream, kind::CHANNEL_INPUT, offset, [&rest[..count], &[]])?;
        reading.allowance.spend(count);
        chunk.sent += count;
        if chunk.sent == chunk.bytes.len() {
            let spent = reading.chunks.pop_front();
            if let (Some(spent), Some(reader)) = (spent, &mut reading.reader) {
                reader.buffer = spent.bytes;
            }
        }
        self.read_ahead(stream);
        Ok(Turn::Sent)
    }
}
