//! The last bytes of an output channel, by their offset from its beginning.

/// Room for one read beyond what is kept, so that nothing has to be dropped before it is known how
/// much arrives.
const SLACK: usize = 256 * 1024;

/// First allocation; most processes say little.
const FIRST: usize = 16 * 1024;

/// A byte ring. Offsets never wrap: 64 bits outlast any process.
#[derive(Debug)]
pub struct Ring {
    bytes: Vec<u8>,
    limit: usize,
    start: u64,
    end: u64,
}

impl Ring {
    /// A ring that keeps the last `limit` bytes and has no memory yet.
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit: limit.max(1),
            start: 0,
            end: 0,
        }
    }

    /// Offset of the oldest byte kept.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Offset behind the newest byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// How much may be added without losing a byte at or behind `keep_from`.
    pub fn room(&self, keep_from: u64) -> usize {
        let kept = self.end - keep_from.clamp(self.start, self.end);
        self.limit
            .saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX))
    }

    /// Where to read the next bytes to, at most `most`; [`Ring::commit`] says how many came.
    pub fn spare(&mut self, most: usize) -> [&mut [u8]; 2] {
        let most = most.min(SLACK);
        let kept = self.kept();
        if self.bytes.len() - kept < most.min(FIRST / 2) {
            self.grow();
        }
        let capacity = self.bytes.len();
        let most = most.min(capacity - kept);
        let at = self.position(self.end);
        let first = most.min(capacity - at);
        let (head, tail) = self.bytes.split_at_mut(at);
        [&mut tail[..first], &mut head[..most - first]]
    }

    /// `count` bytes have been put where [`Ring::spare`] said.
    pub fn commit(&mut self, count: usize) {
        self.end += count as u64;
        self.start = self.start.max(self.end.saturating_sub(self.limit as u64));
    }

    /// `count` bytes from offset `from` on; both must be in the ring.
    pub fn slices(&self, from: u64, count: usize) -> [&[u8]; 2] {
        debug_assert!(from >= self.start && from + count as u64 <= self.end);
        if count == 0 {
            return [&[], &[]];
        }
        let at = self.position(from);
        let first = count.min(self.bytes.len() - at);
        [&self.bytes[at..at + first], &self.bytes[..count - first]]
    }

    /// Give back memory that no bytes are in: nothing will be added any more.
    pub fn shrink(&mut self) {
        let kept = self.kept();
        if self.bytes.len() - kept >= 4096 {
            self.relocate(kept);
        }
    }

    /// Forget what is kept; offsets go on.
    pub fn clear(&mut self) {
        self.start = self.end;
        self.bytes = Vec::new();
    }

    fn kept(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn position(&self, offset: u64) -> usize {
        if self.bytes.is_empty() {
            0
        } else {
            (offset % self.bytes.len() as u64) as usize
        }
    }

    fn grow(&mut self) {
        let most = self.limit + SLACK.min(self.limit);
        let capacity = (self.bytes.len() * 4).clamp(FIRST.min(most), most);
        if capacity > self.bytes.len() {
            self.relocate(capacity);
        }
    }

    /// Move what is kept into a buffer of another size; positions depend on the size.
    fn relocate(&mut self, capacity: usize) {
        // Zeroed memory comes from the kernel as it is and is not touched before it is used.
        let mut moved = vec![0; capacity];
        let kept = self.kept();
        if kept > 0 {
            let mut target = (self.start % capacity as u64) as usize;
            for slice in self.slices(self.start, kept) {
                let (first, rest) = slice.split_at(slice.len().min(capacity - target));
                moved[target..target + first.len()].copy_from_slice(first);
                moved[..rest.len()].copy_from_slice(rest);
                target = (target + slice.len()) % capacity;
            }
        }
        self.bytes = moved;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn push(ring: &mut Ring, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let [a, b] = ring.spare(rest.len());
            let first = a.len().min(rest.len());
            a[..first].copy_from_slice(&rest[..first]);
            let second = b.len().min(rest.len() - first);
            b[..second].copy_from_slice(&rest[first..first + second]);
            assert!(first + second > 0, "no room to read into");
            ring.commit(first + second);
            rest = &rest[first + second..];
        }
    }

    fn content(ring: &Ring) -> Vec<u8> {
        let kept = (ring.end() - ring.start()) as usize;
        ring.slices(ring.start(), kept).concat()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn keeps_the_last_bytes(
            limit in 1usize..100_000,
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30_000), 0..12),
        ) {
            let mut ring = Ring::new(limit);
            let mut all = Vec::new();
            for piece in pieces {
                push(&mut ring, &piece);
                all.extend_from_slice(&piece);
                prop_assert_eq!(ring.end(), all.len() as u64);
                prop_assert_eq!(ring.start(), all.len().saturating_sub(limit) as u64);
                prop_assert_eq!(&content(&ring)[..], &all[ring.start() as usize..]);
                prop_assert!(ring.memory() <= 2 * limit.max(FIRST));
            }
            let before = content(&ring);
            ring.shrink();
            prop_assert_eq!(content(&ring), before);
        }
    }

    #[test]
    fn offsets_go_beyond_32_bits() {
        let mut ring = Ring::new(64);
        ring.start = 5_000_000_000;
        ring.end = ring.start;
        push(&mut ring, &[7; 100]);
        assert_eq!((ring.start(), ring.end()), (5_000_000_036, 5_000_000_100));
        assert_eq!(content(&ring), [7; 64]);
    }

    #[test]
    fn room_counts_what_must_stay() {
        let mut ring = Ring::new(100);
        push(&mut ring, &[1; 80]);
        assert_eq!(ring.room(ring.end()), 100, "all of it has been sent");
        assert_eq!(ring.room(30), 50);
        assert_eq!(ring.room(0), 20);
        push(&mut ring, &[2; 20]);
        assert_eq!(ring.room(0), 0);
    }

    #[test]
    fn clear_keeps_the_offsets() {
        let mut ring = Ring::new(100);
        push(&mut ring, &[1; 80]);
        ring.clear();
        assert_eq!((ring.start(), ring.end(), ring.memory()), (80, 80, 0));
    }
}
