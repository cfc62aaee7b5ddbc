//! The agent protocol, generation 1: what `docs/wire/agent.md` says, as types.
//!
//! No input, no output, no unsafe code. [`frame`] cuts a byte stream into frames, [`kind`] names
//! them, [`request`] and [`reply`] are the bodies towards the agent and towards the host.

#![forbid(unsafe_code)]

pub mod frame;
pub mod kind;
pub mod reply;
pub mod request;
pub mod wire;

/// The generation of the protocol these types are.
pub const GENERATION: u32 = 1;

/// Exit status of an agent whose peer broke the protocol.
pub const EXIT_PROTOCOL_ERROR: i32 = 70;
