//! A part of the ledger on its way between machines: its cells as runs of equal ones.
//!
//! Where nothing is lost all receivers of a sender have the same cell, so a run is as long as there are receivers. What only helps
//! while messages come (holes, what parts share) stays behind.

use serde::{Deserialize, Serialize};

use super::cell::Holes;
use super::part::{LedgerPart, LedgerShape};
use super::rooms::state::Rooms;
use super::row::Row;
use super::shared::SharedLedger;
use crate::distribution::COUNT_MAX;

/// A part that can be settled elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PackedPart {
    shape: LedgerShape,
    /// a cell, and how many of it follow each other
    runs: Vec<(u64, u32)>,
    rows: Vec<Row>,
    rooms: Rooms,
    unknown_messages: u64,
}

impl From<LedgerPart> for PackedPart {
    fn from(part: LedgerPart) -> PackedPart {
        let LedgerPart { shape, cells, rows, rooms, unknown_messages, .. } = part;
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for cell in cells {
            match runs.last_mut() {
                Some((same, count)) if *same == cell && *count < u32::MAX => *count += 1,
                _ => runs.push((cell, 1)),
            }
        }
        PackedPart { shape, runs, rows, rooms, unknown_messages }
    }
}

impl LedgerPart {
    /// Bots of the whole trial that may send: the same in each of its parts.
    pub fn senders(&self) -> u32 {
        self.shape.senders
    }
}

impl PackedPart {
    /// The part; `None`: its cells and rows are not those of its shape, it is of more than `bots` bots, or it refers to what is not
    /// there.
    pub fn unpacked(self, bots: u32) -> Option<LedgerPart> {
        let PackedPart { shape, runs, rows, rooms, unknown_messages } = self;
        let count: u64 = runs.iter().map(|run| u64::from(run.1)).sum();
        let last = u64::from(shape.first) + u64::from(shape.locals) * u64::from(shape.step);
        // Bots of scripts are in rooms only.
        let locals =
            if shape.locals > 0 { shape.locals } else { (u32::MAX - shape.first) / shape.step.max(1) };
        let is_whole = count == u64::from(shape.senders) * u64::from(shape.locals)
            && shape.senders <= bots
            && shape.locals <= bots
            && rows.len() as u64 == u64::from(shape.locals)
            && last <= u64::from(u32::MAX)
            && rooms.is_whole(locals)
            && rows.iter().chain(rooms.all()).all(Row::is_whole)
            && unknown_messages <= COUNT_MAX;
        if !is_whole {
            return None;
        }
        let mut cells = Vec::with_capacity(count as usize);
        runs.into_iter().for_each(|(cell, count)| cells.resize(cells.len() + count as usize, cell));
        let (holes, shared) = (Holes::default(), SharedLedger::default());
        Some(LedgerPart { shape, cells, holes, rows, rooms, shared, unknown_messages })
    }
}
