//! The lease: the moment at which nobody has asked for the sandbox any longer. On CLOCK_BOOTTIME, so
//! that it is the same moment for every process of the machine and a suspended machine's time counts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::sys::{self, Context, Result};

pub struct Lease {
    timer: OwnedFd,
    deadline_ns: u64,
}

impl Lease {
    pub fn new(deadline_ns: u64) -> Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no memory is involved.
        let raw = unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) };
        let raw = sys::check(raw.into()).context(|| "lease timer")?;
        let mut lease = Lease {
            timer: sys::own(raw as i32),
            deadline_ns: 0,
        };
        lease.set(deadline_ns).context(|| "lease timer")?;
        Ok(lease)
    }

    /// A new deadline; 0 is none. One in the past expires at once.
    pub fn set(&mut self, deadline_ns: u64) -> io::Result<()> {
        const SECOND: u64 = 1_000_000_000;
        let value = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(deadline_ns / SECOND).unwrap_or(libc::time_t::MAX),
                tv_nsec: (deadline_ns % SECOND) as libc::c_long,
            },
        };
        // SAFETY: the new value outlives the call; the old one is not asked for.
        let result = unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &value,
                std::ptr::null_mut(),
            )
        };
        sys::check(result.into())?;
        self.deadline_ns = deadline_ns;
        Ok(())
    }

    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    pub fn descriptor(&self) -> &OwnedFd {
        &self.timer
    }

    /// True once when the deadline has passed; a deadline moved meanwhile has not.
    pub fn has_expired(&self) -> bool {
        let mut count = [0u8; 8];
        sys::read(self.timer.as_fd(), &mut count).is_ok()
    }
}
