//! Rooms of scripts: any number of them by name, with books like those of the one crowd.
//!
//! A script says who is a member, what was sent under which number, and what was received. So a bot may speak without being a
//! member, numbers may have gaps, and a message may be received before its sender has said that it sent it. Rooms are many and
//! most pairs of bots share none: cells stand in a list and are found by room, sender and receiver.
//! A member is surely owed what leaves from a second after it joined, since a script may say so before the server knows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::books::{ReceiverBooks, SumOfBooks};
use super::cell::{self, Arrival, EMPTY, Holes, SEQ_END};
use super::close::{Room, Sent, Settling, receiver_books};
use super::part::{LedgerPart, NEVER, READ_LATE_NS, Row};
use super::shared::{Planned, SharedLedger, SharedRoom};
use crate::distribution::Distribution;

/// After this a member surely hears what is said.
const JOINED_WITHIN_NS: u64 = 1_000_000_000;
/// So many numbers may be passed over at once.
const SKIPPED_MOST: u32 = 10_000;
/// Two workers may enter what happens at one instant in either order.
const AT_ONCE_NS: u64 = 50_000_000;

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

/// What became of a message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// a delivery
    New,
    /// it came before
    Again,
    /// one's own, which owes nothing
    Own,
    /// there is no such sender or number
    Unknown,
    /// the bot has never been a member
    NotAMember,
}

/// When a message was read, and where its latency belongs.
pub struct Reading<'l> {
    /// ns since the start of the trial
    pub at_ns: u64,
    /// since its worker learnt that there is something to read, ns
    pub lag_ns: u64,
    /// messages planned from the first instant to before the second are recorded as the hold's
    pub hold_ns: (u64, u64),
    /// latencies of the hold, and the others
    pub latencies: (&'l mut Distribution, &'l mut Distribution),
}

/// All rooms of one worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms {
    by_name: HashMap<Box<str>, u32>,
    rooms: Vec<OwnRoom>,
    cells: Vec<u64>,
    holes: Option<Holes>,
    of_bot: HashMap<u32, Vec<u32>>,
}

/// One room, as far as this worker's bots are in it.
#[derive(Clone, Debug)]
struct OwnRoom {
    shared: Arc<SharedRoom>,
    rows: HashMap<u32, OwnRow>,
    senders: HashMap<u32, Arc<Planned>>,
    /// of each sender and bot of this worker, among the cells
    places: HashMap<(u32, u32), u32>,
}

#[derive(Clone, Debug, Default)]
struct OwnRow {
    row: Row,
    planned: Option<Arc<Planned>>,
    is_member: bool,
}

impl LedgerPart {
    /// From now on a bot hears what is said in a room.
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

    /// It hears no more of it.
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

impl OwnRow {
    fn leave(&mut self, room: &SharedRoom, at_ns: u64, shared: &SharedLedger) {
        if !std::mem::take(&mut self.is_member) {
            return;
        }
        room.left();
        shared.note(at_ns);
        if let Some(span) = self.row.spans.last_mut() {
            span.leaving_ns = span.leaving_ns.min(at_ns);
        }
    }
}

impl Rooms {
    /// A bot's row in a room; both are made where they are new.
    fn row(&mut self, local: u32, name: &str, shared: &SharedLedger) -> (u32, Arc<SharedRoom>, &mut OwnRow) {
        let index = match self.by_name.get(name) {
            Some(index) => *index,
            None => {
                let index = self.rooms.len() as u32;
                let shared = shared.room(name);
                let (rows, senders, places) = (HashMap::new(), HashMap::new(), HashMap::new());
                self.rooms.push(OwnRoom { shared, rows, senders, places });
                self.by_name.insert(name.into(), index);
                index
            }
        };
        let room = &mut self.rooms[index as usize];
        let own = room.rows.entry(local).or_insert_with(|| {
            self.of_bot.entry(local).or_default().push(index);
            OwnRow::default()
        });
        (index, Arc::clone(&room.shared), own)
    }

    fn hear(
        &mut self,
        local: u32,
        name: &str,
        (from, seq): (u32, u32),
        reading: Reading<'_>,
        patience_ns: u64,
        shared: &SharedLedger,
    ) -> Heard {
        let Some(&index) = self.by_name.get(name) else { return Heard::NotAMember };
        let room = &mut self.rooms[index as usize];
        let own = room.rows.get_mut(&local).filter(|own| !own.row.spans.is_empty());
        let Some(own) = own else { return Heard::NotAMember };
        own.row.is_behind = reading.lag_ns > READ_LATE_NS;
        let place = *room.places.entry((from, local)).or_insert_with(|| {
            self.cells.push(EMPTY);
            self.cells.len() as u32 - 1
        });
        let holes = self.holes.get_or_insert_with(|| Holes::for_cells(0));
        let arrival = cell::enter(&mut self.cells, place as usize, seq, holes);
        if arrival != Arrival::InOrder && own.row.came(arrival) {
            return Heard::Again;
        }
        let planned = match room.senders.get(&from) {
            Some(planned) => planned.of(seq),
            None => room.shared.known_sender(from).and_then(|known| {
                let planned = known.of(seq);
                room.senders.insert(from, known);
                planned
            }),
        };
        let Some(planned_ns) = planned else { return Heard::New };
        let latency_ns = reading.at_ns.saturating_sub(planned_ns);
        own.row.late += u64::from(latency_ns > patience_ns);
        own.row.latency_sum_ns += latency_ns;
        own.row.latency_count += 1;
        own.row.latency_max_ns = own.row.latency_max_ns.max(latency_ns);
        let is_in_hold = (reading.hold_ns.0..reading.hold_ns.1).contains(&planned_ns);
        let (in_hold, otherwise) = reading.latencies;
        if is_in_hold { in_hold } else { otherwise }.record(latency_ns);
        if own.row.spans.last().is_some_and(|span| span.asked_ns + AT_ONCE_NS <= planned_ns) {
            shared.delivered();
        }
        Heard::New
    }

    /// The rows of all rooms.
    pub(super) fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.rooms.iter_mut().flat_map(|room| room.rows.values_mut()).map(|own| &mut own.row)
    }

    /// The same, to be read.
    pub(super) fn all(&self) -> impl Iterator<Item = &Row> {
        self.rooms.iter().flat_map(|room| room.rows.values()).map(|own| &own.row)
    }

    fn cell(&self, room: u32, sender: u32, local: u32) -> u64 {
        let place = self.rooms[room as usize].places.get(&(sender, local));
        place.map_or(EMPTY, |place| self.cells[*place as usize])
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
            // Nobody waits for the last word of a server that a bot has left.
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

impl Rooms {
    /// Messages of senders that sent nothing in this room.
    fn of_strangers(&self, room: u32, senders: &[(u32, Sent)]) -> u64 {
        let is_known = |sender: &u32| senders.binary_search_by_key(sender, |(known, _)| *known).is_ok();
        let places = self.rooms[room as usize].places.iter().filter(|((sender, _), _)| !is_known(sender));
        places.map(|(_, place)| u64::from(cell::seen(self.cells[*place as usize]))).sum()
    }
}

impl Row {
    /// It has not left.
    fn stays(&self) -> bool {
        self.spans.last().is_some_and(|span| span.leaving_ns == NEVER)
    }

    /// What was measured of one bot in another room.
    fn add(&mut self, other: &Row) {
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_count += other.latency_count;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }
}

#[cfg(test)]
mod tests;
