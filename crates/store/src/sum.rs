//! One trial's sum, with each entry folded as it is read, or from everything at once.

use std::collections::BTreeSet;

use measure::{AfterHold, Sum};
use measure::{Entry, Trial, TrialHead};
use rusqlite::{Transaction, params};

use crate::entries::{marks, read, visit};
use crate::error::StoreError;
use crate::run::RunId;
use crate::store::Store;
use crate::tables::{self, TRIAL};

impl Store {
    /// Everything that was committed of a trial, in the order it was handed over, in memory at once: gigabytes of an hour
    /// of many bots. `trial` sums it up in tens of megabytes.
    ///
    /// Of one moment, also while it grows. Errors: `UnknownTrial`, `Damaged` (never a wrong or a missing entry).
    pub fn trial_entries(&self, run: &RunId, seq: u32) -> Result<Vec<Entry>, StoreError> {
        let moment = self.moment()?;
        let head = self.head(&moment, run, seq)?;
        read(&moment, run, &head).map_err(|error| self.read(error))
    }

    /// A trial as the sum of what was committed, without the first `cut_s` seconds of its hold.
    ///
    /// Of one moment, also while it grows. Errors: as `trial_entries`.
    pub fn trial(&self, run: &RunId, seq: u32, cut_s: u32) -> Result<Trial, StoreError> {
        let moment = self.moment()?;
        let head = self.head(&moment, run, seq)?;
        self.sum(&moment, run, head, cut_s, BTreeSet::new())
    }

    /// A trial as it is judged: without its warm-up, and once more without the seconds that were disturbed most, where
    /// there are any. `warm_up` looks at the whole and says how many seconds of its hold that is; `left_out` names those
    /// others by their index. Read anew for each.
    ///
    /// Of one moment, also while it grows. Errors: as `trial_entries`.
    pub fn trial_views(
        &self,
        run: &RunId,
        seq: u32,
        warm_up: impl FnOnce(&Trial) -> u32,
        left_out: impl FnOnce(&Trial) -> BTreeSet<u32>,
    ) -> Result<(Trial, Option<Trial>), StoreError> {
        let moment = self.moment()?;
        let head = self.head(&moment, run, seq)?;
        let whole = self.sum(&moment, run, head, 0, BTreeSet::new())?;
        let cut_s = warm_up(&whole);
        let judged = match cut_s {
            0 => whole,
            cut_s => self.sum(&moment, run, whole.head, cut_s, BTreeSet::new())?,
        };
        let left_out = left_out(&judged);
        let rest = match left_out.is_empty() {
            true => None,
            false => Some(self.sum(&moment, run, judged.head.clone(), cut_s, left_out)?),
        };
        Ok((judged, rest))
    }

    /// The seconds of a trial in which a part of its load went on after the hold; `None` where it did not.
    ///
    /// Errors: as `trial_entries`.
    pub fn trial_after_hold(&self, run: &RunId, seq: u32) -> Result<Option<AfterHold>, StoreError> {
        let moment = self.moment()?;
        let head = self.head(&moment, run, seq)?;
        let marks = marks(&moment, run, &head).map_err(|error| self.read(error))?;
        let Some(mut after) = AfterHold::of(&head, &marks) else { return Ok(None) };
        visit(&moment, run, &head, |_, entry| after.take(&entry)).map_err(|error| self.read(error))?;
        Ok(Some(after))
    }

    fn head(&self, moment: &Transaction<'_>, run: &RunId, seq: u32) -> Result<TrialHead, StoreError> {
        let key = params![run.as_str(), seq];
        let rows = TRIAL.select(moment, "run = ?1 AND trial = ?2", key).map_err(|error| self.read(error))?;
        let row = rows.first().ok_or_else(|| StoreError::UnknownTrial { run: run.clone(), trial: seq })?;
        tables::trial::read(row).map(|(head, _)| head).map_err(|error| self.read(error))
    }

    /// Marks first, since they say which second counts; then each entry is summed as it is read.
    fn sum(
        &self,
        moment: &Transaction<'_>,
        run: &RunId,
        head: TrialHead,
        cut_s: u32,
        left_out: BTreeSet<u32>,
    ) -> Result<Trial, StoreError> {
        let summed = || {
            let marks = marks(moment, run, &head)?;
            let mut sum = Sum::new(head.clone(), marks, cut_s).leaving_out(left_out);
            visit(moment, run, &head, |_, entry| sum.take(&entry))?;
            Ok(sum.finish())
        };
        summed().map_err(|error| self.read(error))
    }
}
