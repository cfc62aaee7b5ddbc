//! From a plan to a running program.
//!
//! The child shares the agent's memory until it executes (as `posix_spawn` does): a copy of the
//! address space costs milliseconds under gVisor. So the agent's thread stands still meanwhile, the
//! child runs on a stack of its own, calls nothing but plain system calls, allocates nothing, and
//! reports a failure by writing it into the agent's memory.

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::{c_char, c_int, c_void};

use crate::sys;

/// All that is decided before the child exists.
#[derive(Debug)]
pub struct Plan {
    /// Files to try as the program.
    pub programs: Vec<CString>,
    /// Arguments, the name of the program first.
    pub argv: Vec<CString>,
    /// Environment.
    pub env: Vec<CString>,
    /// Directories to try; failing with the last is a failure.
    pub dirs: Vec<CString>,
    /// Standard input, output and error; a terminal three times.
    pub stdio: [RawFd; 3],
    /// Make stdin the controlling terminal.
    pub terminal: bool,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
    /// Whether a refusal to change the user matters: not when the agent runs as that user already.
    pub must_change_user: bool,
    /// What to write into `oom_score_adj`, empty for nothing.
    pub oom_score_adj: Vec<u8>,
    /// Resource, limit, whether a refusal matters.
    pub rlimits: Vec<(u32, libc::rlimit64, bool)>,
}

/// A program that runs.
#[derive(Debug, Clone, Copy)]
pub struct Launched {
    /// Its number.
    pub pid: u32,
    /// Which of the directories it started in.
    pub dir: usize,
}

/// A program that did not start.
#[derive(Debug, Clone, Copy)]
pub struct LaunchError {
    /// How far it came.
    pub stage: &'static str,
    /// What the kernel said.
    pub errno: i32,
}

const STAGES: [&str; 6] = ["", "pty", "limits", "user", "cwd", "exec"];
const PTY: i32 = 1;
const LIMITS: i32 = 2;
const USER: i32 = 3;
const CWD: i32 = 4;
const EXEC: i32 = 5;

const STACK_BYTES: usize = 32 * 1024;

/// Starts programs; keeps the stack children begin on.
#[derive(Debug, Default)]
pub struct Launcher {
    stack: Vec<u128>,
}

/// What the child reads and where it reports to.
struct Shared<'a> {
    plan: &'a Plan,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    dir: AtomicUsize,
    stage: AtomicI32,
    errno: AtomicI32,
}

impl Launcher {
    /// Start a program; returns when it executes or has failed to.
    pub fn launch(&mut self, plan: &Plan) -> Result<Launched, LaunchError> {
        if self.stack.is_empty() {
            self.stack = vec![0; STACK_BYTES / size_of::<u128>()];
        }
        let pointers = |strings: &[CString]| -> Vec<*const c_char> {
            strings
                .iter()
                .map(|s| s.as_ptr())
                .chain([ptr::null()])
                .collect()
        };
        let shared = Shared {
            plan,
            argv: pointers(&plan.argv),
            env: pointers(&plan.env),
            dir: AtomicUsize::new(0),
            stage: AtomicI32::new(0),
            errno: AtomicI32::new(0),
        };
        let top = self.stack.as_mut_ptr_range().end.cast::<c_void>();
        let argument = (&raw const shared).cast_mut().cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `top` is the 16-byte aligned end of a stack nobody else uses: CLONE_VFORK keeps
        // this thread, and with it `shared`, in place until the child executes or exits. The agent
        // has no signal handlers that could run in the child.
        let pid = unsafe { libc::clone(child, top, flags, argument) };
        let Ok(number) = u32::try_from(pid) else {
            let errno = io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EAGAIN);
            return Err(LaunchError {
                stage: "fork",
                errno,
            });
        };
        let stage = shared.stage.load(Ordering::Acquire);
        if stage == 0 {
            return Ok(Launched {
                pid: number,
                dir: shared.dir.load(Ordering::Acquire),
            });
        }
        // It has exited and is nobody's business: not even a number in the books.
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        let stage = usize::try_from(stage)
            .ok()
            .and_then(|stage| STAGES.get(stage));
        Err(LaunchError {
            stage: stage.copied().unwrap_or("exec"),
            errno: shared.errno.load(Ordering::Acquire),
        })
    }
}

/// The life of the child before it executes.
extern "C" fn child(argument: *mut c_void) -> c_int {
    // SAFETY: `launch` passes a `Shared` that outlives the child's use of this memory.
    let shared = unsafe { &*argument.cast::<Shared<'_>>() };
    let (stage, errno) = prepare_and_execute(shared);
    shared.errno.store(errno, Ordering::Release);
    shared.stage.store(stage, Ordering::Release);
    // SAFETY: leaves at once, without running exit handlers of the shared memory.
    unsafe { libc::_exit(127) }
}

fn errno() -> i32 {
    // SAFETY: the location is the thread's own; the agent's thread stands still.
    unsafe { *libc::__errno_location() }
}

/// Only system calls from here on, and nothing that allocates or locks.
fn prepare_and_execute(shared: &Shared<'_>) -> (i32, i32) {
    let plan = shared.plan;
    // SAFETY: SIG_DFL is a valid disposition; the table of dispositions is the child's own.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: takes no arguments. It cannot fail: a new child leads no group.
    unsafe { libc::setsid() };
    // SAFETY: the ioctl takes a number as its argument.
    if plan.terminal && unsafe { libc::ioctl(plan.stdio[0], libc::TIOCSCTTY, 0) } < 0 {
        return (PTY, errno());
    }
    for (target, source) in (0..).zip(plan.stdio) {
        // SAFETY: dup2 takes two numbers; sources are above 2, so none is overwritten.
        if unsafe { libc::dup2(source, target) } < 0 {
            return (EXEC, errno());
        }
    }
    // Everything else is closed on exec one by one; this is for what a library may have opened.
    // SAFETY: marks descriptors of the child's own table. Kernels without it say so.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    write_oom_score(&plan.oom_score_adj);
    for (resource, limit, must) in &plan.rlimits {
        // SAFETY: the limit is read; no old limit is asked for.
        let result = unsafe {
            libc::syscall(
                libc::SYS_prlimit64,
                0,
                *resource,
                limit,
                ptr::null_mut::<c_void>(),
            )
        };
        if result < 0 && *must {
            return (LIMITS, errno());
        }
    }
    if !change_user(plan) && plan.must_change_user {
        return (USER, errno());
    }
    let mut error = libc::ENOENT;
    let found = plan.dirs.iter().position(|dir| {
        // SAFETY: the path ends with NUL.
        let done = unsafe { libc::chdir(dir.as_ptr()) } == 0;
        if !done {
            error = errno();
        }
        done
    });
    match found {
        Some(index) => shared.dir.store(index, Ordering::Release),
        None => return (CWD, error),
    }
    // SAFETY: umask takes a number.
    unsafe { libc::umask(0o022) };
    let none = sys::signal_set(&[]);
    // SAFETY: `none` is initialised; no old mask is asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) };
    (EXEC, execute(shared))
}

/// Only returns when no candidate executes: the errno to report.
fn execute(shared: &Shared<'_>) -> i32 {
    let mut report = libc::ENOENT;
    for program in &shared.plan.programs {
        // SAFETY: path, arguments and environment end with NUL, the lists with a null pointer.
        unsafe { libc::execve(program.as_ptr(), shared.argv.as_ptr(), shared.env.as_ptr()) };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            // Something of that name is there, only not for us: worth more than "not found".
            libc::EACCES => report = libc::EACCES,
            other => return other,
        }
    }
    report
}

/// The raw calls: those of the C library would tell the agent's other threads.
fn change_user(plan: &Plan) -> bool {
    let (uid, gid) = (plan.uid, plan.gid);
    // SAFETY: the list is as long as announced; the other calls take numbers.
    unsafe {
        libc::syscall(libc::SYS_setgroups, plan.groups.len(), plan.groups.as_ptr()) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
    }
}

/// As good as it goes: lowering the value needs a privilege the agent may not have.
fn write_oom_score(value: &[u8]) {
    if value.is_empty() {
        return;
    }
    // SAFETY: the path ends with NUL, the buffer is as long as announced, the descriptor is our own.
    unsafe {
        let fd = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if fd >= 0 {
            libc::write(fd, value.as_ptr().cast::<c_void>(), value.len());
            libc::close(fd);
        }
    }
}
