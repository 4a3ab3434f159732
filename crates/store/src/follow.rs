//! Following a growing trial, and reading a long one piece by piece.
//!
//! `Store::trial_entries` holds a whole trial in memory, which for an hour of many bots is gigabytes, and
//! `Store::trial` returns only the sum. Here a reader keeps its `Place` and asks for what follows it; the result is
//! checked as there, row by row and for gaps.
//! A place is never ahead of what was committed, so a follower sees each entry once and in the order it was handed
//! over.

use measure::{Entry, Event, TrialHead};

use crate::entries::{ends, marks, read_behind, visit};
use crate::error::StoreError;
use crate::run::RunId;
use crate::store::Store;
use crate::tables::{self, TRIAL};

/// Entries that are in memory at once: half a minute of a trial, 40 MB where many bots are slow.
pub(crate) const PIECE: u32 = 512;

/// How far a reader of one trial has come; the default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// of the next entry
    pub(crate) position: u64,
    /// the next second of the bots
    pub(crate) second: u32,
}

/// A trial as a follower looks for it: without counting its seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialMark {
    /// what it was asked to be
    pub head: TrialHead,
    /// when it began
    pub started_unix_ms: u64,
    /// when everything of it was handed over; `None` while it runs and when it was cut off
    pub ended_unix_ms: Option<u64>,
}

impl TrialMark {
    /// Whether everything of it was handed over.
    pub fn is_ended(&self) -> bool {
        self.ended_unix_ms.is_some()
    }
}

impl Store {
    /// A number that changes whenever another connection commits something; asking takes microseconds.
    pub fn version(&self) -> Result<u64, StoreError> {
        let asked = self.connection().query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0));
        asked.map(i64::unsigned_abs).map_err(|error| self.told(error))
    }

    /// The trials of a run in their order.
    pub fn trial_marks(&self, run: &RunId) -> Result<Vec<TrialMark>, StoreError> {
        let moment = self.moment()?;
        let read = || {
            let ends = ends(&moment, run)?;
            let mut marks = Vec::new();
            TRIAL.for_each(&moment, "run = ?1", [run.as_str()], |row| {
                let (head, started_unix_ms) = tables::trial::read(&row)?;
                let ended_unix_ms = ends.get(&head.seq).map(|(_, ended_unix_ms)| *ended_unix_ms);
                marks.push(TrialMark { head, started_unix_ms, ended_unix_ms });
                Ok(())
            })?;
            Ok(marks)
        };
        read().map_err(|error| self.read(error))
    }

    /// The marks of a trial, in the order they were handed over.
    pub fn marks(&self, run: &RunId, head: &TrialHead) -> Result<Vec<Event>, StoreError> {
        let moment = self.moment()?;
        marks(&moment, run, head).map_err(|error| self.read(error))
    }

    /// The entries behind `place`, at most `most` of them, in the order they were handed over; `place` moves behind them.
    ///
    /// Empty when nothing more was committed. Errors: `Damaged`; then `place` stays.
    pub fn entries_behind(
        &self,
        run: &RunId,
        head: &TrialHead,
        place: &mut Place,
        most: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let moment = self.moment()?;
        read_behind(&moment, run, head, place, most).map_err(|error| self.read(error))
    }

    /// Hands every entry behind `place` to `each`; `place` moves behind them.
    ///
    /// From the beginning of a trial the entries come kind by kind, each kind in its own order, and none twice: several
    /// times as quick as in pieces. From then on they come in the order they were handed over.
    /// Errors: `Damaged`; what was handed over before is part of a trial that cannot be read.
    pub fn each_entry_behind(
        &self,
        run: &RunId,
        head: &TrialHead,
        place: &mut Place,
        mut each: impl FnMut(Entry),
    ) -> Result<(), StoreError> {
        if *place == Place::default() {
            let moment = self.moment()?;
            let mut behind = Place::default();
            let read = visit(&moment, run, head, |_, entry| {
                behind.position += 1;
                if let Entry::Interval(interval) = &entry {
                    behind.second = interval.index.saturating_add(1);
                }
                each(entry);
            });
            read.map_err(|error| self.read(error))?;
            *place = behind;
        }
        loop {
            let piece = self.entries_behind(run, head, place, PIECE)?;
            if piece.is_empty() {
                return Ok(());
            }
            piece.into_iter().for_each(&mut each);
        }
    }
}
