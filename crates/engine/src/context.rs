//! What bots can do during a call. The recording is in `state`.

use drivers::{Address, Driver};
use measure::Phase;

use crate::ids::{ConnectionId, RequestId};
use crate::pacer::Item;
use crate::pairing_lock::PairingLock;
use crate::state::{Owes, SendLag, Unsent, WorkerState};

/// What bots can do during a call.
pub struct BotContext<'a, D: Driver> {
    pub(crate) state: &'a mut WorkerState<D>,
}

impl<D: Driver> BotContext<'_, D> {
    /// ns since the start of the trial, as of this call.
    pub fn now_ns(&self) -> u64 {
        self.state.now_ns
    }

    /// An instant of the trial in ns since the epoch.
    pub fn realtime_ns(&self, at_ns: u64) -> u64 {
        self.state.shared.realtime_zero_ns + at_ns
    }

    /// The phase of what is planned at an instant.
    pub fn phase(&self, planned_ns: u64) -> Phase {
        self.state.phase(planned_ns)
    }

    /// When the hold ends and only a part of the load goes on; `u64::MAX` while that is not known.
    pub fn recover_ns(&self) -> u64 {
        self.state.shared.timeline.recover_ns()
    }

    /// How much longer an answer may take for the sake of the emulated networks; 0: there are none.
    pub fn network_allowance_ns(&self) -> u64 {
        self.state.networks.allowance_ns
    }

    /// True once nothing further is to be planned.
    pub fn drains(&self) -> bool {
        self.state.drains()
    }

    /// Begins a connection for `bot`; `opened` or `closed` reports the outcome. The connect has begun before this returns.
    pub fn open(&mut self, bot: u32, path: usize) -> ConnectionId {
        self.state.open(bot, path)
    }

    /// The same to a different address, such as one with another path; `known_address` gives one to start from.
    pub fn open_at(&mut self, bot: u32, address: Address) -> ConnectionId {
        self.state.open_at(bot, address)
    }

    /// A copy of the first address that every worker knows: where the subject listens.
    pub fn known_address(&self) -> Option<Address> {
        self.state.addresses.first().cloned()
    }

    /// The subprotocol that the server of a WebSocket chose; empty without one, and where the connection is not open.
    pub fn subprotocol(&mut self, connection: ConnectionId) -> &str {
        self.state.open_driver(connection).map_or("", |driver| driver.subprotocol())
    }

    /// How many requests a connection may have open at once, as things are now; `None`: one, or it is not open.
    pub fn requests_at_once(&mut self, connection: ConnectionId) -> Option<usize> {
        self.state.open_driver(connection)?.requests_at_once()
    }

    /// Sends a message that owes nothing. It counts as not sent if the connection has ended or takes no more.
    pub fn send(&mut self, connection: ConnectionId, op: usize, planned_ns: u64, what: D::Send<'_>) {
        if let Some(message) = self.state.encode(connection, op, planned_ns, what) {
            self.state.enter_unsent(connection, message);
        }
    }

    /// Sends a reply that the server requested, such as a pong. If the connection takes no more, or too many such
    /// replies wait on all connections together, the server sends requests and does not read the replies: the
    /// connection ends as a protocol violation.
    pub fn answer(&mut self, connection: ConnectionId, op: usize, planned_ns: u64, what: D::Send<'_>) {
        let message = self.state.encode(connection, op, planned_ns, what);
        if !message.is_some_and(|message| self.state.enter_answer(connection, message)) {
            self.state.break_off(connection);
        }
    }

    /// Sends a message that owes a delivery to each member, by its number from `BotContext::next_seq`. False: it was not sent.
    pub fn broadcast(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        (sender, seq): (u32, u32),
        what: D::Send<'_>,
    ) -> bool {
        let Some(message) = self.state.encode(connection, op, planned_ns, what) else { return false };
        self.state.enter_unsent(connection, Unsent { owes: Owes::Deliveries { sender, seq }, ..message });
        true
    }

    /// Records a planned message that could not even be tried, because its bot has no connection.
    pub fn not_sent(&mut self, op: usize, planned_ns: u64) {
        let phase = self.phase(planned_ns);
        self.state.recorder.not_sent(op, phase);
    }

    /// Sends a message that owes a reply. `None`: it was not sent.
    pub fn request(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        send_lag: SendLag,
        what: D::Send<'_>,
    ) -> Option<RequestId> {
        let message = self.state.encode(connection, op, planned_ns, what)?;
        self.state.enter_request(connection, Unsent { send_lag, ..message })
    }

    /// Sends a part of a reply that is already owed, such as the next request of a redirect: it is not recorded as a
    /// separate message. False: the connection no longer takes it.
    pub fn follow(&mut self, connection: ConnectionId, what: D::Send<'_>) -> bool {
        self.state.follow(connection, what)
    }

    /// Takes a request off its connection: its reply stays owed until it is sent again (`resend`) or given up (`lose`).
    /// False: the kernel never took it, nothing is owed, and it is as if it had not been sent.
    pub fn keep(&mut self, request: RequestId) -> bool {
        self.state.keep(request)
    }

    /// Sends a request that was kept once more, on another connection. It stays the same message, planned and sent when it
    /// was. False: the connection takes it no longer.
    pub fn resend(&mut self, request: RequestId, connection: ConnectionId, what: D::Send<'_>) -> bool {
        self.state.resend(request, connection, what)
    }

    /// No reply will come to a request that was kept, or begun without a connection. After the hold it is unanswered instead.
    pub fn lose(&mut self, request: RequestId) {
        self.state.lose(request);
    }

    /// A planned message finds all connections busy. Its send lag is recorded now: it says whether this worker noticed
    /// in time. How long the message then waits for a connection is the server's doing and is part of its response time.
    /// It is sent with `SendLag::Recorded`.
    pub fn waits(&mut self, planned_ns: u64) {
        let phase = self.phase(planned_ns);
        self.state.recorder.send_lag(phase, self.state.now_ns.saturating_sub(planned_ns));
    }

    /// The first byte of a reply has come.
    pub fn began(&mut self, request: RequestId, at_ns: u64) {
        if let Some(request) = self.state.requests.get(request) {
            self.state.recorder.first_byte(request, at_ns);
        }
    }

    /// When the subject gets SIGTERM, or slightly before that; ns, `u64::MAX` if it does not.
    pub fn subject_stops_ns(&self) -> u64 {
        self.state.shared.timeline.subject_stops_ns()
    }

    /// True once the subject was told to shut down, or is about to be.
    pub fn subject_is_signalled(&self) -> bool {
        self.state.shared.timeline.subject_signalled_ns() < u64::MAX
    }

    /// True once a subject that was told to shut down runs again.
    pub fn subject_is_back(&self) -> bool {
        self.state.now_ns >= self.state.shared.timeline.subject_back_ns()
    }

    /// When a request left, ns; `None` while it has not, or when its outcome is known.
    pub fn departed_ns(&self, request: RequestId) -> Option<u64> {
        self.state.requests.get(request)?.sent_ns
    }

    /// When all bots are there, or later; ns, `u64::MAX` until it is known.
    pub fn settle_ns(&self) -> u64 {
        let timeline = &self.state.shared.timeline;
        timeline.settle_ns().min(timeline.hold_ns())
    }

    /// Counts an error by its index in the metric names, and keeps its words if it is one of the first of its cause.
    pub fn error_with(&mut self, cause: usize, words: impl FnOnce() -> String) {
        self.state.recorder.error_with(cause, words);
    }

    /// Sets a mark of the trial; `kind` is one of `measure::trial::kind`. They are kept with the trial, so there must be few.
    pub fn mark(&mut self, kind: &'static str, text: String) {
        self.state.recorder.mark(kind, text);
    }

    /// The bytes that broke the protocol of the connection whose end is being told, as far as they are worth showing.
    pub fn error_excerpt(&self) -> &[u8] {
        self.state.error_excerpt()
    }

    /// Enters a reply that is owed to the connection itself, such as a greeting; requested at `sent_ns`, by connecting.
    ///
    /// It has no send lag: a connect may have waited for the server's own pace, which says nothing about this machine.
    /// That wait is part of the response time, not of the service time.
    pub fn expect(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        sent_ns: u64,
    ) -> Option<RequestId> {
        self.state.expect(connection, op, planned_ns, sent_ns)
    }

    /// Begins what takes time and belongs to no connection, such as a step of several messages. It counts as sent now and ends
    /// with `answered`, `failed` or `lose`; what has not ended when the trial does is unanswered.
    ///
    /// It has no send lag: nothing leaves with it, and the messages that it consists of have their own.
    pub fn begin(&mut self, op: usize, planned_ns: u64) -> RequestId {
        self.state.begin(op, planned_ns)
    }

    /// The reply has come. Returns false when it is owed no longer.
    pub fn answered(&mut self, request: RequestId, at_ns: u64) -> bool {
        let Some(request) = self.state.take_request(request) else { return false };
        self.state.recorder.answered(&request, at_ns);
        true
    }

    /// The reply has come and is wrong. Returns false when it is owed no longer.
    pub fn failed(&mut self, request: RequestId) -> bool {
        let Some(request) = self.state.take_request(request) else { return false };
        self.state.recorder.failed(&request);
        true
    }

    /// Calls `Bots::due` at an instant. What is planned after the hold never comes, unless bots go on to their end.
    pub fn at(&mut self, planned_ns: u64, bot: u32, what: u32) {
        self.state.pacer.push(planned_ns, Item::Bot { bot, what });
    }

    /// Closes a connection cleanly. Its bot gets no more events from it; replies still owed are lost, except after the
    /// hold.
    pub fn close(&mut self, connection: ConnectionId) {
        self.state.close(connection);
    }

    /// Counts an error by its index in the metric names.
    pub fn error(&mut self, cause: usize) {
        self.state.recorder.error(cause);
    }

    /// Adds to a counter by its index in the metric names.
    pub fn count(&mut self, counter: usize, more: u64) {
        self.state.recorder.count(counter, more);
    }

    /// Records a value of the bots' own, in thousandths, of a turn that was planned for `planned_ns`; `value` is its place in
    /// `MetricNames::values`.
    pub fn record_value(&mut self, value: usize, planned_ns: u64, thousandths: u64) {
        let phase = self.phase(planned_ns);
        self.state.recorder.value(value, phase, thousandths);
    }

    /// Records a tick as a client sees it: `interval_ns` since the last one, `interval_ms` between whole-ms readings,
    /// `missed` ticks that never came in between, `age_ns` since the server's stamp.
    pub fn tick(&mut self, at_ns: u64, interval_ns: u64, interval_ms: u64, missed: u64, age_ns: Option<u64>) {
        let phase = self.phase(at_ns);
        self.state.recorder.tick(phase, interval_ns, interval_ms, missed, age_ns);
    }

    /// One group at a time, over all workers.
    pub fn pairing_lock(&self) -> &PairingLock {
        &self.state.shared.pairing_lock
    }
}
