//! One worker's state for all rooms.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::ledger::cell::{self, Arrival, EMPTY, Holes};
use crate::ledger::row::{READ_LATE_NS, Row};
use crate::ledger::settling::Sent;
use crate::ledger::shared::{Planned, SharedLedger, SharedRoom};

/// Two workers may enter what happens at one instant in either order.
const AT_ONCE_NS: u64 = 50_000_000;

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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::ledger) struct Rooms {
    pub(super) by_name: HashMap<Box<str>, u32>,
    pub(super) rooms: Vec<OwnRoom>,
    cells: Vec<u64>,
    #[serde(skip)]
    holes: Option<Holes>,
    #[serde(skip)]
    pub(super) of_bot: HashMap<u32, Vec<u32>>,
}

/// One room, as far as this worker's bots are in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OwnRoom {
    #[serde(skip)]
    pub(super) shared: Arc<SharedRoom>,
    pub(super) rows: HashMap<u32, OwnRow>,
    #[serde(skip)]
    senders: HashMap<u32, Arc<Planned>>,
    /// of each sender and bot of this worker, among the cells
    places: HashMap<(u32, u32), u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OwnRow {
    pub(super) row: Row,
    #[serde(skip)]
    pub(super) planned: Option<Arc<Planned>>,
    pub(super) is_member: bool,
}

impl OwnRow {
    pub(super) fn leave(&mut self, room: &SharedRoom, at_ns: u64, shared: &SharedLedger) {
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
    pub(super) fn row(
        &mut self,
        local: u32,
        name: &str,
        shared: &SharedLedger,
    ) -> (u32, Arc<SharedRoom>, &mut OwnRow) {
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

    pub(super) fn hear(
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
    pub(in crate::ledger) fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.rooms.iter_mut().flat_map(|room| room.rows.values_mut()).map(|own| &mut own.row)
    }

    /// The same, to be read.
    pub(in crate::ledger) fn all(&self) -> impl Iterator<Item = &Row> {
        self.rooms.iter().flat_map(|room| room.rows.values()).map(|own| &own.row)
    }

    pub(super) fn cell(&self, room: u32, sender: u32, local: u32) -> u64 {
        let place = self.rooms[room as usize].places.get(&(sender, local));
        place.map_or(EMPTY, |place| self.cells[*place as usize])
    }

    /// Whether every place that is named is there.
    pub(in crate::ledger) fn is_whole(&self, locals: u32) -> bool {
        let cells = self.cells.len();
        let of_room = |room: &OwnRoom| {
            room.rows.keys().all(|local| *local < locals)
                && room.places.iter().all(|((_, local), place)| *local < locals && (*place as usize) < cells)
        };
        self.by_name.values().all(|room| (*room as usize) < self.rooms.len())
            && self.rooms.iter().all(of_room)
    }

    /// Messages of senders that sent nothing in this room.
    pub(super) fn of_strangers(&self, room: u32, senders: &[(u32, Sent)]) -> u64 {
        let is_known = |sender: &u32| senders.binary_search_by_key(sender, |(known, _)| *known).is_ok();
        let places = self.rooms[room as usize].places.iter().filter(|((sender, _), _)| !is_known(sender));
        places.map(|(_, place)| u64::from(cell::seen(self.cells[*place as usize]))).sum()
    }
}
