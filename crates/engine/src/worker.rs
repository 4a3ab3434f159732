//! The worker: one thread's bots, synchronous, with the clock as an argument.
//!
//! THE hot path. Due items are served before any connection; every message is flushed in the turn that encoded it and
//! stamped just before; a full second is handed over and an empty one taken. It never sleeps and never polls a socket
//! itself: `thread` does, and in tests a simulated network in virtual time.

use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use drivers::{Address, Closed, Driver, OpenError, ReadBuffer};
use measure::trial::kind;
use measure::{Interval, LedgerPart, Phase};
use plan::{Ramp, WorkerPlan};

use crate::bots::Bots;
use crate::clock::{Clock, SECOND_NS};
use crate::context::BotContext;
use crate::ids::ConnectionId;
use crate::pacer::Item;
use crate::state::{ConnectionState, Opening, Shared, WorkerState};

/// The timeline is looked at this often at least.
const LOOK_NS: u64 = 10_000_000;
/// After the hold, a worker that is late may take this long to send what was planned within it.
const BACKLOG_GRACE_NS: u64 = 1_000_000_000;
/// At the stop, a worker that is late may take this long to tell what it never sent.
const TELL_UNSENT_NS: u64 = 1_000_000_000;
/// Before the stop, for closing connections.
const CLOSE_NS: u64 = 3_000_000_000;
/// So many due items are served when the timer has fired.
const DUE_BATCH: usize = 64;
/// How many are served before a connection's turn. An overloaded worker always has something due; if each connection
/// waited for 64 sends, 40,000 handshakes would wait for half a minute and time out, as they did.
const DUE_BEFORE_CONNECTION: usize = 2;
/// A stall: no connection receives anything for at least this long while at least this many answers are owed. A server that is
/// only slow still answers one request after another.
const STALL_NS_MIN: u64 = 20_000_000;
const STALL_OWED_MIN: u64 = 4;
/// How often the workers tell each other that they heard something.
const HEARD_EVERY_NS: u64 = 5_000_000;
/// Time between two looks at the clock beyond this is this worker's own absence.
const ABSENT_NS_MIN: u64 = LOOK_NS + 5_000_000;
/// The clock is read again after this many messages of one read: a script may take long for each.
const SERVED_BEFORE_LOOK: u32 = 16;

/// Where a worker's full seconds go and empty ones come from.
pub trait Handover {
    /// Takes a full second and leaves another in its place, to be reset; never waits.
    fn swap(&mut self, second: &mut Box<Interval>);

    /// Takes the worker's part of the delivery ledger, at the end.
    fn ledger(&mut self, _part: LedgerPart) {}
}

/// One thread's bots.
pub struct Worker<B: Bots> {
    bots: B,
    state: WorkerState<B::Driver>,
    buffer: ReadBuffer,
    handover: Box<dyn Handover>,
    ramp: Ramp,
    first_unit: u64,
    unit_step: u64,
    unit_count: u64,
    joined: u64,
    /// of these, as the phase controller knows
    told_joined: u64,
    interval_ends_ns: u64,
    interval_index: u32,
    /// the bots know that nothing further is planned
    is_draining: bool,
    /// bots may wait for what is still on its way so long after the hold; then their connections are closed
    drain_ns_max: u64,
    has_drained: bool,
    /// time not asleep within this interval, as the thread reports it
    busy_ns: u64,
    /// start of the turn that has not been reported yet, ns; `u64::MAX`: no thread reports its turns
    awake_from_ns: u64,
    /// the part of that turn that is counted already, in the intervals that ended during it
    counted_ahead_ns: u64,
    /// due items served since the trial began
    served: u64,
    /// when the thread last learnt which connections have something to read; `u64::MAX`: not known
    readable_since_ns: u64,
    /// since when nothing has come although answers were owed; time of our own absence is left out
    quiet_since_ns: u64,
    /// when the others were last told that something came
    told_heard_ns: u64,
}

impl<B: Bots> Worker<B> {
    /// A worker at the start of a trial; `settings` are those of `plan`.
    pub fn new(
        settings: &B::Settings,
        plan: &WorkerPlan,
        addresses: Vec<Address>,
        shared: Shared,
        handover: Box<dyn Handover>,
    ) -> Self {
        let names = plan.networks.named(B::metric_names(settings));
        let interval = Box::new(Interval::new(&names));
        let mut state = WorkerState::new(interval, plan, addresses, shared);
        state.ledger = B::ledger(settings, plan)
            .map(|shape| Box::new(LedgerPart::new(shape, state.shared.shared_ledger.clone())));
        state.recorder.begin_interval(0, state.requests.open());
        Worker {
            bots: B::new(settings, plan),
            state,
            buffer: ReadBuffer::new(),
            handover,
            ramp: plan.ramp,
            first_unit: plan.first_unit,
            unit_step: plan.workers as u64,
            unit_count: plan.units,
            joined: 0,
            told_joined: 0,
            interval_ends_ns: SECOND_NS,
            interval_index: 0,
            is_draining: false,
            drain_ns_max: plan.drain_ns,
            has_drained: false,
            busy_ns: 0,
            awake_from_ns: u64::MAX,
            counted_ahead_ns: 0,
            served: 0,
            readable_since_ns: u64::MAX,
            quiet_since_ns: 0,
            told_heard_ns: 0,
        }
    }

    /// Serves what is due, at most a batch of it.
    pub fn due(&mut self, clock: &impl Clock) {
        self.serve_due(DUE_BATCH, clock);
    }

    fn serve_due(&mut self, batch: usize, clock: &impl Clock) {
        self.look(clock);
        for _ in 0..batch {
            if !self.join_due() {
                let Some((planned_ns, item)) = self.state.pacer.pop_due(self.state.now_ns) else { break };
                self.serve(planned_ns, item);
            }
            self.served += 1;
            self.settle(clock);
        }
        self.bots.turn(&mut BotContext { state: &mut self.state });
        self.tell_joined();
        if !self.state.dirty.is_empty() || !self.state.ended.is_empty() {
            self.settle(clock);
        }
        self.drain_when_due(clock);
    }

    /// When `due` wants to be called next, ns since the start of the trial.
    pub fn next_due_ns(&self) -> u64 {
        let ramp_ns = if self.joined < self.unit_count && !self.has_drained {
            self.ramp_instant_ns(self.joined)
        } else {
            u64::MAX
        };
        let pacer_ns = self.state.pacer.next_ns().unwrap_or(u64::MAX);
        ramp_ns.min(pacer_ns).min(self.interval_ends_ns).min(self.state.now_ns + LOOK_NS)
    }

    /// A connection can be used, or never will be.
    pub fn opened(
        &mut self,
        connection: ConnectionId,
        outcome: Result<B::Driver, OpenError>,
        clock: &impl Clock,
    ) {
        self.look(clock);
        match outcome {
            Ok(driver) => {
                if let Some(bot) = self.state.connection_opened(connection, driver) {
                    self.bots.opened(connection, bot, &mut BotContext { state: &mut self.state });
                }
            }
            Err(error) => self.end(connection, Closed::NotOpened(error)),
        }
        self.settle(clock);
    }

    /// Reads and processes until the connection has nothing more. Ready: it has ended.
    pub fn poll_connection(
        &mut self,
        id: ConnectionId,
        cx: &mut Context<'_>,
        clock: &impl Clock,
    ) -> Poll<()> {
        loop {
            self.serve_due(DUE_BEFORE_CONNECTION, clock);
            let now_ns = self.state.now_ns;
            // When the trial is over, a worker flooded with messages stops in the middle of them. It has always drained
            // by then: the stop is seconds after the drain.
            if self.has_drained && self.is_time_up(now_ns) {
                return Poll::Pending;
            }
            let Some(connection) = self.state.connections.get_mut(id) else { return Poll::Ready(()) };
            if connection.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                connection.waker = Some(cx.waker().clone());
            }
            let (ConnectionState::Open(driver) | ConnectionState::Closing(driver)) = &mut connection.state
            else {
                return Poll::Ready(());
            };
            if connection.reads_from_ns > now_ns {
                // It is deliberately not reading now; its pending output still goes out, also what only waits for an
                // emulated network.
                self.state.flush(id);
                self.settle(clock);
                return Poll::Pending;
            }
            self.buffer.set_limit(connection.read_bytes_max);
            let read = driver.poll_read(cx, &mut self.buffer);
            let has_unsent = driver.unsent_bytes() > 0;
            match read {
                Poll::Pending => {
                    if has_unsent {
                        self.state.flush(id);
                        self.settle(clock);
                        if self.state.connections.get_mut(id).is_none() {
                            return Poll::Ready(());
                        }
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Ok(bytes)) => {
                    self.state.recorder.bytes_received(bytes as u64);
                    self.state.pause_after_read(id);
                    self.receive(id, bytes, clock);
                }
                Poll::Ready(Err(why)) => {
                    if has_unsent {
                        self.state.flush(id);
                    }
                    self.end(id, why);
                    self.settle(clock);
                    return Poll::Ready(());
                }
            }
        }
    }

    fn receive(&mut self, id: ConnectionId, bytes: usize, clock: &impl Clock) {
        let at_ns = clock.now_ns();
        self.state.now_ns = at_ns;
        self.state.read_lag_ns = at_ns.saturating_sub(self.readable_since_ns);
        if bytes > 0 {
            let phase = self.state.phase(at_ns);
            self.state.recorder.receive_lag(phase, self.state.read_lag_ns);
            self.heard(at_ns, phase);
        }
        let mut heard = 0_u32;
        while let Some(connection) = self.state.connections.get_mut(id) {
            let (bot, driver, is_open) = match &mut connection.state {
                ConnectionState::Open(driver) => (connection.bot, driver, true),
                ConnectionState::Closing(driver) => (connection.bot, driver, false),
                ConnectionState::Opening | ConnectionState::Free => break,
            };
            let broken = {
                let received = driver.next(&mut self.buffer);
                if driver.unsent_bytes() > 0 {
                    connection.mark_dirty(id, &mut self.state.dirty);
                }
                match received {
                    None => break,
                    Some(Ok(received)) => {
                        if is_open {
                            let ctx = &mut BotContext { state: &mut self.state };
                            self.bots.received(id, bot, received, at_ns, ctx);
                        }
                        heard += 1;
                        let looks = heard.is_multiple_of(SERVED_BEFORE_LOOK);
                        if looks && clock.now_ns() >= self.state.shared.timeline.stop_ns() {
                            break;
                        }
                        continue;
                    }
                    Some(Err(broken)) => broken,
                }
            };
            self.state.keep_error_excerpt(self.buffer.rest());
            self.end(id, Closed::Broken(broken));
            self.state.keep_error_excerpt(&[]);
            break;
        }
        self.settle(clock);
    }

    /// Bytes came: records a stall that they ended. Of several workers the first that hears does, for all. Behind an emulated
    /// network silence is no sign of a stall: what is owed may be under way.
    fn heard(&mut self, at_ns: u64, phase: Phase) {
        let readable_ns = at_ns.saturating_sub(self.state.read_lag_ns);
        let heard = &self.state.shared.heard_ns;
        let is_long = readable_ns.saturating_sub(self.quiet_since_ns) >= STALL_NS_MIN;
        if is_long && self.state.networks.is_empty() {
            let quiet_ns = readable_ns.saturating_sub(self.quiet_since_ns.max(heard.load(Relaxed)));
            if quiet_ns >= STALL_NS_MIN && self.state.requests.open_count() >= STALL_OWED_MIN {
                self.state.recorder.stall(phase, quiet_ns);
            }
        }
        self.quiet_since_ns = at_ns;
        // Seldom, since all workers write it.
        if at_ns >= self.told_heard_ns + HEARD_EVERY_NS {
            self.told_heard_ns = at_ns;
            heard.fetch_max(at_ns, Relaxed);
        }
    }

    /// Connections whose connect has begun and that wait for the thread.
    pub(crate) fn take_openings(&mut self) -> std::vec::Drain<'_, Opening<B::Driver>> {
        self.state.opening.drain(..)
    }

    /// True while this connection is awaited; remembers which task to wake when it opens.
    pub(crate) fn awaits(&mut self, id: ConnectionId, cx: &Context<'_>) -> bool {
        match self.state.connections.get_mut(id) {
            Some(connection) if matches!(connection.state, ConnectionState::Opening) => {
                connection.waker = Some(cx.waker().clone());
                true
            }
            _ => false,
        }
    }

    /// The last reading of the clock, ns since the start of the trial.
    pub fn now_ns(&self) -> u64 {
        self.state.now_ns
    }

    /// Due items served since the trial began: how densely the pacer is used.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Time the thread was not asleep since the last call, and when this is, ns since the start of the trial.
    pub fn add_busy(&mut self, busy_ns: u64, now_ns: u64) {
        self.busy_ns += busy_ns.saturating_sub(std::mem::take(&mut self.counted_ahead_ns));
        self.awake_from_ns = now_ns;
    }

    /// At this instant, ns since the start of the trial, the thread learnt which connections have something to read.
    pub fn readable_since(&mut self, at_ns: u64) {
        self.readable_since_ns = at_ns;
    }

    /// True when the trial is over for this worker: it drained and nothing is open, or its time is up.
    pub fn is_done(&self) -> bool {
        self.has_drained && (self.is_time_up(self.state.now_ns) || self.state.connections.is_empty())
    }

    fn is_time_up(&self, now_ns: u64) -> bool {
        now_ns >= self.state.shared.timeline.stop_ns()
    }

    /// Hands over the last, incomplete second.
    pub fn finish(mut self, clock: &impl Clock) {
        self.look(clock);
        self.hand_over_interval();
        if let Some(part) = self.state.ledger.take().filter(|part| part.is_used()) {
            self.handover.ledger(*part);
        }
    }

    /// Reads the clock and hands over intervals that are full.
    fn look(&mut self, clock: &impl Clock) {
        let before_ns = std::mem::replace(&mut self.state.now_ns, clock.now_ns());
        let since_ns = self.state.now_ns.saturating_sub(before_ns);
        if self.state.requests.open_count() < STALL_OWED_MIN {
            self.quiet_since_ns = self.state.now_ns;
        } else if since_ns > ABSENT_NS_MIN {
            self.quiet_since_ns = self.state.now_ns.min(self.quiet_since_ns + since_ns);
        }
        while self.state.now_ns >= self.interval_ends_ns {
            self.hand_over_interval();
        }
    }

    /// Ends the connections once nothing is left that was planned before the end of the hold.
    fn drain_when_due(&mut self, clock: &impl Clock) {
        // The hold ends on a whole second: hand over its last interval first, or it would include the closes.
        self.look(clock);
        let drain_ns = self.state.shared.timeline.drain_ns();
        if self.has_drained || self.state.now_ns < drain_ns {
            return;
        }
        let has_backlog = self.state.pacer.next_ns().is_some_and(|next_ns| next_ns < drain_ns);
        if has_backlog && self.state.now_ns < drain_ns.saturating_add(BACKLOG_GRACE_NS) {
            return;
        }
        if !self.is_draining {
            self.is_draining = true;
            self.bots.drain(&mut BotContext { state: &mut self.state });
            self.settle(clock);
        }
        let timeline = &self.state.shared.timeline;
        // A subject that shuts down and restarts takes extra time, which the stop allows for.
        let allowance_ns = self.state.networks.allowance_ns;
        let drained_by_ns = match timeline.subject_stops_ns() {
            u64::MAX => drain_ns.saturating_add(self.drain_ns_max),
            _ => timeline.stop_ns().saturating_sub(CLOSE_NS + allowance_ns),
        };
        let is_late = self.state.now_ns >= drained_by_ns.min(timeline.stop_ns());
        if !is_late && !self.bots.has_drained(&mut BotContext { state: &mut self.state }) {
            return;
        }
        if let Some(ledger) = &mut self.state.ledger {
            ledger.reads_no_more(self.state.now_ns.saturating_sub(self.readable_since_ns));
        }
        self.bots.leave(&mut BotContext { state: &mut self.state });
        self.state.close_all();
        // What an overloaded worker still has to send was planned but will never be sent: each such message finds its
        // connection closed and is recorded as not sent. For scripts that may take too long.
        let tell_until_ns = (self.state.now_ns + TELL_UNSENT_NS).max(self.state.shared.timeline.stop_ns());
        let (mut served, mut left, mut is_over) = (0, 0_u64, false);
        while let Some((planned_ns, item)) = self.state.pacer.pop_due(drain_ns.saturating_sub(1)) {
            is_over = is_over || served % SERVED_BEFORE_LOOK == 0 && clock.now_ns() >= tell_until_ns;
            if is_over {
                left += u64::from(matches!(item, Item::Bot { .. }));
            } else {
                self.serve(planned_ns, item);
                served += 1;
            }
        }
        if left > 0 {
            self.state.recorder.mark(kind::GENERATOR_BEHIND, left.to_string());
        }
        self.state.end_kept();
        self.has_drained = true;
        self.settle(clock);
    }

    fn hand_over_interval(&mut self) {
        let end_ns = self.interval_ends_ns.min(self.state.now_ns);
        // A turn may last longer than an interval.
        let ahead_ns = end_ns.saturating_sub(self.awake_from_ns);
        self.awake_from_ns = self.awake_from_ns.max(end_ns);
        self.counted_ahead_ns += ahead_ns;
        let busy_ns = std::mem::take(&mut self.busy_ns) + ahead_ns;
        // Phases begin with whole seconds, so the whole interval is of one.
        let phase = self.state.phase(end_ns.saturating_sub(1));
        self.state.networks.record(&mut self.state.recorder, phase);
        let open = self.state.requests.open();
        self.handover.swap(self.state.recorder.end_interval(end_ns, busy_ns, open));
        self.interval_index += 1;
        self.interval_ends_ns += SECOND_NS;
        self.state.recorder.begin_interval(self.interval_index, open);
    }

    fn ramp_instant_ns(&self, unit: u64) -> u64 {
        let global = self.first_unit + unit * self.unit_step;
        match self.ramp {
            Ramp::Every(gap_ns) => global * gap_ns,
            Ramp::PerSecond(rate) => (global as f64 * 1e9 / rate) as u64,
            Ramp::AtOnce => 0,
        }
    }

    fn join_due(&mut self) -> bool {
        if self.joined >= self.unit_count || self.has_drained {
            return false;
        }
        let planned_ns = self.ramp_instant_ns(self.joined);
        // The ramp yields to earlier due items, so a steep ramp does not make the players late.
        if planned_ns > self.state.now_ns || self.state.pacer.next_ns().is_some_and(|next| next < planned_ns)
        {
            return false;
        }
        let unit = self.joined as u32;
        self.joined += 1;
        self.bots.join(unit, planned_ns, &mut BotContext { state: &mut self.state });
        true
    }

    fn tell_joined(&mut self) {
        let joined = self.joined.saturating_sub(self.bots.pending());
        if joined != self.told_joined {
            self.told_joined = joined;
            self.state.shared.progress.joined.store(joined, Relaxed);
        }
    }

    fn serve(&mut self, planned_ns: u64, item: Item) {
        match item {
            Item::Bot { bot, what } => {
                if planned_ns < self.state.shared.timeline.drain_ns() || self.bots.go_on_to_their_end() {
                    self.bots.due(bot, what, planned_ns, &mut BotContext { state: &mut self.state });
                }
            }
            Item::Read(connection) => self.state.read_again(connection),
            Item::OpenDeadline(connection) => self.state.open_deadline_passed(connection),
            Item::CloseDeadline(connection) => self.state.close_deadline_passed(connection),
        }
    }

    fn end(&mut self, id: ConnectionId, why: Closed) {
        if let Some(bot) = self.state.bot_of_open(id) {
            self.bots.ending(id, bot, &why, &mut BotContext { state: &mut self.state });
        }
        if let Some(bot) = self.state.connection_ended(id, &why) {
            self.bots.closed(id, bot, why, &mut BotContext { state: &mut self.state });
        }
    }

    /// Flushes what the last call encoded and tells bots of connections that ended meanwhile.
    fn settle(&mut self, clock: &impl Clock) {
        self.state.flush_dirty(clock);
        while let Some((id, why)) = self.state.ended.pop() {
            self.end(id, why);
            self.state.flush_dirty(clock);
        }
    }
}
