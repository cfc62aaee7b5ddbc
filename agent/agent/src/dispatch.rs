//! From a frame to the file that answers it.

use fourwalls_protocol::frame::Frame;
use fourwalls_protocol::request::Credit;
use fourwalls_protocol::{kind, wire};

use crate::agent::Agent;
use crate::failure::{Failure, Fatal};
use crate::files::STREAM_LIMIT;
use crate::streams::{Stream, Turn};

impl Agent {
    /// Do what a frame asks for.
    pub fn dispatch(&mut self, frame: Frame) -> Result<(), Fatal> {
        let stream = frame.header.stream;
        if !self.greeted && ![kind::HELLO, kind::DETACH].contains(&frame.header.kind) {
            return Err(Fatal::Protocol("the first frame is not HELLO".to_owned()));
        }
        match frame.header.kind {
            kind::HELLO if stream != 0 => Err(Fatal::Protocol(format!("HELLO on stream {stream}"))),
            kind::HELLO => self.hello(&frame.body),
            kind::DETACH => self.end_session(),
            kind::PING => {
                self.link.signal(kind::PONG, 0, stream);
                Ok(())
            }
            kind::CREDIT => self.credit(stream, &frame.body),
            kind::CANCEL => self.cancel(stream),
            kind::DATA => self.data(frame),
            kind::EOF => self.eof(stream),
            other => self.request(other, stream, &frame.body),
        }
    }

    fn request(&mut self, kind: u8, stream: u32, body: &[u8]) -> Result<(), Fatal> {
        let answer = match kind {
            kind::EXEC_START => Self::exec_start,
            kind::EXEC_ATTACH => Self::exec_attach,
            kind::EXEC_INPUT => Self::exec_input,
            kind::EXEC_CLOSE_STDIN => Self::exec_close_stdin,
            kind::EXEC_RESIZE => Self::exec_resize,
            kind::EXEC_SIGNAL => Self::exec_signal,
            kind::EXEC_LIST => Self::exec_list,
            kind::FILE_STAT => Self::file_stat,
            kind::FILE_LIST => Self::file_list,
            kind::FILE_READ => Self::file_read,
            kind::FILE_WRITE => Self::file_write,
            kind::FILE_MKDIR => Self::file_mkdir,
            kind::FILE_MOVE => Self::file_move,
            kind::FILE_REMOVE => Self::file_remove,
            kind::FILE_CHANGE => Self::file_change,
            kind::FILE_WATCH => Self::file_watch,
            kind::TUNNEL_DIAL => Self::tunnel_dial,
            kind::METRICS => Self::metrics,
            kind::SHUTDOWN => Self::shutdown,
            other => return Err(Fatal::Protocol(format!("unknown kind {other:#04x}"))),
        };
        if stream == 0 || self.streams.contains(stream) {
            return Err(Fatal::Protocol(format!(
                "a request on stream {stream}, which is in use"
            )));
        }
        let result = if self.streams.count() >= STREAM_LIMIT {
            Err(Failure::new(
                "limit",
                format!("{STREAM_LIMIT} streams are open"),
            ))
        } else {
            answer(self, stream, body)
        };
        if let Err(failure) = result {
            if let Some(held) = self.streams.close(stream) {
                self.release(stream, held)?;
            }
            self.link.fail(stream, failure);
        }
        Ok(())
    }

    fn credit(&mut self, stream: u32, body: &[u8]) -> Result<(), Fatal> {
        let Credit { bytes } = wire::decode(body).map_err(|error| Fatal::Protocol(error.0))?;
        let allowance = match self.streams.get(stream) {
            Some(Stream::Process(id)) => {
                let process = self.books.get(*id);
                process
                    .and_then(|p| p.attachment(stream))
                    .map(|shown| &mut shown.allowance)
            }
            Some(Stream::Read(reading)) => Some(&mut reading.allowance),
            Some(Stream::Tunnel(tunnel)) => Some(&mut tunnel.allowance),
            _ => None,
        };
        if let Some(allowance) = allowance {
            allowance.add(bytes);
            self.streams.mark_ready(stream);
        }
        Ok(())
    }

    fn cancel(&mut self, stream: u32) -> Result<(), Fatal> {
        if let Some(held) = self.streams.close(stream) {
            self.release(stream, held)?;
            self.link.signal(kind::OK, 0, stream);
        }
        Ok(())
    }

    fn data(&mut self, frame: Frame) -> Result<(), Fatal> {
        let stream = frame.header.stream;
        if self.streams.contains(stream) && frame.header.channel != kind::CHANNEL_INPUT {
            let channel = frame.header.channel;
            return Err(Fatal::Protocol(format!("DATA on channel {channel}")));
        }
        match self.streams.get(stream) {
            Some(Stream::Process(id)) => {
                let id = *id;
                self.process_data(id, stream, frame.body)
            }
            Some(Stream::Write(_)) => self.write_data(stream, frame.body),
            Some(Stream::Tunnel(_)) => self.tunnel_data(stream, frame.body),
            Some(_) => Err(Fatal::Protocol(
                "DATA on a stream that takes none".to_owned(),
            )),
            None => Ok(()),
        }
    }

    fn eof(&mut self, stream: u32) -> Result<(), Fatal> {
        match self.streams.get(stream) {
            Some(Stream::Process(id)) => {
                let id = *id;
                self.finish_input(id)
            }
            Some(Stream::Write(_)) => {
                self.write_eof(stream);
                Ok(())
            }
            Some(Stream::Tunnel(_)) => self.tunnel_eof(stream),
            _ => Ok(()),
        }
    }

    /// Let a stream send its next frame.
    pub fn turn(&mut self, stream: u32) -> Result<(), Fatal> {
        let turn = match self.streams.get(stream) {
            Some(Stream::Process(id)) => {
                let id = *id;
                self.process_turn(id, stream)?
            }
            Some(Stream::Read(_)) => self.read_turn(stream)?,
            Some(Stream::List(_)) => self.list_turn(stream)?,
            Some(Stream::Watch(_)) => self.watch_turn(stream),
            Some(Stream::Tunnel(_)) => self.tunnel_turn(stream)?,
            Some(Stream::Waiting | Stream::Write(_)) | None => Turn::Nothing,
        };
        match turn {
            Turn::Sent => self.streams.mark_ready(stream),
            Turn::Over => drop(self.streams.close(stream)),
            Turn::Nothing => {}
        }
        Ok(())
    }
}
