//! Joins the agent's pipes to whoever holds the control connection. Frames are whole in both
//! directions, memory is bounded, and a side that does not take its frames stops the other one.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use fourwalls_protocol::frame::{Direction, Header, HEADER_BYTES};
use fourwalls_protocol::kind;

use crate::control::Request;
use crate::judges::{AgentFrames, ClientFrames, OwnFrames};
use crate::listener::Listener;
use crate::log_pipe::LogPipe;
use crate::queue::Queue;
use crate::sys::{self, Result};

/// Replies of the shim a client may leave unread before it is not read any more either.
const REPLY_LIMIT: usize = 64 << 10;
/// How long a client may take for the last frames of a sandbox that is gone.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(3);
/// What the agent can have left behind in its pipe and its group cannot have written since.
const LEFTOVER_LIMIT: usize = 4 << 20;

/// The descriptors of the relay, in the order of its poll entries.
pub const POLLED: usize = 5;
const LISTENER: usize = 0;
const CLIENT: usize = 1;
const TO_AGENT: usize = 2;
const FROM_AGENT: usize = 3;
const LOG: usize = 4;

pub struct Relay {
    client: Option<OwnedFd>,
    listener: Option<Listener>,
    to_agent: Option<OwnedFd>,
    from_agent: Option<OwnedFd>,
    pub log: LogPipe,
    requests_queue: Queue,
    replies_queue: Queue,
    /// The shim's own frames to the client; they go between two frames of the agent.
    own_replies: Vec<u8>,
    own_reply_begun: bool,
    agent_hung_up: bool,
    /// The agent has not been told yet that the client has gone.
    owes_detach: bool,
    shutdown_sent: bool,
}

/// What a turn of the relay has brought.
#[derive(Default)]
pub struct Turn {
    pub requests: Vec<Request>,
    /// The client has gone, for this reason.
    pub client_lost: Option<String>,
    /// The agent has sent what no agent sends.
    pub violation: Option<String>,
}

impl Relay {
    pub fn new() -> Result<Self> {
        Ok(Relay {
            client: None,
            listener: None,
            to_agent: None,
            from_agent: None,
            log: LogPipe::default(),
            requests_queue: Queue::new(Direction::ToAgent)?,
            replies_queue: Queue::new(Direction::ToHost)?,
            own_replies: Vec::new(),
            own_reply_begun: false,
            agent_hung_up: false,
            owes_detach: false,
            shutdown_sent: false,
        })
    }

    /// A client takes the place of the one before.
    pub fn welcome(&mut self, client: OwnedFd) {
        self.lose_client();
        self.client = Some(client);
    }

    pub fn listen(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    pub fn join_agent(&mut self, to_agent: OwnedFd, from_agent: OwnedFd, stderr: OwnedFd) {
        self.to_agent = Some(to_agent);
        self.from_agent = Some(from_agent);
        self.log = LogPipe::new(stderr);
    }

    /// One of the agent's pipes is closed on its side.
    pub fn agent_has_left(&self) -> bool {
        self.agent_hung_up
    }

    /// A client has asked the agent to leave.
    pub fn shutdown_was_sent(&self) -> bool {
        self.shutdown_sent
    }

    /// Something would be given back by `rest`.
    pub fn could_rest(&self) -> bool {
        self.requests_queue.could_rest() || self.replies_queue.could_rest()
    }

    pub fn rest(&mut self) {
        self.requests_queue.rest();
        self.replies_queue.rest();
    }

    /// A frame of the shim for the client, if there is one.
    pub fn reply(&mut self, frame: &[u8]) {
        if self.client.is_some() {
            self.own_replies.extend_from_slice(frame);
        }
    }

    fn reads_client(&self) -> bool {
        // The next client's greeting must not overtake the word that the one before has gone.
        !self.owes_detach && self.requests_queue.has_room() && self.own_replies.len() < REPLY_LIMIT
    }

    fn reads_agent(&self) -> bool {
        self.client.is_some() && self.replies_queue.has_room()
    }

    pub fn poll_entries(&self) -> [libc::pollfd; POLLED] {
        let entry = |fd: Option<BorrowedFd<'_>>, events: libc::c_short| libc::pollfd {
            fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
            events,
            revents: 0,
        };
        let when = |wanted: bool, event: libc::c_short| if wanted { event } else { 0 };
        let client_output = !self.own_replies.is_empty() || self.replies_queue.has_ready();
        // A hung-up pipe reports that for ever: it is asked only when something is wanted of it.
        let reads_agent = self.reads_agent();
        let from_agent = self
            .from_agent
            .as_ref()
            .filter(|_| reads_agent || !self.agent_hung_up);
        [
            entry(
                self.listener.as_ref().map(Listener::descriptor),
                libc::POLLIN,
            ),
            entry(
                self.client.as_ref().map(OwnedFd::as_fd),
                when(self.reads_client(), libc::POLLIN) | when(client_output, libc::POLLOUT),
            ),
            entry(
                self.to_agent.as_ref().map(OwnedFd::as_fd),
                when(self.requests_queue.has_ready(), libc::POLLOUT),
            ),
            entry(
                from_agent.map(OwnedFd::as_fd),
                when(reads_agent, libc::POLLIN),
            ),
            entry(self.log.descriptor().map(OwnedFd::as_fd), libc::POLLIN),
        ]
    }

    /// Moves what can be moved, by what poll has found.
    pub fn turn(&mut self, found: &[libc::pollfd]) -> Turn {
        let mut turn = Turn::default();
        if found[LOG].revents != 0 {
            self.log.fill();
        }
        if found[FROM_AGENT].revents != 0 {
            turn.violation = self.take_from_agent(found[FROM_AGENT].revents).err();
        }
        if found[CLIENT].revents != 0 {
            self.take_from_client(found[CLIENT].revents, &mut turn);
        }
        if found[TO_AGENT].revents & libc::POLLERR != 0 {
            self.lose_agent_input();
        }
        self.give_to_agent();
        self.give_to_client(&mut turn);
        if turn.client_lost.is_some() {
            self.give_to_agent();
        }
        // Last, so that what the client before has asked in this turn was its own.
        if found[LISTENER].revents != 0 {
            if let Some(client) = self.listener.as_ref().and_then(Listener::accept) {
                self.welcome(client);
            }
        }
        turn
    }

    fn take_from_agent(&mut self, found: libc::c_short) -> Result<()> {
        if !self.reads_agent() {
            self.agent_hung_up |= found & (libc::POLLHUP | libc::POLLERR) != 0;
            return Ok(());
        }
        self.read_agent().map(drop)
    }

    /// Reads once. True when something came.
    fn read_agent(&mut self) -> Result<bool> {
        let Some(pipe) = &self.from_agent else {
            return Ok(false);
        };
        match self
            .replies_queue
            .fill(|room| sys::read(pipe.as_fd(), room))
        {
            Ok(0) => self.lose_agent_output(),
            Ok(_) => {
                self.replies_queue.admit(&mut AgentFrames)?;
                return Ok(true);
            }
            Err(error) if sys::would_block(&error) => {}
            Err(_) => self.lose_agent_output(),
        }
        Ok(false)
    }

    fn take_from_client(&mut self, found: libc::c_short, turn: &mut Turn) {
        let Some(client) = &self.client else {
            return;
        };
        if !self.reads_client() {
            // What such a client still has to say does not fit; that it has left does.
            if found & (libc::POLLHUP | libc::POLLERR) != 0 {
                turn.client_lost = Some("the client went away".to_owned());
                self.lose_client();
            }
            return;
        }
        if found & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) == 0 {
            return;
        }
        let lost = match self
            .requests_queue
            .fill(|room| sys::receive(client.as_fd(), room))
        {
            Ok(0) => Some("the client went away".to_owned()),
            Ok(_) => {
                let mut judge = ClientFrames {
                    requests: &mut turn.requests,
                    shutdown_sent: &mut self.shutdown_sent,
                };
                let judged = self.requests_queue.admit(&mut judge);
                judged
                    .err()
                    .map(|error| format!("the client broke the protocol: {error}"))
            }
            Err(error) if sys::would_block(&error) => None,
            Err(error) => Some(format!("the client was lost: {error}")),
        };
        if lost.is_some() {
            turn.client_lost = lost;
            self.lose_client();
        }
    }

    fn give_to_agent(&mut self) {
        self.announce_detach();
        while let (true, Some(pipe)) = (self.requests_queue.has_ready(), &self.to_agent) {
            match self
                .requests_queue
                .drain(false, |bytes| sys::write(pipe.as_fd(), bytes))
            {
                Ok(_) => {}
                Err(error) if sys::would_block(&error) => break,
                Err(_) => self.lose_agent_input(),
            }
        }
    }

    fn give_to_client(&mut self, turn: &mut Turn) {
        while let Some(sent) = self.send_once() {
            match sent {
                Ok(()) => {}
                Err(error) if sys::would_block(&error) => break,
                Err(error) => {
                    turn.client_lost = Some(format!("the client was lost: {error}"));
                    self.lose_client();
                }
            }
        }
    }

    /// Sends one piece to the client: the rest of a frame begun, then the shim's own frames, then
    /// what the agent has sent. `None` when nothing is left or nobody is there.
    fn send_once(&mut self) -> Option<io::Result<()>> {
        let client = self.client.as_ref()?.as_fd();
        let own_first = self.own_reply_begun || !self.replies_queue.is_mid_frame();
        if !self.own_replies.is_empty() && own_first {
            let sent = sys::send(client, &self.own_replies).map(|size| {
                self.own_replies.drain(..size);
                self.own_reply_begun = !self.own_replies.is_empty();
            });
            return Some(sent);
        }
        if !self.replies_queue.has_ready() {
            return None;
        }
        let only_begun_frame = !self.own_replies.is_empty();
        let sent = self
            .replies_queue
            .drain(only_begun_frame, |bytes| sys::send(client, bytes));
        Some(sent.map(drop))
    }

    fn lose_client(&mut self) {
        // In embedded mode the end of the client is the end of the sandbox.
        self.owes_detach |= self.client.take().is_some() && self.listener.is_some();
        self.own_replies = Vec::new();
        self.own_reply_begun = false;
        self.replies_queue.drop_begun_frame();
        self.requests_queue.drop_incomplete_frame();
        self.announce_detach();
    }

    /// Tell the agent that nobody follows any more, or a process would wait for ever for somebody to
    /// read what it has written.
    fn announce_detach(&mut self) {
        if !self.owes_detach || !self.requests_queue.has_room() {
            return;
        }
        let header = Header {
            length: 0,
            kind: kind::DETACH,
            channel: 0,
            stream: 0,
        }
        .encode();
        let put = |room: &mut [u8]| {
            let Some(place) = room.get_mut(..header.len()) else {
                return Ok(0);
            };
            place.copy_from_slice(&header);
            Ok(header.len())
        };
        if matches!(self.requests_queue.fill(put), Ok(HEADER_BYTES)) {
            self.owes_detach = self.requests_queue.admit(&mut OwnFrames).is_err();
        }
    }

    fn lose_agent_input(&mut self) {
        self.to_agent = None;
        self.agent_hung_up = true;
    }

    fn lose_agent_output(&mut self) {
        self.from_agent = None;
        self.agent_hung_up = true;
        self.replies_queue.drop_incomplete_frame();
    }

    /// Nobody writes any more: hands on what the agent had sent, then `gone`, to the client and to
    /// those who were about to become it. Their connections are given back: as long as they are open,
    /// the end is not complete.
    pub fn say_goodbye(&mut self, gone: &[u8]) -> Vec<OwnedFd> {
        let deadline = Instant::now() + GOODBYE_PATIENCE;
        let mut left = LEFTOVER_LIMIT;
        while left > 0 && self.client.is_some() && self.replies_queue.has_room() {
            let before = self.replies_queue.filled();
            // A broken frame ends the leftovers, as the end of the pipe does.
            if !matches!(self.read_agent(), Ok(true)) {
                break;
            }
            left = left.saturating_sub(self.replies_queue.filled().saturating_sub(before));
            self.flush_client(deadline);
        }
        self.from_agent = None;
        self.flush_client(deadline);
        let mut told = Vec::new();
        loop {
            // A client that could not take the frame begun could not read this one either.
            if !self.replies_queue.is_mid_frame() {
                self.reply(gone);
                self.flush_client(Instant::now() + GOODBYE_PATIENCE);
            }
            told.extend(self.client.take());
            self.lose_client();
            match self.listener.as_ref().and_then(Listener::accept) {
                Some(client) => self.client = Some(client),
                None => return told,
            }
        }
    }

    fn flush_client(&mut self, deadline: Instant) {
        loop {
            let mut turn = Turn::default();
            self.give_to_client(&mut turn);
            let waiting = !self.own_replies.is_empty() || self.replies_queue.has_ready();
            let Some(client) = self.client.as_ref().filter(|_| waiting) else {
                return;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let mut entry = [libc::pollfd {
                fd: client.as_raw_fd(),
                events: libc::POLLOUT,
                revents: 0,
            }];
            if sys::poll(&mut entry, Some(left)).is_err() {
                return;
            }
        }
    }
}
