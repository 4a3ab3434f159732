//! Entries as rows: how one is kept and how those of a trial come back, equal to the bit.
//!
//! `position` numbers the entries of a trial in the order they came, without gaps, and an interval says how many rows
//! belong to it. So a row that is missing is noticed as well as one that is damaged.

mod books;
mod read;
mod seconds;
mod write;

pub(crate) use read::{ends, marks, read, read_behind, visit, whole_seconds};
pub(crate) use write::{RowWriter, keep};
