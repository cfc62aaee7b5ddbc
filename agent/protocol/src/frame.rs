//! Headers and the incremental frame decoder.
//!
//! Whoever forwards frames needs nothing but this file: a header tells how long a frame is and whom
//! it belongs to without a look at the body.

use std::fmt;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 12;

/// Most payload bytes one `DATA` frame carries.
pub const DATA_PAYLOAD_LIMIT: usize = 256 * 1024;

/// Bytes of a `DATA` body in front of its payload: the offset.
pub const DATA_OFFSET_BYTES: usize = 8;

/// Room reserved for a body before its bytes are there. A header is only a claim: memory follows
/// what has arrived, not what was announced.
const FIRST_RESERVE: usize = 16 * 1024;

/// Which way a frame goes; the limits differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the host to the agent.
    ToAgent,
    /// From the agent to the host.
    ToHost,
}

impl Direction {
    /// The longest body allowed this way.
    #[must_use]
    pub const fn body_limit(self) -> usize {
        match self {
            Self::ToAgent => 4 * 1024 * 1024,
            Self::ToHost => 1024 * 1024,
        }
    }
}

/// What stands in front of each body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Bytes of body that follow.
    pub length: u32,
    /// What the frame is; see [`crate::kind`]. Not checked here.
    pub kind: u8,
    /// Channel of `DATA` and `EOF`, else 0.
    pub channel: u8,
    /// The request the frame belongs to; 0 is the connection itself.
    pub stream: u32,
}

impl Header {
    /// The twelve bytes of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.kind;
        bytes[5] = self.channel;
        bytes[8..12].copy_from_slice(&self.stream.to_le_bytes());
        bytes
    }

    /// Read a header and check what can be checked without knowing the kinds.
    ///
    /// # Errors
    /// A length over the limit of the direction, or reserved bits.
    pub fn decode(bytes: &[u8; HEADER_BYTES], direction: Direction) -> Result<Self, FrameError> {
        let [l0, l1, l2, l3, kind, channel, r0, r1, s0, s1, s2, s3] = *bytes;
        let header = Self {
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            kind,
            channel,
            stream: u32::from_le_bytes([s0, s1, s2, s3]),
        };
        let reserved = u16::from_le_bytes([r0, r1]);
        if reserved != 0 {
            return Err(FrameError::Reserved(reserved));
        }
        if header.length as usize > direction.body_limit() {
            return Err(FrameError::TooLong {
                kind,
                length: header.length,
            });
        }
        Ok(header)
    }
}

/// One whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The header; its `length` is the length of `body`.
    pub header: Header,
    /// The body, as it came.
    pub body: Vec<u8>,
}

impl Frame {
    /// A frame around `body`.
    ///
    /// Bodies come from this workspace and are far below 4 GiB; a longer one would be cut short in
    /// the header and refused by the peer.
    #[must_use]
    pub fn new(kind: u8, channel: u8, stream: u32, body: Vec<u8>) -> Self {
        let header = Header {
            length: u32::try_from(body.len()).unwrap_or(u32::MAX),
            kind,
            channel,
            stream,
        };
        Self { header, body }
    }

    /// Header and body in one piece.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.body.len());
        bytes.extend_from_slice(&self.header.encode());
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Why a byte stream is not a stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The reserved field is not zero.
    Reserved(u16),
    /// The body is longer than the direction allows.
    TooLong {
        /// Kind of the frame.
        kind: u8,
        /// Length it claims.
        length: u32,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved(value) => write!(f, "reserved field is {value:#06x}, not 0"),
            Self::TooLong { kind, length } => {
                write!(
                    f,
                    "frame of kind {kind:#04x} claims a body of {length} bytes"
                )
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Cuts a byte stream into frames, whatever the pieces it arrives in.
///
/// It holds at most one incomplete frame: [`HEADER_BYTES`] plus the limit of its direction.
#[derive(Debug)]
pub struct Decoder {
    direction: Direction,
    head: [u8; HEADER_BYTES],
    head_filled: usize,
    header: Option<Header>,
    body: Vec<u8>,
    failed: Option<FrameError>,
}

impl Decoder {
    /// A decoder for frames that go `direction`.
    #[must_use]
    pub const fn new(direction: Direction) -> Self {
        Self {
            direction,
            head: [0; HEADER_BYTES],
            head_filled: 0,
            header: None,
            body: Vec::new(),
            failed: None,
        }
    }

    /// Take bytes off the front of `input` until a frame is whole or `input` is empty.
    ///
    /// Call it again with the same `input` until it returns `Ok(None)`: then all of it is consumed.
    ///
    /// # Errors
    /// The stream is broken and stays so: each later call gives the same error.
    pub fn next_frame(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(header) = self.take_header(input)? else {
            return Ok(None);
        };
        let length = header.length as usize;
        let missing = length - self.body.len();
        let (now, later) = input.split_at(missing.min(input.len()));
        if self.body.capacity() == 0 {
            self.body
                .reserve_exact(length.min(now.len().max(FIRST_RESERVE)));
        }
        if self.body.capacity() < self.body.len() + now.len() {
            // Doubling, but never beyond what the frame needs.
            let target = (self.body.capacity() * 2)
                .max(self.body.len() + now.len())
                .min(length);
            self.body.reserve_exact(target - self.body.len());
        }
        self.body.extend_from_slice(now);
        *input = later;
        if self.body.len() < length {
            return Ok(None);
        }
        self.header = None;
        self.head_filled = 0;
        Ok(Some(Frame {
            header,
            body: std::mem::take(&mut self.body),
        }))
    }

    /// Bytes of an incomplete frame held at present.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.head_filled + self.body.len()
    }

    /// Whether the stream stands between two frames.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        self.buffered() == 0
    }

    /// Forget an incomplete frame and a failure: the peer is a new one.
    pub fn reset(&mut self) {
        *self = Self::new(self.direction);
    }

    fn take_header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, FrameError> {
        if let Some(header) = self.header {
            return Ok(Some(header));
        }
        let missing = HEADER_BYTES - self.head_filled;
        let (now, later) = input.split_at(missing.min(input.len()));
        self.head[self.head_filled..self.head_filled + now.len()].copy_from_slice(now);
        self.head_filled += now.len();
        *input = later;
        if self.head_filled < HEADER_BYTES {
            return Ok(None);
        }
        match Header::decode(&self.head, self.direction) {
            Ok(header) => {
                self.header = Some(header);
                Ok(Some(header))
            }
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }
}
