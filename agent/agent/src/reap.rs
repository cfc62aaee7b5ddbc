//! Children that have ended: those we started, and every orphan of theirs.

use std::time::Instant;

use crate::agent::Agent;
use crate::failure::Fatal;
use crate::process::Ended;
use crate::sys;
use crate::tree::Tree;

/// Room below which a root file system counts as full: a program that failed to write may have
/// removed a little on its way out.
const FULL_BYTES: u64 = 64 * 1024;

impl Agent {
    /// Take leave of every child that has ended; false when there is no child at all.
    ///
    /// Only here are children waited for, so a number in the books is the process's own until then.
    pub fn reap(&mut self) -> Result<bool, Fatal> {
        loop {
            match sys::reap() {
                Ok(Some((pid, status))) => self.child_ended(pid, status)?,
                Ok(None) => return Ok(true),
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(false),
                Err(error) => return Err(Fatal::Io(error)),
            }
        }
    }

    fn child_ended(&mut self, pid: u32, status: i32) -> Result<(), Fatal> {
        // An orphan that was left to us is nobody's business any more.
        let Some(process) = self.books.take_running(pid) else {
            return Ok(());
        };
        let signalled = libc::WIFSIGNALED(status);
        let code = if signalled {
            -1
        } else {
            libc::WEXITSTATUS(status)
        };
        let ended = Ended {
            at: Instant::now(),
            code,
            signal: if signalled { libc::WTERMSIG(status) } else { 0 },
            core: signalled && libc::WCOREDUMP(status),
            disk_full: code != 0 && root_is_full(),
        };
        process.end(ended, &self.poller);
        let id = process.id;
        // Its input is closed, also where a child of it could still read: what waits is refused.
        self.write_input(id)?;
        self.settle(id);
        Ok(())
    }

    /// Do what has become due.
    pub fn run_timers(&mut self) {
        let now = Instant::now();
        let mut late = Vec::new();
        let mut drained = Vec::new();
        for process in self.books.iter_mut() {
            if process.deadline.is_some_and(|deadline| deadline <= now) {
                process.deadline = None;
                process.timed_out = true;
                late.push(Tree::of(process));
            }
            if process.is_draining() {
                drained.push(process.id);
            }
        }
        for tree in late {
            self.signal_tree(tree, libc::SIGKILL, None);
        }
        for id in drained {
            self.settle(id);
        }
    }
}

fn root_is_full() -> bool {
    sys::root_usage().is_some_and(|usage| {
        let block = usage.f_bsize as u64;
        usage.f_bavail.saturating_mul(block) < FULL_BYTES
            || (usage.f_files > 0 && usage.f_ffree == 0)
    })
}
