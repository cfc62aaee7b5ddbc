//! Credit: how many payload bytes may be sent, and how many have been allowed to come.

/// What the peer allows us to send.
#[derive(Debug, Default)]
pub struct Allowance(u64);

impl Allowance {
    /// The first grant.
    pub fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A further grant.
    pub fn add(&mut self, bytes: u64) {
        self.0 = self.0.saturating_add(bytes);
    }

    /// The most that may be sent of `wanted` bytes.
    pub fn at_most(&self, wanted: usize) -> usize {
        usize::try_from(self.0).map_or(wanted, |left| left.min(wanted))
    }

    /// `bytes` have been sent.
    pub fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes as u64);
    }
}

/// What we allow the peer to send: a window that is opened again as bytes are used up.
#[derive(Debug)]
pub struct Window {
    /// Bytes the peer may still send.
    open: u64,
    /// Bytes used up and not granted again yet.
    owed: u64,
    /// Offset the next bytes must have.
    next: u64,
    size: u64,
}

impl Window {
    /// A window of `size` bytes, closed.
    pub fn new(size: u64) -> Self {
        Self {
            open: 0,
            owed: size,
            next: 0,
            size,
        }
    }

    /// Bytes came in; says what is wrong with them.
    pub fn receive(&mut self, offset: u64, count: usize) -> Result<(), String> {
        let count = count as u64;
        if offset != self.next {
            return Err(format!("DATA at offset {offset}, expected {}", self.next));
        }
        if count > self.open {
            return Err(format!(
                "{count} bytes of DATA with a credit of {}",
                self.open
            ));
        }
        self.open -= count;
        self.next += count;
        Ok(())
    }

    /// Bytes that came in have been used up.
    pub fn consumed(&mut self, count: usize) {
        self.owed += count as u64;
    }

    /// What to grant now, if it is worth a frame: a quarter of the window, or all that is missing.
    pub fn grant(&mut self) -> Option<u64> {
        let worth = self.owed >= self.size / 4 || (self.owed > 0 && self.open == 0);
        worth.then(|| {
            self.open += self.owed;
            std::mem::take(&mut self.owed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_never_overflows() {
        let mut allowance = Allowance::new(u64::MAX);
        allowance.add(u64::MAX);
        assert_eq!(allowance.at_most(10), 10);
        allowance.spend(usize::MAX);
        let mut small = Allowance::new(5);
        assert_eq!(small.at_most(10), 5);
        small.spend(5);
        assert_eq!(small.at_most(10), 0);
    }

    #[test]
    fn window_opens_and_refills() {
        let mut window = Window::new(100);
        assert!(window.receive(0, 1).is_err(), "nothing granted yet");
        assert_eq!(window.grant(), Some(100));
        assert_eq!(window.grant(), None);
        window.receive(0, 60).unwrap();
        window.receive(60, 30).unwrap();
        assert!(window.receive(90, 11).is_err(), "more than granted");
        window.consumed(20);
        assert_eq!(window.grant(), None, "not worth a frame");
        window.consumed(10);
        assert_eq!(window.grant(), Some(30));
        window.receive(90, 40).unwrap();
        window.consumed(1);
        assert_eq!(window.grant(), Some(1), "the peer has nothing left");
    }

    #[test]
    fn offsets_must_follow() {
        let mut window = Window::new(100);
        window.grant();
        window.receive(0, 10).unwrap();
        assert!(window.receive(5, 5).is_err(), "back");
        assert!(window.receive(11, 5).is_err(), "forward");
        window.receive(10, 0).unwrap();
    }
}
