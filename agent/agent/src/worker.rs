//! Threads for what may take its time: file systems and the hunt for process trees.
//!
//! A job is a closure; what it returns is run by the loop, with the agent at hand. Threads come with
//! the first jobs and stay, asleep. Where no thread can be made (the sandbox is full of processes)
//! the loop does the job itself: late is better than never.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use crate::agent::Agent;
use crate::failure::Fatal;
use crate::sys;

/// What the loop does when a job is done.
pub type Done = Box<dyn FnOnce(&mut Agent) -> Result<(), Fatal> + Send>;

/// What a thread does.
pub type Job = Box<dyn FnOnce() -> Done + Send>;

/// Threads for file work.
const THREADS: usize = 4;

/// A thread's stack; resolving names recurses, nothing of ours does.
const STACK_BYTES: usize = 256 * 1024;

/// The workers, seen from the loop.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    threads: usize,
}

struct Shared {
    state: Mutex<State>,
    job_came: Condvar,
    wake: OwnedFd,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    done: VecDeque<Done>,
    idle: usize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("wake", &self.wake)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic ends the program, so a lock is never found poisoned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, done: Done) {
        self.state().done.push_back(done);
        // The counter cannot overflow: the loop reads it. So the write cannot fail.
        let _ = sys::write(self.wake.as_raw_fd(), &1_u64.to_ne_bytes());
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.finish(job());
                state = self.state();
            } else {
                state.idle += 1;
                state = self
                    .job_came
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

impl Workers {
    pub fn new() -> io::Result<Self> {
        let shared = Shared {
            state: Mutex::new(State::default()),
            job_came: Condvar::new(),
            wake: sys::event()?,
        };
        Ok(Self {
            shared: Arc::new(shared),
            threads: 0,
        })
    }

    /// Descriptor that becomes readable when a job is done.
    pub fn wake(&self) -> RawFd {
        self.shared.wake.as_raw_fd()
    }

    /// Have a job done.
    pub fn submit(&mut self, job: Job) {
        let mut state = self.shared.state();
        state.jobs.push_back(job);
        let waiting = state.jobs.len();
        if state.idle >= waiting || self.threads == THREADS {
            drop(state);
            self.shared.job_came.notify_one();
            return;
        }
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || shared.work());
        if thread.is_ok() {
            self.threads += 1;
        } else if self.threads == 0 {
            let job = self.shared.state().jobs.pop_front();
            if let Some(job) = job {
                self.shared.finish(job());
            }
        } else {
            self.shared.job_came.notify_one();
        }
    }

    /// Have a job done by a thread of its own, past all that waits.
    pub fn submit_urgent(&mut self, job: Job) {
        let shared = Arc::clone(&self.shared);
        let slot = Arc::new(Mutex::new(Some(job)));
        let taken = Arc::clone(&slot);
        let run = move || {
            let job = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(job) = job {
                shared.finish(job());
            }
        };
        if thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(run)
            .is_err()
        {
            let job = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(job) = job {
                self.shared.finish(job());
            }
        }
    }

    /// What has been done since the last call.
    pub fn finished(&mut self) -> VecDeque<Done> {
        let mut counter = [0; 8];
        let _ = sys::read(self.wake(), &mut counter);
        std::mem::take(&mut self.shared.state().done)
    }
}
