//! The bots' interface to the delivery ledger: which deliveries a broadcast owes, and which arrived.
//!
//! Here bots are numbered within the worker; the ledger numbers them within the trial.

use std::sync::atomic::Ordering::Relaxed;

use drivers::Driver;
use measure::LedgerPart;
use measure::ledger::{Deliveries, Heard, Reading};

use crate::context::BotContext;
use crate::ids::ConnectionId;

impl<D: Driver> BotContext<'_, D> {
    /// The worker's part of the ledger. Only bots that asked for one in `Bots::ledger` may call this.
    pub fn ledger(&mut self) -> &mut LedgerPart {
        self.state.ledger.as_mut().expect("these bots asked for a ledger")
    }

    /// Opens the ledger for a block of messages that one bot read at `at_ns`.
    pub fn deliveries(&mut self, bot: u32, at_ns: u64) -> Deliveries<'_> {
        let state = &mut *self.state;
        let hold_ns = (state.shared.timeline.hold_ns(), state.shared.timeline.drain_ns());
        let ledger = state.ledger.as_mut().expect("these bots asked for a ledger");
        ledger.read_after(bot, at_ns, state.read_lag_ns);
        ledger.deliveries(bot, at_ns, hold_ns, state.recorder.delivery_latencies())
    }

    /// A bot says that it has received message `seq` of the bot number `from`, of the whole trial, in a room.
    pub fn heard(&mut self, bot: u32, room: &str, from: u64, seq: u64) -> Heard {
        let state = &mut *self.state;
        let hold_ns = (state.shared.timeline.hold_ns(), state.shared.timeline.drain_ns());
        let (at_ns, lag_ns) = (state.now_ns, state.read_lag_ns);
        let reading = Reading { at_ns, lag_ns, hold_ns, latencies: state.recorder.delivery_latencies() };
        let ledger = state.ledger.as_mut().expect("these bots asked for a ledger");
        ledger.heard(bot, room, (from, seq), reading)
    }

    /// One more bot of the trial has reached an agreed point, below `MEETING_POINTS`.
    pub fn meet(&mut self, point: usize) {
        self.state.shared.met[point].fetch_add(1, Relaxed);
    }

    /// How many bots have reached that point, over all workers; those of other machines count a little later.
    pub fn met(&self, point: usize) -> u64 {
        let shared = &self.state.shared;
        shared.met[point].load(Relaxed) + shared.met_elsewhere[point].load(Relaxed)
    }

    /// Ends the sending side of a connection, and nothing else: the other side may go on.
    pub fn shut_sending(&mut self, connection: ConnectionId) {
        self.state.shut_sending(connection);
    }
}
