//! One sandbox from its first group to the moment something ends it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::cgroup::{self, Groups};
use crate::control::{Phase, Request, State};
use crate::end::Ending;
use crate::exit_record::{self, Cause, Stage};
use crate::lease::Lease;
use crate::listener::Listener;
use crate::mounts::Mounts;
use crate::queue::IDLE_AFTER;
use crate::relay::{Relay, Turn, POLLED};
use crate::runtime;
use crate::spec::{Mode, Spec};
use crate::sys::{self, Context, Ended, Result};

/// Between the end of the agent's pipes and the end of its process: a sandbox kernel takes a moment.
const LEAVING_PATIENCE: Duration = Duration::from_secs(2);
/// Processes that ended before the runtime returned and may turn out to be the first one.
const EARLY_LIMIT: usize = 1024;
/// Descriptors waited for beside the relay's: signals, lease, memory.
const OWN: usize = 3;

fn check_memory(found: libc::c_short) -> std::result::Result<(), Ending> {
    if found == 0 {
        Ok(())
    } else {
        Err(Ending::OutOfMemory)
    }
}

enum Stand {
    Starting {
        runtime: libc::pid_t,
        deadline: Instant,
    },
    Running {
        first: libc::pid_t,
    },
}

pub struct Sandbox {
    pub spec: Spec,
    pub groups: Groups,
    pub mounts: Mounts,
    pub relay: Relay,
    pub started_at: f64,
    pub first_ended: Option<Ended>,
    directory: OwnedFd,
    signals: OwnedFd,
    lease: Lease,
    oom_notice: Option<OwnedFd>,
    stand: Option<Stand>,
    ended_early: Vec<(libc::pid_t, Ended)>,
}

impl Sandbox {
    pub fn new(spec: Spec, signals: OwnedFd) -> Result<Self> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        Ok(Sandbox {
            directory: sys::open(&spec.dir, flags).context(|| spec.dir.display().to_string())?,
            lease: Lease::new(spec.lease_deadline_ns)?,
            spec,
            groups: Groups::default(),
            mounts: Mounts::default(),
            relay: Relay::new()?,
            started_at: exit_record::now(),
            first_ended: None,
            signals,
            oom_notice: None,
            stand: None,
            ended_early: Vec::new(),
        })
    }

    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub fn first_pid(&self) -> Option<libc::pid_t> {
        match self.stand {
            Some(Stand::Running { first }) => Some(first),
            _ => None,
        }
    }

    /// Groups, mounts, runtime. What a failed step leaves is taken down by the end.
    pub fn start(&mut self) -> std::result::Result<(), Ending> {
        let failed = |stage: Stage| move |error: String| Ending::StartFailed(stage, error);
        if self.spec.mode == Mode::Server {
            let listener = Listener::bind(self.directory()).map_err(failed(Stage::Spec))?;
            self.relay.listen(listener);
        }
        self.groups
            .create(&self.spec.cgroup)
            .map_err(failed(Stage::Cgroup))?;
        self.oom_notice = self
            .groups
            .oom_notice(&self.spec.cgroup)
            .map_err(failed(Stage::Cgroup))?;
        Mounts::enter_namespace().map_err(failed(Stage::Mounts))?;
        // The runtime's process enters its groups, which on v1 waits for an RCU grace period, while
        // the mounts are made.
        let started = runtime::spawn(&self.spec, &self.groups).map_err(failed(Stage::Runtime))?;
        for step in &self.spec.mounts {
            self.mounts.perform(step).map_err(failed(Stage::Mounts))?;
        }
        let started = started.go().map_err(failed(Stage::Runtime))?;
        self.relay
            .join_agent(started.to_agent, started.from_agent, started.stderr);
        let deadline = Instant::now() + Duration::from_millis(self.spec.start_timeout_ms);
        self.stand = Some(Stand::Starting {
            runtime: started.pid,
            deadline,
        });
        Ok(())
    }

    /// Relays frames until something ends the sandbox.
    pub fn watch(&mut self) -> Ending {
        let mut leaving_since = None;
        loop {
            let deadline = match (&self.stand, leaving_since) {
                (Some(Stand::Starting { deadline, .. }), _) => Some(*deadline),
                (_, Some(since)) => Some(since + LEAVING_PATIENCE),
                _ => None,
            };
            let (found, idle) = match self.wait(deadline) {
                Ok(waited) => waited,
                Err(error) => return Ending::StartFailed(Stage::Runtime, error),
            };
            if idle {
                self.relay.rest();
            }
            let turn = self.relay.turn(&found[OWN..]);
            // In this order: what was asked for comes before what merely happened.
            if let Err(ending) = self
                .serve(turn)
                .and_then(|()| self.check_lease(found[1].revents))
                .and_then(|()| check_memory(found[2].revents))
                .and_then(|()| self.check_signals(found[0].revents))
            {
                return ending;
            }
            let running = matches!(self.stand, Some(Stand::Running { .. }));
            if running && self.relay.agent_has_left() {
                leaving_since.get_or_insert_with(Instant::now);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if leaving_since.is_some() {
                    return Ending::AgentLeft;
                }
                if !running {
                    let limit = self.spec.start_timeout_ms;
                    let error = format!("the runtime did not return within {limit} ms");
                    return Ending::StartFailed(Stage::Runtime, error);
                }
            }
        }
    }

    /// Waits for any descriptor. The flag tells that nothing happened for a while and that queues
    /// have memory to give back; with nothing to give back there is no timer.
    fn wait(&self, deadline: Option<Instant>) -> Result<([libc::pollfd; OWN + POLLED], bool)> {
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let relay = self.relay.poll_entries();
        let mut entries = [entry(self.signals.as_raw_fd()); OWN + POLLED];
        entries[1] = entry(self.lease.descriptor().as_raw_fd());
        // A negative descriptor is passed over.
        entries[2] = entry(self.oom_notice.as_ref().map_or(-1, AsRawFd::as_raw_fd));
        entries[OWN..].copy_from_slice(&relay);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let rest = self.relay.could_rest().then_some(IDLE_AFTER);
        let timeout = match (left, rest) {
            (Some(left), Some(rest)) => Some(left.min(rest)),
            (left, rest) => left.or(rest),
        };
        sys::poll(&mut entries, timeout).context(|| "poll")?;
        let idle = rest.is_some() && entries.iter().all(|entry| entry.revents == 0);
        Ok((entries, idle))
    }

    fn serve(&mut self, turn: Turn) -> std::result::Result<(), Ending> {
        for request in turn.requests {
            match request {
                Request::Kill { cause } => {
                    return Err(Ending::Requested(cause, "the client ended it".to_owned()));
                }
                Request::Lease { deadline_ns } => {
                    // A timer that cannot be set expires: no sandbox outlives its client's wish.
                    if let Err(error) = self.lease.set(deadline_ns) {
                        return Err(Ending::Requested(Cause::LeaseExpired, error.to_string()));
                    }
                    self.tell_state();
                }
                Request::Status => self.tell_state(),
            }
        }
        if let Some(violation) = turn.violation {
            return Err(Ending::Violation(violation));
        }
        match turn.client_lost {
            Some(reason) if self.spec.mode == Mode::Embedded => {
                Err(Ending::Requested(Cause::Killed, reason))
            }
            _ => Ok(()),
        }
    }

    fn tell_state(&mut self) {
        let (phase, first) = match self.stand {
            Some(Stand::Running { first }) => (Phase::Running, first),
            _ => (Phase::Starting, 0),
        };
        let state = State {
            phase,
            init_pid: first.unsigned_abs(),
            shim_pid: std::process::id(),
            lease_deadline_ns: self.lease.deadline_ns(),
        };
        if let Ok(frame) = state.encode() {
            self.relay.reply(&frame);
        }
    }

    fn check_lease(&self, found: libc::c_short) -> std::result::Result<(), Ending> {
        if found != 0 && self.lease.has_expired() {
            let message = "nobody renewed the lease".to_owned();
            return Err(Ending::Requested(Cause::LeaseExpired, message));
        }
        Ok(())
    }

    fn check_signals(&mut self, found: libc::c_short) -> std::result::Result<(), Ending> {
        if found == 0 {
            return Ok(());
        }
        while let Some(signal) = sys::next_signal(self.signals.as_fd()) {
            if signal != libc::SIGCHLD {
                let message = format!("the shim got signal {signal}");
                return Err(Ending::Requested(Cause::Killed, message));
            }
        }
        let mut ended = Vec::new();
        cgroup::reap_all(&mut |pid, how| ended.push((pid, how)));
        for (pid, how) in ended {
            self.child_ended(pid, how)?;
        }
        Ok(())
    }

    fn child_ended(&mut self, pid: libc::pid_t, how: Ended) -> std::result::Result<(), Ending> {
        match self.stand {
            Some(Stand::Running { first }) if pid == first => self.first_process_ended(how),
            Some(Stand::Starting { runtime, .. }) if pid == runtime => self.runtime_returned(how),
            Some(Stand::Starting { .. }) if self.ended_early.len() < EARLY_LIMIT => {
                self.ended_early.push((pid, how));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn first_process_ended(&mut self, how: Ended) -> std::result::Result<(), Ending> {
        self.first_ended = Some(how);
        Err(Ending::FirstProcess(how))
    }

    fn runtime_returned(&mut self, how: Ended) -> std::result::Result<(), Ending> {
        let failed = |error: String| Ending::StartFailed(Stage::Runtime, error);
        if how.code != 0 {
            return Err(failed(format!("the runtime {how}")));
        }
        let first = runtime::read_pid_file(&self.spec.pid_file).map_err(failed)?;
        self.stand = Some(Stand::Running { first });
        let early = std::mem::take(&mut self.ended_early);
        if let Some((_, how)) = early.iter().find(|(pid, _)| *pid == first) {
            return self.first_process_ended(*how);
        }
        // What is no child any more was reaped by the runtime itself.
        if !sys::is_child(first) {
            return Err(failed(format!(
                "process {first} was gone when the runtime returned"
            )));
        }
        self.tell_state();
        Ok(())
    }
}
