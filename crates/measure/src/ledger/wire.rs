//! A part of the ledger on its way between machines: its cells as runs of equal ones, and what is checked when it is read.
//!
//! Where nothing is lost all receivers of a sender have the same cell, so a run is as long as there are receivers.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq as _;
use serde::{Deserializer, Serializer};

use super::part::LedgerPart;

/// A ledger of more cells (8 GB) is not read: its bots did not fit this machine either.
const CELLS_MOST: u64 = 1 << 30;

pub(super) fn serialize<S: Serializer>(cells: &[u64], to: S) -> Result<S::Ok, S::Error> {
    let runs: Vec<(u64, u64)> = cells.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
    let mut seq = to.serialize_seq(Some(runs.len()))?;
    runs.iter().try_for_each(|run| seq.serialize_element(run))?;
    seq.end()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    struct Runs;
    impl<'de> Visitor<'de> for Runs {
        type Value = Vec<u64>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("runs of cells")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut runs: A) -> Result<Vec<u64>, A::Error> {
            let mut cells = Vec::new();
            while let Some((cell, count)) = runs.next_element::<(u64, u64)>()? {
                if count > CELLS_MOST.saturating_sub(cells.len() as u64) {
                    return Err(A::Error::custom("a ledger of too many cells"));
                }
                cells.resize(cells.len() + count as usize, cell);
            }
            Ok(cells)
        }
    }
    from.deserialize_seq(Runs)
}

impl LedgerPart {
    /// Whether a part that was read can be settled: its cells and rows are those of its shape, and all that it refers to is there.
    pub fn is_whole(&self) -> bool {
        let shape = self.shape;
        let last = u64::from(shape.first) + u64::from(shape.locals) * u64::from(shape.step);
        // Bots of scripts are in rooms only.
        let locals =
            if shape.locals > 0 { shape.locals } else { (u32::MAX - shape.first) / shape.step.max(1) };
        self.cells.len() as u64 == u64::from(shape.senders) * u64::from(shape.locals)
            && self.rows.len() as u64 == u64::from(shape.locals)
            && last <= u64::from(u32::MAX)
            && self.rooms.is_whole(locals)
            && self.rows.iter().chain(self.rooms.all()).all(|row| row.departures.is_whole())
    }
}
