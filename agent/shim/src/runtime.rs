//! Starts the runtime in the sandbox's groups, with the agent's pipes and nothing else of the shim.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::cgroup::Groups;
use crate::spec::Spec;
use crate::sys::{self, Context, Result};

/// The largest pipe an unprivileged process may ask for by default.
const PIPE_BYTES: libc::c_int = 1 << 20;

/// The flag of clone3(2) that starts the child in a group; too wide for libc's own constant.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A process that is on its way into the sandbox's groups and waits there for the word to become the
/// runtime. Dropped, it ends.
pub struct Waiting {
    runtime: Runtime,
    go: OwnedFd,
}

impl Waiting {
    /// Everything it needs is there.
    pub fn go(self) -> Result<Runtime> {
        sys::write(self.go.as_fd(), b"g").context(|| "starting the runtime")?;
        Ok(self.runtime)
    }
}

/// The runtime command and the shim's ends of the pipes.
pub struct Runtime {
    pub pid: libc::pid_t,
    pub to_agent: OwnedFd,
    pub from_agent: OwnedFd,
    pub stderr: OwnedFd,
}

/// Start the process of the runtime; it waits for [`Waiting::go`].
pub fn spawn(spec: &Spec, groups: &Groups) -> Result<Waiting> {
    let (agent_stdin, to_agent) = sys::pipe().context(|| "pipe")?;
    let (from_agent, agent_stdout) = sys::pipe().context(|| "pipe")?;
    let (stderr, agent_stderr) = sys::pipe().context(|| "pipe")?;
    sys::enlarge_pipe(&to_agent, PIPE_BYTES);
    sys::enlarge_pipe(&from_agent, PIPE_BYTES);
    // Only the shim's ends: an agent must find plain blocking pipes.
    for end in [&to_agent, &from_agent, &stderr] {
        sys::set_nonblocking(end).context(|| "pipe")?;
    }
    let image = Image::new(&spec.argv, &spec.env)?;
    let entrances = groups.entrances()?;
    let (word, go) = sys::pipe().context(|| "pipe")?;
    let standard = [&agent_stdin, &agent_stdout, &agent_stderr];
    let child = Child {
        image: &image,
        standard,
        entrances: &entrances,
        word: &word,
        go: &go,
        spec,
    };
    let pid = child
        .start(groups.clone_target())
        .context(|| "starting the runtime")?;
    let runtime = Runtime {
        pid,
        to_agent,
        from_agent,
        stderr,
    };
    Ok(Waiting { runtime, go })
}

/// The pid the runtime has left in its file.
pub fn read_pid_file(path: &Path) -> Result<libc::pid_t> {
    let text = std::fs::read_to_string(path).context(|| format!("pid file {}", path.display()))?;
    match text.trim().parse() {
        Ok(pid) if pid > 1 => Ok(pid),
        _ => Err(format!("pid file {} holds no pid", path.display())),
    }
}

/// Arguments of execve(2), built before the fork because the child must not allocate.
struct Image {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn new(argv: &[String], env: &[(String, String)]) -> Result<Self> {
        let text = |value: &String| sys::c_string(value).context(|| "argv");
        let pair = |(name, value): &(String, String)| {
            sys::c_string(format!("{name}={value}")).context(|| "env")
        };
        Ok(Image {
            arguments: argv.iter().map(text).collect::<Result<_>>()?,
            environment: env.iter().map(pair).collect::<Result<_>>()?,
        })
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

struct Child<'a> {
    image: &'a Image,
    standard: [&'a OwnedFd; 3],
    entrances: &'a [OwnedFd],
    word: &'a OwnedFd,
    go: &'a OwnedFd,
    spec: &'a Spec,
}

impl Child<'_> {
    fn start(&self, group: Option<BorrowedFd<'_>>) -> std::io::Result<libc::pid_t> {
        let arguments = pointers(&self.image.arguments);
        let environment = pointers(&self.image.environment);
        // SAFETY: getpid cannot fail and touches no memory.
        let shim = unsafe { libc::getpid() };
        // SAFETY: the structure is plain data for which all zeroes are valid.
        let mut clone: libc::clone_args = unsafe { std::mem::zeroed() };
        clone.exit_signal = libc::SIGCHLD as u64;
        if let Some(group) = group {
            clone.flags = CLONE_INTO_CGROUP;
            clone.cgroup = group.as_raw_fd() as u64;
        }
        // SAFETY: fork semantics (no shared memory, no new stack); the structure outlives the call.
        let pid = sys::check(unsafe {
            libc::syscall(
                libc::SYS_clone3,
                &raw mut clone,
                std::mem::size_of::<libc::clone_args>(),
            )
        })?;
        if pid != 0 {
            return Ok(pid as libc::pid_t);
        }
        let step = self.become_runtime(shim, &arguments, &environment);
        let error = std::io::Error::last_os_error();
        // Allocates, which is safe here: the parent had one thread, so no lock was held.
        let message = format!(
            "fourwalls-shim: {step} for {}: {error}\n",
            self.spec.argv[0]
        );
        // SAFETY: standard error is the pipe by now, and the bytes outlive the call.
        unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
        // SAFETY: leaves without running anything of the parent's.
        unsafe { libc::_exit(127) }
    }

    /// Returns only when a step has failed: its name, with the reason in errno.
    fn become_runtime(
        &self,
        shim: libc::pid_t,
        arguments: &[*const libc::c_char],
        environment: &[*const libc::c_char],
    ) -> &'static str {
        // SAFETY: everything below works on the child's own state; the pointers are those of strings
        // that live until exec replaces the process.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != shim {
                return "the shim is gone";
            }
            for (number, pipe) in (0..).zip(self.standard) {
                if libc::dup2(pipe.as_raw_fd(), number) < 0 {
                    return "dup2";
                }
            }
            for entrance in self.entrances {
                // 0 stands for the writer itself.
                if libc::write(entrance.as_raw_fd(), c"0".as_ptr().cast(), 1) != 1 {
                    return "entering a control group";
                }
            }
            // Its own copy of the other end would keep it waiting when the shim gives up.
            libc::close(self.go.as_raw_fd());
            let mut word = 0_u8;
            if libc::read(self.word.as_raw_fd(), (&raw mut word).cast(), 1) != 1 {
                return "the shim gave up before the start";
            }
            if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) != 0 {
                return "close_range";
            }
            // Ignored signals and the mask would be inherited through exec.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            libc::umask(0o022);
            if self.spec.membarrier_filter && refuse_membarrier() != 0 {
                return "the membarrier filter";
            }
            libc::execve(arguments[0], arguments.as_ptr(), environment.as_ptr());
        }
        "exec"
    }
}

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xC000_00B7;

/// Makes membarrier(2) fail with ENOSYS: each start of a Go runtime registers for it and waits for an
/// RCU grace period, several times for one sandbox. Go falls back to what it did before.
fn refuse_membarrier() -> libc::c_long {
    const fn statement(code: u32, k: u32) -> libc::sock_filter {
        libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        }
    }
    const fn unless_equal(k: u32, skip: u8) -> libc::sock_filter {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        libc::sock_filter {
            code,
            jt: 0,
            jf: skip,
            k,
        }
    }
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    // struct seccomp_data begins with the call's number; the architecture follows.
    let mut code = [
        statement(LOAD, 4),
        unless_equal(AUDIT_ARCH, 3),
        statement(LOAD, 0),
        unless_equal(libc::SYS_membarrier as u32, 1),
        statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: code.len() as u16,
        filter: code.as_mut_ptr(),
    };
    let install = || {
        // SAFETY: the program outlives the call, which copies it.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const program,
            )
        }
    };
    let result = install();
    if result == 0 {
        return 0;
    }
    // Without CAP_SYS_ADMIN a filter needs no_new_privs.
    // SAFETY: a plain flag of the process.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    install()
}
