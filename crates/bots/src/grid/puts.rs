//! The values put before the hold, so that reads find them.

/// Values that are put before the hold.
pub(super) struct Puts {
    /// the next key of this worker's share
    pub(super) next: u64,
    pub(super) step: u64,
    pub(super) end: u64,
    pub(super) in_flight: u32,
    /// keys whose put was lost
    pub(super) again: Vec<u32>,
    /// the load may begin
    pub(super) are_over: bool,
    /// one was put since the last look
    pub(super) have_moved: bool,
}

impl Puts {
    /// Those of a worker: each `workers`-th key of `keys`, from `worker` on; none where nothing is read.
    pub(super) fn of(worker: usize, workers: usize, keys: usize, are_needed: bool) -> Puts {
        Puts {
            next: worker as u64,
            step: workers as u64,
            end: keys as u64,
            in_flight: 0,
            again: Vec::new(),
            are_over: !are_needed,
            have_moved: false,
        }
    }

    /// Whether every value of this worker's share is there.
    pub(super) fn are_done(&self) -> bool {
        self.in_flight == 0 && self.again.is_empty() && self.next >= self.end
    }

    pub(super) fn next(&mut self) -> Option<u32> {
        if let Some(key) = self.again.pop() {
            return Some(key);
        }
        let key = (self.next < self.end).then_some(self.next)?;
        self.next += self.step;
        // At most a million keys.
        Some(key as u32)
    }
}
