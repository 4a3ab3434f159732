//! Marks: what a user tells a run that goes on, from a process of its own.
//!
//! A mark is an event of the open trial like any other, written in its own transaction at the trial's next position. The
//! writer looks for such rows in each of its transactions (`writer::marked`) and counts on behind them, so that positions
//! have no gaps and an ended trial has as many entries as it says. Neither process waits for the other longer than for a
//! transaction, and the lock that says that the run is recorded is only looked at.

use measure::trial::kind;
use measure::{Event, Purpose, TrialHead};
use rusqlite::{Transaction, TransactionBehavior, params};

use crate::error::StoreError;
use crate::live::is_live;
use crate::run::RunId;
use crate::store::Store;
use crate::tables::{self, EVENT, TRIAL};

/// The position behind all entries of a trial. What is packed is older than what is not.
const NEXT: &str = "SELECT coalesce(max(position), -1) + 1 FROM (
  SELECT position FROM (SELECT position FROM interval WHERE run = ?1 AND trial = ?2 ORDER BY interval DESC LIMIT 1)
  UNION ALL SELECT max(position) FROM tick WHERE run = ?1 AND trial = ?2
  UNION ALL SELECT max(position) FROM sample WHERE run = ?1 AND trial = ?2
  UNION ALL SELECT max(position) FROM event WHERE run = ?1 AND trial = ?2
  UNION ALL SELECT position FROM ledger WHERE run = ?1 AND trial = ?2)";

impl Store {
    /// The runs that living processes record into this store, in the order they began.
    pub fn being_recorded(&self) -> Result<Vec<RunId>, StoreError> {
        let mut runs = self.given_ids()?;
        runs.retain(|run| is_live(self.path(), run));
        Ok(runs)
    }

    /// Keeps a mark in the load that a run holds at this moment, at the instant `unix_ms` of the clock of the day, or at the
    /// load's beginning where that came later.
    ///
    /// Returns the load and the mark's instant within it, ns; `None` while no load is held, as between two of them or during a
    /// calibration: nothing was written then. Errors: `NotRecorded` where no living process records the run.
    pub fn mark(
        &self,
        run: &RunId,
        text: &str,
        unix_ms: u64,
    ) -> Result<Option<(TrialHead, u64)>, StoreError> {
        let told = |error| self.told(error);
        let transaction =
            Transaction::new_unchecked(self.connection(), TransactionBehavior::Immediate).map_err(told)?;
        if !is_live(self.path(), run) {
            return Err(StoreError::NotRecorded { run: run.clone() });
        }
        let open = "run = ?1 AND trial NOT IN (SELECT trial FROM trial_end WHERE run = ?1)";
        let rows = TRIAL.select(&transaction, open, [run.as_str()]).map_err(|error| self.read(error))?;
        let newest = rows.last().map(tables::trial::read).transpose().map_err(|error| self.read(error))?;
        let Some((head, started_unix_ms)) = newest.filter(|(head, _)| head.purpose == Purpose::Rung) else {
            return Ok(None);
        };
        let at_ns = unix_ms.saturating_sub(started_unix_ms).saturating_mul(1_000_000);
        let next = transaction.query_row(NEXT, params![run.as_str(), head.seq], |row| row.get::<_, i64>(0));
        let event = Event { at_ns, kind: kind::MARK.to_owned(), text: text.to_owned() };
        let row = tables::event::values(&(next.map_err(told)?.unsigned_abs(), &event))?;
        EVENT.insert_in_trial(&transaction, run.as_str(), head.seq, row).map_err(told)?;
        transaction.commit().map_err(told)?;
        Ok(Some((head, at_ns)))
    }
}
