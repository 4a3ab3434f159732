//! Entries as rows: how one is kept and how those of a trial come back, equal to the bit.
//!
//! `position` numbers the entries of a trial in the order they came, without gaps, and an interval says how many rows
//! belong to it. So a row that is missing is noticed as well as one that is damaged.

mod books;
mod keep;
mod recall;
mod seconds;

pub(crate) use keep::{Keeper, keep};
pub(crate) use recall::{ends, marks, recall, recall_behind, visit, whole_seconds};
