//! The books: every process that runs, and the last ones that did.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::poller::Poller;
use crate::process::Process;

/// Finished processes whose status stays.
const HISTORY: usize = 256;

/// Bytes the rings of finished processes hold together.
const HISTORY_BYTES: usize = 32 * 1024 * 1024;

/// All processes the agent has started and not forgotten.
#[derive(Debug, Default)]
pub struct Books {
    all: BTreeMap<u32, Process>,
    running: BTreeMap<u32, u32>,
    next: u32,
}

impl Books {
    /// A number for the next process.
    pub fn next_id(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// Write a process down that has just started.
    pub fn insert(&mut self, process: Process) {
        self.running.insert(process.pid, process.id);
        self.all.insert(process.id, process);
    }

    /// A process by its number in the books.
    pub fn get(&mut self, id: u32) -> Option<&mut Process> {
        self.all.get_mut(&id)
    }

    /// All of them, in the order of their start.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Process> {
        self.all.values()
    }

    /// All of them, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.all.values_mut()
    }

    /// A process by its number in the kernel or by its tag: the running one, else the last one.
    pub fn find(&self, pid: Option<u32>, tag: Option<&str>) -> Option<u32> {
        let fits = |process: &&Process| match pid {
            Some(pid) => process.pid == pid,
            None => tag.is_some() && process.about.tag.as_deref() == tag,
        };
        let newest_first = || self.all.values().rev().filter(fits);
        newest_first()
            .find(|process| process.ended.is_none())
            .or_else(|| newest_first().next())
            .map(|process| process.id)
    }

    /// The running process of that number, which from now on is free for others.
    pub fn take_running(&mut self, pid: u32) -> Option<&mut Process> {
        let id = self.running.remove(&pid)?;
        self.all.get_mut(&id)
    }

    /// The earliest moment something has to be looked at.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        self.all
            .values()
            .flat_map(|process| [process.deadline, process.drain_deadline(now)])
            .flatten()
            .min()
    }

    /// Forget what is beyond the limits, oldest first.
    pub fn trim(&mut self, poller: &Poller) {
        let history: Vec<u32> = self
            .all
            .values()
            .filter(|p| p.is_history())
            .map(|process| process.id)
            .collect();
        let surplus = history.len().saturating_sub(HISTORY);
        for id in &history[..surplus] {
            if let Some(mut process) = self.all.remove(id) {
                process.close(poller);
            }
        }
        let mut held = 0;
        for id in history[surplus..].iter().rev() {
            let Some(process) = self.all.get_mut(id) else {
                continue;
            };
            held += process.ring_memory();
            if held > HISTORY_BYTES {
                held -= process.ring_memory();
                process
                    .channels
                    .iter_mut()
                    .for_each(|channel| channel.ring.clear());
            }
        }
    }
}
