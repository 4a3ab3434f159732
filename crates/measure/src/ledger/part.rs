//! One worker's part of the ledger, during the trial.

use serde::{Deserialize, Serialize};

use super::cell::{self, Arrival, EMPTY, Holes, SEQ_END};
use super::rooms::state::Rooms;
use super::row::{READ_LATE_NS, Row, ServerReport};
use super::shared::SharedLedger;
use crate::distribution::Distribution;

/// A message cannot come before it was planned, by the one clock that all workers of a machine read; what two cores read of it at
/// once may differ by far less than this.
pub(super) const AHEAD_MOST_NS: u64 = 100_000;

/// A server says what it dropped when it can write again, which is when it was read; so much later at most that is read.
pub(super) const NOTICE_WITHIN_NS: u64 = 1_000_000_000;

/// How large a ledger is, and whose part this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerShape {
    /// bots of the whole trial that may send, numbered from 0
    pub senders: u32,
    /// bots of this worker: the global number of the i-th is `first + i × step`
    pub locals: u32,
    /// see `locals`
    pub first: u32,
    /// see `locals`
    pub step: u32,
    /// a delivery after this is late, ns
    pub patience_ns: u64,
    /// what leaves within this before or after either end of a membership may or may not be owed, ns; see `close`
    pub margin_ns: u64,
    /// the subject sends each message back to its sender too
    pub echoes: bool,
    /// how far the clocks of sender and receiver may differ, ns; 0 where all workers read one clock
    pub clock_bound_ns: u64,
}

impl LedgerShape {
    /// Of a trial with one worker, for tests: every duration is 1 ns, and a message comes back to its sender too.
    pub const fn alone(senders: u32, locals: u32) -> Self {
        LedgerShape {
            senders,
            locals,
            first: 0,
            step: 1,
            patience_ns: 1,
            margin_ns: 1,
            echoes: true,
            clock_bound_ns: 0,
        }
    }
}

/// One worker's part: a column of cells and a row per bot.
#[derive(Clone, Debug)]
pub struct LedgerPart {
    pub(super) shape: LedgerShape,
    /// cell of (sender, local receiver) at `sender × locals + local`
    pub(super) cells: Vec<u64>,
    pub(super) holes: Holes,
    pub(super) rows: Vec<Row>,
    pub(super) rooms: Rooms,
    pub(super) shared: SharedLedger,
    /// messages with an impossible sender or number, or from the future: never booked, always an error of the subject's
    pub(super) unknown_messages: u64,
}

impl LedgerPart {
    /// An empty part. Takes 8 bytes per pair. All parts of a trial share `shared`.
    pub fn new(shape: LedgerShape, shared: SharedLedger) -> LedgerPart {
        LedgerPart {
            shape,
            cells: vec![EMPTY; shape.senders as usize * shape.locals as usize],
            holes: Holes::for_cells(shape.senders as usize * shape.locals as usize),
            rows: vec![Row::default(); shape.locals as usize],
            rooms: Rooms::default(),
            shared,
            unknown_messages: 0,
        }
    }

    /// The global number of one of this worker's bots.
    pub fn global(&self, local: u32) -> u32 {
        self.shape.first + local * self.shape.step
    }

    /// A bot behaves badly, and is judged separately.
    pub fn set_apart(&mut self, local: u32) {
        self.rows[local as usize].is_excluded = true;
    }

    /// Takes the next number of a sender, for a message about to be encoded. `None`: it has no more.
    pub fn next_seq(&mut self, local: u32) -> Option<u32> {
        let departures = &mut self.rows[local as usize].departures;
        let seq = departures.numbers();
        if seq >= SEQ_END {
            return None;
        }
        departures.push(&self.shared, self.shape.margin_ns);
        Some(seq)
    }

    /// The last number was taken for a message that was refused before a byte of it could leave.
    pub fn take_back(&mut self, local: u32) {
        self.rows[local as usize].departures.pop();
    }

    /// The kernel took a message at `at_ns`, read just before it was handed over.
    pub fn departed(&mut self, local: u32, seq: u32, at_ns: u64) {
        self.rows[local as usize].departures.departed(seq, at_ns);
    }

    /// Counts together the messages of a sender that no change of a membership can need one by one. Taking numbers does so
    /// by itself as they become many.
    pub fn fold(&mut self, local: u32) {
        self.rows[local as usize].departures.fold(&self.shared, self.shape.margin_ns, 1);
    }

    /// A bot's request to be a member leaves now. Whatever membership it had has ended.
    pub fn asked(&mut self, local: u32, at_ns: u64) {
        self.left(local, at_ns);
        self.shared.note(at_ns);
        let row = &mut self.rows[local as usize];
        row.asked(at_ns);
        row.missed_before = row.missed;
        (row.is_behind, row.was_behind, row.behind_until_ns) = (false, false, 0);
        row.told = None;
    }

    /// The server said that it is a member.
    pub fn joined(&mut self, local: u32, at_ns: u64) {
        if let Some(span) = self.rows[local as usize].spans.last_mut() {
            self.shared.note(at_ns);
            span.joined_ns = span.joined_ns.min(at_ns);
        }
    }

    /// It is about to leave, or its connection has ended, at `at_ns`.
    pub fn leaving(&mut self, local: u32, at_ns: u64) {
        if let Some(span) = self.rows[local as usize].spans.last_mut() {
            self.shared.note(at_ns);
            span.leaving_ns = span.leaving_ns.min(at_ns);
        }
    }

    /// Its connection has ended.
    pub fn left(&mut self, local: u32, at_ns: u64) {
        self.leaving(local, at_ns);
        if let Some(span) = self.rows[local as usize].spans.last_mut() {
            span.left_ns = span.left_ns.min(at_ns);
        }
    }

    /// The server answered behind everything that it had for this bot, after all senders had fallen silent.
    ///
    /// Its membership counts to the end: nothing that was owed can still be on its way.
    pub fn caught_up(&mut self, local: u32) {
        self.rows[local as usize].is_caught_up = true;
    }

    /// The server said that so many more lines were dropped for this bot.
    ///
    /// False, and nothing is entered: more than all senders together can ever have sent, so it is no count of lines.
    pub fn missed(&mut self, local: u32, count: u64) -> bool {
        let most = self.owed_most();
        let missed = &mut self.rows[local as usize].missed;
        let is_believed = missed.checked_add(count).is_some_and(|sum| sum <= most);
        if is_believed {
            *missed += count;
            let row = &mut self.rows[local as usize];
            row.missed_unread += if row.was_behind { count } else { 0 };
        }
        is_believed
    }

    /// A bot reads at `at_ns`, this long after its worker learnt that there is something to read: anything that the
    /// server has just dropped for it may have been dropped because nobody read.
    pub fn read_after(&mut self, local: u32, at_ns: u64, lag_ns: u64) {
        let row = &mut self.rows[local as usize];
        row.is_behind = lag_ns > READ_LATE_NS;
        if row.is_behind {
            row.behind_until_ns = at_ns.saturating_add(NOTICE_WITHIN_NS);
        }
        row.was_behind = at_ns <= row.behind_until_ns;
    }

    /// The worker stops reading, this long after it learnt that there is something to read: if it is that late, it may
    /// not have got to some of its bots, whose state is unknown.
    pub fn reads_no_more(&mut self, lag_ns: u64) {
        if lag_ns > READ_LATE_NS {
            self.rows.iter_mut().chain(self.rooms.rows()).for_each(|row| row.is_behind = true);
        }
    }

    /// The server told its own books of this bot's present connection.
    ///
    /// False, and nothing is entered: a figure in it is more than all senders together can ever have sent.
    pub fn told(&mut self, local: u32, told: ServerReport) -> bool {
        let most = self.owed_most();
        let figures = [told.owed, told.delivered, told.dropped, told.in_flight];
        let is_believed = figures.iter().all(|&figure| figure <= most);
        if is_believed {
            self.rows[local as usize].told = Some(told);
        }
        is_believed
    }

    /// No receiver can be owed more: the numbers of all senders.
    fn owed_most(&self) -> u64 {
        u64::from(self.shape.senders) * u64::from(SEQ_END)
    }

    /// Opens the book for a block of messages that one bot read at `at_ns`.
    ///
    /// Of a bot that is judged separately no latency is the hold's: the figures that are judged are those of the others.
    pub fn deliveries<'a>(
        &'a mut self,
        local: u32,
        at_ns: u64,
        hold: (u64, u64),
        latency: (&'a mut Distribution, &'a mut Distribution),
    ) -> Deliveries<'a> {
        let hold_ns = if self.rows[local as usize].is_excluded { (0, 0) } else { hold };
        Deliveries {
            part: self,
            local,
            at_ns,
            hold_ns,
            in_hold: latency.0,
            otherwise: latency.1,
            new: 0,
            sum_ns: 0,
            max_ns: 0,
            late: 0,
        }
    }
}

/// The book, open at one receiver, for one block of messages.
pub struct Deliveries<'a> {
    part: &'a mut LedgerPart,
    local: u32,
    at_ns: u64,
    /// messages planned from the first instant to before the second are recorded as the hold's
    hold_ns: (u64, u64),
    in_hold: &'a mut Distribution,
    otherwise: &'a mut Distribution,
    new: u64,
    sum_ns: u64,
    max_ns: u64,
    late: u64,
}

impl Deliveries<'_> {
    /// Books one message by its payload.
    #[inline]
    pub fn received(&mut self, sender: u32, seq: u32, planned_ns: u64) {
        let ahead_ns = AHEAD_MOST_NS.saturating_add(self.part.shape.clock_bound_ns);
        let is_ahead = planned_ns > self.at_ns.saturating_add(ahead_ns);
        if sender >= self.part.shape.senders || seq >= SEQ_END || is_ahead {
            self.part.unknown_messages += 1;
            return;
        }
        let index = sender as usize * self.part.shape.locals as usize + self.local as usize;
        let arrival = cell::enter(&mut self.part.cells, index, seq, &mut self.part.holes);
        if arrival != Arrival::InOrder && self.part.rows[self.local as usize].came(arrival) {
            return;
        }
        let latency_ns = self.at_ns.saturating_sub(planned_ns);
        self.new += 1;
        self.sum_ns += latency_ns;
        self.max_ns = self.max_ns.max(latency_ns);
        self.late += u64::from(latency_ns > self.part.shape.patience_ns);
        let is_in_hold = (self.hold_ns.0..self.hold_ns.1).contains(&planned_ns);
        let latency = if is_in_hold { &mut *self.in_hold } else { &mut *self.otherwise };
        latency.record(latency_ns);
    }

    /// How many messages of this block were new.
    pub fn new_count(&self) -> u64 {
        self.new
    }
}

impl Drop for Deliveries<'_> {
    fn drop(&mut self) {
        let row = &mut self.part.rows[self.local as usize];
        row.late += self.late;
        row.latency_sum_ns += self.sum_ns;
        row.latency_count += self.new;
        row.latency_max_ns = row.latency_max_ns.max(self.max_ns);
    }
}
