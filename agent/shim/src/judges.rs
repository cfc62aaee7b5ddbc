//! Which frames may pass the relay, by who has sent them.

use fourwalls_protocol::frame::Header;
use fourwalls_protocol::kind;

use crate::control::{Request, FIRST_CONTROL_KIND, REQUEST_LIMIT};
use crate::queue::{Judge, Verdict};
use crate::sys::Result;

/// The judge of a client's frames.
pub struct ClientFrames<'a> {
    pub requests: &'a mut Vec<Request>,
    pub shutdown_sent: &'a mut bool,
}

impl Judge for ClientFrames<'_> {
    fn header(&mut self, header: &Header) -> Result<()> {
        if header.kind >= FIRST_CONTROL_KIND && header.length > REQUEST_LIMIT {
            return Err(format!("control frame of {} bytes", header.length));
        }
        Ok(())
    }

    fn frame(&mut self, header: &Header, body: &[u8]) -> Result<Verdict> {
        if header.kind >= FIRST_CONTROL_KIND {
            self.requests.push(Request::decode(header.kind, body)?);
            return Ok(Verdict::Take);
        }
        *self.shutdown_sent |= header.kind == kind::SHUTDOWN;
        Ok(Verdict::Forward)
    }
}

/// The judge of the shim's own frames for the agent.
pub struct OwnFrames;

impl Judge for OwnFrames {
    fn header(&mut self, _header: &Header) -> Result<()> {
        Ok(())
    }

    fn frame(&mut self, _header: &Header, _body: &[u8]) -> Result<Verdict> {
        Ok(Verdict::Forward)
    }
}

/// The judge of the agent's frames.
pub struct AgentFrames;

impl Judge for AgentFrames {
    fn header(&mut self, header: &Header) -> Result<()> {
        if header.kind >= FIRST_CONTROL_KIND {
            return Err(format!("frame of kind {:#04x}", header.kind));
        }
        Ok(())
    }

    fn frame(&mut self, _header: &Header, _body: &[u8]) -> Result<Verdict> {
        Ok(Verdict::Forward)
    }
}
