//! A trial's delivery accounts as rows: a header, a row per receiver, the worst pairs.
//!
//! The sums are not stored, so they cannot contradict the rows; the header says how many rows there are.

use measure::{Books, TrialHead};
use rusqlite::{Connection, params};

use super::write::RowWriter;
use crate::error::StoreError;
use crate::row::ReadError;
use crate::run::RunId;
use crate::tables::{self, BOOKS, LEDGER, PAIR};

impl RowWriter<'_> {
    pub(super) fn books(&self, position: u64, books: &Books) -> Result<(), StoreError> {
        books.balance().map_err(|imbalance| StoreError::UnbalancedBooks {
            run: self.run.clone(),
            trial: self.head.seq,
            imbalance,
        })?;
        let (receivers, pairs) = (books.receivers.len() as u64, books.worst.len() as u64);
        self.insert(&LEDGER, tables::ledger::values(&(position, receivers, pairs, books))?)?;
        for receiver in &books.receivers {
            self.insert(&BOOKS, tables::books::values(receiver)?)?;
        }
        for (place, pair) in (0..).zip(&books.worst) {
            self.insert(&PAIR, tables::pair::values(&(place, pair))?)?;
        }
        Ok(())
    }
}

/// The books of a trial and their position; `None` when it has none.
pub(super) fn recall_books(
    connection: &Connection,
    run: &RunId,
    head: &TrialHead,
) -> Result<Option<(u64, Books)>, ReadError> {
    let of_trial = "run = ?1 AND trial = ?2";
    let trial = params![run.as_str(), head.seq];
    let damaged =
        |what: String| ReadError::Damaged(format!("the books of trial {} of {run} {what}", head.seq));
    let (mut receivers, mut pairs) = (Vec::new(), Vec::new());
    BOOKS.for_each(connection, of_trial, trial, |row| {
        receivers.push(tables::books::read(&row)?);
        Ok(())
    })?;
    PAIR.for_each(connection, of_trial, trial, |row| {
        let (_, pair) = tables::pair::read(&row)?;
        pairs.push(pair);
        Ok(())
    })?;
    let heads = LEDGER.select(connection, of_trial, trial)?;
    let Some(row) = heads.first() else {
        let orphans = receivers.len() + pairs.len();
        return if orphans == 0 {
            Ok(None)
        } else {
            Err(damaged(format!("lack their head, but have {orphans} rows")))
        };
    };
    let (position, expected_receivers, expected_pairs, head) = tables::ledger::read(row)?;
    for (what, expected, found) in
        [("receivers", expected_receivers, receivers.len()), ("pairs", expected_pairs, pairs.len())]
    {
        if expected != found as u64 {
            return Err(damaged(format!("should have {expected} {what} but {found} are there")));
        }
    }
    let Books { sent, unknown_messages, drops_are_told, .. } = head;
    let books = Books { sent, unknown_messages, drops_are_told, ..Books::of(receivers, pairs) };
    books.balance().map_err(|imbalance| damaged(format!("do not balance: {imbalance}")))?;
    Ok(Some((position, books)))
}
