//! Rooms of scripts: any number of them by name, with the same accounts as the chat's single room.
//!
//! A script says who is a member, what was sent under which number, and what was received. So a bot may speak without
//! being a member, numbers may have gaps, and a message may be received before its sender has reported it. Rooms are
//! many and most pairs of bots share none: cells are in a list and are found by room, sender and receiver.
//! A member is certainly owed what is sent from a second after it joined, since a script may report the join before the
//! server knows.

pub(super) mod state;

use std::collections::BTreeMap;

use super::books::{ReceiverBooks, SumOfBooks};
use super::cell::SEQ_END;
use super::part::LedgerPart;
use super::row::Row;
use super::settling::{Room, Sent, Settling, receiver_books};
pub use state::{Heard, Reading};

/// After this a member certainly receives what is sent.
const JOINED_WITHIN_NS: u64 = 1_000_000_000;
/// So many numbers may be passed over at once.
const SKIPPED_MOST: u32 = 10_000;

/// Why a number is not one that a message can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSaid {
    /// Numbers ascend.
    #[error("room.sent: number {0} comes after {1}; count up from 0 in each room, and use each number once")]
    Used(u64, u32),
    /// Each number that is passed over takes memory.
    #[error("room.sent: number {0} is far beyond {1}; count up from 0 in each room")]
    TooFar(u64, u32),
}

impl LedgerPart {
    /// From now on a bot receives what is sent in a room.
    pub fn joins(&mut self, local: u32, room: &str, at_ns: u64) {
        let (_, room, own) = self.rooms.row(local, room, &self.shared);
        if std::mem::replace(&mut own.is_member, true) {
            return;
        }
        room.joined();
        self.shared.note(at_ns);
        if let Some(former) = own.row.spans.last_mut() {
            former.left_ns = former.left_ns.min(at_ns);
        }
        own.row.asked(at_ns);
        if let Some(span) = own.row.spans.last_mut() {
            span.joined_ns = at_ns.saturating_add(JOINED_WITHIN_NS);
        }
    }

    /// It no longer receives it.
    pub fn leaves(&mut self, local: u32, room: &str, at_ns: u64) {
        let (_, room, own) = self.rooms.row(local, room, &self.shared);
        own.leave(&room, at_ns, &self.shared);
        if let Some(span) = own.row.spans.last_mut() {
            span.left_ns = span.left_ns.min(at_ns);
        }
    }

    /// A bot's last connection has ended: it is a member of no room, though a server may know it again when it comes back, and
    /// what it had just sent may never have reached the server.
    pub fn cut_off(&mut self, local: u32, at_ns: u64) {
        for room in self.rooms.of_bot.get(&local).into_iter().flatten() {
            let room = &mut self.rooms.rooms[*room as usize];
            if let Some(own) = room.rows.get_mut(&local) {
                own.leave(&room.shared, at_ns, &self.shared);
                own.row.cut_ns.push(at_ns);
            }
        }
    }

    /// A bot sends its message number `seq` in a room. Errors: no message can have that number.
    pub fn said(
        &mut self,
        local: u32,
        room: &str,
        seq: u64,
        (planned_ns, at_ns): (u64, u64),
    ) -> Result<(), NotSaid> {
        let number = self.global(local);
        let (_, room, own) = self.rooms.row(local, room, &self.shared);
        let departures = &mut own.row.departures;
        let next = departures.numbers();
        let skipped = seq.checked_sub(next.into()).ok_or(NotSaid::Used(seq, next.saturating_sub(1)))?;
        if skipped > SKIPPED_MOST.into() || seq >= SEQ_END.into() {
            return Err(NotSaid::TooFar(seq, next.saturating_sub(1)));
        }
        departures.skip(skipped as u32);
        departures.push(&self.shared, self.shape.margin_ns);
        departures.departed(seq as u32, at_ns);
        own.planned.get_or_insert_with(|| room.sender(number)).enter(seq as u32, planned_ns);
        self.shared.owes(room.members().saturating_sub(own.is_member.into()));
        Ok(())
    }

    /// A bot has received message `seq` of the bot number `from`.
    pub fn heard(&mut self, local: u32, room: &str, (from, seq): (u64, u64), reading: Reading<'_>) -> Heard {
        if from >= self.shape.senders.into() || seq >= SEQ_END.into() {
            self.unknown_messages += 1;
            return Heard::Unknown;
        }
        let (from, seq) = (from as u32, seq as u32);
        if from == self.global(local) {
            return Heard::Own;
        }
        self.rooms.hear(local, room, (from, seq), reading, self.shape.patience_ns, &self.shared)
    }

    /// There is something to settle: these bots are a crowd, or a bot of any worker has been in a room.
    pub fn is_used(&self) -> bool {
        self.shape.locals > 0 || self.shared.has_rooms()
    }

    /// Each delivery that was owed to a member of a room has come; false where it is not known.
    pub fn rooms_owe_nothing(&self) -> bool {
        self.shared.owes_nothing()
    }

    /// What is still owed in rooms has had its time: nothing can be on its way any more.
    pub fn rooms_have_caught_up(&mut self) {
        self.rooms.rows().filter(|row| row.stays()).for_each(|row| row.is_caught_up = true);
    }
}

/// The receivers of all rooms, each with the deliveries of all its rooms added up.
pub(super) fn settle(parts: &[LedgerPart], margin_ns: u64, all: &mut Settling) -> Vec<ReceiverBooks> {
    let mut names: Vec<&str> =
        parts.iter().flat_map(|part| part.rooms.by_name.keys().map(|name| &**name)).collect();
    names.sort_unstable();
    names.dedup();
    let mut receivers: BTreeMap<u32, (SumOfBooks, Row)> = BTreeMap::new();
    for name in names {
        let of_room: Vec<(&LedgerPart, u32)> =
            parts.iter().filter_map(|part| Some((part, *part.rooms.by_name.get(name)?))).collect();
        let rows = || {
            of_room.iter().flat_map(|(part, room)| {
                let rows = part.rooms.rooms[*room as usize].rows.iter();
                rows.map(move |(local, own)| (*part, *room, *local, &own.row))
            })
        };
        let mut senders: Vec<(u32, Sent)> = rows()
            .filter(|(.., row)| row.departures.numbers() > 0)
            .map(|(part, _, local, row)| (part.global(local), sent(row, margin_ns)))
            .collect();
        senders.sort_unstable_by_key(|(sender, _)| *sender);
        for (part, room) in &of_room {
            all.unknown_messages += part.rooms.of_strangers(*room, &senders);
        }
        let whole = Room::new(&senders, margin_ns, false);
        for (part, room, local, row) in rows().filter(|(.., row)| !row.spans.is_empty()) {
            let receiver = part.global(local);
            let mut sum = whole.settle(receiver, row, |_, sender| part.rooms.cell(room, sender, local), all);
            // The final report of a server that a bot has left is not waited for.
            sum.not_caught_up = sum.not_caught_up.min(row.stays().into());
            let (sums, merged) = receivers.entry(receiver).or_default();
            sums.add(&sum);
            sums.receivers = 1;
            merged.add(row);
        }
    }
    receivers.into_iter().map(|(receiver, (sum, row))| receiver_books(receiver, &row, sum)).collect()
}

/// What a bot said in a room. Of what it sent shortly before its connection ended it is not known whether it arrived.
fn sent(row: &Row, margin_ns: u64) -> Sent {
    Sent::of(row, |run| {
        let may_be_cut = run.first_ns..=run.last_ns.saturating_add(margin_ns);
        !row.cut_ns.iter().any(|cut_ns| may_be_cut.contains(cut_ns))
    })
}

#[cfg(test)]
mod tests;
