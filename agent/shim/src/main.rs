//! `fourwalls-shim`: the one host process of a sandbox. It reads a launch specification, builds what
//! stands in it, joins the agent to its clients and takes everything down at the end.

mod cgroup;
mod control;
mod devices;
mod end;
mod exit_record;
mod judges;
mod lease;
mod listener;
mod log_pipe;
mod mounts;
mod oom_notice;
mod queue;
mod relay;
mod removal;
mod runtime;
mod sandbox;
mod spec;
mod sys;

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::Path;

use sandbox::Sandbox;
use spec::Spec;
use sys::{Context, Result};

const SPECIFICATION: RawFd = 0;
const CLIENT: RawFd = 3;
const LOCK: RawFd = 4;

fn main() {
    if let Err(error) = run() {
        eprintln!("fourwalls-shim: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    // What the caller let us inherit by mistake would stay open as long as the sandbox lives.
    sys::close_from(LOCK + 1).context(|| "close_range")?;
    let specification = sys::inherited(SPECIFICATION).context(|| "descriptor 0")?;
    let client = sys::inherited(CLIENT).context(|| "descriptor 3")?;
    // Held, not used: whoever finds the lock free knows that this process is gone.
    let _lock = sys::inherited(LOCK).context(|| "descriptor 4")?;
    let signals = settle()?;

    let prepared = Spec::read(specification.as_fd()).and_then(|spec| Sandbox::new(spec, signals));
    close_specification(specification)?;
    let mut sandbox = match prepared {
        Ok(sandbox) => sandbox,
        Err(error) => {
            end::refuse(client, error);
            return Ok(());
        }
    };
    sandbox.relay.welcome(client);
    let ending = match sandbox.start() {
        Ok(()) => sandbox.watch(),
        Err(ending) => ending,
    };
    sandbox.end(ending);
    Ok(())
}

/// The process as the sandbox needs it: of a session of its own, holding no directory, parent of
/// whoever loses theirs, and hearing signals where it listens.
fn settle() -> Result<OwnedFd> {
    std::env::set_current_dir(Path::new("/")).context(|| "chdir")?;
    sys::become_session_leader();
    sys::set_file_mask(0o077);
    sys::become_subreaper().context(|| "becoming the subreaper")?;
    sys::signal_descriptor(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT]).context(|| "signals")
}

/// The descriptor's number stays taken, so that nothing opened later becomes standard input.
fn close_specification(specification: OwnedFd) -> Result<()> {
    let null = sys::open(Path::new("/dev/null"), libc::O_RDONLY).context(|| "/dev/null")?;
    sys::replace(&specification, &null).context(|| "descriptor 0")?;
    // The number belongs to nobody from here on.
    std::mem::forget(specification);
    Ok(())
}
