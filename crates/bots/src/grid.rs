//! Operations on the keys of a data grid or cache: either a fixed number in flight, each completion starting the next,
//! or at a rate, planned by a clock (`open`).
//!
//! A worker's operations are divided among its connections, each of which carries its share concurrently. Keys, values
//! and kinds of operations are those of the client library benchmark (`inflight::Workload`).
//! If operations read, the values are put before the hold: the workers share the keys, and a worker's operations count
//! as joined once its share is put. From the hold on a get must find its value, byte for byte, unless operations also
//! delete or values expire; then a miss is only counted. If operations also write, each write gives its key a different
//! value, and a get must not find one that was overwritten earlier (`versions`). Values that are not set again must be
//! gone once they have expired.
//! If the subject is a cluster, each connection described here is one to every member (a *link*), and each operation
//! uses the one to its key's owner (`route`). What a member has not begun is sent again after a moment; what it may
//! have executed, only if repeating it changes nothing.
//! An operation whose connection ends before its reply is lost: whether it was executed is unknown, and it never counts
//! as answered. A refused operation waits a moment, or a server at its limit would get requests ever faster.

mod open;
mod puts;
mod route;
mod slots;
mod versions;

use std::sync::Arc;

use drivers::grid::{Kind, Operation, Received, Reply};
use drivers::{Closed, Grid};
use engine::{BotContext, Bots, ConnectionId, SendLag};
use inflight::{Keys, VARIANTS, Workload, ZIPF_THETA};
use measure::names::OPEN_TIME;
use measure::{ErrorKind, MetricNames, Phase, Role};
use plan::{GridBots, GridKeys, GridModel, GridOp, WorkerPlan};

use crate::disconnects;
use open::Clocked;
use puts::Puts;
use route::{Connection, Routes};
use slots::{InFlight, Slots, Version};
use versions::Versions;

const OPS: [&str; 4] = ["put", "get", "set", "delete"];
const PUT: usize = 0;
const GET: usize = 1;
const SET: usize = 2;
const DELETE: usize = 3;

const WRONG_VALUE: usize = disconnects::CAUSES.len();
const NO_VALUE: usize = WRONG_VALUE + 1;
const REFUSED: usize = WRONG_VALUE + 2;
const WRONG_REPLY: usize = WRONG_VALUE + 3;
const UNPAIRED: usize = WRONG_VALUE + 4;
const NOT_PUT: usize = WRONG_VALUE + 5;
const EXPIRED: usize = WRONG_VALUE + 6;
const UNKNOWN: usize = WRONG_VALUE + 7;
const STALE: usize = WRONG_VALUE + 8;
const CAUSES: [(&str, ErrorKind); 9] = [
    ("wrong value", ErrorKind::WrongReply),
    ("value not found", ErrorKind::WrongReply),
    ("operation refused", ErrorKind::WrongReply),
    ("reply of another kind", ErrorKind::WrongReply),
    ("reply to no operation in flight", ErrorKind::WrongReply),
    ("values not put in time", ErrorKind::Timeout),
    ("expired value found", ErrorKind::WrongReply),
    ("outcome unknown", ErrorKind::WrongReply),
    ("stale value", ErrorKind::WrongReply),
];

const HITS: usize = 0;
const MISSES: usize = 1;
const SENT_AGAIN: usize = 2;
const COUNTERS: [&str; 4] = ["hits", "misses", "sent again", OPEN_TIME];

/// What falls due.
const NEXT_OPERATION: u32 = 0;
const COME_BACK: u32 = 1;
const LOOK_AT_PUTS: u32 = 2;
/// An operation of the stream belongs to no connection yet.
const STREAM_OPERATION: u32 = 3;
/// An operation is sent again; it is named by its tag.
const SEND_AGAIN: u32 = 4;

/// An operation follows one that was refused after this, and a connection one that was lost, times the failures in a row.
const PAUSE_NS: u64 = 100_000_000;
const PAUSE_STEPS_MAX: u64 = 10;
/// What a member has not begun is sent again after this, until it has been planned for so long.
const AGAIN_NS: u64 = 10_000_000;
const AGAIN_NS_MAX: u64 = 5_000_000_000;
/// When no value was put for so long the rest is given up, and the hold shows what the server does.
const PUTS_REST_NS_MAX: u64 = 10_000_000_000;
/// Values put at once on one connection.
const PUTS_IN_FLIGHT: u32 = 64;
/// Members round times to live to whole seconds, and look for what has expired now and then.
const EXPIRY_SLACK_NS: u64 = 2_000_000_000;
/// The memory limit for the values of one worker's writes, if these give a key several; two of them are kept in any
/// case.
const OWN_VALUES_BYTES_MAX: usize = 64 << 20;

/// What carries operations: a connection, or one to each member of a cluster.
#[derive(Default)]
struct Link {
    /// operations that it carries at once when all is well; with a rate, 1 once it is to be there
    share: u32,
    in_flight: u32,
}

/// An operation that is to be sent.
struct Planned {
    kind: Kind,
    key: u32,
    is_put: bool,
    planned_ns: u64,
}

/// All operations of one worker.
pub struct Operations<D: Grid> {
    workload: Workload,
    op: GridOp,
    ttl_ms: Option<u64>,
    may_miss: bool,
    shares: fastrand::Rng,
    keys: Vec<D::Key>,
    /// by variant
    values: Vec<D::Value>,
    versions: Versions,
    links: Vec<Link>,
    routes: Routes,
    in_flight: Slots,
    /// of the load, so far
    operations: u64,
    /// with a rate only
    clocked: Option<Clocked>,
    puts: Puts,
    joined: u64,
}

fn op_of(kind: Kind) -> usize {
    match kind {
        Kind::Get => GET,
        Kind::Set => SET,
        Kind::Delete => DELETE,
    }
}

fn workload(grid: &GridBots, seed: u64) -> Workload {
    let kind = match grid.op {
        GridOp::Get => Some(inflight::Kind::Get),
        GridOp::Set => Some(inflight::Kind::Set),
        GridOp::Mix | GridOp::Shares { .. } => None,
    };
    let keys = match grid.keys {
        GridKeys::One => Keys::One,
        GridKeys::Uniform(count) => Keys::Uniform(count),
        GridKeys::Zipf(count) => Keys::Zipf(count, ZIPF_THETA),
    };
    Workload::of(kind, keys, grid.value_bytes, (seed >> 32) as u32)
}

/// Values as they are sent; of variants that are never sent, an empty one.
fn values<D: Grid>(workload: &Workload, versions: &Versions) -> Vec<D::Value> {
    let mut is_sent = [false; VARIANTS];
    if versions.are_told_apart() {
        versions.own().for_each(|variant| is_sent[variant] = true);
    } else {
        (0..workload.keys()).for_each(|key| is_sent[workload.variant(key)] = true);
    }
    let text = |variant, is_sent: bool| if is_sent { workload.value_of(variant) } else { b"" };
    let value = |(variant, is_sent)| D::value(&String::from_utf8_lossy(text(variant, is_sent)));
    is_sent.into_iter().enumerate().map(value).collect()
}

impl<D: Grid> Bots for Operations<D> {
    type Driver = D;
    type Settings = GridBots;

    fn metric_names(_: &GridBots) -> Arc<MetricNames> {
        let causes = [&disconnects::CAUSES[..], &CAUSES.map(|(cause, _)| cause)].concat();
        let roles = [("hits", Role::Lookups), ("misses", Role::Lookups)];
        disconnects::metric_names(&OPS, &causes, &COUNTERS, &CAUSES)
            .with_op_roles(&[(OPS[PUT], Role::Keep)])
            .with_counter_roles(&roles)
    }

    fn new(grid: &GridBots, plan: &WorkerPlan) -> Self {
        let workload = workload(grid, plan.seed);
        let is_mixed = !matches!(grid.op, GridOp::Get | GridOp::Set) && grid.value_bytes > 0;
        let written_keys = if is_mixed { workload.keys() } else { 0 };
        let own_max = (OWN_VALUES_BYTES_MAX / grid.value_bytes.max(1)).max(2);
        let versions = Versions::new(plan.worker, plan.workers, written_keys, own_max);
        let connections = grid.connections.min(plan.units_total);
        let own = connections.saturating_sub(plan.worker as u64).div_ceil(plan.workers as u64);
        // A worker without a connection could do nothing.
        let own = own.clamp(1, plan.units.max(1));
        Operations {
            op: grid.op,
            ttl_ms: grid.ttl_ms,
            may_miss: grid.may_miss(),
            clocked: (grid.model == GridModel::Open).then(|| Clocked::new(plan)),
            shares: fastrand::Rng::with_seed(!plan.seed),
            keys: (0..workload.keys()).map(|key| D::key(workload.name(key))).collect(),
            values: values::<D>(&workload, &versions),
            versions,
            links: (0..own).map(|_| Link::default()).collect(),
            routes: Routes::new(own as usize, plan.sockets()),
            in_flight: Slots::with_capacity(plan.units as usize + PUTS_IN_FLIGHT as usize),
            operations: 0,
            puts: Puts::of(plan.worker, plan.workers, workload.keys(), grid.op.reads()),
            joined: 0,
            workload,
        }
    }

    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if self.joined == 0 && !self.puts.are_over {
            ctx.at(ctx.now_ns() + PUTS_REST_NS_MAX, 0, LOOK_AT_PUTS);
        }
        self.joined += 1;
        let at = unit % self.links.len() as u32;
        let link = &mut self.links[at as usize];
        link.share += 1;
        if link.share == 1 {
            for (connection, member) in self.routes.connections_of(at) {
                ctx.open(connection, member);
            }
        } else if self.routes.is_open(at) && self.puts.are_over {
            self.start(at, planned_ns, SendLag::Unrecorded, ctx);
        }
    }

    fn opened(&mut self, connection: ConnectionId, at: u32, ctx: &mut BotContext<'_, D>) {
        *self.routes.connection(at) = Connection { open: Some(connection), failures: 0 };
        self.fill(self.routes.link_of(at), ctx);
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        at: u32,
        received: Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let Received { tag, reply } = received;
        if let Reply::Owners(owners) = reply {
            let keys = &self.keys;
            return self
                .routes
                .take_owners(&owners, keys.len(), |key, count| D::partition(&keys[key], count));
        }
        if self.routes.connection(at).open != Some(connection) {
            return ctx.error(UNPAIRED);
        }
        if self.may_send_again(tag, at, &reply, at_ns, ctx) {
            return ctx.at(at_ns + AGAIN_NS, tag, SEND_AGAIN);
        }
        let Some(one) = self.in_flight.take(tag, at) else { return ctx.error(UNPAIRED) };
        let at = self.routes.link_of(at);
        self.links[at as usize].in_flight -= 1;
        let is_right = self.check(&one, &reply, ctx);
        if let Version::Write(write) = one.version {
            let key = one.key as usize;
            if is_right {
                self.versions.done(key, write, one.planned_ns >= ctx.settle_ns());
            } else {
                // Whatever the reply was, the write may have been executed.
                self.versions.ended(key, self.workload.variant(key), write, true);
            }
        }
        if is_right {
            ctx.answered(one.request, at_ns);
        } else {
            ctx.failed(one.request);
        }
        if one.is_put {
            self.puts.in_flight -= 1;
            self.puts.have_moved = true;
            return self.go_on_putting(at, ctx);
        }
        if self.clocked.is_some() {
            return self.send_waiting(at, ctx);
        }
        if ctx.drains() {
            return;
        }
        match reply {
            Reply::Refused(_) | Reply::Again { .. } => ctx.at(at_ns + PAUSE_NS, at, NEXT_OPERATION),
            _ => self.start(at, at_ns, SendLag::Unrecorded, ctx),
        }
    }

    fn due(&mut self, at: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        match what {
            NEXT_OPERATION => {
                let link = &self.links[at as usize];
                // A link that was lost meanwhile has restarted with all its operations.
                if self.routes.is_open(at) && link.in_flight < link.share {
                    self.start(at, planned_ns, SendLag::Unrecorded, ctx);
                }
            }
            STREAM_OPERATION => {
                self.plan_next(ctx);
                self.dispatch(planned_ns, ctx);
            }
            SEND_AGAIN => self.send_again(at, ctx),
            COME_BACK => {
                ctx.open(at, self.routes.member_of(at));
            }
            _ if self.puts.are_over => {}
            _ if std::mem::take(&mut self.puts.have_moved) => {
                ctx.at(planned_ns + PUTS_REST_NS_MAX, 0, LOOK_AT_PUTS);
            }
            _ => {
                ctx.error(NOT_PUT);
                self.begin_load(ctx);
            }
        }
    }

    fn closed(&mut self, _: ConnectionId, at: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        disconnects::count(&why, ctx);
        let connection = self.routes.connection(at);
        connection.open = None;
        connection.failures += 1;
        let failures = connection.failures;
        let own = self.routes.link_of(at);
        let link = &mut self.links[own as usize];
        let share = link.share;
        let Operations { puts, versions, workload, .. } = self;
        self.in_flight.end(at, |one| {
            link.in_flight -= 1;
            if let Version::Write(write) = one.version {
                versions.ended(one.key as usize, workload.variant(one.key as usize), write, true);
            }
            if one.is_put {
                puts.in_flight -= 1;
                puts.again.push(one.key);
            }
        });
        if ctx.drains() {
            return;
        }
        ctx.at(ctx.now_ns() + PAUSE_NS * failures.min(PAUSE_STEPS_MAX), at, COME_BACK);
        if self.routes.is_open(own) {
            // The other members continue: new operations replace those that were lost.
            return self.fill(own, ctx);
        }
        let is_told_once = self.routes.member_of(at) == 0;
        let is_closed_loop = self.puts.are_over && self.clocked.is_none();
        if matches!(why, Closed::NotOpened(_)) && is_told_once && is_closed_loop {
            // Each operation that would be in flight counts as one that was wanted.
            (0..share).for_each(|_| ctx.not_sent(op_of(self.kind()), ctx.now_ns()));
        }
    }

    fn pending(&self) -> u64 {
        if self.puts.are_over { 0 } else { self.joined }
    }

    fn turn(&mut self, ctx: &mut BotContext<'_, D>) {
        self.begin_stream(ctx);
    }

    fn has_drained(&mut self, _: &mut BotContext<'_, D>) -> bool {
        let is_waiting = self.clocked.as_ref().is_some_and(Clocked::has_waiting);
        !is_waiting && self.links.iter().all(|link| link.in_flight == 0)
    }

    fn leave(&mut self, ctx: &mut BotContext<'_, D>) {
        self.give_up_waiting(ctx);
    }
}

impl<D: Grid> Operations<D> {
    /// A link that was opened, that has put its last value or that has lost operations gets as many as it is to carry.
    fn fill(&mut self, at: u32, ctx: &mut BotContext<'_, D>) {
        if !self.puts.are_over {
            for _ in 0..PUTS_IN_FLIGHT {
                self.go_on_putting(at, ctx);
            }
            return;
        }
        if self.clocked.is_some() {
            return self.send_waiting(at, ctx);
        }
        let link = &self.links[at as usize];
        for _ in link.in_flight..link.share {
            self.start(at, ctx.now_ns(), SendLag::Unrecorded, ctx);
        }
    }

    fn go_on_putting(&mut self, at: u32, ctx: &mut BotContext<'_, D>) {
        if self.puts.are_over {
            // It was given up and this reply came late: there is room for one more operation.
            return self.fill(at, ctx);
        }
        if self.routes.is_open(at)
            && let Some(key) = self.puts.next()
        {
            let put = Planned { kind: Kind::Set, key, is_put: true, planned_ns: ctx.now_ns() };
            self.send(at, put, SendLag::Unrecorded, ctx);
        }
        if self.puts.are_done() {
            self.begin_load(ctx);
        }
    }

    fn begin_load(&mut self, ctx: &mut BotContext<'_, D>) {
        self.puts.are_over = true;
        for at in 0..self.links.len() as u32 {
            if self.routes.is_open(at) {
                self.fill(at, ctx);
            }
        }
    }

    fn kind(&mut self) -> Kind {
        if let GridOp::Shares { gets, sets } = self.op {
            return if self.shares.u32(0..gets + sets) < gets { Kind::Get } else { Kind::Set };
        }
        match self.workload.kind(self.operations) {
            inflight::Kind::Get => Kind::Get,
            inflight::Kind::Set => Kind::Set,
            inflight::Kind::Delete => Kind::Delete,
        }
    }

    /// The next operation of the load.
    fn start(&mut self, at: u32, planned_ns: u64, send_lag: SendLag, ctx: &mut BotContext<'_, D>) {
        let kind = self.kind();
        let key = self.workload.key(self.operations) as u32;
        self.operations += 1;
        self.send(at, Planned { kind, key, is_put: false, planned_ns }, send_lag, ctx);
    }

    fn send(&mut self, at: u32, planned: Planned, send_lag: SendLag, ctx: &mut BotContext<'_, D>) {
        let Planned { kind, key, is_put, planned_ns } = planned;
        let op = if is_put { PUT } else { op_of(kind) };
        let Some((by, connection)) = self.routes.route(at, key) else {
            return ctx.not_sent(op, planned_ns);
        };
        let tag = self.in_flight.take_tag();
        let version = match kind {
            Kind::Get => Version::Read(self.versions.look(key as usize)),
            Kind::Set | Kind::Delete => Version::Write(self.versions.begin(key as usize)),
        };
        let value = &self.values[self.variant(key, version)];
        let what = Operation { tag, kind, key: &self.keys[key as usize], value, ttl_ms: self.ttl_ms };
        let Some(request) = ctx.request(connection, op, planned_ns, send_lag, what) else {
            // The connection takes no more, which is recorded; the operation is retried a little later.
            self.in_flight.give_back(tag);
            if let Version::Write(_) = version {
                self.versions.take_back(key as usize);
            }
            if is_put {
                self.puts.again.push(key);
            } else if self.clocked.is_none() {
                ctx.at(ctx.now_ns() + PAUSE_NS, at, NEXT_OPERATION);
            }
            return;
        };
        let one = InFlight { request, connection: by, key, kind, is_put, planned_ns, version };
        self.in_flight.enter(tag, one);
        self.links[at as usize].in_flight += 1;
        self.puts.in_flight += u32::from(is_put);
    }

    /// The value that an operation writes, or, where reads and writes are not mixed, that its key has.
    fn variant(&self, key: u32, version: Version) -> usize {
        let first = self.workload.variant(key as usize);
        match version {
            Version::Write(write) => self.versions.variant(first, write),
            Version::Read(_) => first,
        }
    }

    /// Whether an operation that was not executed, or changes nothing, is retried.
    fn may_send_again(
        &self,
        tag: u32,
        at: u32,
        reply: &Reply<'_>,
        at_ns: u64,
        ctx: &BotContext<'_, D>,
    ) -> bool {
        let Reply::Again { may_have_run, .. } = *reply else { return false };
        let one = self.in_flight.get(tag).filter(|one| one.connection == at);
        // Nothing becomes due after the hold.
        !ctx.drains()
            && one.is_some_and(|one| {
                (!may_have_run || one.kind == Kind::Get)
                    && at_ns < one.planned_ns.saturating_add(AGAIN_NS_MAX)
            })
    }

    /// The same operation by the same connection, whose member passes on what is no longer its own.
    fn send_again(&mut self, tag: u32, ctx: &mut BotContext<'_, D>) {
        // Its connection may have closed meanwhile, taking the operation with it.
        let Some(one) = self.in_flight.get(tag) else { return };
        let Some(connection) = self.routes.connection(one.connection).open else { return };
        let value = &self.values[self.variant(one.key, one.version)];
        let (key, ttl_ms) = (&self.keys[one.key as usize], self.ttl_ms);
        if ctx.follow(connection, Operation { tag, kind: one.kind, key, value, ttl_ms }) {
            ctx.count(SENT_AGAIN, 1);
        } else {
            // It takes no more for now.
            ctx.at(ctx.now_ns() + AGAIN_NS, tag, SEND_AGAIN);
        }
    }

    /// Whether a value has certainly expired: put before the hold and not set since.
    fn has_expired(&self, planned_ns: u64, ctx: &BotContext<'_, D>) -> bool {
        let expires_ns =
            |ms: u64| ctx.settle_ns().saturating_add(ms.saturating_mul(1_000_000) + EXPIRY_SLACK_NS);
        self.op == GridOp::Get && self.ttl_ms.is_some_and(|ms| planned_ns > expires_ns(ms))
    }

    /// Whether a reply is right; counts what it was.
    fn check(&self, one: &InFlight, reply: &Reply<'_>, ctx: &mut BotContext<'_, D>) -> bool {
        let in_hold = u64::from(ctx.phase(one.planned_ns) == Phase::Hold);
        match (one.kind, reply) {
            (Kind::Set | Kind::Delete, Reply::Done) => true,
            (Kind::Get, &Reply::Value(Some(value))) => {
                ctx.count(HITS, in_hold);
                let is_expired = self.has_expired(one.planned_ns, ctx);
                if is_expired {
                    ctx.error_with(EXPIRED, || {
                        format!("{} was put before the hold, to expire", self.workload.name(one.key as usize))
                    });
                }
                self.is_current(one, value, ctx) && !is_expired
            }
            (Kind::Get, Reply::Value(None)) => {
                ctx.count(MISSES, in_hold);
                // Until all bots have joined, other workers may still be putting their values.
                let is_wrong = !self.may_miss && one.planned_ns >= ctx.settle_ns();
                if is_wrong {
                    ctx.error_with(NO_VALUE, || {
                        format!("{} was put and never deleted", self.workload.name(one.key as usize))
                    });
                }
                !is_wrong
            }
            (Kind::Set | Kind::Delete, Reply::Again { words, may_have_run: true }) => {
                let kind = OPS[op_of(one.kind)];
                ctx.error_with(UNKNOWN, || {
                    format!("{kind} may have been carried out: {}", disconnects::shown(words))
                });
                false
            }
            (_, Reply::Refused(words) | Reply::Again { words, .. }) => {
                ctx.error_with(REFUSED, || {
                    format!("{}: {}", OPS[op_of(one.kind)], disconnects::shown(words))
                });
                false
            }
            (_, Reply::Value(_) | Reply::Done | Reply::Strange | Reply::Owners(_)) => {
                ctx.error_with(WRONG_REPLY, || format!("a reply that no {} has", OPS[op_of(one.kind)]));
                false
            }
        }
    }

    /// Whether this is a value that the key may have; counts what is wrong with it.
    fn is_current(&self, one: &InFlight, value: &[u8], ctx: &mut BotContext<'_, D>) -> bool {
        let key = one.key as usize;
        let first = self.workload.variant(key);
        let found = self.workload.variant_of(value);
        if found.is_none_or(|found| found != first && !self.versions.are_told_apart()) {
            ctx.error_with(WRONG_VALUE, || {
                let (name, shown) = (self.workload.name(key), disconnects::shown(value));
                let expected_bytes = self.workload.value_of(first).len();
                format!("{name}: {} bytes, not the {expected_bytes} that were put: \"{shown}\"", value.len())
            });
            return false;
        }
        let (Some(found), Version::Read(read)) = (found, one.version) else { return true };
        let is_stale = self.versions.is_stale(key, first, read, found);
        if is_stale {
            ctx.error_with(STALE, || {
                let (name, shown) = (self.workload.name(key), disconnects::shown(value));
                format!("{name} had been written anew before it was read: \"{shown}\"")
            });
        }
        !is_stale
    }
}
