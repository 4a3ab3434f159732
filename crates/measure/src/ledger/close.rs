//! Settling: turns all workers' parts into the accounts of the trial. Pure.
//!
//! A message is certainly owed to a receiver if it was sent after the server had confirmed the membership, and at least
//! `margin_ns` before either end closed the connection; it is possibly owed if it was sent at most `margin_ns` before
//! the join request was. The margin covers the way to the server, its queue and the way back, which cannot be observed
//! from outside.
//! If every membership began before the first message and lasted beyond the last, both counts are the number of
//! messages sent, and settling costs one subtraction per pair.

use super::books::Books;
use super::departures::Run;
use super::part::LedgerPart;
use super::rooms;
use super::settling::{Reach, Room, Sent, Settling, Worst, reaches, receiver_books};

/// Settles the parts of all workers, in any order.
pub fn close(parts: &[LedgerPart]) -> Books {
    let margin_ns = parts.iter().map(|part| part.shape.margin_ns).max().unwrap_or(0);
    let unknown_messages = parts.iter().map(|part| part.unknown_messages).sum();
    let mut all = Settling { worst: Worst::default(), unknown_messages };
    let senders = all_sent(parts, margin_ns);
    let mut receivers = Vec::new();
    for part in parts {
        let room = Room::new(&senders, margin_ns, part.shape.echoes);
        for (local, row) in part.rows.iter().enumerate() {
            let receiver = part.global(local as u32);
            let cell = |sender: usize, _| part.cells[sender * part.shape.locals as usize + local];
            let sum = room.settle(receiver, row, cell, &mut all);
            receivers.push(receiver_books(receiver, row, sum));
        }
    }
    receivers.extend(rooms::settle(parts, margin_ns, &mut all));
    receivers.sort_by_key(|receiver| receiver.receiver);
    let rows = || parts.iter().flat_map(|part| part.rows.iter().chain(part.rooms.all()));
    Books {
        sent: rows().flat_map(|row| row.departures.runs()).map(|run| u64::from(run.count)).sum(),
        unknown_messages: all.unknown_messages,
        drops_are_told: rows().any(|row| row.told.is_some() || row.missed > 0),
        ..Books::of(receivers, all.worst.into_sorted())
    }
}

fn all_sent(parts: &[LedgerPart], margin_ns: u64) -> Vec<(u32, Sent)> {
    let senders = parts.iter().map(|part| part.shape.senders).max().unwrap_or(0);
    let mut all: Vec<(u32, Sent)> = (0..senders).map(|sender| (sender, Sent::default())).collect();
    for part in parts {
        debug_assert_eq!(part.shape.senders, senders, "all parts are of one trial");
        for (local, row) in part.rows.iter().enumerate() {
            let Some((_, sent)) = all.get_mut(part.global(local as u32) as usize) else { continue };
            let reaches = reaches(row, margin_ns);
            // What a connection carried long enough before its end has been read. Joining is a message of the same
            // connection, and so was read before.
            let carries =
                |run: &Run, reach: &Reach| run.first_ns >= reach.asked_ns && run.last_ns <= reach.sure.1;
            *sent = Sent::of(row, |run| reaches.iter().any(|reach| carries(run, reach)));
        }
    }
    all
}
