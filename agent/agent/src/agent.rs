//! The agent and its loop: wait, look after what happened, send what there is to send.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use crate::books::Books;
use crate::failure::Fatal;
use crate::launch::Launcher;
use crate::link::Link;
use crate::poller::{Event, Interest, Poller, Source};
use crate::session::Session;
use crate::streams::Streams;
use crate::sys;
use crate::worker::Workers;

/// Frames sent before the loop looks around again.
const TURNS: usize = 16;

/// Everything the agent knows.
#[derive(Debug)]
pub struct Agent {
    /// What the loop waits on.
    pub poller: Poller,
    /// The byte stream to the host.
    pub link: Link,
    /// Threads for what takes time.
    pub workers: Workers,
    /// Starts programs.
    pub launcher: Launcher,
    /// Processes.
    pub books: Books,
    /// Requests.
    pub streams: Streams,
    /// What `HELLO` settled.
    pub session: Session,
    /// There was a `HELLO`.
    pub greeted: bool,
    /// When the agent started.
    pub started: Instant,
    /// The first process of its world.
    pub is_init: bool,
    /// When a shutdown loses its patience.
    pub last_moment: Option<Instant>,
    children: OwnedFd,
    input_armed: bool,
    output_armed: bool,
}

impl Agent {
    /// An agent that waits for its `HELLO`.
    pub fn new() -> std::io::Result<Self> {
        let link = Link::new()?;
        let poller = Poller::new()?;
        let workers = Workers::new()?;
        let children = sys::child_signals()?;
        poller.add(link.input(), Source::LinkInput, Interest::Read)?;
        poller.add(workers.wake(), Source::Workers, Interest::Read)?;
        poller.add(children.as_raw_fd(), Source::Children, Interest::Read)?;
        Ok(Self {
            poller,
            link,
            workers,
            launcher: Launcher::default(),
            books: Books::default(),
            streams: Streams::default(),
            session: Session::default(),
            greeted: false,
            started: Instant::now(),
            is_init: std::process::id() == 1,
            last_moment: None,
            children,
            input_armed: true,
            output_armed: false,
        })
    }

    /// Work until there is a reason to end.
    pub fn run(&mut self) -> Fatal {
        loop {
            if let Err(reason) = self.step() {
                return reason;
            }
        }
    }

    fn step(&mut self) -> Result<(), Fatal> {
        let now = Instant::now();
        let deadline = if self.streams.any_ready() && !self.output_armed {
            Some(now)
        } else {
            let deadlines = [
                self.books.next_deadline(now),
                self.last_moment,
                // Without room it waits for room, not for its time.
                self.link.linger_deadline().filter(|_| !self.output_armed),
            ];
            deadlines.into_iter().flatten().min()
        };
        for event in self.poller.wait(deadline)? {
            self.handle(event)?;
        }
        self.run_timers();
        self.send()?;
        if self.is_done()? {
            Err(Fatal::Done)
        } else {
            Ok(())
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Fatal> {
        match event.source {
            Source::LinkInput => {
                for frame in self.link.receive()? {
                    self.dispatch(frame)?;
                }
                Ok(())
            }
            Source::LinkOutput => {
                self.poller.remove(self.link.output());
                self.output_armed = false;
                Ok(())
            }
            Source::Children => {
                // One read takes one signal, which stands for any number of children.
                let mut signal = [0; size_of::<libc::signalfd_siginfo>()];
                let _ = sys::read(self.children.as_raw_fd(), &mut signal);
                self.reap().map(drop)
            }
            Source::Workers => {
                for done in self.workers.finished() {
                    done(self)?;
                }
                Ok(())
            }
            Source::Channel { process, index } => self.read_channel(process, index),
            Source::ProcessInput(process) => self.write_input(process),
            Source::Watch(stream) => self.read_watch(stream),
            Source::Tunnel(stream) => self.tunnel_event(stream, event.writable, event.closed),
        }
    }

    /// Send what is queued, then let the streams take turns, as long as the link has room.
    fn send(&mut self) -> Result<(), Fatal> {
        for _ in 0..TURNS {
            if !self.link.flush()? {
                break;
            }
            let Some(stream) = self.streams.next_ready() else {
                break;
            };
            self.turn(stream)?;
        }
        let all_sent = self.link.flush()?;
        if !all_sent && !self.output_armed {
            self.poller
                .add(self.link.output(), Source::LinkOutput, Interest::Write)?;
            self.output_armed = true;
        }
        // Whoever does not take our answers gets no more of them.
        let wanted = !self.link.is_congested();
        if wanted && !self.input_armed {
            self.poller
                .add(self.link.input(), Source::LinkInput, Interest::Read)?;
        } else if !wanted && self.input_armed {
            self.poller.remove(self.link.input());
        }
        self.input_armed = wanted;
        Ok(())
    }
}
