//! Clients of a leaderboard: increments, one at a time or in bulk, reads of ranks, and an audit after the hold.
//!
//! Over HTTP, or with protobuf messages over WebSocket or gRPC (`dialect`); all else is the same.
//! Each worker updates members of its own, at most one update of a member at a time, and keeps their scores: so every
//! acknowledged score is known beforehand, and one that differs is an error at once (`wrong score`). Members get new names
//! in each trial and begin at 0. An update whose response never came may have been applied or not; from then on a
//! range is right.
//! After the load of all workers is over the audit reads back what was updated: scores must be within their ranges,
//! ranks must order them, and a member must be found at the rank that was reported for it. Expected values come from these
//! records alone, never from the service.

mod audit;
mod dialect;
mod members;
mod reply;

use std::fmt;
use std::sync::Arc;

use drivers::grpc;
use drivers::http::{Answer, Http};
use measure::interval::{AUDIT_CHECKED, AUDIT_WRONG};
use measure::{ErrorKind, MetricNames};
use plan::{HttpBots, LeaderboardBots, LeaderboardProtocol, Scheme, WorkerPlan};

use crate::ends;
use crate::http::source::{Chosen, Source};
use crate::http::templates::{CapturedVars, Ready, RequestContext, Shares};
use crate::http::{PHASE_NAMES, errors};
use audit::Audit;
use dialect::{Ask, Dialect, Json, Messages, Over, Written};
use members::Members;

const UPDATE: usize = 0;
const TOP: usize = 1;
const RANK: usize = 2;
const AROUND: usize = 3;
const AUDIT: usize = 4;

/// Behind the causes of HTTP.
const WRONG_SCORE: usize = errors::CAUSES.len();
const WRONG_RANK: usize = WRONG_SCORE + 1;
const OWN_CAUSES: [&str; 2] = ["wrong score", "wrong rank"];

/// Behind them, where gRPC is spoken: its statuses.
const GRPC_AT: usize = WRONG_RANK + 1;

/// Rows that a read of the first members asks for.
const TOP_ROWS: usize = 10;
/// Points of one update, at most.
const POINTS_MAX: i64 = 1000;

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
    /// updates of the requests to come (none yet) and of those that are open: members and points, by the request's token
    open: slab::Slab<Vec<(u32, i64)>>,
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
            // A path that is said with ws:// is meant as it is.
            LeaderboardProtocol::WebSocket => match plan.target.scheme {
                Scheme::Ws | Scheme::Wss if path != "/" => path.clone(),
                _ => format!("{}/ws", path.trim_end_matches('/')),
            },
        }
    }

    fn metric_names(settings: &LeaderboardBots) -> Arc<MetricNames> {
        let requests = settings.http.requests.iter().map(|request| request.name.as_str());
        let ops: Vec<&str> = requests.chain(["audit"]).collect();
        let of_grpc = match settings.protocol {
            LeaderboardProtocol::Grpc => &errors::GRPC[..],
            LeaderboardProtocol::Http | LeaderboardProtocol::WebSocket => &[],
        };
        let causes = [&errors::CAUSES[..], &OWN_CAUSES, of_grpc].concat();
        let counters = [&PHASE_NAMES[..], &[AUDIT_CHECKED, AUDIT_WRONG]].concat();
        let own = OWN_CAUSES.map(|cause| (cause, ErrorKind::WrongReply));
        ends::metric_names(&ops, &causes, &counters, &[&errors::KINDS[..], &own].concat())
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
            audited: (0, 0),
        }
    }

    fn begin(&mut self, realtime_zero_ns: u64) {
        self.members.name_after(realtime_zero_ns / 1_000_000);
    }

    fn choose(&mut self) -> Chosen {
        let op = self.shares.choose(&mut self.random);
        let token = match op {
            UPDATE => self.open.insert(Vec::new()) as u64,
            _ => self.random.u64(..self.members.len() as u64),
        };
        Chosen { op, token }
    }

    fn ready(&mut self, chosen: Chosen, _: &CapturedVars) -> Ready<'_, D::Prepared> {
        let token = chosen.token as usize;
        let ask = match chosen.op {
            UPDATE => {
                let updates = draw(&self.members, &mut self.random, self.bulk);
                self.members.begin(&updates);
                let named = |(member, points): &(u32, i64)| (self.members.name(*member), *points);
                let ask = match updates.as_slice() {
                    // All members are in open requests.
                    [] => Ask::Top(TOP_ROWS),
                    [one] => {
                        let (name, points) = named(one);
                        Ask::Update(name, points)
                    }
                    updates => Ask::Bulk(updates.iter().map(named).collect()),
                };
                self.open[token] = updates;
                ask
            }
            TOP => Ask::Top(TOP_ROWS),
            RANK => Ask::Rank(self.members.any(token)),
            AROUND => Ask::Around(self.members.any(token)),
            _ => self.audit.request(chosen.token, &self.members),
        };
        let written = self.dialect.write(&ask);
        Ready::Rendered(self.prepare::<D>(&written))
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
            // One who was never updated is not there.
            RANK | AROUND if answer.status == 404 && !self.members.was_updated(chosen.token as usize) => {
                Ok(())
            }
            RANK => self.check_rank(chosen.token as usize, answer),
            _ => self.check_page(answer),
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
                let updates = self.open.remove(chosen.token as usize);
                self.members.give_up(&updates);
            }
            AUDIT => self.audit.give_up(chosen.token),
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

    fn take_audited(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.audited)
    }
}

/// For texts of errors.
const OPS: [&str; 5] = ["update", "top", "rank", "around", "audit"];

/// What is wrong with a response: cause and text.
type Wrong = (usize, String);

/// Draws up to `count` distinct members that are in no open request, with the points to add to each.
fn draw(members: &Members, random: &mut fastrand::Rng, count: usize) -> Vec<(u32, i64)> {
    let mut updates: Vec<(u32, i64)> = Vec::with_capacity(count);
    let mut tries = 0;
    while updates.len() < count && tries < 20 * count + 100 {
        tries += 1;
        let member = random.u32(..members.len() as u32);
        if members.is_free(member) && !updates.iter().any(|(other, _)| *other == member) {
            updates.push((member, random.i64(1..=POINTS_MAX)));
        }
    }
    updates
}

impl Leaderboard {
    fn prepare<D: Http>(&self, written: &Written) -> D::Prepared {
        let json = [("content-type".to_owned(), "application/json".to_owned())];
        let headers: &[_] = match &self.dialect {
            Dialect::Json(_) if !written.body.is_empty() => &json,
            Dialect::Json(_) | Dialect::Messages(_) => &self.headers,
        };
        self.context.prepare::<D>(written.method, &written.path, headers, &written.body, true)
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

    /// A page's ranks follow each other, and no score is larger than the one before.
    fn check_page(&self, answer: &Answer<'_>) -> Result<(), Wrong> {
        self.is_ok(answer)?;
        let page = self.dialect.page(answer.body).map_err(unreadable)?;
        page.check().map_err(|text| (WRONG_RANK, text))
    }

    fn check_update(&mut self, token: usize, answer: &Answer<'_>) -> Result<(), Wrong> {
        let updates = self.open.remove(token);
        if let Err(wrong) = self.is_ok(answer) {
            // A refusal says that nothing was applied; anything else leaves that open, CANCELLED of gRPC (499) as well.
            match answer.status {
                400..=498 => self.members.refuse(&updates),
                _ => self.members.give_up(&updates),
            }
            return Err(wrong);
        }
        let rows = match updates.as_slice() {
            [] => return self.check_page(answer),
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
        let mut outcome = Ok(());
        for ((member, points), row) in updates.iter().zip(&rows) {
            let found = self.members.settle(*member, *points, row);
            outcome = outcome.and(found.map_err(|text| (WRONG_SCORE, text)));
            if row.rank == 0 {
                outcome =
                    outcome.and(Err((WRONG_RANK, format!("{} has rank 0", self.members.name(*member)))));
            }
        }
        outcome
    }

    fn check_rank(&mut self, member: usize, answer: &Answer<'_>) -> Result<(), Wrong> {
        self.is_ok(answer)?;
        let standing = self.dialect.standing(answer.body).map_err(unreadable)?;
        self.members.check_during_load(member, &standing).map_err(|text| (WRONG_SCORE, text))
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

/// A response that is not what was asked for.
fn unreadable(text: String) -> Wrong {
    (errors::WRONG_JSON, text)
}

#[cfg(test)]
mod tests;
