//! The books of a trial's deliveries as rows: a head, a row per receiver, the worst pairs.
//!
//! The sums are not stored, so they cannot contradict the rows; the head says how many rows there are.

use measure::ledger::{PairBooks, ReceiverBooks, SumOfBooks};
use measure::{Books, TrialHead};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::keep::Keeper;
use crate::error::StoreError;
use crate::row::{BOOKS, LEDGER, PAIR, ReadError, Row, count, real};
use crate::run::RunId;

impl Keeper<'_> {
    pub(super) fn books(&self, position: Value, books: &Books) -> Result<(), StoreError> {
        books.balance().map_err(|imbalance| StoreError::UnbalancedBooks {
            run: self.run.clone(),
            trial: self.head.seq,
            imbalance,
        })?;
        let mut row = self.key();
        row.push(position);
        for (what, number) in [
            ("receivers", books.receivers.len() as u64),
            ("pairs", books.worst.len() as u64),
            ("sent", books.sent),
            ("unknown_messages", books.unknown_messages),
            ("drops_are_told", u64::from(books.drops_are_told)),
        ] {
            row.push(count(what, number)?);
        }
        self.insert(&LEDGER, row)?;
        for receiver in &books.receivers {
            self.insert(&BOOKS, self.receiver(receiver)?)?;
        }
        for (place, pair) in (0..).zip(&books.worst) {
            let mut row = self.key();
            for (what, number) in [
                ("place", place),
                ("sender", u64::from(pair.sender)),
                ("receiver", u64::from(pair.receiver)),
                ("owed_min", pair.owed_min),
                ("owed_max", pair.owed_max),
                ("delivered", pair.delivered),
                ("lost", pair.lost),
            ] {
                row.push(count(what, number)?);
            }
            self.insert(&PAIR, row)?;
        }
        Ok(())
    }

    fn receiver(&self, receiver: &ReceiverBooks) -> Result<Vec<Value>, StoreError> {
        let sum = &receiver.sum;
        let mut row = self.key();
        for (what, number) in [
            ("receiver", u64::from(receiver.receiver)),
            ("is_excluded", u64::from(receiver.is_excluded)),
            ("owed_min", sum.owed_min),
            ("owed_max", sum.owed_max),
            ("delivered", sum.delivered),
            ("late", sum.late),
            ("lost", sum.lost),
            ("duplicated", sum.duplicated),
            ("reordered", sum.reordered),
            ("dropped", sum.dropped),
            ("in_flight", sum.in_flight),
        ] {
            row.push(count(what, number)?);
        }
        row.push(Value::Integer(sum.residual));
        row.extend([count("unowed", sum.unowed)?, count("not_caught_up", sum.not_caught_up)?]);
        row.push(receiver.latency_mean_ns.map_or(Value::Null, real));
        for (what, number) in [
            ("latency_max_ns", receiver.latency_max_ns),
            ("told_owed", receiver.told_owed),
            ("told_delivered", receiver.told_delivered),
        ] {
            row.push(number.map_or(Ok(Value::Null), |number| count(what, number))?);
        }
        Ok(row)
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
        receivers.push(receiver(&row)?);
        Ok(())
    })?;
    PAIR.for_each(connection, of_trial, trial, |row| {
        pairs.push(pair(&row)?);
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
    for (what, expected, found) in
        [("receivers", row.u64("receivers")?, receivers.len()), ("pairs", row.u64("pairs")?, pairs.len())]
    {
        if expected != found as u64 {
            return Err(damaged(format!("should have {expected} {what} but {found} are there")));
        }
    }
    let books = Books {
        sent: row.u64("sent")?,
        unknown_messages: row.u64("unknown_messages")?,
        drops_are_told: row.flag("drops_are_told")?,
        ..Books::of(receivers, pairs)
    };
    books.balance().map_err(|imbalance| damaged(format!("do not balance: {imbalance}")))?;
    Ok(Some((row.u64("position")?, books)))
}

fn receiver(row: &Row) -> Result<ReceiverBooks, ReadError> {
    Ok(ReceiverBooks {
        receiver: row.u32("receiver")?,
        is_excluded: row.flag("is_excluded")?,
        sum: SumOfBooks {
            receivers: 1,
            owed_min: row.u64("owed_min")?,
            owed_max: row.u64("owed_max")?,
            delivered: row.u64("delivered")?,
            late: row.u64("late")?,
            lost: row.u64("lost")?,
            duplicated: row.u64("duplicated")?,
            reordered: row.u64("reordered")?,
            dropped: row.u64("dropped")?,
            in_flight: row.u64("in_flight")?,
            residual: row.i64("residual")?,
            unowed: row.u64("unowed")?,
            not_caught_up: row.u64("not_caught_up")?,
        },
        latency_mean_ns: row.real("latency_mean_ns")?,
        latency_max_ns: row.optional_u64("latency_max_ns")?,
        told_owed: row.optional_u64("told_owed")?,
        told_delivered: row.optional_u64("told_delivered")?,
    })
}

fn pair(row: &Row) -> Result<PairBooks, ReadError> {
    Ok(PairBooks {
        sender: row.u32("sender")?,
        receiver: row.u32("receiver")?,
        owed_min: row.u64("owed_min")?,
        owed_max: row.u64("owed_max")?,
        delivered: row.u64("delivered")?,
        lost: row.u64("lost")?,
    })
}
