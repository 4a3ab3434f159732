//! One request from when it is taken to the last of its answer: made at once, sent chunk by chunk.
//!
//! The page is made whole when its first piece is due, so that it speaks of one tick. Its planted cost is paid in equal
//! shares, one before each chunk.

use std::sync::Arc;

use super::house::Arrival;
use super::labour::Labour;
use super::line::{Gone, Line};
use super::porch::Porch;
use super::services::{self, Ask, CHUNK_BYTES};
use super::world::World;
use crate::clock;
use crate::http::response;

pub(super) struct Answer {
    pub(super) line: Arc<Line>,
    ask: Ask,
    /// Head and body; empty until the first piece is due.
    bytes: Vec<u8>,
    sent: usize,
    cost_per_chunk_ns: u64,
    /// The request still counts as one that is in the house.
    inside: bool,
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    GoesOn,
    /// It was the last; true when the network has something to read on that line.
    Complete(bool),
    /// The client is gone.
    Dropped,
}

impl Answer {
    pub(super) fn to(arrival: Arrival) -> Answer {
        let Arrival { line, ask, .. } = arrival;
        Answer { line, ask, bytes: Vec::new(), sent: 0, cost_per_chunk_ns: 0, inside: true }
    }

    /// Does one piece.
    pub(super) fn piece(
        &mut self,
        world: &mut World,
        labour: &mut Labour,
        cost_scale: f64,
        porch: &Porch,
    ) -> Progress {
        if self.bytes.is_empty() {
            self.make(world, cost_scale);
        }
        labour.work(self.cost_per_chunk_ns);
        let end = (self.sent + CHUNK_BYTES).min(self.bytes.len());
        let chunk = &self.bytes[self.sent..end];
        self.sent = end;
        let put = if end == self.bytes.len() {
            // Before these bytes are out: whoever has them may ask again at once.
            self.inside = false;
            porch.leave();
            self.line.put_last(chunk, !self.ask.keep_alive, clock::now_ns()).map(Progress::Complete)
        } else {
            self.line.put(chunk, clock::now_ns()).map(|()| Progress::GoesOn)
        };
        put.unwrap_or_else(|Gone| {
            if std::mem::take(&mut self.inside) {
                porch.leave();
            }
            Progress::Dropped
        })
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
            page.status,
            page.content_type,
            self.ask.keep_alive,
            body.len(),
        );
        if !self.ask.head_only {
            self.bytes.extend_from_slice(&body);
        }
        let chunks = self.bytes.len().div_ceil(CHUNK_BYTES) as u64;
        self.cost_per_chunk_ns = (page.cost_ns as f64 * cost_scale) as u64 / chunks;
    }
}
