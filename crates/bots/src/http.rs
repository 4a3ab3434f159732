//! HTTP requests, planned by a clock (open) or one after the other (closed).
//!
//! Open: requests are planned by a stream independent of answers. A request that finds all connections busy waits, and
//! the first free connection sends it: its response time counts from its plan, its service time from its send. The wait
//! is the server's doing, so its send lag ends when it found all busy.
//! Closed: each requester has a connection, and its next request follows its last answer after a think time. A
//! requester that was rejected or cut off comes back a little later, or a server at its limit would get requests ever
//! faster.
//! Each request's checks decide whether an answer is right. The first few errors of each cause are kept verbatim.

mod answers;
mod audit;
pub(crate) mod errors;
mod open;
pub(crate) mod pointed;
mod recovery;
mod redirect;
mod reopen;
mod requesters;
mod shutdown;
pub mod source;
pub mod templates;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use drivers::Closed;
use drivers::http::{Http, Outgoing, Received};
use engine::{BotContext, Bots, ConnectionId, RequestId, SendLag};
use measure::{MetricNames, Role};
use plan::{HttpBots, HttpModel, SubjectStop, WorkerPlan, WorkloadSettings as _};

use crate::disconnects;
use crate::stream::Stream;
use shutdown::AtStop;
use source::{Chosen, Source};
use templates::{CapturedVars, RequestTemplates};

/// Planned arrivals of the hold by their place in the server's tick, in as many counters.
pub const PHASES: usize = 16;
const PHASE_NAMES: [&str; PHASES] = [
    "phase_00", "phase_01", "phase_02", "phase_03", "phase_04", "phase_05", "phase_06", "phase_07",
    "phase_08", "phase_09", "phase_10", "phase_11", "phase_12", "phase_13", "phase_14", "phase_15",
];

/// The counters that every source begins with, and what they are for.
pub(crate) fn counter_roles<D: Http>() -> Vec<(&'static str, Option<Role>)> {
    let phases = PHASE_NAMES.into_iter().map(|name| (name, Some(Role::ArrivalPhase)));
    let shutdown = shutdown::COUNTERS.into_iter().map(|name| (name, Some(Role::Shutdown)));
    let redirects = REDIRECT_COUNTERS.into_iter().map(|name| (name, Some(Role::Redirects)));
    phases.chain(shutdown).chain(redirects).chain(reopen::counter_roles(D::REOPENS)).collect()
}

/// Those of them that have one.
pub(crate) fn with_roles(counters: &[(&'static str, Option<Role>)]) -> Vec<(&'static str, Role)> {
    counters.iter().filter_map(|&(name, role)| Some((name, role?))).collect()
}

/// Whether a status says that the answer is elsewhere; of 3xx, 300 and 304 do not.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// In the order of `Role::Redirects`.
const REDIRECT_COUNTERS: [&str; 2] = ["right_answers", "redirects"];
const RIGHT_ANSWERS: usize = PHASES + shutdown::COUNTERS.len();
const REDIRECTS: usize = RIGHT_ANSWERS + 1;

/// Where the counters of connections that were opened again begin.
const REOPEN_AT: usize = REDIRECTS + 1;
/// A source's own counters, after those of every source.
const OWN_COUNTERS_AT: usize = REOPEN_AT + reopen::COUNTERS.len();
/// Where workers meet.
const LOAD_IS_OVER: usize = 0;

/// What falls due. A stream's request belongs to no client.
const STREAM_REQUEST: u32 = 0;
/// a requester sends its next request
const NEXT_REQUEST: u32 = 1;
/// a client that has no connection tries again
const COME_BACK: u32 = 2;
/// requests that take too long are looked for
const LOOK_FOR_LATE: u32 = 3;
/// a requester whose connection took no request tries again
const TRY_AGAIN: u32 = 4;

/// After the n-th failure in a row a client waits n times as long before it tries again.
const COME_BACK_NS: u64 = 100_000_000;
const COME_BACK_STEPS_MAX: u64 = 10;

/// A request that is open.
struct OpenRequest<P> {
    tag: u32,
    /// `None`: it is no message of the load
    id: Option<RequestId>,
    chosen: Chosen,
    hops: u32,
    planned_ns: u64,
    /// for the first time
    sent_ns: u64,
    /// for so long its connection had nothing to do before
    gap_ns: u64,
    has_begun: bool,
    at_stop: AtStop,
    /// to send it again, where the server may close the connection
    prepared: Option<P>,
    /// it met a close and was sent once more
    was_retried: bool,
    put_off_count: u32,
}

/// A request that was planned and has no connection yet.
struct Planned<P> {
    planned_ns: u64,
    chosen: Chosen,
    /// it was sent before, and the server closed the connection
    again: Option<Box<OpenRequest<P>>>,
}

impl<P> Planned<P> {
    fn new(planned_ns: u64, chosen: Chosen) -> Self {
        Planned { planned_ns, chosen, again: None }
    }
}

struct Client<P> {
    connection: Option<ConnectionId>,
    /// the connection can be used
    is_open: bool,
    /// in the queue of free clients
    is_queued: bool,
    open_requests: Vec<OpenRequest<P>>,
    next_tag: u32,
    /// waits for the connection that is being opened for it
    pending: Option<Planned<P>>,
    /// something was answered on this connection
    was_answered: bool,
    /// in a row
    failures: u64,
    /// requests sent on this connection, and by this client
    on_connection: u64,
    in_visit: u64,
    /// has left its connection as planned, and asks again when it is due
    is_between: bool,
    /// its connection is open and took no request
    is_refused: bool,
    /// the server closed its connection between two requests; the next one opens another
    is_lapsed: bool,
    /// the server announced a close: its connection takes no more requests
    is_leaving: bool,
    /// a connection of it has stood
    has_stood: bool,
    /// its connection has had nothing to do since
    idle_from_ns: u64,
    captured: CapturedVars,
}

// `derive` would require `Default` of `P`.
impl<P> Default for Client<P> {
    fn default() -> Self {
        Client {
            connection: None,
            is_open: false,
            is_queued: false,
            open_requests: Vec::new(),
            next_tag: 0,
            pending: None,
            was_answered: false,
            failures: 0,
            on_connection: 0,
            in_visit: 0,
            is_between: false,
            is_refused: false,
            is_lapsed: false,
            is_leaving: false,
            has_stood: false,
            idle_from_ns: 0,
            captured: CapturedVars::default(),
        }
    }
}

impl<P> Client<P> {
    /// For how long its connection has had nothing to do.
    fn gap_ns(&self, now_ns: u64) -> u64 {
        if self.open_requests.is_empty() { now_ns.saturating_sub(self.idle_from_ns) } else { 0 }
    }
}

/// All requesters, or all connections of one stream, of one worker.
pub struct Requests<D: Http, S: Source<D> = RequestTemplates<<D as Http>::Prepared>> {
    http: HttpBots,
    clients: Vec<Client<D::Prepared>>,
    driver: PhantomData<D>,
    source: S,
    /// host and port as they are requested
    authority: String,
    /// open model only
    stream: Option<Stream>,
    /// of the stream, once it has begun
    origin_ns: Option<u64>,
    /// clients with room for a request, the longest free first; some have lost it meanwhile
    free: VecDeque<u32>,
    waiting: VecDeque<Planned<D::Prepared>>,
    /// of the connection that is just ending: what is sent once more
    retries: Vec<Planned<D::Prepared>>,
    /// clients beyond the plan's connections that were never needed so far
    spare: Vec<u32>,
    open_count: usize,
    /// requests that wait for the connections that are being opened for them
    pending_count: usize,
    tick_period_ns: u64,
    open_attempts: u64,
    looks_for_late: bool,
    workers: u64,
    /// of the server: connections go to them in turn, that of the first client to `first_node`
    nodes: u64,
    first_node: u64,
    /// this worker has said that its load is over
    has_met: bool,
    /// set if the subject gets SIGTERM under load
    stop: Option<SubjectStop>,
    /// after the hold a part of the load goes on
    recovery: recovery::Recovery,
    /// it was told, and which requests were in flight then is known
    has_noted_stop: bool,
    /// when the last turn began
    last_turn_ns: u64,
}

impl<D: Http, S: Source<D>> Bots for Requests<D, S> {
    type Driver = D;
    type Settings = S::Settings;

    fn metric_names(settings: &S::Settings) -> Arc<MetricNames> {
        S::metric_names(settings)
    }

    fn paths(plan: &WorkerPlan) -> Vec<String> {
        let own = S::Settings::of(&plan.bots).map(|settings| S::connect_path(settings, plan));
        vec![own.unwrap_or_else(|| plan.target.path.clone())]
    }

    fn new(settings: &S::Settings, plan: &WorkerPlan) -> Self {
        let http = S::transport(settings);
        let (stream, spare_count) = match http.model {
            HttpModel::Open { connections, connections_max } => {
                let spare = connections_max.saturating_sub(connections).div_ceil(plan.workers as u64);
                (Some(Stream::new(plan)), spare)
            }
            HttpModel::Closed { .. } => (None, 0),
        };
        let all = plan.units + spare_count;
        Requests {
            http: http.clone(),
            clients: (0..all).map(|_| Client::default()).collect(),
            driver: PhantomData,
            source: S::new(settings, plan),
            authority: plan.target.authority(),
            stream,
            origin_ns: None,
            free: VecDeque::with_capacity(plan.units as usize),
            waiting: VecDeque::new(),
            retries: Vec::new(),
            // The last is taken first.
            spare: (plan.units as u32..all as u32).rev().collect(),
            open_count: 0,
            pending_count: 0,
            tick_period_ns: plan.tick_period_ns,
            open_attempts: u64::from(plan.open_attempts),
            looks_for_late: false,
            workers: plan.workers as u64,
            nodes: plan.sockets().len() as u64,
            first_node: plan.first_unit,
            has_met: false,
            stop: plan.stop,
            recovery: recovery::Recovery::of(plan),
            has_noted_stop: false,
            last_turn_ns: 0,
        }
    }

    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if !self.looks_for_late {
            self.looks_for_late = true;
            self.source.begin(ctx.realtime_ns(0));
            ctx.at(ctx.now_ns() + self.look_gap_ns(), 0, LOOK_FOR_LATE);
        }
        match (self.http.keep_alive, &self.stream) {
            (true, _) => self.open(unit, ctx),
            (false, Some(_)) => self.is_free(unit, ctx),
            (false, None) => {
                let chosen = self.source.choose();
                self.open_for(unit, Planned::new(planned_ns, chosen), ctx);
            }
        }
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        let client = &mut self.clients[bot as usize];
        client.connection = Some(connection);
        client.is_open = true;
        client.was_answered = false;
        client.is_leaving = false;
        client.on_connection = 0;
        self.count_reopened(bot, ctx);
        if let Some(planned) = self.clients[bot as usize].pending.take() {
            self.pending_count -= 1;
            self.send(bot, planned, SendLag::Recorded, ctx);
            if self.stream.is_some() {
                self.is_free(bot, ctx);
            }
            return;
        }
        if self.stream.is_some() {
            return self.is_free(bot, ctx);
        }
        if self.has_left(bot, ctx) {
            return;
        }
        let chosen = self.source.choose();
        self.send(bot, Planned::new(ctx.now_ns(), chosen), SendLag::Unrecorded, ctx);
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        received: Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        match received {
            Received::Began { tag } => {
                let open = self.clients[bot as usize].open_requests.iter_mut().find(|open| open.tag == tag);
                if let Some(open) = open.filter(|open| open.hops == 0) {
                    open.has_begun = true;
                    if let Some(id) = open.id {
                        ctx.began(id, at_ns);
                    }
                }
            }
            Received::Answer(answer) => self.receive(connection, bot, &answer, at_ns, ctx),
            Received::Leaving => self.leave_when_answered(bot, ctx),
            Received::PutOff { tag } => self.put_off(bot, tag, ctx),
            Received::Unpaired { body } => answers::count_unpaired(body, ctx),
        }
    }

    fn due(&mut self, bot: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        match what {
            STREAM_REQUEST => {
                self.plan_next(ctx);
                if !self.recovery.keeps_request(planned_ns, ctx.recover_ns()) {
                    return;
                }
                self.count_phase(planned_ns, ctx);
                let chosen = self.source.choose();
                self.dispatch(Planned::new(planned_ns, chosen), ctx);
            }
            NEXT_REQUEST | TRY_AGAIN if self.has_left(bot, ctx) => {}
            NEXT_REQUEST => {
                let chosen = self.source.choose();
                let planned = Planned::new(planned_ns, chosen);
                let is_lapsed = self.is_lapsed(bot);
                let client = &mut self.clients[bot as usize];
                let is_left =
                    is_lapsed | std::mem::take(&mut client.is_between) && client.connection.is_none();
                match (self.http.keep_alive, client.is_open) {
                    (true, true) if client.open_requests.is_empty() && !client.is_leaving => {
                        self.send(bot, planned, SendLag::Unrecorded, ctx)
                    }
                    // It sends it once it is connected again, or already has.
                    (true, _) if !is_left => self.source.abandoned(planned.chosen),
                    _ => self.open_for(bot, planned, ctx),
                }
            }
            COME_BACK => self.come_back(bot, ctx),
            TRY_AGAIN => {
                let client = &mut self.clients[bot as usize];
                // It sends it with its next connection, or already has.
                if std::mem::take(&mut client.is_refused) && client.is_open && client.open_requests.is_empty()
                {
                    let chosen = self.source.choose();
                    self.send(bot, Planned::new(planned_ns, chosen), SendLag::Unrecorded, ctx);
                }
            }
            _ => {
                ctx.at(planned_ns + self.look_gap_ns(), 0, LOOK_FOR_LATE);
                self.give_up_the_late(ctx);
                self.give_up_the_overload(ctx);
            }
        }
    }

    fn ending(&mut self, _: ConnectionId, bot: u32, why: &Closed, ctx: &mut BotContext<'_, D>) {
        self.keep_those_that_met_the_close(bot, why, ctx);
    }

    fn closed(&mut self, _: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        let client = &self.clients[bot as usize];
        let had_open = client.open_requests.iter().any(|open| open.id.is_some());
        let is_refused = client.is_refused;
        let cause = self.cause_of_end(bot, &why, ctx.now_ns());
        self.forget_connection(bot, ctx);
        if let Some(planned) = self.clients[bot as usize].pending.take() {
            self.pending_count -= 1;
            self.never_sent(planned, ctx);
        }
        let client = &mut self.clients[bot as usize];
        match &why {
            Closed::NotOpened(_) => {
                client.failures += 1;
                client.is_lapsed = false;
                let gives_up = client.failures >= self.open_attempts && self.http.keep_alive;
                if gives_up && !(D::REOPENS && client.has_stood) {
                    return;
                }
            }
            // A server may close an idle connection; the next request gets a new one.
            Closed::ByPeer(_) | Closed::Failed(_) if !had_open => {
                client.failures = if client.was_answered { 0 } else { client.failures + 1 };
                if self.may_lapse() && !is_refused {
                    return self.lapse(bot, ctx);
                }
            }
            _ => {
                client.failures += 1;
                let bytes = errors::shown(ctx.error_excerpt());
                ctx.error_with(cause, || match &why {
                    Closed::ByPeer(None) => "the server ended the connection with a request open".to_owned(),
                    Closed::Failed(error) => format!("{error}, with a request open"),
                    _ => disconnects::words(&why, &bytes),
                });
            }
        }
        let retries = std::mem::take(&mut self.retries);
        self.send_again(retries, ctx);
        self.go_on_without_connection(bot, ctx);
    }

    fn turn(&mut self, ctx: &mut BotContext<'_, D>) {
        if self.origin_ns.is_none() && self.stream.is_some() && ctx.settle_ns() != u64::MAX {
            self.origin_ns = Some(ctx.settle_ns());
            self.plan_next(ctx);
        }
        self.source.set_now(ctx.realtime_ns(ctx.now_ns()));
        self.note_stop(ctx);
    }

    fn has_drained(&mut self, ctx: &mut BotContext<'_, D>) -> bool {
        self.give_up_waiting(ctx);
        let is_quiet = self.waiting.is_empty() && self.open_count == 0 && self.pending_count == 0;
        if S::audits() { self.audit(is_quiet, ctx) } else { is_quiet }
    }

    fn leave(&mut self, ctx: &mut BotContext<'_, D>) {
        let pending = self.clients.iter_mut().filter_map(|client| client.pending.take());
        let unsent: Vec<Planned<D::Prepared>> = self.waiting.drain(..).chain(pending).collect();
        unsent.into_iter().for_each(|planned| self.never_sent(planned, ctx));
        for open in self.clients.iter().flat_map(|client| &client.open_requests) {
            shutdown::count_lost(open, ctx);
        }
        self.source.end();
        self.count_found(ctx);
    }
}

impl<D: Http, S: Source<D>> Requests<D, S> {
    fn send(
        &mut self,
        bot: u32,
        mut planned: Planned<D::Prepared>,
        send_lag: SendLag,
        ctx: &mut BotContext<'_, D>,
    ) {
        if let Some(again) = planned.again.take() {
            return self.resend(bot, again, send_lag, ctx);
        }
        let Some(connection) = self.clients[bot as usize].connection else {
            return ctx.not_sent(planned.chosen.op, planned.planned_ns);
        };
        let (planned_ns, at_stop) = self.enter_at_stop(planned.planned_ns, ctx);
        let client = &mut self.clients[bot as usize];
        let tag = client.next_tag;
        client.next_tag = tag.wrapping_add(1);
        let gap_ns = client.gap_ns(ctx.now_ns());
        let ready = self.source.ready(planned.chosen, &client.captured);
        let what = Outgoing { prepared: ready.as_ref(), tag };
        let sent = if S::is_recorded(planned.chosen) {
            ctx.request(connection, planned.chosen.op, planned_ns, send_lag, what).map(Some)
        } else {
            ctx.follow(connection, what).then_some(None)
        };
        let prepared = (D::REOPENS && sent.is_some()).then(|| ready.as_ref().clone());
        let Some(id) = sent else {
            self.source.abandoned(planned.chosen);
            return self.try_again_later(bot, ctx);
        };
        let (chosen, sent_ns) = (planned.chosen, ctx.now_ns());
        let open = OpenRequest {
            tag,
            id,
            chosen,
            hops: 0,
            planned_ns,
            sent_ns,
            gap_ns,
            has_begun: false,
            at_stop,
            prepared,
            was_retried: false,
            put_off_count: 0,
        };
        let client = &mut self.clients[bot as usize];
        client.is_refused = false;
        client.open_requests.push(open);
        client.on_connection += 1;
        client.in_visit += 1;
        self.open_count += 1;
    }
}
