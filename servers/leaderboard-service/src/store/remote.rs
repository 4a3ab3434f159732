//! Requests that a store answers: the request to the store, and how its reply becomes an answer.
//!
//! Each client gets its answers in the order of its requests. A request that needs no store (a wrong path, the metrics)
//! is answered at once, unless one before it is waiting.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

use rustix::fd::BorrowedFd;

use super::super::bodies::{self, Bulk, Members, NewBoard};
use super::super::problem::Problem;
use super::super::responder::{
    self, EACH_SIDE_BY_DEFAULT, EACH_SIDE_MAX, ROWS_BY_DEFAULT, ROWS_MAX, Responder, unescaped, whole,
};
use super::super::routes::{self, Found, Operation, ROUTES, Route};
use super::super::signing::{IDEMPOTENCY_FIELD, KEY_FIELD};
use super::super::{Shared, once};
use super::awaited::{Awaited, Names};
use super::commands::{self, Guard};
use super::link::{End, Link, Lost};
use super::replies::Unexpected;
use super::resp::Scalar;
use super::scripts::Script;
use super::{Failed, NotDone, Store, finished, odd};
use leaderboard::{self, Mode};
use servers_shared::clock;
use servers_shared::fault::ThreadFaults;
use servers_shared::http::request::Request;
use servers_shared::slab::Key;

/// One thread's connection to the store, and the requests that wait for it.
pub(in super::super) struct Remote {
    link: Link,
    queue: Queue,
    random: fastrand::Rng,
}

/// Requests in the order in which they came, over all clients of a thread.
#[derive(Default)]
struct Queue {
    /// The number of the first.
    first: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    client: Key,
    /// A row of the table of routes.
    route: usize,
    keep_alive: bool,
    is_head: bool,
    awaited: Awaited,
    /// The answer, when one before it is missing.
    answer: Option<Vec<u8>>,
}

impl Remote {
    /// Connects, and waits for it as long as it may take; if it fails, `turn` tries again.
    pub(in super::super) fn new(store: &Store) -> Remote {
        let mut link = Link::new(store.target.clone());
        // The requests that arrive are told why.
        let _ = link.wait_until_up();
        Remote { link, queue: Queue::default(), random: fastrand::Rng::new() }
    }

    /// The socket to watch for input and room.
    pub(in super::super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.link.socket()
    }

    /// When `turn` has something to do at the latest, monotonic ns.
    pub(in super::super) fn due_ns(&self) -> u64 {
        self.link.due_ns()
    }

    /// Asks the store for what `request` wants, and returns true; or appends the answer to `out`.
    ///
    /// `has_waiting`: an earlier request of this client waits, so that no answer may be given at once.
    pub(in super::super) fn ask(
        &mut self,
        responder: &mut Responder,
        (client, has_waiting): (Key, bool),
        (request, keep_alive): (&Request<'_>, bool),
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut waiting = Waiting {
            client,
            route: 0,
            keep_alive,
            is_head: request.method == "HEAD",
            awaited: Awaited::Nothing,
            answer: None,
        };
        let mut now = Vec::new();
        match routes::find(request.method, request.path()) {
            Found::Route(route, names) if !is_local(&ROUTES[route]) => {
                waiting.route = route;
                match self.question(responder, &ROUTES[route], names, request) {
                    Ok(awaited) => waiting.awaited = awaited,
                    Err(problem) => waiting.finish(Err(problem), responder, &mut now),
                }
            }
            _ => responder.answer(request, keep_alive, faults, &mut now),
        }
        if !now.is_empty() && !has_waiting {
            out.extend_from_slice(&now);
            return false;
        }
        waiting.answer = Some(now).filter(|answer| !answer.is_empty());
        self.queue.waiting.push_back(waiting);
        true
    }

    /// Puts the command that the request stands for.
    ///
    /// Errors: a request that is refused without asking.
    fn question(
        &mut self,
        responder: &Responder,
        route: &Route,
        [board, member, _]: [&str; 3],
        request: &Request<'_>,
    ) -> Result<Awaited, Problem> {
        let shared = responder.shared();
        let changes = route.changes();
        if changes {
            shared.check_pending()?;
        }
        let guard = if changes { guard(shared, request)? } else { Guard::default() };
        if route.body.is_some() {
            responder::check_content_type(request)?;
        }
        let board = unescaped(board)?.into_owned();
        let member = unescaped(member)?.into_owned();
        let Remote { link, queue, random } = self;
        if !link.is_up() || !link.has_room() {
            let why = if link.is_up() { "too many commands wait".to_owned() } else { link.lost() };
            let detail = format!("the store cannot take it: {why}");
            return Err(Failed { detail, is_certain: true }.problem(changes));
        }
        let number = queue.first + queue.waiting.len() as u64;
        let limit = |absent| whole(request, "limit", absent, ROWS_MAX);
        Ok(match route.operation {
            Operation::Increment | Operation::Replace => {
                let mode =
                    if route.operation == Operation::Replace { Mode::Replace } else { Mode::Increment };
                let (mode, score) = responder::update_of(request, mode)?;
                leaderboard::check_member(&member)?;
                let update = (mode, commands::exact(&score)?, &*member);
                link.put(number, Some(Script::Update), |out| {
                    commands::update(out, &guard, &board, update, random.u64(..));
                });
                Awaited::Update { board, member }
            }
            Operation::Member => {
                link.put(number, Some(Script::Standings), |out| {
                    commands::standings(out, &board, [&*member].into_iter());
                });
                Awaited::Member { board, member }
            }
            Operation::DeleteMember => {
                link.put(number, Some(Script::DeleteMember), |out| {
                    commands::delete_member(out, &guard, &board, &member);
                });
                Awaited::DeleteMember { board, member }
            }
            Operation::Bulk => {
                let bulk: Bulk<'_> = bodies::read(request.body)?;
                shared.check_items(bulk.leaderboards.iter().map(bodies::Part::count).sum())?;
                let mut parts: Vec<commands::Part<'_>> = Vec::with_capacity(bulk.leaderboards.len());
                for (place, part) in bulk.leaderboards.iter().enumerate() {
                    parts
                        .push((&part.leaderboard.0, exact(part).map_err(|problem| problem.at_board(place))?));
                }
                link.put(number, Some(Script::Bulk), |out| {
                    commands::bulk(out, &guard, &parts, false, || random.u64(..));
                });
                let names = |(board, updates): &commands::Part<'_>| {
                    ((*board).to_owned(), Names::of(updates.iter().map(|(_, _, member)| *member)))
                };
                Awaited::Bulk(parts.iter().map(names).collect())
            }
            Operation::Ranks => {
                let Members { members } = bodies::read(request.body)?;
                shared.check_items(members.len())?;
                let names = || members.iter().map(|name| &*name.0);
                link.put(number, Some(Script::Standings), |out| commands::standings(out, &board, names()));
                Awaited::Ranks { board, members: Names::of(names()) }
            }
            Operation::Top | Operation::Range => {
                let is_range = route.operation == Operation::Range;
                if request.query("from").is_some_and(|from| from != "first") {
                    return Err(Problem::new(501, "with --store, ranks are listed from the first only"));
                }
                let first = if is_range { whole(request, "first", 1, u64::MAX)? } else { 1 };
                let limit = limit(ROWS_BY_DEFAULT)?;
                link.put(number, Some(Script::Page), |out| commands::range(out, &board, first, limit));
                Awaited::Page { board, member }
            }
            Operation::Around => {
                let each_side = whole(request, "each_side", EACH_SIDE_BY_DEFAULT, EACH_SIDE_MAX)?;
                link.put(number, Some(Script::Page), |out| commands::around(out, &board, &member, each_side));
                Awaited::Page { board, member }
            }
            Operation::Board => {
                link.put(number, Some(Script::Board), |out| commands::board(out, &board));
                Awaited::Board { board }
            }
            Operation::CreateBoard => {
                let new: NewBoard = bodies::read(request.body)?;
                let rules = new.options()?;
                let board = leaderboard::board_name(new.name.as_deref())?;
                link.put(number, Some(Script::CreateBoard), |out| {
                    commands::create_board(out, &guard, &board, rules);
                });
                Awaited::CreateBoard { board, rules }
            }
            Operation::Boards => {
                let limit = limit(ROWS_MAX)?;
                let after = request.query("after").map(unescaped).transpose()?;
                link.put(number, Some(Script::Boards), |out| {
                    commands::boards(out, after.as_deref(), limit + 1);
                });
                Awaited::Boards { limit: limit as usize }
            }
            Operation::DeleteBoard => {
                link.put(number, Some(Script::DeleteBoard), |out| {
                    commands::delete_board(out, &guard, &board)
                });
                Awaited::DeleteBoard { board }
            }
            Operation::Health => {
                link.put(number, None, commands::ping);
                Awaited::Health
            }
            Operation::Metadata
            | Operation::SetMetadata
            | Operation::DeleteMetadata
            | Operation::Seasons
            | Operation::EndSeason
            | Operation::Season
            | Operation::SeasonMember
            | Operation::DeleteSeason
            | Operation::Schedule
            | Operation::SetSchedule
            | Operation::DeleteSchedule => {
                return Err(Problem::new(501, "with --store there are no metadata and no seasons"));
            }
            Operation::Metrics | Operation::Document => {
                return Err(Problem::new(501, "this is answered without the store"));
            }
        })
    }

    /// Something happened on the socket: takes the replies that have come. Finished answers go to `deliver`, with the
    /// client each is for.
    pub(in super::super) fn receive(
        &mut self,
        responder: &mut Responder,
        faults: &mut ThreadFaults,
        mut deliver: impl FnMut(Key, &[u8]),
    ) {
        loop {
            let Remote { link, queue, .. } = self;
            let read = link.read();
            let mut take = |number, end: End<'_>| queue.finish(number, end, responder, faults, &mut deliver);
            let taken = link.take_replies(&mut take);
            match taken.and(read) {
                Ok(true) => {}
                Ok(false) => return,
                Err(lost) => return link.lose(lost, clock::now_ns(), take),
            }
        }
    }

    /// Connects again, gives up what takes too long, and sends what was put. Returns true when there is a new socket.
    pub(in super::super) fn turn(
        &mut self,
        responder: &mut Responder,
        faults: &mut ThreadFaults,
        mut deliver: impl FnMut(Key, &[u8]),
    ) -> bool {
        let now_ns = clock::now_ns();
        if now_ns >= self.link.due_ns() {
            // The reply may be there, and this thread be late.
            self.receive(responder, faults, &mut deliver);
        }
        match self.link.turn(now_ns) {
            Ok(is_new) => is_new,
            Err(lost) => {
                self.lose(lost, responder, faults, deliver);
                false
            }
        }
    }

    /// The new socket cannot be watched.
    pub(in super::super) fn give_up(
        &mut self,
        why: &io::Error,
        responder: &mut Responder,
        faults: &mut ThreadFaults,
        deliver: impl FnMut(Key, &[u8]),
    ) {
        self.lose(Lost::Refused(why.to_string()), responder, faults, deliver);
    }

    /// The connection is over.
    fn lose(
        &mut self,
        why: Lost,
        responder: &mut Responder,
        faults: &mut ThreadFaults,
        mut deliver: impl FnMut(Key, &[u8]),
    ) {
        let Remote { link, queue, .. } = self;
        let take = |number, end: End<'_>| queue.finish(number, end, responder, faults, &mut deliver);
        link.lose(why, clock::now_ns(), take);
    }

    /// Lets the metrics see how the connection is.
    pub(in super::super) fn publish(&self, store: &Store, me: usize) {
        let counters = &store.threads[me];
        let set = |counter: &std::sync::atomic::AtomicU64, value| counter.store(value, Ordering::Relaxed);
        set(&counters.is_up, u64::from(self.link.is_up()));
        set(&counters.losses, self.link.losses);
        set(&counters.unknown, self.link.unknown);
        set(&counters.under_way, self.link.under_way() as u64);
    }
}

impl Queue {
    fn finish(
        &mut self,
        number: u64,
        end: End<'_>,
        responder: &mut Responder,
        faults: &mut ThreadFaults,
        deliver: &mut impl FnMut(Key, &[u8]),
    ) {
        let place = (number - self.first) as usize;
        let Some(waiting) = self.waiting.get_mut(place) else { return };
        waiting.answer = Some(waiting.answer_to(end, responder, faults));
        while let Some(Waiting { client, answer: Some(answer), .. }) = self.waiting.front() {
            deliver(*client, answer);
            self.waiting.pop_front();
            self.first += 1;
        }
    }
}

impl Waiting {
    fn answer_to(&self, end: End<'_>, responder: &mut Responder, faults: &mut ThreadFaults) -> Vec<u8> {
        let route = &ROUTES[self.route];
        responder.body.clear();
        let timeout = responder.shared().options.store_timeout;
        let done = match (&self.awaited, end) {
            (Awaited::Health, End::One(Scalar::Text(b"PONG"))) => {
                responder.body.extend_from_slice(b"{\"status\":\"ok\"}");
                Ok(())
            }
            (awaited, end) => finished(end, timeout).and_then(|fields| {
                awaited.write(fields, responder, faults).map_err(|unexpected| match unexpected {
                    Unexpected::Refused(refused) => NotDone::Refused(refused),
                    Unexpected::Odd => odd(),
                })
            }),
        };
        let done = done.map(|()| route.answer.0).map_err(|not_done| match not_done {
            NotDone::Refused(refused) => self.awaited.problem(refused),
            NotDone::Failed(failed) => failed.problem(route.changes()),
        });
        let mut out = Vec::with_capacity(responder.body.len() + 128);
        self.finish(done, responder, &mut out);
        out
    }

    fn finish(&self, done: Result<u16, Problem>, responder: &mut Responder, out: &mut Vec<u8>) {
        responder.finish(Some(self.route), done, (self.is_head, self.keep_alive), out);
    }
}

/// Whether the service knows it without its store.
fn is_local(route: &Route) -> bool {
    matches!(route.operation, Operation::Metrics | Operation::Document)
}

/// Errors: the change is not signed as it must be, or its idempotency key is no such key.
fn guard(shared: &Shared, request: &Request<'_>) -> Result<Guard, Problem> {
    let signer: Box<[u8]> = request.field(KEY_FIELD).unwrap_or_default().into();
    let mut guard = Guard::default();
    if let Some(keys) = &shared.keys {
        let signed = keys.check(request, &shared.nonces)?;
        guard.nonce = Some((signer.clone(), signed.nonce.into()));
    }
    if let Some(key) = request.field(IDEMPOTENCY_FIELD) {
        once::check_key(key)?;
        guard.once = Some((signer, key.into()));
        let digest = once::digest([request.method, request.target], request.body);
        guard.digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    }
    Ok(guard)
}

/// The updates of a part of a bulk. Errors: the first item that is wrong.
fn exact<'a>(part: &'a bodies::Part<'_>) -> Result<Vec<(Mode, i64, &'a str)>, Problem> {
    let exact = |(item, update): (usize, leaderboard::Update<'a>)| {
        let score: Result<i64, Problem> = commands::exact(&update.score);
        Ok((update.mode, score.map_err(|problem| problem.at_item(item))?, update.member))
    };
    part.updates()?.into_iter().enumerate().map(exact).collect()
}
