//! Entries as rows: how they are stored and how those of a trial are read back, bit for bit.
//!
//! `position` numbers the entries of a trial in the order they came, without gaps, and an interval says how many rows
//! belong to it. So a missing row is detected as well as a damaged one.

mod books;
mod packs;
mod read;
mod seconds;
mod write;

pub(crate) use packs::{PACKED, Pack, Packs, Unpacked, Which};
pub(crate) use read::{ends, marks, read, read_behind, visit, whole_seconds};
pub(crate) use write::{RowWriter, keep};
