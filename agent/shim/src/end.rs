//! The end of a sandbox: its cause, and the one order in which everything is taken down.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::cgroup::Counters;
use crate::control;
use crate::exit_record::{self, Cause, ExitRecord, Stage};
use crate::listener;
use crate::relay::Relay;
use crate::removal::remove_tree;
use crate::sandbox::Sandbox;
use crate::spec::Mode;
use crate::sys::{self, Ended};

/// How long dying processes are waited for.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Why a sandbox ends.
#[derive(Debug)]
pub enum Ending {
    /// Somebody, or the lease, wanted it.
    Requested(Cause, String),
    /// Its first process has ended.
    FirstProcess(Ended),
    /// It ran out of memory, and only all of it can end.
    OutOfMemory,
    /// The agent's pipes are closed although the first process lives.
    AgentLeft,
    /// The agent has broken the protocol.
    Violation(String),
    /// It never came to be.
    StartFailed(Stage, String),
}

impl Ending {
    fn stage(&self) -> Stage {
        match self {
            Ending::StartFailed(stage, _) => *stage,
            _ => Stage::None,
        }
    }

    /// The cause and a sentence for a person.
    fn explain(self, counters: Counters, shutdown_was_sent: bool) -> (Cause, String) {
        let out_of_memory = counters.oom_kills > 0;
        match self {
            Ending::Requested(cause, message) => (cause, message),
            Ending::OutOfMemory => (Cause::Oom, "the sandbox ran out of memory".to_owned()),
            Ending::FirstProcess(ended) if out_of_memory && ended.signal != 0 => {
                (Cause::Oom, "the sandbox ran out of memory".to_owned())
            }
            Ending::FirstProcess(ended) if ended.code == 0 && shutdown_was_sent => {
                (Cause::Exited, "the agent was shut down".to_owned())
            }
            Ending::FirstProcess(ended) => {
                (Cause::BoundaryDied, format!("the first process {ended}"))
            }
            Ending::AgentLeft => (
                Cause::BoundaryDied,
                "the agent closed its connection".to_owned(),
            ),
            Ending::Violation(error) => (
                Cause::BoundaryDied,
                format!("the agent broke the protocol: {error}"),
            ),
            Ending::StartFailed(_, error) if out_of_memory => (
                Cause::Oom,
                format!("the sandbox ran out of memory at its start: {error}"),
            ),
            Ending::StartFailed(_, error) => (Cause::BoundaryDied, error),
        }
    }
}

impl Sandbox {
    pub fn end(mut self, ending: Ending) {
        let mut remarks = self.kill_all();
        // A range of ids that something still runs with must not go to another sandbox. The reaper
        // finds the directory with its lock free, and goes on from there.
        let all_dead = remarks.is_empty();
        self.relay.log.drain();
        let counters = self.groups.counters();
        remarks.extend(self.mounts.undo());
        for path in &self.spec.cleanup {
            if let Err(error) = remove_tree(path) {
                remarks.push(format!("removing {}: {error}", path.display()));
            }
        }
        remarks.extend(self.groups.remove());

        let record = self.record(ending, counters, remarks);
        if self.spec.mode == Mode::Server {
            // Nobody reads the file of an embedded sandbox: its directory goes in a moment.
            if let Err(error) = record.write(self.directory()) {
                eprintln!("fourwalls-shim {}: {error}", self.spec.id);
            }
        }
        let told = match control::encode_gone(&record) {
            Ok(gone) => self.relay.say_goodbye(&gone),
            Err(error) => {
                eprintln!("fourwalls-shim {}: {error}", self.spec.id);
                Vec::new()
            }
        };
        let _ = sys::unlink_at(self.directory(), listener::NAME.as_ref(), 0);
        for path in self.spec.release.iter().filter(|_| all_dead) {
            let _ = sys::unlink_at(sys::cwd(), path, 0);
        }
        if all_dead && self.spec.mode == Mode::Embedded {
            if let Err(error) = remove_tree(&self.spec.dir) {
                eprintln!("fourwalls-shim {}: {error}", self.spec.id);
            }
        }
        // The end of the connection tells that nothing is left to wait for.
        drop(told);
    }

    fn kill_all(&mut self) -> Vec<String> {
        let first = self.first_pid();
        let mut ended = None;
        let gone = self
            .groups
            .kill_all(Instant::now() + KILL_PATIENCE, &mut |pid, how| {
                if Some(pid) == first {
                    ended = Some(how);
                }
            });
        self.first_ended = self.first_ended.or(ended);
        if gone {
            Vec::new()
        } else {
            vec![format!(
                "processes were left after {} seconds of killing",
                KILL_PATIENCE.as_secs()
            )]
        }
    }

    fn record(&self, ending: Ending, counters: Counters, remarks: Vec<String>) -> ExitRecord {
        let stage = ending.stage();
        let (cause, mut message) = ending.explain(counters, self.relay.shutdown_was_sent());
        for remark in remarks {
            message.push_str("; ");
            message.push_str(&remark);
        }
        let ended = self.first_ended.unwrap_or(Ended {
            code: -1,
            signal: 0,
        });
        ExitRecord {
            id: self.spec.id.clone(),
            cause,
            message,
            stage,
            exit_code: ended.code,
            signal: ended.signal,
            oom_kills: counters.oom_kills,
            pids_refused: counters.pids_refused,
            stderr: self.relay.log.text(),
            started_at: self.started_at,
            ended_at: exit_record::now(),
        }
    }
}

/// The end of a sandbox whose specification could not be read: all there is to do is to say so.
pub fn refuse(client: OwnedFd, error: String) {
    let now = exit_record::now();
    let record = ExitRecord {
        id: String::new(),
        cause: Cause::BoundaryDied,
        message: error,
        stage: Stage::Spec,
        exit_code: -1,
        signal: 0,
        oom_kills: 0,
        pids_refused: 0,
        stderr: String::new(),
        started_at: now,
        ended_at: now,
    };
    if let (Ok(mut relay), Ok(gone)) = (Relay::new(), control::encode_gone(&record)) {
        relay.welcome(client);
        relay.say_goodbye(&gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(ending: Ending, oom_kills: u64, shutdown: bool) -> Cause {
        ending
            .explain(
                Counters {
                    oom_kills,
                    pids_refused: 0,
                },
                shutdown,
            )
            .0
    }

    #[test]
    fn causes() {
        let ended = |code, signal| Ending::FirstProcess(Ended { code, signal });
        let wanted = Ending::Requested(Cause::Timeout, String::new());
        assert_eq!(cause(wanted, 1, false), Cause::Timeout);
        assert_eq!(cause(ended(-1, 9), 1, false), Cause::Oom);
        assert_eq!(cause(ended(-1, 9), 0, false), Cause::BoundaryDied);
        assert_eq!(cause(ended(0, 0), 0, true), Cause::Exited);
        assert_eq!(cause(ended(0, 0), 3, true), Cause::Exited);
        assert_eq!(cause(ended(0, 0), 0, false), Cause::BoundaryDied);
        assert_eq!(cause(ended(70, 0), 0, true), Cause::BoundaryDied);
        let failed = |oom| {
            cause(
                Ending::StartFailed(Stage::Runtime, String::new()),
                oom,
                false,
            )
        };
        assert_eq!((failed(0), failed(1)), (Cause::BoundaryDied, Cause::Oom));
    }
}
