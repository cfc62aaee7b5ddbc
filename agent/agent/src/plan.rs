//! From a request to a plan: everything about a process that can be decided before it exists.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use fourwalls_protocol::kind;
use fourwalls_protocol::request::{ExecStart, PtySize};
use fourwalls_protocol::wire::Bytes;

use crate::environment;
use crate::failure::Failure;
use crate::launch::Plan;
use crate::process::About;
use crate::session::Session;
use crate::users::User;
use crate::{pty, sys};

/// A description longer than this is cut: the list of processes has to fit one frame.
const ABOUT_LIMIT: usize = 16 * 1024;

/// Our ends and the child's ends of its input and output.
#[derive(Debug)]
pub struct Stdio {
    /// Where the agent writes its input.
    pub input: Option<OwnedFd>,
    /// Where the agent reads its output, by channel number.
    pub channels: Vec<(u8, OwnedFd)>,
    /// What the child holds.
    child: Vec<OwnedFd>,
    /// Which of them is stdin, stdout, stderr.
    wiring: [usize; 3],
}

impl Stdio {
    /// Pipes; without a wish for input `/dev/null`.
    pub fn pipes(wants_input: bool) -> Result<Self, Failure> {
        let failed = |error| start_error("fork", &error, "pipes");
        let (input, child_input) = if wants_input {
            let (read, write) = sys::pipe().map_err(failed)?;
            (Some(write), read)
        } else {
            (None, null().map_err(failed)?)
        };
        let (out, child_out) = sys::pipe().map_err(failed)?;
        let (err, child_err) = sys::pipe().map_err(failed)?;
        Ok(Self {
            input,
            channels: vec![(kind::CHANNEL_STDOUT, out), (kind::CHANNEL_STDERR, err)],
            child: vec![child_input, child_out, child_err],
            wiring: [0, 1, 2],
        })
    }

    /// A terminal.
    pub fn terminal(size: PtySize, uid: u32) -> Result<Self, Failure> {
        let failed = |error| start_error("pty", &error, "terminal");
        let pty = pty::open(size, uid).map_err(failed)?;
        Ok(Self {
            input: Some(sys::duplicate(&pty.master).map_err(failed)?),
            channels: vec![(kind::CHANNEL_PTY, pty.master)],
            child: vec![pty.slave],
            wiring: [0; 3],
        })
    }

    /// The child's stdin, stdout and stderr.
    pub fn child_fds(&self) -> [i32; 3] {
        self.wiring.map(|index| self.child[index].as_raw_fd())
    }

    /// The child has what it needs; keep our ends, which never wait.
    pub fn keep_parent_ends(&mut self) -> std::io::Result<()> {
        self.child.clear();
        for fd in self.channels.iter().map(|(_, fd)| fd).chain(&self.input) {
            sys::set_nonblocking(fd.as_raw_fd())?;
        }
        Ok(())
    }
}

fn start_error(stage: &'static str, error: &std::io::Error, what: &str) -> Failure {
    Failure::start(stage, error.raw_os_error().unwrap_or(0), what)
}

fn null() -> std::io::Result<OwnedFd> {
    // A root file system without devices still has pipes: one nobody writes to ends at once.
    sys::open(c"/dev/null", libc::O_RDWR).or_else(|_| sys::pipe().map(|(read, _)| read))
}

/// Decide everything.
pub fn decide(
    request: &ExecStart,
    session: &Session,
    user: &User,
    marker: &str,
    stdio: &Stdio,
) -> Result<Plan, Failure> {
    let argv = request
        .argv
        .iter()
        .map(|argument| c_string(argument, "an argument"))
        .collect::<Result<Vec<_>, _>>()?;
    let program = argv.first().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| Failure::invalid("argv names no program"))?;
    let env = environment::merge(
        user,
        &session.env,
        &request.env,
        request.pty.is_some(),
        marker,
    )?;
    let given = request
        .cwd
        .as_ref()
        .map(|cwd| cwd.as_slice())
        .or(session.workdir.as_deref());
    let dirs = match given {
        Some(dir) if dir.first() == Some(&b'/') => vec![c_string(dir, "the directory")?],
        Some(_) => return Err(Failure::invalid("the directory is not an absolute path")),
        None => vec![c_string(&user.home, "the home directory")?, c"/".to_owned()],
    };
    // SAFETY: these calls have no arguments and cannot fail.
    let own = unsafe { (libc::geteuid(), libc::getegid()) };
    Ok(Plan {
        programs: environment::candidates(program, &env),
        argv,
        env,
        dirs,
        stdio: stdio.child_fds(),
        terminal: request.pty.is_some(),
        uid: user.uid,
        gid: user.gid,
        groups: user.groups.clone(),
        must_change_user: own != (user.uid, user.gid),
        oom_score_adj: session.oom_score_adj.clone(),
        rlimits: limits(request, session)?,
    })
}

fn limits(
    request: &ExecStart,
    session: &Session,
) -> Result<Vec<(u32, libc::rlimit64, bool)>, Failure> {
    let mut limits = Vec::new();
    if session.nproc > 0 {
        let limit = libc::rlimit64 {
            rlim_cur: session.nproc,
            rlim_max: session.nproc,
        };
        limits.push((libc::RLIMIT_NPROC, limit, false));
    }
    for (name, (soft, hard)) in &request.rlimits {
        let resource = match name.as_str() {
            "nofile" => libc::RLIMIT_NOFILE,
            "nproc" => libc::RLIMIT_NPROC,
            "core" => libc::RLIMIT_CORE,
            "fsize" => libc::RLIMIT_FSIZE,
            "cpu" => libc::RLIMIT_CPU,
            "as" => libc::RLIMIT_AS,
            "data" => libc::RLIMIT_DATA,
            "stack" => libc::RLIMIT_STACK,
            other => return Err(Failure::invalid(format!("no limit is called {other:?}"))),
        };
        limits.push((
            resource,
            libc::rlimit64 {
                rlim_cur: *soft,
                rlim_max: *hard,
            },
            true,
        ));
    }
    Ok(limits)
}

/// What is kept of a request for the list of processes.
pub fn about(request: ExecStart, user: String, cwd: Vec<u8>) -> About {
    let mut about = About {
        tag: request.tag,
        argv: request.argv,
        env: request.env,
        cwd: Bytes::from(cwd),
        user,
        pty: request.pty.is_some(),
    };
    let size = about
        .argv
        .iter()
        .map(|argument| argument.len() + 8)
        .sum::<usize>()
        + about
            .env
            .iter()
            .map(|(name, value)| name.len() + value.len() + 8)
            .sum::<usize>();
    if size > ABOUT_LIMIT {
        about.env.clear();
        about.argv.truncate(16);
        about
            .argv
            .iter_mut()
            .for_each(|argument| argument.truncate(512));
    }
    about
}

fn c_string(bytes: &[u8], what: &str) -> Result<CString, Failure> {
    CString::new(bytes).map_err(|_| Failure::invalid(format!("{what} holds a NUL byte")))
}
