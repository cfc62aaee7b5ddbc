//! The sandbox's control groups: made before its first process, read and removed after its last one.
//! They belong to the shim, so that the counters survive the sandbox.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::devices;
use crate::oom_notice;
use crate::spec::{CgroupSpec, GroupSpec};
use crate::sys::{self, Context, Reaped, Result};

/// How many processes are looked at between two readings of `cgroup.procs`.
const KILL_BATCH: usize = 64;
/// Rounds of plain killing before the group is frozen for each further one.
const PLAIN_ROUNDS: u32 = 3;
const REMOVE_PATIENCE: Duration = Duration::from_secs(2);

struct Group {
    path: PathBuf,
    directory: OwnedFd,
}

#[derive(Default)]
pub struct Groups {
    version: u32,
    groups: Vec<Group>,
    oom: String,
    pids: String,
}

/// Counters at the end of the sandbox.
#[derive(Default, Clone, Copy)]
pub struct Counters {
    pub oom_kills: u64,
    pub pids_refused: u64,
}

impl Groups {
    /// Makes the groups one after the other; what was made before a failure is in `self` and removed
    /// by the end like everything else.
    pub fn create(&mut self, spec: &CgroupSpec) -> Result<()> {
        self.version = spec.version;
        self.oom.clone_from(&spec.oom);
        self.pids.clone_from(&spec.pids);
        for group in &spec.groups {
            self.create_group(group)
                .context(|| format!("group {}", group.path.display()))?;
        }
        if let (true, Some(leaf)) = (spec.version == 2 && spec.device_filter, self.groups.last()) {
            devices::restrict(leaf.directory.as_fd()).context(|| "device filter")?;
        }
        Ok(())
    }

    fn create_group(&mut self, spec: &GroupSpec) -> Result<()> {
        if let Some(parent) = spec.path.parent() {
            demand_cgroup_file_system(parent)?;
            std::fs::create_dir_all(parent).context(|| format!("parent {}", parent.display()))?;
            if self.version == 2 {
                enable_controllers(parent, &spec.files)?;
            }
        }
        make_leaf(&spec.path).context(|| "mkdir")?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let directory = match sys::open(&spec.path, flags) {
            Ok(directory) => directory,
            Err(error) => {
                let _ = sys::unlink_at(sys::cwd(), &spec.path, libc::AT_REMOVEDIR);
                return Err(format!("open: {error}"));
            }
        };
        self.groups.push(Group {
            path: spec.path.clone(),
            directory,
        });
        let leaf = &self.groups[self.groups.len() - 1].directory;
        for (name, value) in &spec.files {
            write_file(leaf.as_fd(), name, value).context(|| format!("{value:?} to {name}"))?;
        }
        Ok(())
    }

    /// Readable when the sandbox has run out of memory and all of it has to end; none where the
    /// kernel ends it by itself or one process may go alone.
    pub fn oom_notice(&self, spec: &CgroupSpec) -> Result<Option<OwnedFd>> {
        match self.groups.last() {
            Some(group) if self.version == 1 && spec.group_oom => {
                oom_notice::watch(group.directory.as_fd(), &self.oom).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The group a child can be cloned into, on the version that has that.
    pub fn clone_target(&self) -> Option<BorrowedFd<'_>> {
        match self.version {
            2 => self.groups.last().map(|group| group.directory.as_fd()),
            _ => None,
        }
    }

    /// The `cgroup.procs` files a child has to enter itself, on the version without
    /// CLONE_INTO_CGROUP. Opened here, because the child must not allocate.
    pub fn entrances(&self) -> Result<Vec<OwnedFd>> {
        if self.version == 2 {
            return Ok(Vec::new());
        }
        let open = |group: &Group| {
            sys::open_at(
                group.directory.as_fd(),
                Path::new("cgroup.procs"),
                libc::O_WRONLY,
                0,
            )
            .context(|| format!("cgroup.procs of {}", group.path.display()))
        };
        self.groups.iter().map(open).collect()
    }

    /// Kills everything in the groups and reaps what becomes the shim's child, until nothing is left
    /// or the deadline has passed.
    pub fn kill_all(
        &self,
        deadline: Instant,
        reaped: &mut dyn FnMut(libc::pid_t, sys::Ended),
    ) -> bool {
        let mut pause = Duration::from_micros(200);
        for round in 0u32.. {
            self.kill_round(round);
            let childless = reap_all(reaped);
            let left = self.processes();
            if left.is_empty() && (childless || !kill_children()) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        false
    }

    fn kill_round(&self, round: u32) {
        if self.version == 2 {
            let kill =
                |group: &Group| write_file(group.directory.as_fd(), "cgroup.kill", "1").is_ok();
            if self.groups.iter().all(kill) {
                return;
            }
        }
        // A frozen v1 group does not die before it is thawed, whoever froze it. A fork bomb outruns
        // the reading of cgroup.procs and is frozen for it.
        let freeze = round >= PLAIN_ROUNDS;
        if freeze {
            self.set_freezer("FROZEN");
        }
        for group in &self.groups {
            kill_group(&group.directory);
        }
        if freeze || round == 0 {
            self.set_freezer("THAWED");
        }
    }

    fn set_freezer(&self, state: &str) {
        for group in &self.groups {
            // Only the group of the freezer hierarchy has the file.
            let _ = write_file(group.directory.as_fd(), "freezer.state", state);
        }
    }

    fn processes(&self) -> HashSet<libc::pid_t> {
        let mut all = HashSet::new();
        for group in &self.groups {
            visit(&group.directory, &mut |directory| {
                all.extend(processes_of(directory))
            });
        }
        all
    }

    pub fn counters(&self) -> Counters {
        Counters {
            oom_kills: read_counter(&self.oom, "oom_kill"),
            pids_refused: read_counter(&self.pids, "max"),
        }
    }

    /// Removes the groups, those inside them first. Gives what could not be removed.
    pub fn remove(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        let deadline = Instant::now() + REMOVE_PATIENCE;
        while let Some(group) = self.groups.pop() {
            // A dying process holds its group a moment longer than its pid.
            while let Err(error) = remove_group(&group) {
                if error.kind() == io::ErrorKind::NotFound {
                    break;
                }
                if error.raw_os_error() != Some(libc::EBUSY) || Instant::now() >= deadline {
                    failures.push(format!("removing {}: {error}", group.path.display()));
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        failures
    }
}

/// Reaps every child that has ended. True when there are no children at all.
pub fn reap_all(reaped: &mut dyn FnMut(libc::pid_t, sys::Ended)) -> bool {
    loop {
        match sys::reap_one() {
            Reaped::Process(pid, ended) => reaped(pid, ended),
            Reaped::NoneEnded => return false,
            Reaped::NoChildren => return true,
        }
    }
}

/// The shim has no children but the sandbox's processes: what left the groups is killed here. True
/// when something was there to kill, or when the kernel cannot tell.
fn kill_children() -> bool {
    let Ok(list) = std::fs::read_to_string("/proc/thread-self/children") else {
        return true;
    };
    let mut found = false;
    for pid in list
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
    {
        found = true;
        sys::kill(pid);
    }
    found
}

/// Where no hierarchy is mounted, a group would be a plain directory that limits nothing.
fn demand_cgroup_file_system(path: &Path) -> Result<()> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    let directory = sys::open(existing, libc::O_PATH).context(|| existing.display().to_string())?;
    let kind = sys::file_system_type(&directory).context(|| "statfs")?;
    if kind != libc::CGROUP_SUPER_MAGIC && kind != libc::CGROUP2_SUPER_MAGIC {
        return Err(format!(
            "{} is on no cgroup file system",
            existing.display()
        ));
    }
    Ok(())
}

/// A group of the same name is what a crashed predecessor left: taken away if it is empty.
fn make_leaf(path: &Path) -> io::Result<()> {
    match sys::mkdir(path, 0o755) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            sys::unlink_at(sys::cwd(), path, libc::AT_REMOVEDIR)?;
            sys::mkdir(path, 0o755)
        }
        other => other,
    }
}

/// The controllers whose files are written in the leaf, switched on in every group above it.
fn enable_controllers(parent: &Path, files: &[(String, String)]) -> Result<()> {
    let mut wanted: Vec<&str> = files
        .iter()
        .filter_map(|(name, _)| name.split('.').next())
        .collect();
    wanted.retain(|name| *name != "cgroup");
    wanted.sort_unstable();
    wanted.dedup();
    let mut chain: Vec<&Path> = parent
        .ancestors()
        .take_while(|path| path.join("cgroup.controllers").exists())
        .collect();
    chain.reverse();
    for directory in chain {
        let file = directory.join("cgroup.subtree_control");
        let enabled = std::fs::read_to_string(&file).context(|| file.display().to_string())?;
        for name in &wanted {
            if !enabled.split_ascii_whitespace().any(|word| word == *name) {
                std::fs::write(&file, format!("+{name}"))
                    .context(|| format!("+{name} to {}", file.display()))?;
            }
        }
    }
    Ok(())
}

pub fn write_file(directory: BorrowedFd<'_>, name: &str, value: &str) -> io::Result<()> {
    let flags = libc::O_WRONLY | libc::O_NOFOLLOW;
    let file = sys::open_at(directory, Path::new(name), flags, 0)?;
    // The kernel takes a value whole or not at all.
    sys::write(file.as_fd(), value.as_bytes()).map(drop)
}

fn processes_of(directory: &OwnedFd) -> Vec<libc::pid_t> {
    let read = || -> io::Result<String> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW;
        let file = sys::open_at(directory.as_fd(), Path::new("cgroup.procs"), flags, 0)?;
        io::read_to_string(std::fs::File::from(file))
    };
    let text = read().unwrap_or_default();
    // 0 stands for a process of another pid namespace; it is none of ours.
    text.lines()
        .filter_map(|line| line.parse().ok())
        .filter(|pid| *pid > 0)
        .collect()
}

/// A pid is a name that may pass to another process between reading and killing. A handle does not:
/// what is still listed after the handle was opened is the process of the handle, or that one is
/// dead already.
fn kill_group(directory: &OwnedFd) {
    visit(directory, &mut |directory| {
        for batch in processes_of(directory).chunks(KILL_BATCH) {
            let handles: Vec<(libc::pid_t, OwnedFd)> = batch
                .iter()
                .filter_map(|pid| Some((*pid, sys::pidfd_open(*pid).ok()?)))
                .collect();
            let listed: HashSet<libc::pid_t> = processes_of(directory).into_iter().collect();
            for (_, handle) in handles.iter().filter(|(pid, _)| listed.contains(pid)) {
                sys::pidfd_kill(handle);
            }
        }
    });
}

/// Calls `action` for a group and everything below it, the deepest first.
fn visit(directory: &OwnedFd, action: &mut dyn FnMut(&OwnedFd)) {
    for name in subgroups(directory) {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        if let Ok(child) = sys::open_at(directory.as_fd(), &name, flags, 0) {
            visit(&child, action);
        }
    }
    action(directory);
}

fn subgroups(directory: &OwnedFd) -> Vec<PathBuf> {
    let path = format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(directory)
    );
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| PathBuf::from(entry.file_name()))
        .collect()
}

fn remove_group(group: &Group) -> io::Result<()> {
    visit(&group.directory, &mut |directory| {
        for name in subgroups(directory) {
            let _ = sys::unlink_at(directory.as_fd(), &name, libc::AT_REMOVEDIR);
        }
    });
    sys::unlink_at(sys::cwd(), &group.path, libc::AT_REMOVEDIR)
}

/// The number behind `key` in a file of "key number" lines; 0 when there is none.
fn read_counter(path: &str, key: &str) -> u64 {
    if path.is_empty() {
        return 0;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    parse_counter(&text, key)
}

fn parse_counter(text: &str, key: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let text = "low 0\noom 4\noom_kill 3\noom_group_kill 1\n";
        assert_eq!(parse_counter(text, "oom_kill"), 3);
        assert_eq!(parse_counter(text, "kill"), 0);
        assert_eq!(
            parse_counter("oom_kill_disable 0\nunder_oom 0\noom_kill 1", "oom_kill"),
            1
        );
    }
}
