//! The guest agent: the first process of a sandbox.
//!
//! It comes up with nothing but two pipes: requests on stdin, answers on stdout (and a pipe for its
//! log as stderr). It settles itself, waits for `HELLO`, and from then on does what the frames say
//! until the host is gone. What it does is in `docs/wire/agent.md`; `agent` is the loop, `dispatch`
//! leads from a frame to the file that answers it.

mod agent;
mod books;
mod channel;
mod credit;
mod dispatch;
mod environment;
mod exec;
mod exec_control;
mod failure;
mod files;
mod inotify;
mod input;
mod launch;
mod link;
mod metrics;
mod plan;
mod poller;
mod process;
mod pty;
mod reap;
mod ring;
mod session;
mod shutdown;
mod streams;
mod sys;
mod tree;
mod tunnel;
mod users;
mod watch;
mod worker;

use std::process::ExitCode;

use fourwalls_protocol::EXIT_PROTOCOL_ERROR;

use crate::agent::Agent;
use crate::failure::Fatal;

fn main() -> ExitCode {
    // Any sandbox has this program at least; what starts a static one can be measured with it.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == "--version")
    {
        println!("fourwalls-agent {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    settle();
    let mut agent = match Agent::new() {
        Ok(agent) => agent,
        Err(error) => return complain(&format!("cannot start: {error}"), 1),
    };
    let reason = agent.run();
    agent.kill_everything();
    match reason {
        Fatal::Gone | Fatal::Done => ExitCode::SUCCESS,
        Fatal::Protocol(message) => complain(&message, EXIT_PROTOCOL_ERROR as u8),
        Fatal::Io(error) => complain(&format!("cannot go on: {error}"), 1),
    }
}

fn complain(message: &str, status: u8) -> ExitCode {
    // Nobody may be listening any more.
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("agent: {message}\n"));
    ExitCode::from(status)
}

/// Get rid of what was inherited, and tell the kernel who we are.
fn settle() {
    // SAFETY: all of these take numbers, but for rt_sigaction, which reads the kernel's sigaction: four
    // words, all zero for the default. No thread runs yet, and nothing has been opened that could be
    // closed by mistake. Each may fail harmlessly.
    unsafe {
        for signal in 1..=64 {
            if signal != libc::SIGPIPE {
                // The raw call: the C library keeps two signals to itself, inherited or not.
                let default = [0_u64; 4];
                let none = std::ptr::null_mut::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, 8);
            }
        }
        let none = sys::signal_set(&[]);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::umask(0);
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        // Nobody else in the sandbox, its root included, may look into us, trace us, or write into our
        // pipes by way of /proc/1/fd.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        // Orphans come to us also where we are not the first process.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // Memory goes back to the kernel as soon as it is free, and threads share one heap.
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 * 1024);
    }
}
