//! The recorder: fills the interval of the current second. Nothing else writes to a worker's interval.
//!
//! It counts the outcome of each message (`Flow`), records durations, connections, ticks and errors, and keeps state
//! that outlives an interval: how many connections are open, and for which causes errors were kept verbatim.
//! Invariant: a message is recorded once as sent or not sent, and a sent one that owes a reply has one outcome.
//! `Interval::balance` rejects an interval that violates this.

use measure::{Distribution, Interval, Measure, Phase, Role, TickClasses, TickCounts};

use super::requests::PendingRequest;
use crate::clock::SECOND_NS;

/// A worker keeps this many errors of each cause verbatim.
const SAMPLES_MAX: u8 = 3;

pub(crate) struct Recorder {
    interval: Box<Interval>,
    open_count: u64,
    /// connections × ns of this interval, up to `open_since_ns`
    open_integral: u64,
    open_since_ns: u64,
    /// where the metric names count the above, if they do
    open_time_counter: Option<usize>,
    redirects_counter: Option<usize>,
    /// the operation that is a life of a bot: its time is kept apart alone, and is no response; `usize::MAX`: there is none
    session_op: usize,
    tick_classes: TickClasses,
    /// errors of each cause that were kept verbatim
    samples_kept: Vec<u8>,
    /// a reply that takes longer is late
    late_after_ns: u64,
}

impl Recorder {
    pub(super) fn new(interval: Box<Interval>, plan: &plan::WorkerPlan) -> Self {
        let names = &interval.metric_names;
        let open_time_counter = names.counters(Role::OpenTime).next();
        let redirects_counter = names.counters(Role::HandshakeRedirects).next();
        let session_op = names.op_index(Role::Session).unwrap_or(usize::MAX);
        let rate_hz = if plan.tick_period_ns > 0 { 1e9 / plan.tick_period_ns as f64 } else { 60.0 };
        Recorder {
            open_count: 0,
            open_integral: 0,
            open_since_ns: 0,
            open_time_counter,
            redirects_counter,
            session_op,
            tick_classes: TickClasses::for_rate(rate_hz),
            samples_kept: vec![0; names.errors.len()],
            late_after_ns: plan.patience_ns,
            interval,
        }
    }

    /// Begins the interval `index`; the last one was handed over. `open` are the requests that are open now.
    pub(crate) fn begin_interval(&mut self, index: u32, open: &[[u64; Phase::COUNT]]) {
        self.interval.reset(index);
        for (flow, &open) in self.interval.flows.iter_mut().flatten().zip(open.iter().flatten()) {
            flow.open_before = open;
        }
        self.interval.connections.open_min = self.open_count;
        self.interval.workers = 1;
    }

    /// Ends the interval at `end_ns`. Returns it, to be handed over and replaced by another.
    pub(crate) fn end_interval(
        &mut self,
        end_ns: u64,
        busy_ns: u64,
        open: &[[u64; Phase::COUNT]],
    ) -> &mut Box<Interval> {
        self.integrate_open(end_ns);
        let open_time_ms = std::mem::take(&mut self.open_integral) / 1_000_000;
        if let Some(counter) = self.open_time_counter {
            self.interval.counters[counter] += open_time_ms;
        }
        for (flow, &open) in self.interval.flows.iter_mut().flatten().zip(open.iter().flatten()) {
            flow.open_after = open;
        }
        self.interval.connections.open_end = self.open_count;
        self.interval.busy_ns = busy_ns;
        self.interval.busy_share_max = (busy_ns as f64 / SECOND_NS as f64).min(1.0);
        &mut self.interval
    }

    /// A message departed.
    #[inline]
    pub(crate) fn sent(&mut self, op: usize, phase: Phase, owes_reply: bool) {
        let flow = self.interval.flow_mut(op, phase);
        flow.offered += 1;
        flow.sent += 1;
        flow.told += u64::from(!owes_reply);
    }

    /// A planned message never departed.
    #[inline]
    pub(crate) fn not_sent(&mut self, op: usize, phase: Phase) {
        let flow = self.interval.flow_mut(op, phase);
        flow.offered += 1;
        flow.not_sent += 1;
    }

    #[inline]
    pub(crate) fn first_byte(&mut self, request: &PendingRequest, at_ns: u64) {
        let sent_ns = request.sent_ns.unwrap_or(at_ns);
        self.interval.record(Measure::FirstByte, request.phase, at_ns.saturating_sub(sent_ns));
    }

    /// A request got its reply.
    #[inline]
    pub(crate) fn answered(&mut self, request: &PendingRequest, at_ns: u64) {
        let response_ns = at_ns.saturating_sub(request.planned_ns);
        let is_session = self.session_op == usize::from(request.op);
        let flow = self.interval.flow_mut(usize::from(request.op), request.phase);
        flow.answered += 1;
        flow.late += u64::from(response_ns > self.late_after_ns && !is_session);
        if request.phase == Phase::Hold
            && let Some(of_op) = self.interval.of_op_mut(usize::from(request.op))
        {
            of_op.record(response_ns);
        }
        if is_session {
            return;
        }
        self.interval.record(Measure::Response, request.phase, response_ns);
        let sent_ns = request.sent_ns.unwrap_or(at_ns);
        self.interval.record(Measure::Service, request.phase, at_ns.saturating_sub(sent_ns));
    }

    /// A value of the bots' own.
    pub(crate) fn value(&mut self, value: usize, phase: Phase, thousandths: u64) {
        if phase == Phase::Hold {
            self.interval.value_mut(value).record_value(thousandths);
        }
    }

    /// A request got a wrong reply.
    #[inline]
    pub(crate) fn failed(&mut self, request: &PendingRequest) {
        self.interval.flow_mut(usize::from(request.op), request.phase).failed += 1;
    }

    /// The connection of a request ended before its reply.
    pub(crate) fn lost(&mut self, request: &PendingRequest) {
        self.interval.flow_mut(usize::from(request.op), request.phase).lost += 1;
    }

    /// A request has no reply at the end of the trial and stays open.
    pub(crate) fn unanswered(&mut self, request: &PendingRequest, now_ns: u64) {
        if self.session_op == usize::from(request.op) {
            return;
        }
        let at_least_ns = now_ns.saturating_sub(request.planned_ns);
        self.interval.record(Measure::Unanswered, request.phase, at_least_ns);
    }

    #[inline]
    pub(crate) fn send_lag(&mut self, phase: Phase, lag_ns: u64) {
        self.interval.record(Measure::SendLag, phase, lag_ns);
    }

    #[inline]
    pub(crate) fn receive_lag(&mut self, phase: Phase, lag_ns: u64) {
        self.interval.record(Measure::ReceiveLag, phase, lag_ns);
    }

    /// All connections were silent for so long, until now.
    pub(crate) fn stall(&mut self, phase: Phase, stall_ns: u64) {
        self.interval.record(Measure::Stall, phase, stall_ns);
    }

    #[inline]
    pub(crate) fn bytes_sent(&mut self, bytes: u64) {
        self.interval.bytes_sent += bytes;
    }

    #[inline]
    pub(crate) fn bytes_received(&mut self, bytes: u64) {
        self.interval.bytes_received += bytes;
    }

    /// Where the latencies of deliveries are recorded: of messages planned in the hold, and of all others.
    #[inline]
    pub(crate) fn delivery_latencies(&mut self) -> (&mut Distribution, &mut Distribution) {
        self.interval.distributions_mut(Measure::Delivery)
    }

    /// A tick as a client saw it; see `BotContext::tick`.
    #[inline]
    pub(crate) fn tick(
        &mut self,
        phase: Phase,
        interval_ns: u64,
        interval_ms: u64,
        missed: u64,
        age_ns: Option<u64>,
    ) {
        self.tick_classes.count(&mut self.interval.ticks, interval_ms, 1);
        self.interval.ticks.add(&TickCounts { due: missed, missed, ..TickCounts::default() });
        self.interval.record(Measure::TickInterval, phase, interval_ns);
        if let Some(age_ns) = age_ns {
            self.interval.record(Measure::TickAge, phase, age_ns);
        }
    }

    #[inline]
    pub(crate) fn error(&mut self, cause: usize) {
        self.interval.errors[cause] += 1;
    }

    /// Counts an error and keeps its words, if it is one of the first of its cause.
    pub(crate) fn error_with(&mut self, cause: usize, words: impl FnOnce() -> String) {
        self.error(cause);
        let kept = &mut self.samples_kept[cause];
        if *kept < SAMPLES_MAX {
            *kept += 1;
            self.interval.samples.push((cause, words()));
        }
    }

    /// A mark of the trial.
    pub(crate) fn mark(&mut self, kind: &'static str, text: String) {
        self.interval.marks.push((kind, text));
    }

    /// Adds to a counter of the bots.
    #[inline]
    pub(crate) fn count(&mut self, counter: usize, more: u64) {
        self.interval.counters[counter] += more;
    }

    pub(crate) fn connect_began(&mut self) {
        self.interval.connections.asked += 1;
    }

    /// A connect failed; `cause` is that of `OpenError::cause_index`.
    pub(crate) fn connect_failed(&mut self, cause: usize) {
        self.interval.connections.failed[cause] += 1;
    }

    /// A connection whose connect began in `phase` is open.
    pub(crate) fn connection_opened(
        &mut self,
        phase: Phase,
        handshake_ns: u64,
        tls_ns: Option<u64>,
        now_ns: u64,
    ) {
        self.interval.record(Measure::Handshake, phase, handshake_ns);
        if let Some(tls_ns) = tls_ns {
            self.interval.record(Measure::Tls, phase, tls_ns);
        }
        self.interval.connections.opened += 1;
        self.integrate_open(now_ns);
        self.open_count += 1;
    }

    /// So many redirects led to the connection that was opened.
    pub(crate) fn redirected(&mut self, redirects: u8) {
        if let Some(counter) = self.redirects_counter {
            self.interval.counters[counter] += u64::from(redirects);
        }
    }

    /// An open connection ended.
    pub(crate) fn connection_closed(&mut self, now_ns: u64) {
        self.integrate_open(now_ns);
        self.open_count -= 1;
        let connections = &mut self.interval.connections;
        connections.closed += 1;
        connections.open_min = connections.open_min.min(self.open_count);
    }

    /// Connections that are open now.
    pub(crate) fn open_count(&self) -> u64 {
        self.open_count
    }

    fn integrate_open(&mut self, until_ns: u64) {
        self.open_integral += self.open_count * until_ns.saturating_sub(self.open_since_ns);
        self.open_since_ns = self.open_since_ns.max(until_ns);
    }

    #[cfg(test)]
    pub(super) fn interval(&self) -> &Interval {
        &self.interval
    }
}
