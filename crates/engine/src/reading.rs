//! How a connection reads: as fast as it can, slowly, or not at all. For bots that behave badly on purpose.

use drivers::Driver;

use crate::hand::{Core, Hand, LineId};
use crate::pacer::Item;

/// The instant at which a connection that does not read begins to.
const NEVER: u64 = u64::MAX;

impl<D: Driver> Hand<'_, D> {
    /// From now on the connection reads at most `bytes` every `gap_ns`.
    pub fn read_slowly(&mut self, line: LineId, bytes: usize, gap_ns: u64) {
        if let Some(line) = self.core.line_mut(line) {
            (line.read_bytes_max, line.read_gap_ns) = (bytes, gap_ns);
        }
    }

    /// From now on the connection reads nothing.
    pub fn stop_reading(&mut self, line: LineId) {
        if let Some(line) = self.core.line_mut(line) {
            line.reads_from_ns = NEVER;
        }
    }

    /// From now on the connection reads whatever is there.
    pub fn read_freely(&mut self, id: LineId) {
        if let Some(line) = self.core.line_mut(id) {
            (line.read_bytes_max, line.read_gap_ns) = (usize::MAX, 0);
            self.core.read_again(id);
        }
    }
}

impl<D: Driver> Core<D> {
    pub(crate) fn pause_after_read(&mut self, id: LineId) {
        let now_ns = self.now_ns;
        let Some(line) = self.line_mut(id).filter(|line| line.read_gap_ns > 0) else { return };
        let again_ns = now_ns + line.read_gap_ns;
        line.reads_from_ns = again_ns;
        self.pacer.push(again_ns, Item::Read(id));
    }

    /// A pause is over.
    pub(crate) fn read_again(&mut self, id: LineId) {
        if let Some(line) = self.line_mut(id) {
            line.reads_from_ns = 0;
            if let Some(waker) = &line.waker {
                waker.wake_by_ref();
            }
        }
    }
}
