//! The bots' context at the delivery ledger: what a broadcast owes, and what came of it.
//!
//! Bots are named by their number within the worker here; the ledger knows the numbers of the whole crowd.

use std::sync::atomic::Ordering::Relaxed;

use drivers::Driver;
use measure::LedgerPart;
use measure::Measure;
use measure::ledger::Deliveries;

use crate::context::{BotContext, ConnectionId};

impl<D: Driver> BotContext<'_, D> {
    /// The worker's part of the ledger. Only bots that asked for one in `Bots::ledger` may call this.
    pub fn ledger(&mut self) -> &mut LedgerPart {
        self.core.ledger.as_mut().expect("these bots asked for a ledger")
    }

    /// Opens the ledger for a block of messages that one bot read at `at_ns`.
    pub fn deliveries(&mut self, bot: u32, at_ns: u64) -> Deliveries<'_> {
        let core = &mut *self.core;
        let hold_ns = (core.shared.timeline.hold_ns(), core.shared.timeline.drain_ns());
        let ledger = core.ledger.as_mut().expect("these bots asked for a ledger");
        ledger.deliveries(bot, at_ns, hold_ns, core.interval.distributions_mut(Measure::Delivery))
    }

    /// One more bot of the trial has come to an agreed point, below `MEETING_POINTS`.
    pub fn meet(&mut self, point: usize) {
        self.core.shared.met[point].fetch_add(1, Relaxed);
    }

    /// How many bots have come to that point, over all workers.
    pub fn met(&self, point: usize) -> u64 {
        self.core.shared.met[point].load(Relaxed)
    }

    /// Ends the sending side of a connection, and nothing else: the other side may go on.
    pub fn shut_sending(&mut self, connection: ConnectionId) {
        self.core.shut_sending(connection);
    }
}
