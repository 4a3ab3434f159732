//! Clients of a leaderboard: increments, one at a time or in bulk, reads of ranks, and an audit after the hold.
//!
//! Over HTTP, or with protobuf messages over WebSocket or gRPC (`dialect`); all else is the same.
//! Each worker updates its own members, at most one update of a member at a time, and tracks their scores. So every
//! acknowledged score is known in advance, and one that differs is an error at once (`wrong score`). Members get new
//! names in each trial and start at 0. An update whose response never came may have been applied or not; from then on
//! any score in a range is right.
//! When all workers have finished the load, the audit reads back what was updated: scores must be within their ranges,
//! ranks must be consistent with scores, and a member must be found at the rank that was reported for it. Expected
//! values come from these records alone, never from the service.

mod audit;
mod cheats;
mod dialect;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod members;
mod rank_bounds;
mod rank_history;
mod reply;
mod signing;

use std::fmt;
use std::sync::Arc;

use drivers::grpc;
use drivers::http::{Answer, Http};
use measure::{ErrorKind, MetricNames, Role};
use plan::{HttpBots, LeaderboardBots, LeaderboardProtocol, Scheme, WorkerPlan};

use crate::disconnects;
use crate::http::source::{Chosen, Source};
use crate::http::templates::{CapturedVars, Ready, RequestContext, Shares};
use crate::http::{counter_roles, errors, with_roles};
use audit::Audit;
use cheats::Cheats;
use dialect::{Ask, Dialect, Json, Messages, Over, Written};
use members::{Known, Members};
use reply::{First, Page, Standing};
use signing::{SignedChange, Signer};

const UPDATE: usize = 0;
const TOP: usize = 1;
const RANK: usize = 2;
const AROUND: usize = 3;
const AUDIT: usize = 4;
/// No message of the load, and so not among its operations.
const CHEAT: usize = 5;

/// Behind the causes of HTTP.
const WRONG_SCORE: usize = errors::CAUSES.len();
const WRONG_RANK: usize = WRONG_SCORE + 1;
const CHEAT_ACCEPTED: usize = WRONG_SCORE + 2;
const CHEAT_ANSWERED: usize = WRONG_SCORE + 3;
const OWN_CAUSES: [&str; 4] = ["wrong score", "wrong rank", "cheat accepted", "cheat not refused"];

/// Behind them, where gRPC is spoken: its statuses.
const GRPC_AT: usize = WRONG_SCORE + OWN_CAUSES.len();

/// Behind those of every source: facts that were read back after the hold, those of them that were wrong, and further
/// ones that could not be read; changes of
/// cheaters that must be refused, those that were, and those that were accepted.
const OWN_COUNTERS: [(&str, Role); 6] = [
    ("audit_checked", Role::AuditChecked),
    ("audit_wrong", Role::AuditWrong),
    ("audit_unread", Role::AuditUnread),
    ("cheats_sent", Role::Cheats),
    ("cheats_refused", Role::Cheats),
    ("cheats_accepted", Role::Cheats),
];

/// Rows that a read of the first members asks for.
const TOP_ROWS: usize = 10;
/// Of the token of such a read: they hold a number of rows.
const ROWS_BITS: u32 = 4;
/// Points of one update, at most.
const POINTS_MAX: i64 = 1000;

/// A request that updates.
#[derive(Default)]
struct Open {
    /// members and points
    updates: Vec<(u32, i64)>,
    /// of `Members`, when it was sent
    passes: u64,
    told: u64,
    /// as it was sent, where cheaters may repeat it
    change: Option<Box<SignedChange>>,
}

/// All clients of one worker.
pub struct Leaderboard {
    context: RequestContext,
    dialect: Dialect,
    /// sent with every request
    headers: Vec<(String, String)>,
    bulk: usize,
    shares: Shares,
    members: Members,
    audit: Audit,
    random: fastrand::Rng,
    /// updates of the requests to come (none yet) and of those that are open, by the request's token
    open: slab::Slab<Open>,
    /// reads of a member that are to come or open, by the request's token
    reads: slab::Slab<Known>,
    signer: Option<Signer>,
    cheats: Cheats,
    worker: usize,
    audited: (u64, u64),
}

impl<D: Http> Source<D> for Leaderboard {
    type Settings = LeaderboardBots;

    fn transport(settings: &LeaderboardBots) -> &HttpBots {
        &settings.http
    }

    fn connect_path(settings: &LeaderboardBots, plan: &WorkerPlan) -> String {
        let path = &plan.target.path;
        match settings.protocol {
            LeaderboardProtocol::Http | LeaderboardProtocol::Grpc => path.clone(),
            // A path given with ws:// is used as it is.
            LeaderboardProtocol::WebSocket => match plan.target.scheme {
                Scheme::Ws | Scheme::Wss if path != "/" => path.clone(),
                _ => format!("{}/ws", path.trim_end_matches('/')),
            },
        }
    }

    fn metric_names(settings: &LeaderboardBots) -> Arc<MetricNames> {
        let requests = settings.http.requests.iter().map(|request| request.name.as_str());
        let ops: Vec<&str> = requests.chain([OPS[AUDIT]]).collect();
        let of_grpc = match settings.protocol {
            LeaderboardProtocol::Grpc => &errors::GRPC[..],
            LeaderboardProtocol::Http | LeaderboardProtocol::WebSocket => &[],
        };
        let causes = [&errors::CAUSES[..], &OWN_CAUSES, of_grpc].concat();
        let own = OWN_COUNTERS.map(|(name, role)| (name, Some(role)));
        let counters = [&counter_roles::<D>()[..], &own].concat();
        let names: Vec<&str> = counters.iter().map(|(name, _)| *name).collect();
        let own = OWN_CAUSES.map(|cause| (cause, ErrorKind::WrongReply));
        disconnects::metric_names(&ops, &causes, &names, &[&errors::KINDS[..], &own].concat())
            .with_op_roles(&[(OPS[AUDIT], Role::Audit)])
            .with_counter_roles(&with_roles(&counters))
    }

    fn new(settings: &LeaderboardBots, plan: &WorkerPlan) -> Self {
        let weights = settings.http.requests.iter().map(|request| request.weight);
        let workers = plan.workers as u64;
        let base = plan.target.path.trim_end_matches('/');
        let (dialect, headers) = match settings.protocol {
            LeaderboardProtocol::Http => (Dialect::Json(Json::new(base, &settings.board)), Vec::new()),
            LeaderboardProtocol::WebSocket => {
                (Dialect::of_messages(Messages::new(Over::WebSocket, &settings.board)), Vec::new())
            }
            LeaderboardProtocol::Grpc => {
                let deadline = format!("{}m", settings.http.timeout_ns / 1_000_000);
                let headers = vec![("grpc-timeout".to_owned(), deadline)];
                (Dialect::of_messages(Messages::new(Over::Grpc, &settings.board)), headers)
            }
        };
        let mut context = RequestContext::of(plan, &settings.http);
        context.envelope = dialect.envelope();
        let own = (settings.members + workers - 1 - plan.worker as u64) / workers;
        Leaderboard {
            context,
            dialect,
            headers,
            // A member is in one request at a time, so a bulk has room for half of them at most.
            bulk: settings.bulk.min(own.max(2) / 2) as usize,
            shares: Shares::of(weights.collect()),
            members: Members::new(own.max(1) as usize, plan.worker),
            audit: Audit::default(),
            random: fastrand::Rng::with_seed(plan.seed ^ 0x6c65_6164_6572),
            open: slab::Slab::new(),
            reads: slab::Slab::new(),
            signer: settings.key.as_ref().and_then(|key| Signer::new(key, plan.worker)),
            cheats: Cheats::new(settings.cheaters),
            worker: plan.worker,
            audited: (0, 0),
        }
    }

    fn begin(&mut self, realtime_zero_ns: u64) {
        self.members.name_after(realtime_zero_ns / 1_000_000);
        let worker = self.worker;
        self.signer.iter_mut().for_each(|signer| signer.begin(worker, realtime_zero_ns));
    }

    fn set_now(&mut self, unix_ns: u64) {
        self.signer.iter_mut().for_each(|signer| signer.set_now(unix_ns));
    }

    fn is_recorded(chosen: Chosen) -> bool {
        chosen.op != CHEAT
    }

    fn choose(&mut self) -> Chosen {
        if self.cheats.is_next(&mut self.random) {
            return Chosen { op: CHEAT, token: self.cheats.reserve() };
        }
        let op = self.shares.choose(&mut self.random);
        let token = match op {
            UPDATE => self.open.insert(Open::default()) as u64,
            TOP => self.top_token(),
            _ => {
                let member = self.random.u32(..self.members.len() as u32);
                self.reads.insert(self.members.known(member)) as u64
            }
        };
        Chosen { op, token }
    }

    fn ready(&mut self, chosen: Chosen, _: &CapturedVars) -> Ready<'_, D::Prepared> {
        let token = chosen.token as usize;
        let ask = match chosen.op {
            UPDATE => {
                let updates = draw(&mut self.members, &mut self.random, self.bulk);
                if !updates.is_empty() {
                    let mut change = self.change(updates);
                    if let Some(signer) = &mut self.signer {
                        let signature = signer.sign(&change.claim, &change.body);
                        self.dialect.attach(&signature, &mut change);
                    }
                    let prepared = self.prepare_change::<D>(&change);
                    self.open[token].updates = change.updates.clone();
                    self.open[token].passes = self.members.passes();
                    self.open[token].told = self.members.told();
                    self.open[token].change = self.cheats.wants_replayable().then(|| Box::new(change));
                    return Ready::Rendered(prepared);
                }
                // All members are in open requests.
                Ask::Top(TOP_ROWS)
            }
            CHEAT => {
                let member = self.random.u32(..self.members.len() as u32);
                let points = self.random.i64(1..=POINTS_MAX);
                let honest = self.change(vec![(member, points)]);
                let (token, signer) = (chosen.token, self.signer.as_mut());
                let change = self.cheats.request(token, honest, &self.dialect, signer, &mut self.random);
                return Ready::Rendered(self.prepare_change::<D>(&change));
            }
            TOP => Ask::Top(TOP_ROWS),
            RANK => Ask::Rank(self.members.name(self.reads[token].member)),
            AROUND => Ask::Around(self.members.name(self.reads[token].member)),
            _ => self.audit.request(chosen.token, &self.members),
        };
        let Written { method, path, body, .. } = self.dialect.write(&ask);
        let headers = self.headers_of(&body);
        Ready::Rendered(self.context.prepare::<D>(method, &path, &headers, &body, true))
    }

    fn check(
        &mut self,
        chosen: Chosen,
        answer: &Answer<'_>,
        wrong: impl FnOnce(usize, &dyn fmt::Display),
    ) -> bool {
        let found = match chosen.op {
            UPDATE => self.check_update(chosen.token as usize, answer),
            AUDIT => self.check_audit(chosen.token, answer),
            CHEAT => {
                let status = match answer.status {
                    200 if self.cheats.is_bulk(chosen.token) => {
                        self.dialect.refusal_of_bulk(answer.body).map_or(200, |(status, _)| status)
                    }
                    status => status,
                };
                self.cheats.check(chosen.token, status, &mut self.members).map_err(|wrong| match wrong {
                    cheats::Wrong::Accepted(text) => (CHEAT_ACCEPTED, text),
                    cheats::Wrong::Status(text) => (CHEAT_ANSWERED, text),
                })
            }
            RANK | AROUND => self.check_read(chosen, answer),
            _ => self.check_top(chosen.token, answer),
        };
        match found {
            Ok(()) => true,
            Err((cause, text)) => {
                wrong(cause, &format_args!("{}: {text}", OPS[chosen.op]));
                false
            }
        }
    }

    fn abandoned(&mut self, chosen: Chosen) {
        match chosen.op {
            UPDATE => {
                let open = self.open.remove(chosen.token as usize);
                self.members.give_up(&open.updates);
            }
            CHEAT => self.cheats.abandon(chosen.token),
            AUDIT => self.audit.give_up(chosen.token),
            RANK | AROUND => _ = self.reads.remove(chosen.token as usize),
            _ => {}
        }
    }

    fn audit(&mut self) -> Option<Chosen> {
        let token = self.audit.next(&self.members, &mut self.random)?;
        Some(Chosen { op: AUDIT, token })
    }

    fn audits() -> bool {
        true
    }

    fn end(&mut self) {
        self.audit.end();
    }

    fn take_counts(&mut self, each: impl FnMut(u64)) {
        let (checked, wrong) = std::mem::take(&mut self.audited);
        let unread = self.audit.take_unread();
        let cheats::Counts { sent, refused, accepted } = self.cheats.take_counts();
        [checked, wrong, unread, sent, refused, accepted].into_iter().for_each(each);
    }
}

/// For texts of errors.
const OPS: [&str; 6] = ["update", "top", "rank", "around", "audit", "cheat"];

/// What is wrong with a response: cause and text.
type Wrong = (usize, String);

/// Rounds in which members are drawn before a bulk goes out with fewer: with most of them in open requests.
const DRAWS_MAX: usize = 20;

/// Draws up to `count` distinct members that are in no open request, with the points to add to each, and begins them.
fn draw(members: &mut Members, random: &mut fastrand::Rng, count: usize) -> Vec<(u32, i64)> {
    let mut updates: Vec<(u32, i64)> = Vec::with_capacity(count);
    let mut drawn: Vec<u32> = Vec::with_capacity(count);
    for _ in 0..DRAWS_MAX {
        drawn.clear();
        // Ask for a few more than are missing, so that one round is enough when few are in flight.
        let missing = count - updates.len();
        drawn.extend((0..missing + missing / 16 + 4).map(|_| random.u32(..members.len() as u32)));
        members.prefetch(drawn.iter().copied());
        for member in &drawn {
            if updates.len() < count && members.begin(*member) {
                updates.push((*member, random.i64(1..=POINTS_MAX)));
            }
        }
        if updates.len() == count {
            break;
        }
    }
    updates
}

impl Leaderboard {
    /// What a request carries besides its body.
    fn headers_of(&self, body: &[u8]) -> Vec<(String, String)> {
        match &self.dialect {
            Dialect::Json(_) if !body.is_empty() => {
                vec![("content-type".to_owned(), "application/json".to_owned())]
            }
            Dialect::Json(_) | Dialect::Messages(_) => self.headers.clone(),
        }
    }

    /// Updates of one member or of several, in the form in which they are sent, not signed.
    fn change(&self, updates: Vec<(u32, i64)>) -> SignedChange {
        let named = |(member, points): &(u32, i64)| (self.members.name(*member), *points);
        let ask = match updates.as_slice() {
            [one] => {
                let (name, points) = named(one);
                Ask::Update(name, points)
            }
            updates => Ask::Bulk(updates.iter().map(named).collect()),
        };
        let Written { method, path, body, claim } = self.dialect.write(&ask);
        let headers = self.headers_of(&body);
        SignedChange { method, target: path, headers, body, claim, is_signed: false, updates }
    }

    fn prepare_change<D: Http>(&self, change: &SignedChange) -> D::Prepared {
        self.context.prepare::<D>(change.method, &change.target, &change.headers, &change.body, true)
    }

    fn is_ok(&self, answer: &Answer<'_>) -> Result<(), Wrong> {
        match answer.status {
            200 => Ok(()),
            status => {
                let text = match answer.grpc.and_then(grpc::index) {
                    Some(index) => format!("{}: \"{}\"", grpc::NAMES[index], errors::shown(answer.body)),
                    None => format!("status {status}: \"{}\"", self.dialect.shown(answer.body)),
                };
                Err((errors::of_answer(answer, GRPC_AT), text))
            }
        }
    }

    /// What a read of the first members remembers: what they must be when it is sent.
    fn top_token(&self) -> u64 {
        let First { rows, score } = self.members.first(TOP_ROWS);
        rows as u64 | score.unsigned_abs() << ROWS_BITS
    }

    /// A page's ranks follow each other, and no score is larger than the one before.
    fn page<'a>(&self, answer: &'a Answer<'_>) -> Result<Page<'a>, Wrong> {
        self.is_ok(answer)?;
        let page = self.dialect.page(answer.body).map_err(unreadable)?;
        page.check().map_err(|text| (WRONG_RANK, text))?;
        Ok(page)
    }

    fn check_top(&self, token: u64, answer: &Answer<'_>) -> Result<(), Wrong> {
        let rows = (token & ((1 << ROWS_BITS) - 1)) as usize;
        let known = First { rows, score: (token >> ROWS_BITS) as i64 };
        self.page(answer)?.begins_the_board(known).map_err(|text| (WRONG_RANK, text))
    }

    /// A read of one member: its standing, or those around it.
    fn check_read(&mut self, chosen: Chosen, answer: &Answer<'_>) -> Result<(), Wrong> {
        let known = self.reads.remove(chosen.token as usize);
        // A member without an acknowledged update at the time of the request may not exist.
        if answer.status == 404 && known.least == 0 {
            return Ok(());
        }
        if chosen.op == AROUND {
            let page = self.page(answer)?;
            let standing = page.standing_of(&self.members.name(known.member));
            let standing = standing.map_err(|text| (WRONG_RANK, text))?;
            return self.check_standing(known, &standing);
        }
        self.is_ok(answer)?;
        self.check_standing(known, &self.dialect.standing(answer.body).map_err(unreadable)?)
    }

    fn check_standing(&mut self, known: Known, standing: &Standing<'_>) -> Result<(), Wrong> {
        self.members.check_during_load(known, standing).map_err(|text| (WRONG_SCORE, text))?;
        self.members
            .check_rank(known.member, known.passes, standing)
            .and_then(|()| self.members.compare_read(known, standing))
            .map_err(|text| (WRONG_RANK, text))
    }

    fn check_update(&mut self, token: usize, answer: &Answer<'_>) -> Result<(), Wrong> {
        let Open { updates, passes, told, change } = self.open.remove(token);
        let refused_within = match (answer.status, updates.len()) {
            (200, 2..) => self.dialect.refusal_of_bulk(answer.body),
            _ => None,
        };
        let (status, refused) = match refused_within {
            Some((status, text)) => {
                (status, Err((errors::of_status(status), format!("status {status}: \"{text}\""))))
            }
            None => (answer.status, self.is_ok(answer)),
        };
        if let Err(wrong) = refused {
            // A refusal means that nothing was applied; anything else leaves that open, including gRPC's CANCELLED
            // (499).
            match status {
                400..=498 => self.members.refuse(&updates),
                _ => self.members.give_up(&updates),
            }
            return Err(wrong);
        }
        let rows = match updates.as_slice() {
            [] => return self.check_top(0, answer),
            [_] => self.dialect.standing(answer.body).map(|standing| vec![standing]),
            _ => self.dialect.bulk(answer.body),
        };
        let rows = rows.map_err(unreadable).inspect_err(|_| self.members.give_up(&updates))?;
        if rows.len() != updates.len() {
            self.members.give_up(&updates);
            return Err((
                errors::WRONG_JSON,
                format!("{} results for {} updates", rows.len(), updates.len()),
            ));
        }
        if let Some(change) = change {
            self.cheats.keep_replayable(*change);
        }
        self.members.prefetch(updates.iter().map(|(member, _)| *member));
        let mut outcome = Ok(());
        for ((member, points), row) in updates.iter().zip(&rows) {
            let was_certain = self.members.is_certain(*member);
            let found = self.members.settle(*member, *points, row);
            let is_right = found.is_ok();
            outcome = outcome.and(found.map_err(|text| (WRONG_SCORE, text)));
            let rank = self.members.check_rank(*member, passes, row);
            let rank = match was_certain && is_right {
                true => rank.and_then(|()| self.members.compare(*member, told, row)),
                false => rank,
            };
            outcome = outcome.and(rank.map_err(|text| (WRONG_RANK, text)));
        }
        outcome
    }

    fn check_audit(&mut self, token: u64, answer: &Answer<'_>) -> Result<(), Wrong> {
        self.is_ok(answer).inspect_err(|_| self.audit.give_up(token))?;
        let (checked, wrong) = self.audit.check(token, &self.dialect, answer.body, &self.members);
        self.audited.0 += checked;
        match wrong {
            None => Ok(()),
            Some((count, is_rank, text)) => {
                self.audited.1 += count;
                Err((if is_rank { WRONG_RANK } else { WRONG_SCORE }, text))
            }
        }
    }
}

/// A response that does not match the request.
fn unreadable(text: String) -> Wrong {
    (errors::WRONG_JSON, text)
}

#[cfg(test)]
mod tests;
