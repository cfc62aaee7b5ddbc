//! The tree of a process, found in `/proc`: what descends from it, is in its session or group, or
//! carries its marker.
//!
//! To kill a tree, all of it is stopped first, so that nothing is born while the rest dies, and the
//! hunt goes on until a scan finds nothing. It works with what `/proc` shows: where environments
//! cannot be read, descent, session and group are what is left.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use crate::environment::MARKER;
use crate::failure::Failure;
use crate::process::Process;
use crate::sys;

/// Scans until a tree that will not die is given up. It is a matter of privilege then, not of time.
const ROUNDS: u32 = 400;

/// Bytes of an environment that are searched for the marker.
const ENVIRON_LIMIT: usize = 1024 * 1024;

/// What a tree is known by.
#[derive(Debug, Clone)]
pub struct Tree {
    root: u32,
    /// The root has not been reaped: its number is its own.
    root_lives: bool,
    marker: Vec<u8>,
}

/// One line of `/proc/<pid>/stat`, the parts that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub pid: u32,
    /// State letter.
    pub state: u8,
    /// Parent.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session.
    pub session: u32,
    /// When it started, in ticks: with the number, its identity.
    pub start: u64,
}

impl Stat {
    /// Read what the kernel says of a process.
    pub fn read(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: u32, line: &[u8]) -> Option<Self> {
        // The name in parentheses may hold anything, parentheses included.
        let behind_name = line.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&line[behind_name..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse().ok());
        Some(Self {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            start: fields
                .get(19)
                .and_then(|field| field.parse().ok())
                .unwrap_or(0),
        })
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Every process that has not ended.
pub fn processes() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Stat::read)
        .filter(|stat| !stat.is_dead())
        .collect()
}

type Known = HashMap<u32, u64>;

impl Tree {
    /// The tree of a process in the books.
    pub fn of(process: &Process) -> Self {
        Self {
            root: process.pid,
            root_lives: process.ended.is_none(),
            marker: format!("{MARKER}={}", process.marker).into_bytes(),
        }
    }

    /// The members among `all`; what has been found before keeps counting as an ancestor.
    fn members(&self, all: &[Stat], known: &Known) -> Vec<Stat> {
        let own = std::process::id();
        let root = all.iter().find(|stat| stat.pid == self.root);
        // While anything is left of a session its number is not given away. So a stranger with the
        // root's number means that nothing is left.
        let number_is_ours = root.is_none_or(|root| match known.get(&root.pid) {
            Some(start) => *start == root.start,
            None => self.root_lives,
        });
        let by_number = |stat: &Stat| {
            number_is_ours && [stat.pid, stat.group, stat.session].contains(&self.root)
        };
        let mut found = Known::new();
        let mut others: Vec<&Stat> = all.iter().filter(|stat| stat.pid != own).collect();
        let mut take = |others: &mut Vec<&Stat>, belongs: &dyn Fn(&Known, &Stat) -> bool| {
            others.retain(|stat| {
                let member = belongs(&found, stat);
                if member {
                    found.insert(stat.pid, stat.start);
                }
                !member
            });
        };
        take(&mut others, &|_, stat| {
            known.get(&stat.pid) == Some(&stat.start) || by_number(stat)
        });
        // Environments are read last, and only of those nothing else is known of.
        for step in 0..2 {
            loop {
                let before = others.len();
                take(&mut others, &|found, stat| found.contains_key(&stat.parent));
                if others.len() == before {
                    break;
                }
            }
            if step == 0 {
                take(&mut others, &|_, stat| self.is_marked(stat.pid));
            }
        }
        all.iter()
            .filter(|stat| found.get(&stat.pid) == Some(&stat.start))
            .copied()
            .collect()
    }

    fn is_marked(&self, pid: u32) -> bool {
        let environ = read_environ(pid);
        environ
            .split(|byte| *byte == 0)
            .any(|line| line == self.marker)
    }
}

/// The environment of a process, as far as it can be read.
///
/// The kernel shows it to the process's own user and to `CAP_SYS_PTRACE`, which the first process of
/// a sandbox does not have. So this thread looks with the owner's eyes: the file system ids belong to
/// the thread, and the check of this file is made with them.
fn read_environ(pid: u32) -> Vec<u8> {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    let mut environ = Vec::new();
    let Ok(owner) = fs::metadata(format!("/proc/{pid}")) else {
        return environ;
    };
    sys::set_file_system_ids(owner.uid(), owner.gid());
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) {
        // What was read before an error counts.
        let _ = file.take(ENVIRON_LIMIT as u64).read_to_end(&mut environ);
    }
    sys::set_file_system_ids(0, 0);
    environ
}

/// Send a signal to all members there are now.
pub fn signal(tree: &Tree, signal: i32) -> Result<(), Failure> {
    let members = tree.members(&processes(), &Known::new());
    if members.is_empty() {
        return Err(Failure::new("not_found", "nothing of the tree is left"));
    }
    let mut refused = None;
    for stat in &members {
        if let Err(error) = send(stat, signal) {
            refused = Some(Failure::from_io(format!("process {}", stat.pid), &error));
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Kill all members until none is left.
pub fn kill(tree: &Tree) -> Result<(), Failure> {
    let mut known = Known::new();
    let mut refused = None;
    for round in 0..ROUNDS {
        let members = tree.members(&processes(), &known);
        if members.is_empty() {
            return if round == 0 {
                Err(Failure::new("not_found", "nothing of the tree is left"))
            } else {
                Ok(())
            };
        }
        let mut news = false;
        for stat in &members {
            if known.insert(stat.pid, stat.start) != Some(stat.start) {
                news = true;
                let _ = send(stat, libc::SIGSTOP);
            }
        }
        if news {
            // What was found runs no more; look for what it started before that.
            continue;
        }
        for stat in &members {
            if let Err(error) = send(stat, libc::SIGKILL) {
                refused = Some(Failure::from_io(format!("process {}", stat.pid), &error));
            }
        }
        // Dying takes the kernel a moment, the more the larger the process.
        std::thread::sleep(Duration::from_micros(u64::from(round.min(40)) * 250 + 100));
    }
    Err(refused.unwrap_or_else(|| Failure::new("internal", "the tree does not die")))
}

/// Signal exactly the process that was found, not a later one of the same number.
fn send(stat: &Stat, signal: i32) -> io::Result<()> {
    let handle = open_handle(stat.pid);
    // A handle that was opened before this look cannot mean another process after it.
    if Stat::read(stat.pid).is_none_or(|now| now.start != stat.start) {
        return Ok(());
    }
    let result = match handle.map(|handle| send_by_handle(&handle, signal)) {
        Some(Err(error)) if error.raw_os_error() != Some(libc::ENOSYS) => Err(error),
        Some(Ok(())) => Ok(()),
        // No handles here. Numbers come round only after all others have been used.
        _ => sys::kill(stat.pid, signal),
    };
    match result {
        // It was faster.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

fn send_by_handle(handle: &OwnedFd, signal: i32) -> io::Result<()> {
    let details = std::ptr::null::<libc::siginfo_t>();
    let handle = handle.as_raw_fd();
    // SAFETY: takes numbers; no details are passed on.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle, signal, details, 0) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn open_handle(pid: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    sys::own(i32::try_from(fd).ok()?).ok()
}

/// Everything that descends from this process. For an agent that is not the first process of its
/// world, where -1 would mean everybody.
pub fn descendants() -> Vec<Stat> {
    let all = processes();
    let mut found = vec![std::process::id()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        found.extend(
            all.iter()
                .filter(|stat| stat.parent == parent)
                .map(|stat| stat.pid),
        );
    }
    all.into_iter()
        .filter(|stat| found[1..].contains(&stat.pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, group: u32, session: u32) -> Stat {
        Stat {
            pid,
            state: b'S',
            parent,
            group,
            session,
            start: u64::from(pid),
        }
    }

    fn tree(root_lives: bool) -> Tree {
        Tree {
            root: 100,
            root_lives,
            marker: b"FOURWALLS_EXEC=none".to_vec(),
        }
    }

    fn pids(members: &[Stat]) -> Vec<u32> {
        members.iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn descent_session_and_group() {
        let all = [
            stat(1_000_003, 1_000_002, 7, 7),
            stat(1_000_002, 100, 8, 8),
            stat(100, 1, 100, 100),
            stat(1_000_004, 1, 9, 100),
            stat(1_000_005, 1, 100, 9),
            stat(1_000_006, 1_000_005, 5, 5),
            stat(1_000_007, 1, 7, 7),
        ];
        let members = tree(true).members(&all, &Known::new());
        assert_eq!(
            pids(&members),
            [1_000_003, 1_000_002, 100, 1_000_004, 1_000_005, 1_000_006]
        );
    }

    #[test]
    fn a_stranger_with_the_number_of_the_root_is_spared() {
        let all = [stat(100, 1, 100, 100), stat(1_000_001, 100, 100, 100)];
        assert!(tree(false).members(&all, &Known::new()).is_empty());
        let rest = [stat(1_000_001, 1, 100, 100)];
        assert_eq!(
            pids(&tree(false).members(&rest, &Known::new())),
            [1_000_001]
        );
    }

    #[test]
    fn what_was_found_stays_a_member_by_its_identity() {
        let known = Known::from([(1_000_001, 1_000_001), (1_000_002, 5)]);
        let all = [
            stat(1_000_001, 1, 9, 9),
            stat(1_000_002, 1, 9, 9),
            stat(1_000_003, 1_000_001, 9, 9),
        ];
        assert_eq!(
            pids(&tree(false).members(&all, &known)),
            [1_000_001, 1_000_003]
        );
    }

    #[test]
    fn names_may_hold_anything() {
        let line = b"7 (a) S 1 (b)) R 3 4 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 2\n";
        let expected = Stat {
            pid: 7,
            state: b'R',
            parent: 3,
            group: 4,
            session: 5,
            start: 777,
        };
        assert_eq!(Stat::parse(7, line), Some(expected));
        assert_eq!(Stat::parse(7, b"7 (x"), None);
        assert_eq!(Stat::parse(7, b"7 (x) R"), None);
    }

    #[test]
    fn this_process_is_seen() {
        let own = std::process::id();
        assert!(processes().iter().any(|stat| stat.pid == own));
    }
}
