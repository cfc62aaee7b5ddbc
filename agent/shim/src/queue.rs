//! Frames on their way through the shim, in one direction. Bytes are read into a region and written
//! from where they lie; only whole frames are ever written.

use std::io;
use std::ops::Range;
use std::time::Duration;

use fourwalls_protocol::frame::{Direction, Header, HEADER_BYTES};

use crate::sys::{Context, Result};

/// Most bytes taken at once, and what a region has on top of its longest frame.
const READ_CHUNK: usize = 256 << 10;
/// What stays resident of an idle region.
const KEPT_BYTES: usize = 4 << 10;
/// A region this quiet gives its memory back.
pub const IDLE_AFTER: Duration = Duration::from_millis(500);

/// Anonymous memory that is resident only where it was used, and can be given back without losing
/// its place.
struct Region {
    start: *mut u8,
    length: usize,
}

impl Region {
    fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a fresh private mapping; nothing is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // One huge page would be more than the whole shim.
        // SAFETY: exactly the mapping made above.
        unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
        Ok(Region {
            start: start.cast(),
            length,
        })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zero-filled at first, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    fn give_back_from(&mut self, offset: usize) {
        if offset < self.length {
            // SAFETY: the range lies in the mapping and is page-aligned (the mapping is, and so is
            // the one offset used); what is dropped reads as zeroes afterwards.
            unsafe {
                libc::madvise(
                    self.start.add(offset).cast(),
                    self.length - offset,
                    libc::MADV_DONTNEED,
                )
            };
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, used by nobody any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// What to do with a whole frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Forward,
    /// Taken by the shim itself.
    Take,
}

/// The judge of frames: sees each header as soon as it is there (`None`), and the whole frame once
/// the body is. An error ends the connection the frame came from.
pub trait Judge {
    fn header(&mut self, header: &Header) -> Result<()>;
    fn frame(&mut self, header: &Header, body: &[u8]) -> Result<Verdict>;
}

/// `start..ready` holds whole frames (the first may have been sent in part), `ready..end` the
/// beginning of the next one.
pub struct Queue {
    region: Region,
    direction: Direction,
    start: usize,
    ready: usize,
    end: usize,
    /// Bytes left of the frame at `start` when a part of it has been sent.
    unsent_of_frame: usize,
    /// Highest byte ever used since memory was given back.
    touched: usize,
}

impl Queue {
    pub fn new(direction: Direction) -> Result<Self> {
        let length = direction.body_limit() + HEADER_BYTES + READ_CHUNK;
        let region = Region::new(length).context(|| "memory for frames")?;
        Ok(Queue {
            region,
            direction,
            start: 0,
            ready: 0,
            end: 0,
            unsent_of_frame: 0,
            touched: 0,
        })
    }

    /// Whole frames wait to be sent.
    pub fn has_ready(&self) -> bool {
        self.start < self.ready
    }

    pub fn is_mid_frame(&self) -> bool {
        self.unsent_of_frame > 0
    }

    pub fn has_room(&self) -> bool {
        self.end < self.region.length || self.may_compact()
    }

    /// Moving is allowed when it costs no more than what has been sent since the last time, and when
    /// nothing is left but the beginning of one frame: that one must fit.
    fn may_compact(&self) -> bool {
        self.start > 0 && (self.end - self.start <= self.start || self.start == self.ready)
    }

    fn compact(&mut self) {
        self.region.bytes_mut().copy_within(self.start..self.end, 0);
        self.ready -= self.start;
        self.end -= self.start;
        self.start = 0;
    }

    /// Reads once with `read` and judges what has come. 0 is the end of the stream.
    pub fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.ready, self.end) = (0, 0, 0);
        } else if self.region.length - self.end < READ_CHUNK && self.may_compact() {
            self.compact();
        }
        let limit = self.region.length.min(self.end + READ_CHUNK);
        let room = self.end..limit;
        let size = read(&mut self.region.bytes_mut()[room])?;
        self.end += size;
        self.touched = self.touched.max(self.end);
        Ok(size)
    }

    /// Judges the frames that have become whole.
    pub fn admit(&mut self, judge: &mut impl Judge) -> Result<()> {
        while let Some(header) = self.header_at(self.ready)? {
            judge.header(&header)?;
            let whole = self.ready..self.ready + HEADER_BYTES + header.length as usize;
            if whole.end > self.end {
                break;
            }
            let body = &self.region.bytes()[whole.start + HEADER_BYTES..whole.end];
            match judge.frame(&header, body)? {
                Verdict::Forward => self.ready = whole.end,
                Verdict::Take => self.cut(whole),
            }
        }
        Ok(())
    }

    /// Takes a range out; what follows moves up. Only rare and small frames are taken.
    fn cut(&mut self, range: Range<usize>) {
        let length = range.len();
        self.region
            .bytes_mut()
            .copy_within(range.end..self.end, range.start);
        self.end -= length;
    }

    fn header_at(&self, offset: usize) -> Result<Option<Header>> {
        let end = offset + HEADER_BYTES;
        if end > self.end {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&self.region.bytes()[offset..end]);
        Header::decode(&bytes, self.direction)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    /// Writes what is ready with `write`, or only the rest of a frame begun. Gives the bytes written.
    pub fn drain(
        &mut self,
        only_begun_frame: bool,
        write: impl FnOnce(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let end = if only_begun_frame {
            self.start + self.unsent_of_frame
        } else {
            self.ready
        };
        let size = write(&self.region.bytes()[self.start..end])?;
        self.advance(size);
        Ok(size)
    }

    /// Moves `start` on and remembers how much of the frame it points into is left.
    fn advance(&mut self, size: usize) {
        let target = self.start + size;
        let mut frame_end = self.start + self.unsent_of_frame;
        while frame_end < target {
            // Everything before `ready` was judged: its headers are whole and sound.
            let length = match self.header_at(frame_end) {
                Ok(Some(header)) => HEADER_BYTES + header.length as usize,
                _ => self.ready - frame_end,
            };
            frame_end += length;
        }
        self.start = target;
        self.unsent_of_frame = frame_end - target;
    }

    /// The reader has gone: the rest of the frame it was being sent is of no use to the next one.
    pub fn drop_begun_frame(&mut self) {
        self.start += self.unsent_of_frame;
        self.unsent_of_frame = 0;
    }

    /// The writer has gone: the beginning of its last frame will never be followed by the rest.
    pub fn drop_incomplete_frame(&mut self) {
        self.end = self.ready;
    }

    /// Bytes held at present.
    pub fn filled(&self) -> usize {
        self.end - self.start
    }

    /// Nothing is in transit and more memory is in use than an idle queue needs.
    pub fn could_rest(&self) -> bool {
        self.start == self.end && self.touched > KEPT_BYTES
    }

    /// Gives memory back.
    pub fn rest(&mut self) {
        if self.could_rest() {
            (self.start, self.ready, self.end) = (0, 0, 0);
            self.region.give_back_from(KEPT_BYTES);
            self.touched = KEPT_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Take(u8);

    impl Judge for Take {
        fn header(&mut self, _header: &Header) -> Result<()> {
            Ok(())
        }

        fn frame(&mut self, header: &Header, _body: &[u8]) -> Result<Verdict> {
            Ok(if header.kind == self.0 {
                Verdict::Take
            } else {
                Verdict::Forward
            })
        }
    }

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let header = Header {
            length: body.len() as u32,
            kind,
            channel: 0,
            stream: 7,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    /// Any cutting of the stream into reads and writes gives the same frames, less those taken.
    #[test]
    fn frames_come_out_whole_and_in_order() {
        let mut input = Vec::new();
        let mut expected = Vec::new();
        for index in 0..400usize {
            let body = vec![index as u8; (index * 977) % 70_000];
            let kind = if index % 7 == 0 { 0xF2 } else { 5 };
            input.extend(frame(kind, &body));
            if kind == 5 {
                expected.extend(frame(kind, &body));
            }
        }
        let mut queue = Queue::new(Direction::ToHost).unwrap();
        let (mut given, mut output, mut seed) = (0, Vec::new(), 1u64);
        let mut random = |limit: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            1 + (seed >> 33) as usize % limit
        };
        while given < input.len() || queue.has_ready() {
            if given < input.len() && queue.has_room() {
                let wanted = random(400_000);
                given += queue
                    .fill(|room| {
                        let size = wanted.min(room.len()).min(input.len() - given);
                        room[..size].copy_from_slice(&input[given..given + size]);
                        Ok(size)
                    })
                    .unwrap();
                queue.admit(&mut Take(0xF2)).unwrap();
            }
            if queue.has_ready() {
                let wanted = random(300_000);
                let only_begun = queue.is_mid_frame() && wanted % 2 == 0;
                queue
                    .drain(only_begun, |bytes| {
                        let size = wanted.min(bytes.len());
                        output.extend_from_slice(&bytes[..size]);
                        Ok(size)
                    })
                    .unwrap();
            }
        }
        assert!(output == expected);
        assert!(!queue.is_mid_frame());
        assert!(queue.could_rest());
        queue.rest();
        assert!(!queue.could_rest());
    }

    #[test]
    fn a_begun_frame_is_dropped_whole() {
        let mut queue = Queue::new(Direction::ToHost).unwrap();
        let input = [frame(1, b"abcdef"), frame(2, b"xyz")].concat();
        queue
            .fill(|room| {
                room[..input.len()].copy_from_slice(&input);
                Ok(input.len())
            })
            .unwrap();
        queue.admit(&mut Take(0)).unwrap();
        queue.drain(false, |_| Ok(5)).unwrap();
        assert!(queue.is_mid_frame());
        queue.drop_begun_frame();
        let mut output = Vec::new();
        queue
            .drain(false, |bytes| {
                output.extend_from_slice(bytes);
                Ok(bytes.len())
            })
            .unwrap();
        assert_eq!(output, frame(2, b"xyz"));
    }
}
