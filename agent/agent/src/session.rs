//! What `HELLO` settles for all that follows.

use fourwalls_protocol::request::{Environment, Hello};
use fourwalls_protocol::{kind, reply, wire, GENERATION};

use crate::agent::Agent;
use crate::failure::{Failure, Fatal};
use crate::streams::Stream;
use crate::sys;

/// Bytes kept of each output channel unless `HELLO` says otherwise.
const DEFAULT_RING: u64 = 1024 * 1024;

/// The most a ring may hold.
const MAX_RING: u64 = 64 * 1024 * 1024;

/// The defaults of this connection.
#[derive(Debug, Default)]
pub struct Session {
    /// Environment of every process.
    pub env: Environment,
    /// User of processes and owner of files.
    pub user: String,
    /// Directory of processes.
    pub workdir: Option<Vec<u8>>,
    /// `RLIMIT_NPROC` of every process, 0 for none.
    pub nproc: u64,
    /// What to write into `oom_score_adj` of every process, empty for nothing.
    pub oom_score_adj: Vec<u8>,
    /// Bytes kept of each output channel.
    pub ring_bytes: usize,
}

impl Agent {
    /// A new connection: what belonged to the one before it ends, processes go on.
    pub fn hello(&mut self, body: &[u8]) -> Result<(), Fatal> {
        let hello: Hello = wire::decode(body).map_err(|error| Fatal::Protocol(error.0))?;
        self.end_session()?;
        if !(hello.generation_min..=hello.generation_max).contains(&GENERATION) {
            let message = format!(
                "the agent speaks generation {GENERATION}, the host {} to {}",
                hello.generation_min, hello.generation_max
            );
            self.greeted = false;
            self.link.fail(0, Failure::new("unsupported", message));
            return Ok(());
        }
        let ring_bytes = match hello.limits.ring_bytes {
            0 => DEFAULT_RING,
            bytes => bytes.min(MAX_RING),
        };
        let score = hello.limits.oom_score_adj;
        // A write for every start would be spent for nothing where the value is inherited anyway.
        let inherited = std::fs::read("/proc/self/oom_score_adj").unwrap_or_default();
        let inherited = String::from_utf8_lossy(&inherited).trim().parse() == Ok(score);
        self.session = Session {
            env: hello.env,
            user: hello.user,
            workdir: hello.workdir.map(serde_bytes::ByteBuf::into_vec),
            nproc: hello.limits.nproc,
            oom_score_adj: if inherited {
                Vec::new()
            } else {
                score.to_string().into_bytes()
            },
            ring_bytes: usize::try_from(ring_bytes).unwrap_or(usize::MAX),
        };
        self.greeted = true;
        let answer = reply::HelloOk {
            generation: GENERATION,
            nonce: hello.nonce,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: sys::kernel_release(),
            pid: std::process::id(),
        };
        self.link.send(kind::HELLO_OK, 0, &answer);
        Ok(())
    }

    /// Nobody is connected any more: what belonged to the connection ends. Processes go on, and as
    /// nobody follows their output, none of them waits for a reader.
    pub fn end_session(&mut self) -> Result<(), Fatal> {
        self.link.forget_queue();
        for (id, stream) in self.streams.close_all() {
            self.release(id, stream)?;
        }
        Ok(())
    }

    /// Let go of what a stream held that has been closed.
    pub fn release(&mut self, id: u32, stream: Stream) -> Result<(), Fatal> {
        match stream {
            Stream::Process(process) => self.detach(process, id),
            Stream::Watch(watching) => {
                watching.close(&self.poller);
                Ok(())
            }
            Stream::Tunnel(tunnel) => {
                tunnel.close(&self.poller);
                Ok(())
            }
            Stream::Waiting | Stream::Read(_) | Stream::Write(_) | Stream::List(_) => Ok(()),
        }
    }
}
