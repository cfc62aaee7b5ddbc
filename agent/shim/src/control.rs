//! The few frames between a client and the shim itself.

use fourwalls_protocol::frame::Frame;
use serde::{Deserialize, Serialize};

use crate::exit_record::{Cause, ExitRecord};
use crate::sys::{Context, Result};

/// Kinds from here on never travel between host and agent.
pub const FIRST_CONTROL_KIND: u8 = 0xF0;
const LEASE: u8 = 0xF0;
const KILL: u8 = 0xF1;
const STATUS: u8 = 0xF2;
const STATE: u8 = 0xF8;
const GONE: u8 = 0xF9;

/// No request of a client needs more.
pub const REQUEST_LIMIT: u32 = 4096;

/// What a client can ask of the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Lease { deadline_ns: u64 },
    Kill { cause: Cause },
    Status,
}

impl Request {
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct LeaseBody {
            #[serde(default)]
            deadline_ns: u64,
        }
        #[derive(Deserialize)]
        struct KillBody {
            #[serde(default)]
            cause: String,
        }
        match kind {
            LEASE => {
                let body: LeaseBody = rmp_serde::from_slice(body).context(|| "LEASE")?;
                Ok(Request::Lease {
                    deadline_ns: body.deadline_ns,
                })
            }
            KILL => {
                let body: KillBody = rmp_serde::from_slice(body).context(|| "KILL")?;
                let cause = match body.cause.as_str() {
                    "timeout" => Cause::Timeout,
                    "lease_expired" => Cause::LeaseExpired,
                    _ => Cause::Killed,
                };
                Ok(Request::Kill { cause })
            }
            STATUS => Ok(Request::Status),
            other => Err(format!("unknown control frame {other:#04x}")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Starting,
    Running,
}

#[derive(Serialize)]
pub struct State {
    pub phase: Phase,
    pub init_pid: u32,
    pub shim_pid: u32,
    pub lease_deadline_ns: u64,
}

impl State {
    pub fn encode(&self) -> Result<Vec<u8>> {
        frame(STATE, self)
    }
}

pub fn encode_gone(record: &ExitRecord) -> Result<Vec<u8>> {
    frame(GONE, record)
}

fn frame(kind: u8, body: &impl Serialize) -> Result<Vec<u8>> {
    let body = rmp_serde::to_vec_named(body).context(|| "encoding a control frame")?;
    Ok(Frame::new(kind, 0, 0, body).encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_decoded_and_unknown_ones_refused() {
        let body =
            rmp_serde::to_vec_named(&std::collections::HashMap::from([("cause", "timeout")]));
        let kill = Request::decode(KILL, &body.unwrap());
        assert_eq!(
            kill,
            Ok(Request::Kill {
                cause: Cause::Timeout
            })
        );
        assert_eq!(Request::decode(STATUS, b""), Ok(Request::Status));
        assert!(Request::decode(0xF3, b"").is_err());
        assert!(Request::decode(LEASE, b"\xc1").is_err());
    }
}
