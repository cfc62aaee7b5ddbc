//! `TUNNEL_DIAL`: bytes between the host and a port of the guest's loopback.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use fourwalls_protocol::frame::DATA_PAYLOAD_LIMIT;
use fourwalls_protocol::request::{Credit, TunnelDial};
use fourwalls_protocol::{kind, wire};

use crate::agent::Agent;
use crate::credit::{Allowance, Window};
use crate::failure::{Failure, Fatal};
use crate::poller::{Interest, Poller, Source};
use crate::streams::{Stream, Turn};
use crate::sys;

/// What the host may send before it is written to the socket.
const WINDOW: u64 = 256 * 1024;

/// Bytes read from a socket at once.
const READ_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    ConnectingV4,
    ConnectingV6,
    Connected,
}

/// A `TUNNEL_DIAL` stream.
#[derive(Debug)]
pub struct Tunnel {
    socket: OwnedFd,
    port: u16,
    phase: Phase,
    interest: Option<Interest>,
    /// What may be sent to the host.
    pub allowance: Allowance,
    window: Window,
    queue: VecDeque<(Vec<u8>, usize)>,
    /// Offset of the next byte towards the host.
    offset: u64,
    /// The socket has something to read.
    readable: bool,
    /// No more comes from the socket.
    read_closed: bool,
    /// No more comes from the host.
    host_closed: bool,
    /// No more goes to the socket.
    write_closed: bool,
}

impl Tunnel {
    /// Hang up.
    pub fn close(self, poller: &Poller) {
        if self.interest.is_some() {
            poller.remove(self.socket.as_raw_fd());
        }
    }

    fn wait(&mut self, poller: &Poller, stream: u32) -> io::Result<()> {
        let connecting = self.phase != Phase::Connected;
        let write = connecting || !self.queue.is_empty();
        let read = !connecting && !self.read_closed && !self.readable;
        let wanted = match (read, write) {
            (true, true) => Some(Interest::Both),
            (true, false) => Some(Interest::Read),
            (false, true) => Some(Interest::Write),
            (false, false) => None,
        };
        if wanted == self.interest {
            return Ok(());
        }
        let fd = self.socket.as_raw_fd();
        let source = Source::Tunnel(stream);
        match (self.interest, wanted) {
            (None, Some(interest)) => poller.add(fd, source, interest)?,
            (Some(_), Some(interest)) => poller.change(fd, source, interest)?,
            (_, None) => poller.remove(fd),
        }
        self.interest = wanted;
        Ok(())
    }

    /// Write what waits; bytes that left.
    fn write(&mut self) -> io::Result<usize> {
        let mut total = 0;
        while let Some((bytes, at)) = self.queue.front_mut() {
            match sys::write(self.socket.as_raw_fd(), &bytes[*at..]) {
                Ok(count) => {
                    total += count;
                    *at += count;
                    if *at == bytes.len() {
                        self.queue.pop_front();
                    }
                }
                Err(error) if sys::would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.host_closed && self.queue.is_empty() && !self.write_closed {
            self.write_closed = true;
            // SAFETY: takes two numbers. A socket that is closed already needs no shutdown.
            unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_WR) };
        }
        Ok(total)
    }
}

impl Agent {
    /// `TUNNEL_DIAL`.
    pub fn tunnel_dial(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: TunnelDial = wire::decode(body)?;
        let (socket, phase) = match connect_v4(request.port) {
            Ok(socket) => (socket, Phase::ConnectingV4),
            Err(_) => (
                refused(request.port, connect_v6(request.port))?,
                Phase::ConnectingV6,
            ),
        };
        let tunnel = Tunnel {
            socket,
            port: request.port,
            phase,
            interest: None,
            allowance: Allowance::new(request.credit),
            window: Window::new(WINDOW),
            queue: VecDeque::new(),
            offset: 0,
            readable: false,
            read_closed: false,
            host_closed: false,
            write_closed: false,
        };
        self.streams.open(stream, Stream::Tunnel(tunnel));
        self.tunnel_settle(stream)
            .map_err(|_| Failure::new("limit", "no descriptor to spare"))
    }

    /// The socket is ready for something.
    pub fn tunnel_event(&mut self, stream: u32, writable: bool, closed: bool) -> Result<(), Fatal> {
        let Some(Stream::Tunnel(tunnel)) = self.streams.get(stream) else {
            return Ok(());
        };
        if tunnel.phase == Phase::Connected {
            tunnel.readable = !tunnel.read_closed;
            if closed && tunnel.read_closed {
                // Both directions of the connection are gone.
                tunnel.queue.clear();
                tunnel.host_closed = true;
            }
            self.streams.mark_ready(stream);
            return self.tunnel_write(stream);
        }
        if !(writable || closed) {
            return Ok(());
        }
        match socket_error(tunnel.socket.as_raw_fd()) {
            None => {
                tunnel.phase = Phase::Connected;
                self.link.signal(kind::READY, 0, stream);
                if let Some(bytes) = tunnel.window.grant() {
                    self.link.send(kind::CREDIT, stream, &Credit { bytes });
                }
                // The host may have closed its side already.
                self.tunnel_write(stream)
            }
            Some(_) if tunnel.phase == Phase::ConnectingV4 => {
                let port = tunnel.port;
                if tunnel.interest.take().is_some() {
                    self.poller.remove(tunnel.socket.as_raw_fd());
                }
                match refused(port, connect_v6(port)) {
                    Ok(socket) => {
                        tunnel.socket = socket;
                        tunnel.phase = Phase::ConnectingV6;
                        self.tunnel_settle(stream)
                    }
                    Err(failure) => self.tunnel_fail(stream, failure),
                }
            }
            Some(error) => {
                let port = tunnel.port;
                let failure = refused(port, Err::<(), _>(error)).err();
                self.tunnel_fail(
                    stream,
                    failure.unwrap_or_else(|| Failure::new("refused", "")),
                )
            }
        }
    }

    /// `DATA` for the socket.
    pub fn tunnel_data(&mut self, stream: u32, body: Vec<u8>) -> Result<(), Fatal> {
        let Some(Stream::Tunnel(tunnel)) = self.streams.get(stream) else {
            return Ok(());
        };
        let (offset, payload) = wire::decode_data(&body).map_err(|e| Fatal::Protocol(e.0))?;
        if tunnel.host_closed && !tunnel.write_closed {
            return Err(Fatal::Protocol("DATA after EOF".to_owned()));
        }
        tunnel
            .window
            .receive(offset, payload.len())
            .map_err(Fatal::Protocol)?;
        let at = body.len() - payload.len();
        if !payload.is_empty() {
            tunnel.queue.push_back((body, at));
        }
        self.tunnel_write(stream)
    }

    /// `EOF` of the host.
    pub fn tunnel_eof(&mut self, stream: u32) -> Result<(), Fatal> {
        if let Some(Stream::Tunnel(tunnel)) = self.streams.get(stream) {
            tunnel.host_closed = true;
        }
        self.tunnel_write(stream)
    }

    fn tunnel_write(&mut self, stream: u32) -> Result<(), Fatal> {
        let Some(Stream::Tunnel(tunnel)) = self.streams.get(stream) else {
            return Ok(());
        };
        if tunnel.phase == Phase::Connected {
            match tunnel.write() {
                Ok(count) => tunnel.window.consumed(count),
                // The other side hung up; what it said before is still read.
                Err(_) => {
                    let lost = tunnel
                        .queue
                        .drain(..)
                        .map(|(bytes, at)| bytes.len() - at)
                        .sum();
                    tunnel.window.consumed(lost);
                    tunnel.write_closed = true;
                    tunnel.host_closed = true;
                }
            }
            if let Some(bytes) = tunnel.window.grant().filter(|_| !tunnel.host_closed) {
                self.link.send(kind::CREDIT, stream, &Credit { bytes });
            }
        }
        self.tunnel_settle(stream)
    }

    fn tunnel_settle(&mut self, stream: u32) -> Result<(), Fatal> {
        let Some(Stream::Tunnel(tunnel)) = self.streams.get(stream) else {
            return Ok(());
        };
        if tunnel.read_closed && tunnel.write_closed {
            self.link.signal(kind::OK, 0, stream);
            return self.tunnel_close(stream);
        }
        Ok(tunnel.wait(&self.poller, stream)?)
    }

    fn tunnel_fail(&mut self, stream: u32, failure: Failure) -> Result<(), Fatal> {
        self.link.fail(stream, failure);
        self.tunnel_close(stream)
    }

    fn tunnel_close(&mut self, stream: u32) -> Result<(), Fatal> {
        match self.streams.close(stream) {
            Some(held) => self.release(stream, held),
            None => Ok(()),
        }
    }

    /// Let the stream send its next frame.
    pub fn tunnel_turn(&mut self, stream: u32) -> Result<Turn, Fatal> {
        let Some(Stream::Tunnel(tunnel)) = self.streams.get(stream) else {
            return Ok(Turn::Nothing);
        };
        let most = tunnel.allowance.at_most(READ_BYTES.min(DATA_PAYLOAD_LIMIT));
        if !tunnel.readable || most == 0 {
            return Ok(Turn::Nothing);
        }
        let mut buffer = [0; READ_BYTES];
        let turn = match sys::read(tunnel.socket.as_raw_fd(), &mut buffer[..most]) {
            Ok(count) if count > 0 => {
                let payload = [&buffer[..count], &[]];
                self.link
                    .send_data(stream, kind::CHANNEL_INPUT, tunnel.offset, payload)?;
                tunnel.offset += count as u64;
                tunnel.allowance.spend(count);
                Turn::Sent
            }
            Err(error) if sys::would_block(&error) => {
                tunnel.readable = false;
                Turn::Nothing
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Turn::Sent,
            // A connection that was reset says no more, and hears no more.
            ended => {
                tunnel.readable = false;
                tunnel.read_closed = true;
                self.link.signal(kind::EOF, kind::CHANNEL_INPUT, stream);
                if ended.is_err() {
                    tunnel.queue.clear();
                    tunnel.host_closed = true;
                    tunnel.write_closed = true;
                }
                Turn::Nothing
            }
        };
        self.tunnel_settle(stream)?;
        Ok(turn)
    }
}

fn refused<T>(port: u16, result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| {
        let failure = Failure::from_io(format!("port {port}"), &error);
        Failure {
            code: "refused",
            ..failure
        }
    })
}

fn connect_v4(port: u16) -> io::Result<OwnedFd> {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be(),
        },
        sin_zero: [0; 8],
    };
    connect(
        libc::AF_INET,
        (&raw const address).cast(),
        size_of_val(&address),
    )
}

fn connect_v6(port: u16) -> io::Result<OwnedFd> {
    let address = libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as u16,
        sin6_port: port.to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr {
            s6_addr: Ipv6Addr::LOCALHOST.octets(),
        },
        sin6_scope_id: 0,
    };
    connect(
        libc::AF_INET6,
        (&raw const address).cast(),
        size_of_val(&address),
    )
}

fn connect(family: i32, address: *const libc::sockaddr, size: usize) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes three numbers.
    let socket = sys::own(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: both callers pass an address that lives through the call, with its size.
    match sys::check(unsafe { libc::connect(socket.as_raw_fd(), address, size as u32) }) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

fn socket_error(socket: RawFd) -> Option<io::Error> {
    let mut errno: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw mut errno).cast();
    // SAFETY: value and size describe one int.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            value,
            &raw mut size,
        )
    };
    if result < 0 {
        return Some(io::Error::last_os_error());
    }
    (errno != 0).then(|| io::Error::from_raw_os_error(errno))
}
