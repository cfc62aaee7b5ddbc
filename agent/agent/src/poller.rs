//! The wait: epoll, level-triggered, with names instead of numbers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use crate::sys;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The link towards us.
    LinkInput,
    /// The link towards the host.
    LinkOutput,
    /// A child has ended.
    Children,
    /// A worker has something to tell.
    Workers,
    /// An output channel of a process.
    Channel {
        /// Number of the process in our books.
        process: u32,
        /// 0 or 1.
        index: usize,
    },
    /// The input of a process can take more.
    ProcessInput(u32),
    /// Something happened in a watched directory.
    Watch(u32),
    /// The socket of a tunnel.
    Tunnel(u32),
}

impl Source {
    fn encode(self) -> u64 {
        let (kind, index, id) = match self {
            Self::LinkInput => (0, 0, 0),
            Self::LinkOutput => (1, 0, 0),
            Self::Children => (2, 0, 0),
            Self::Workers => (3, 0, 0),
            Self::Channel { process, index } => (4, index as u64, process),
            Self::ProcessInput(process) => (5, 0, process),
            Self::Watch(stream) => (6, 0, stream),
            Self::Tunnel(stream) => (7, 0, stream),
        };
        kind << 56 | index << 48 | u64::from(id)
    }

    fn decode(value: u64) -> Self {
        let id = (value & 0xffff_ffff) as u32;
        match value >> 56 {
            0 => Self::LinkInput,
            1 => Self::LinkOutput,
            2 => Self::Children,
            3 => Self::Workers,
            4 => Self::Channel {
                process: id,
                index: usize::from(value >> 48 & 0xff != 0),
            },
            5 => Self::ProcessInput(id),
            6 => Self::Watch(id),
            _ => Self::Tunnel(id),
        }
    }
}

/// One thing to look after.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// What it is about.
    pub source: Source,
    /// Writing will not wait, or fails.
    pub writable: bool,
    /// The other end is gone, or there is an error.
    pub closed: bool,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Until something can be read.
    Read,
    /// Until something can be written.
    Write,
    /// Either.
    Both,
}

impl Interest {
    fn bits(self) -> u32 {
        let bits = match self {
            Self::Read => libc::EPOLLIN,
            Self::Write => libc::EPOLLOUT,
            Self::Both => libc::EPOLLIN | libc::EPOLLOUT,
        };
        bits as u32
    }
}

/// An epoll instance.
///
/// What is not wanted is not registered: a hang-up is reported whatever the mask says, and would
/// keep the loop awake.
#[derive(Debug)]
pub struct Poller {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// Events taken from the kernel at once.
const BATCH: usize = 64;

impl Poller {
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes a number.
        let fd = sys::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Self {
            fd,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH],
        })
    }

    /// Wait for `fd` from now on.
    pub fn add(&self, fd: RawFd, source: Source, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, source, interest)
    }

    /// Wait for something else.
    pub fn change(&self, fd: RawFd, source: Source, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, source, interest)
    }

    /// Do not wait any longer; nothing happens when nobody did.
    pub fn remove(&self, fd: RawFd) {
        // SAFETY: a null event is allowed for EPOLL_CTL_DEL.
        unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd,
                std::ptr::null_mut(),
            );
        }
    }

    fn control(&self, operation: i32, fd: RawFd, source: Source, want: Interest) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: want.bits(),
            u64: source.encode(),
        };
        // SAFETY: the event lives through the call.
        sys::check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) })
            .map(drop)
    }

    /// Wait until something happens or `deadline` has come.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Vec<Event>> {
        let timeout = deadline.map_or(-1, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up: a wake-up just before the moment would find nothing to do.
            i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        // SAFETY: the buffer holds BATCH events.
        let count = unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                BATCH as i32,
                timeout,
            )
        };
        let count = match sys::check(count) {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let closed = (libc::EPOLLHUP | libc::EPOLLERR) as u32;
        let writable = libc::EPOLLOUT as u32 | closed;
        Ok(self.events[..count]
            .iter()
            .map(|event| Event {
                source: Source::decode(event.u64),
                writable: event.events & writable != 0,
                closed: event.events & closed != 0,
            })
            .collect())
    }
}
