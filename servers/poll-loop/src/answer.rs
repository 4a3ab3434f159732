//! One request from admission to the last of its answer: built at once, sent chunk by chunk.
//!
//! The page is built as a whole when its first piece is due, so that it describes one tick. Its planted cost is paid in
//! equal shares, one before each chunk.

use std::sync::Arc;

use super::admission::Admission;
use super::busy_work::BusyWork;
use super::connection::{Connection, Gone};
use super::services::{self, Ask, CHUNK_BYTES};
use super::shared::Arrival;
use super::world::World;
use servers_shared::clock;
use servers_shared::http::response;
use servers_shared::stream::Peer;

pub(super) struct Answer {
    pub(super) connection: Arc<Connection>,
    ask: Ask,
    /// Head and body; empty until the first piece is due.
    bytes: Vec<u8>,
    sent: usize,
    cost_per_chunk_ns: u64,
    /// From where on nothing was sent yet, though it is done: by a planted fault.
    kept_from: Option<usize>,
    /// The request still counts as admitted.
    inside: bool,
    pub(super) flaws: Flaws,
}

/// Planted faults of one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flaws {
    /// It is never sent, and counted as if it were.
    pub(super) lost: bool,
    /// It is sent twice.
    pub(super) twice: bool,
    /// It has status 500.
    pub(super) wrong: bool,
}

/// How answers go out. Always `Now`, except for injected faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Now,
    /// Whole, and later: `send_rest`.
    Later,
    Never,
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    GoesOn,
    /// It was the last; true when the network has something to read on that line.
    Complete(bool),
    /// It is whole and is sent later; the line stays the loop's until then.
    HeldBack,
    /// The client has disconnected.
    Dropped,
}

impl Answer {
    pub(super) fn to(arrival: Arrival) -> Answer {
        let Arrival { connection, ask, .. } = arrival;
        Answer {
            connection,
            ask,
            bytes: Vec::new(),
            sent: 0,
            cost_per_chunk_ns: 0,
            kept_from: None,
            inside: true,
            flaws: Flaws::default(),
        }
    }

    /// Whether the client is still there. A request without one leaves the admission, and is not taken.
    pub(super) fn peer(&mut self, admission: &Admission) -> Peer {
        let peer = self.connection.peer();
        if peer == Peer::Gone && std::mem::take(&mut self.inside) {
            admission.leave();
        }
        peer
    }

    /// Does one piece.
    pub(super) fn piece(
        &mut self,
        world: &mut World,
        busy_work: &mut BusyWork,
        cost_scale: f64,
        admission: &Admission,
        delivery: Delivery,
    ) -> Progress {
        if self.bytes.is_empty() {
            self.make(world, cost_scale);
        }
        busy_work.work(self.cost_per_chunk_ns);
        let end = (self.sent + CHUNK_BYTES).min(self.bytes.len());
        let begin = std::mem::replace(&mut self.sent, end);
        if delivery != Delivery::Now || self.flaws.lost {
            return self.piece_kept(begin, admission, delivery);
        }
        let chunk = &self.bytes[self.kept_from.take().unwrap_or(begin)..end];
        let put = if end == self.bytes.len() {
            // Before these bytes are sent: a client that has them may send its next request at once.
            self.inside = false;
            admission.leave();
            self.connection.put_last(chunk, !self.ask.keep_alive, clock::now_ns()).map(Progress::Complete)
        } else {
            self.connection.put(chunk, clock::now_ns()).map(|()| Progress::GoesOn)
        };
        put.unwrap_or_else(|Gone| {
            if std::mem::take(&mut self.inside) {
                admission.leave();
            }
            Progress::Dropped
        })
    }

    /// A piece that is done and not sent, by a planted fault.
    fn piece_kept(&mut self, begin: usize, admission: &Admission, delivery: Delivery) -> Progress {
        self.kept_from.get_or_insert(begin);
        if self.sent < self.bytes.len() {
            return Progress::GoesOn;
        }
        self.inside = false;
        admission.leave();
        if delivery == Delivery::Later && !self.flaws.lost {
            return Progress::HeldBack;
        }
        // Nothing is sent, and the connection is the network's again.
        let put = self.connection.put_last(&[], false, clock::now_ns());
        put.map_or(Progress::Dropped, Progress::Complete)
    }

    /// Sends what was held back; true when the network has something to read on that line.
    pub(super) fn send_rest(&self) -> bool {
        let kept = &self.bytes[self.kept_from.unwrap_or(0)..];
        self.connection.put_last(kept, !self.ask.keep_alive, clock::now_ns()).unwrap_or(false)
    }

    /// The answer ends its connection, if its head is not made yet.
    pub(super) fn end_the_line(&mut self) {
        self.ask.keep_alive &= !self.bytes.is_empty();
    }

    fn make(&mut self, world: &mut World, cost_scale: f64) {
        let mut body = Vec::new();
        let page = services::make(self.ask.what, world, &mut body);
        response::write_head(
            &mut self.bytes,
            if self.flaws.wrong { 500 } else { page.status },
            page.content_type,
            self.ask.keep_alive,
            body.len(),
        );
        if !self.ask.head_only {
            self.bytes.extend_from_slice(&body);
        }
        if self.flaws.twice {
            self.bytes.extend_from_within(..);
        }
        let chunks = self.bytes.len().div_ceil(CHUNK_BYTES) as u64;
        self.cost_per_chunk_ns = (page.cost_ns as f64 * cost_scale) as u64 / chunks;
    }
}
