//! The end: of the sandbox when the host asks for it, of everything when the host is gone.

use std::time::{Duration, Instant};

use fourwalls_protocol::request::Shutdown;
use fourwalls_protocol::{kind, wire};

use crate::agent::Agent;
use crate::failure::{Failure, Fatal};
use crate::process::Process;
use crate::{sys, tree};

/// How long the last frames may take to leave.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Agent {
    /// `SHUTDOWN`: SIGTERM to all, SIGKILL when the grace is over, then the agent ends.
    pub fn shutdown(&mut self, stream: u32, body: &[u8]) -> Result<(), Failure> {
        let request: Shutdown = wire::decode(body)?;
        self.link.signal(kind::OK, 0, stream);
        self.signal_everything(libc::SIGTERM);
        let grace = Duration::from_millis(request.grace_ms);
        self.last_moment = Instant::now().checked_add(grace).or(self.last_moment);
        Ok(())
    }

    /// Whether the end that was asked for has come.
    pub fn is_done(&mut self) -> Result<bool, Fatal> {
        let Some(last_moment) = self.last_moment else {
            return Ok(false);
        };
        let children = self.reap()?;
        // What has ended may still have something to say, to whoever gave it credit.
        let quiet = !self.streams.any_ready() && !self.books.iter().any(Process::is_draining);
        if (children || !quiet) && Instant::now() < last_moment {
            return Ok(false);
        }
        self.kill_everything();
        self.link.hurry();
        let deadline = Instant::now() + LAST_WORDS;
        while !self.link.flush()? && Instant::now() < deadline {
            sys::wait_for(self.link.output(), libc::POLLOUT, 50)?;
        }
        Ok(true)
    }

    /// SIGKILL for all that is not the agent.
    pub fn kill_everything(&self) {
        // Once is enough as the first process: the kernel takes the rest along.
        if self.is_init {
            self.signal_everything(libc::SIGKILL);
            return;
        }
        for _ in 0..100 {
            self.signal_everything(libc::SIGKILL);
            while matches!(sys::reap(), Ok(Some(_))) {}
            if tree::descendants().is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn signal_everything(&self, signal: i32) {
        if self.is_init {
            sys::kill_all(signal);
            return;
        }
        // Under another first process -1 would mean the whole machine.
        for stat in tree::descendants() {
            let _ = sys::kill(stat.pid, signal);
        }
    }
}
