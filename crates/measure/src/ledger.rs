//! The delivery ledger: what was owed to whom, and what arrived.
//!
//! A line to a room of n owes one delivery to each member. Each payload carries sender, sequence number and planned
//! time, so a receiver's worker can keep one cell of 8 bytes per (sender, receiver): how many different messages were
//! seen, the newest, and which of the sixteen before it. Messages that fall out of the sixteen unseen are kept as
//! ranges of holes, so that a late message can be told from a duplicate at any distance, as long as the ranges fit
//! their bound (`cell::Holes`); beyond it a late one counts as a duplicate, and stays lost.
//! A sender's worker keeps the instants at which its messages were sent, individually near the start or end of a
//! membership (`departures`); a receiver's worker keeps the spans of its memberships.
//! At the end of the trial all parts are handed over once, and `close` settles them: a pure function.
//! Cells are stored sender by sender: a batch of lines goes to one receiver after another, and the cells of its senders
//! for neighbouring receivers share their cache lines.
//! Units: `_ns` since the start of the trial; counts are numbers of deliveries. Not here: how a payload is written
//! (`bots::chat`), and who is a member when (the bots report it).

mod books;
mod cell;
mod close;
mod departures;
mod packed;
mod part;
mod rooms;
mod row;
mod settling;
mod shared;
#[cfg(test)]
mod tests;

pub use books::{Books, BooksImbalance, PairBooks, ReceiverBooks, SumOfBooks};
pub use cell::SEQ_END;
pub use close::close;
pub use packed::PackedPart;
pub use part::{Deliveries, LedgerPart, LedgerShape};
pub use rooms::{Heard, NotSaid, Reading};
pub use row::ServerReport;
pub use shared::SharedLedger;
