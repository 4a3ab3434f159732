//! From a request to its answer.

use std::sync::Arc;

use super::bodies::{self, Bulk, Members, Metadata, NewBoard, NewSchedule, NewSeason};
use super::once::Begun;
use super::planted;
use super::problem::Problem;
use super::routes::{self, Found, Operation, ROUTES, Route};
use super::signing::IDEMPOTENCY_FIELD;
use super::tally::Tally;
use super::{Shared, changes, json, openapi, tally, websocket};
use leaderboard::{self, Archive, Board, Mode, Schedule, Score, Update};
use servers_shared::fault::ThreadFaults;
use servers_shared::http::request::{Fault, Request};
use servers_shared::http::response;

pub(super) const ROWS_MAX: u64 = 1_000;
pub(super) const EACH_SIDE_MAX: u64 = 500;
pub(super) const ROWS_BY_DEFAULT: u64 = 10;
pub(super) const EACH_SIDE_BY_DEFAULT: u64 = 5;

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What answers the requests of one thread.
pub(super) struct Responder {
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    /// The body that is being written: its length comes before it.
    pub(super) body: Vec<u8>,
    /// The answer that is being made shows something of the boards, or has changed them.
    is_about_boards: bool,
    /// An answer since `take_touched` was: the disk must acknowledge before any of them leaves.
    has_touched: bool,
}

impl Responder {
    pub(super) fn new(shared: &Arc<Shared>, me: usize) -> Responder {
        Responder {
            shared: shared.clone(),
            tally: shared.tallies[me].clone(),
            body: Vec::new(),
            is_about_boards: false,
            has_touched: false,
        }
    }

    /// Whether an answer since the last call must wait for the disk.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.has_touched)
    }

    /// Appends the answer to `out`. Without `keep_alive` it says that it is the last one.
    pub(super) fn answer(
        &mut self,
        request: &Request<'_>,
        keep_alive: bool,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) {
        self.body.clear();
        self.is_about_boards = false;
        let path = request.path();
        let (number, done) = match routes::find(request.method, path) {
            Found::Nothing if path == websocket::PATH && self.shared.store.is_some() => {
                (None, Err(Problem::not_with_a_store()))
            }
            Found::Nothing => (None, Err(Problem::new(404, format!("there is nothing at {path}")))),
            Found::WrongMethod => {
                let methods = routes::methods(path);
                let detail = format!("{path} does not have the method {}; it has {methods}", request.method);
                let fields = format!("Allow: {methods}\r\n");
                let how = (request.method == "HEAD", keep_alive);
                return self.refuse_with(None, &Problem::new(405, detail), how, &fields, out);
            }
            Found::Route(number, names) => {
                (Some(number), self.follow_once(&ROUTES[number], names, request, faults))
            }
        };
        self.finish(number, done, (request.method == "HEAD", keep_alive), out);
    }

    /// Appends the answer to a request of this route: the status with the body that was written, or the refusal.
    pub(super) fn finish(
        &mut self,
        number: Option<usize>,
        done: Result<u16, Problem>,
        (is_head, keep_alive): (bool, bool),
        out: &mut Vec<u8>,
    ) {
        let status = match done {
            Ok(status) => status,
            Err(problem) => {
                return self.refuse_with(number, &problem, (is_head, keep_alive), problem.fields(), out);
            }
        };
        self.has_touched |= self.is_about_boards;
        self.tally.count_request(number, status);
        let content_type = match number.map(|number| ROUTES[number].operation) {
            Some(Operation::Metrics) => METRICS,
            _ => JSON,
        };
        response::write_head(out, status, content_type, keep_alive, self.body.len());
        if !is_head {
            out.extend_from_slice(&self.body);
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn count_updates(&self, count: u64) {
        self.tally.count_updates(count);
    }

    /// Appends the answer to bytes that are no request; it is the last one.
    pub(super) fn answer_fault(&mut self, fault: Fault, out: &mut Vec<u8>) {
        let detail = match fault {
            Fault::BodyTooLarge => {
                format!("a body has at most {} bytes (--body-max)", self.shared.options.body_max)
            }
            Fault::LengthRequired => "a body needs a Content-Length; chunks are not taken".to_owned(),
            fault => format!("no valid request: {fault:?}"),
        };
        self.refuse(&Problem::new(fault.status(), detail), false, out);
    }

    /// Appends an answer that does not depend on the request.
    pub(super) fn refuse(&mut self, problem: &Problem, keep_alive: bool, out: &mut Vec<u8>) {
        self.is_about_boards = false;
        self.refuse_with(None, problem, (false, keep_alive), problem.fields(), out);
    }

    fn refuse_with(
        &mut self,
        route: Option<usize>,
        problem: &Problem,
        (is_head, keep_alive): (bool, bool),
        fields: &str,
        out: &mut Vec<u8>,
    ) {
        self.has_touched |= self.is_about_boards;
        self.tally.count_request(route, problem.status);
        self.body.clear();
        problem.put(&mut self.body);
        response::write_head_with(out, problem.status, PROBLEM, keep_alive, self.body.len(), fields);
        if !is_head {
            out.extend_from_slice(&self.body);
        }
    }

    /// The same as `follow`, but that changes have to be signed, and are not repeated with the same idempotency key.
    fn follow_once(
        &mut self,
        route: &Route,
        names: [&str; 3],
        request: &Request<'_>,
        faults: &mut ThreadFaults,
    ) -> Result<u16, Problem> {
        if self.shared.log.as_ref().is_some_and(|log| log.is_full()) {
            check_room(route)?;
        }
        if !route.changes() {
            return self.follow(route, names, request, faults);
        }
        let shared = self.shared.clone();
        let is_one = shared.keys.is_some() || request.field(IDEMPOTENCY_FIELD).is_some();
        let _together = if is_one { changes::together(&shared) } else { None };
        if let Some(keys) = &shared.keys {
            match keys.check(request, &shared.nonces) {
                Ok(signed) => changes::keep_nonce(&shared, &signed),
                Err(problem) => planted::forged(problem, faults)?,
            }
        }
        match self.shared.once.begin(request)? {
            None => self.follow(route, names, request, faults),
            Some(Begun::Again(status, body)) => {
                // The first answer may still wait for the disk.
                self.is_about_boards = true;
                self.body.extend_from_slice(&body);
                Ok(status)
            }
            Some(Begun::First(id)) => {
                let done = self.follow(route, names, request, faults);
                let answer = done.as_ref().ok().map(|status| (*status, &self.body[..]));
                changes::keep_answer(&shared, &id, answer);
                done
            }
        }
    }

    /// Does what the route says and writes the body. Returns the status.
    fn follow(
        &mut self,
        route: &Route,
        [board, member, last]: [&str; 3],
        request: &Request<'_>,
        faults: &mut ThreadFaults,
    ) -> Result<u16, Problem> {
        if route.changes() {
            self.shared.check_pending()?;
        }
        if route.body.is_some() {
            check_content_type(request)?;
        }
        self.is_about_boards = !route.is_about_the_service();
        let board = unescaped(board)?;
        let find = || self.shared.boards.get(&board).ok_or_else(|| Problem::no_board(&board));
        match route.operation {
            Operation::Increment => {
                self.update(&*find()?, &unescaped(member)?, Mode::Increment, request, faults)?
            }
            Operation::Replace => {
                self.update(&*find()?, &unescaped(member)?, Mode::Replace, request, faults)?
            }
            Operation::Member => {
                let (board, member) = (find()?, unescaped(member)?);
                let row = board.leaderboard.row(&member).ok_or_else(|| Problem::no_member(&member))?;
                self.put_update(&board, &member, &row.score, row.rank, faults);
                if let Some(text) = &row.metadata {
                    self.body.pop();
                    json::put_metadata(&mut self.body, text);
                    self.body.push(b'}');
                }
            }
            Operation::Metadata => {
                let (board, member) = (find()?, unescaped(member)?);
                let row = board.leaderboard.row(&member).ok_or_else(|| Problem::no_member(&member))?;
                self.put_member_metadata(&member, row.metadata.as_deref());
            }
            Operation::SetMetadata => {
                let (board, member) = (find()?, unescaped(member)?);
                let Metadata { metadata } = bodies::read(request.body)?;
                let text = Some(&*metadata.0);
                if !changes::set_metadata(&self.shared, &board, &member, text)? {
                    return Err(Problem::no_member(&member));
                }
                self.put_member_metadata(&member, text);
            }
            Operation::DeleteMetadata => {
                let (board, member) = (find()?, unescaped(member)?);
                if !changes::set_metadata(&self.shared, &board, &member, None)? {
                    return Err(Problem::no_member(&member));
                }
            }
            Operation::Seasons => {
                let archives = find()?.archives();
                self.body.extend_from_slice(b"{\"seasons\":");
                json::put_list(&mut self.body, &archives, |out, archive| put_season(out, archive));
                self.body.push(b'}');
            }
            Operation::EndSeason => {
                let board = find()?;
                let NewSeason { name } = bodies::read(request.body)?;
                put_season(&mut self.body, &*changes::end_season(&self.shared, &board, &name.0)?);
            }
            Operation::Season => {
                let first = whole(request, "first", 1, RANK_MAX)?;
                let limit = whole(request, "limit", ROWS_BY_DEFAULT, ROWS_MAX)?;
                let archive = find_season(&*find()?, member)?;
                json::put_page(&mut self.body, &archive.range(first, limit as usize));
            }
            Operation::SeasonMember => {
                let (archive, member) = (find_season(&*find()?, member)?, unescaped(last)?);
                let standing = archive.get(&member).ok_or_else(|| Problem::no_member(&member))?;
                json::put_ranked(&mut self.body, &member, &standing.score, standing.rank);
            }
            Operation::DeleteSeason => {
                let (board, season) = (find()?, unescaped(member)?);
                changes::delete_season(&self.shared, &board, &season)
                    .ok_or_else(|| Problem::no_season(&season))?;
            }
            Operation::Schedule => {
                let schedule = find()?.schedule();
                put_schedule(&mut self.body, schedule.ok_or_else(Problem::no_schedule)?);
            }
            Operation::SetSchedule => {
                let board = find()?;
                let new: NewSchedule = bodies::read(request.body)?;
                let schedule = new.schedule()?;
                changes::set_schedule(&self.shared, &board, Some(schedule));
                put_schedule(&mut self.body, schedule);
            }
            Operation::DeleteSchedule => {
                let board = find()?;
                changes::set_schedule(&self.shared, &board, None).ok_or_else(Problem::no_schedule)?;
            }
            Operation::DeleteMember => {
                let (board, member) = (find()?, unescaped(member)?);
                let deleted = changes::delete_member(&self.shared, &board, &member);
                let deleted = deleted.ok_or_else(|| Problem::no_member(&member))?;
                self.body.push(b'{');
                json::put_member(&mut self.body, &member, &deleted.score);
                self.put_members(board.leaderboard.count());
            }
            Operation::Bulk => self.bulk(request, faults)?,
            Operation::Ranks => {
                let board = find()?;
                self.ranks(&board, request, faults)?;
            }
            Operation::Top => {
                let limit = whole(request, "limit", ROWS_BY_DEFAULT, ROWS_MAX)?;
                json::put_page(&mut self.body, &find()?.leaderboard.range(1, limit as usize));
            }
            Operation::Range => {
                let first = whole(request, "first", 1, RANK_MAX)?;
                let limit = whole(request, "limit", ROWS_BY_DEFAULT, ROWS_MAX)? as usize;
                let board = find()?;
                match request.query("from").unwrap_or("first") {
                    "first" => json::put_page(&mut self.body, &board.leaderboard.range(first, limit)),
                    "last" => {
                        let page = board.leaderboard.range_back(first, limit);
                        let next = first.max(1).saturating_add(page.rows.len() as u64);
                        let next = Some(next).filter(|next| !page.rows.is_empty() && *next <= page.total);
                        json::put_page_with(&mut self.body, &page, next);
                    }
                    other => {
                        return Err(Problem::new(422, format!("from is first or last, not {other:?}")));
                    }
                }
            }
            Operation::Around => {
                let each_side = whole(request, "each_side", EACH_SIDE_BY_DEFAULT, EACH_SIDE_MAX)?;
                let (board, member) = (find()?, unescaped(member)?);
                let page = board.leaderboard.around(&member, each_side as usize);
                json::put_page(&mut self.body, &page.ok_or_else(|| Problem::no_member(&member))?);
            }
            Operation::Board => {
                let board = find()?;
                put_board(&mut self.body, &board.name, board.options, board.leaderboard.count());
            }
            Operation::CreateBoard => {
                let new: NewBoard = bodies::read(request.body)?;
                let board = changes::create_board(&self.shared, new.name.as_deref(), new.options()?)?;
                put_board(&mut self.body, &board.name, board.options, board.leaderboard.count());
            }
            Operation::Boards => self.boards(request)?,
            Operation::DeleteBoard => {
                changes::delete_board(&self.shared, &board).ok_or_else(|| Problem::no_board(&board))?;
            }
            Operation::Health => self.body.extend_from_slice(b"{\"status\":\"ok\"}"),
            Operation::Metrics => self.body.extend_from_slice(tally::metrics(&self.shared).as_bytes()),
            Operation::Document => self.body.extend_from_slice(openapi::document().as_bytes()),
        }
        Ok(route.answer.0)
    }

    fn update(
        &mut self,
        board: &Board,
        member: &str,
        mode: Mode,
        request: &Request<'_>,
        faults: &mut ThreadFaults,
    ) -> Result<(), Problem> {
        let (mode, score) = update_of(request, mode)?;
        let outcome = match faults.are_planted() {
            false => changes::update(&self.shared, board, member, mode, &score)?,
            true => planted::update(&self.shared, board, member, mode, &score, faults)?,
        };
        self.tally.count_updates(1);
        self.put_update(board, member, &outcome.score, outcome.rank, faults);
        Ok(())
    }

    /// Writes `{"member":…,"score":"…","rank":…,"members":…}`.
    fn put_update(
        &mut self,
        board: &Board,
        member: &str,
        score: &Score,
        rank: u64,
        faults: &mut ThreadFaults,
    ) {
        // Counted a moment later than the rank; a member deleted in between must not be missing here.
        let members = board.leaderboard.count().max(rank);
        self.put_standing(member, score, (rank, members), faults);
    }

    /// The same for a board that has so many members.
    pub(super) fn put_standing(
        &mut self,
        member: &str,
        score: &Score,
        (rank, members): (u64, u64),
        faults: &mut ThreadFaults,
    ) {
        let rank = planted::rank(rank, faults);
        self.body.push(b'{');
        json::put_member(&mut self.body, member, score);
        self.body.extend_from_slice(b",\"rank\":");
        json::put_number(&mut self.body, rank);
        self.put_members(members);
    }

    fn put_member_metadata(&mut self, member: &str, text: Option<&str>) {
        self.body.extend_from_slice(b"{\"member\":");
        json::put_string(&mut self.body, member);
        match text {
            Some(text) => json::put_metadata(&mut self.body, text),
            None => self.body.extend_from_slice(b",\"metadata\":null"),
        }
        self.body.push(b'}');
    }

    pub(super) fn put_members(&mut self, members: u64) {
        self.body.extend_from_slice(b",\"members\":");
        json::put_number(&mut self.body, members);
        self.body.push(b'}');
    }

    fn bulk(&mut self, request: &Request<'_>, faults: &mut ThreadFaults) -> Result<(), Problem> {
        let bulk: Bulk<'_> = bodies::read(request.body)?;
        let items = bulk.leaderboards.iter().map(bodies::Part::count).sum::<usize>();
        self.shared.check_items(items)?;
        let mut parts: Vec<(&str, Vec<Update<'_>>)> = Vec::with_capacity(bulk.leaderboards.len());
        for (place, part) in bulk.leaderboards.iter().enumerate() {
            let updates = part.updates().map_err(|problem| problem.at_board(place))?;
            parts.push((&part.leaderboard.0, updates));
        }
        let outcomes = match faults.are_planted() {
            false => changes::update_bulk(&self.shared, &parts)?,
            true => planted::update_bulk(&self.shared, &parts, faults)?,
        };
        self.tally.count_updates(items as u64);
        self.body.extend_from_slice(b"{\"leaderboards\":");
        json::put_list(&mut self.body, parts.iter().zip(&outcomes), |out, ((name, updates), outcomes)| {
            out.extend_from_slice(b"{\"leaderboard\":");
            json::put_string(out, name);
            out.extend_from_slice(b",\"scores\":");
            json::put_list(out, updates.iter().zip(outcomes), |out, (update, outcome)| {
                json::put_ranked(out, update.member, &outcome.score, planted::rank(outcome.rank, faults));
            });
            out.push(b'}');
        });
        self.body.push(b'}');
        Ok(())
    }

    fn ranks(
        &mut self,
        board: &Board,
        request: &Request<'_>,
        faults: &mut ThreadFaults,
    ) -> Result<(), Problem> {
        let Members { members } = bodies::read(request.body)?;
        self.shared.check_items(members.len())?;
        let names: Vec<&str> = members.iter().map(|name| &*name.0).collect();
        names.iter().try_for_each(|name| leaderboard::check_member(name))?;
        let standings = board.leaderboard.get_many(&names);
        self.body.extend_from_slice(b"{\"standings\":");
        json::put_list(
            &mut self.body,
            names.iter().zip(&standings),
            |out, (name, standing)| match standing {
                Some(standing) => {
                    json::put_ranked(out, name, &standing.score, planted::rank(standing.rank, faults));
                }
                None => out.extend_from_slice(b"null"),
            },
        );
        self.body.push(b'}');
        Ok(())
    }

    fn boards(&mut self, request: &Request<'_>) -> Result<(), Problem> {
        let limit = whole(request, "limit", ROWS_MAX, ROWS_MAX)? as usize;
        let after = request.query("after").map(unescaped).transpose()?;
        let mut boards = self.shared.boards.list(after.as_deref(), limit + 1);
        let has_more = boards.len() > limit;
        boards.truncate(limit);
        let boards = boards.iter().map(|board| (&*board.name, board.options, board.leaderboard.count()));
        put_boards(&mut self.body, boards, has_more);
        Ok(())
    }
}

/// Appends `{"leaderboards":[…],"next":NAME or null}` for names, rules and counts of members.
pub(super) fn put_boards<'a>(
    out: &mut Vec<u8>,
    boards: impl Iterator<Item = (&'a str, leaderboard::Options, u64)>,
    has_more: bool,
) {
    let mut last = None;
    out.extend_from_slice(b"{\"leaderboards\":");
    json::put_list(out, boards, |out, (name, rules, members)| {
        put_board(out, name, rules, members);
        last = Some(name);
    });
    out.extend_from_slice(b",\"next\":");
    match last.filter(|_| has_more) {
        Some(last) => json::put_string(out, last),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

pub(super) fn put_board(out: &mut Vec<u8>, name: &str, rules: leaderboard::Options, members: u64) {
    out.extend_from_slice(b"{\"name\":");
    json::put_string(out, name);
    for (name, word) in
        [("direction", bodies::direction_word(rules.direction)), ("ties", bodies::ties_word(rules.ties))]
    {
        out.push(b',');
        json::put_string(out, name);
        out.push(b':');
        json::put_string(out, word);
    }
    out.extend_from_slice(b",\"members\":");
    json::put_number(out, members);
    out.push(b'}');
}

/// What an update is to do with which score, `mode` unless the query says otherwise.
pub(super) fn update_of(request: &Request<'_>, mode: Mode) -> Result<(Mode, Score), Problem> {
    let mode = request.query("mode").map_or(Ok(mode), bodies::mode)?;
    let score = request.query("score").ok_or_else(|| Problem::new(422, "the query has no score"))?;
    Ok((mode, unescaped(score)?.parse()?))
}

fn put_season(out: &mut Vec<u8>, archive: &Archive) {
    out.extend_from_slice(b"{\"name\":");
    json::put_string(out, &archive.season);
    out.extend_from_slice(b",\"ended_at_s\":");
    json::put_number(out, archive.ended_at_s);
    out.extend_from_slice(b",\"members\":");
    json::put_number(out, archive.count());
    out.push(b'}');
}

fn put_schedule(out: &mut Vec<u8>, schedule: Schedule) {
    out.extend_from_slice(b"{\"next_end_s\":");
    json::put_number(out, schedule.next_end_s);
    out.extend_from_slice(b",\"every_s\":");
    json::put_number(out, schedule.every_s);
    out.push(b'}');
}

fn find_season(board: &Board, season: &str) -> Result<Arc<Archive>, Problem> {
    let season = unescaped(season)?;
    board.archive(&season).ok_or_else(|| Problem::no_season(&season))
}

/// While the disk is full: what needs no disk goes on.
fn check_room(route: &Route) -> Result<(), Problem> {
    match route.operation {
        Operation::Metrics | Operation::Document => Ok(()),
        _ => Err(Problem::no_room(route.changes())),
    }
}

pub(super) fn check_content_type(request: &Request<'_>) -> Result<(), Problem> {
    let given = request.field("content-type").unwrap_or_default();
    let essence = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(JSON.as_bytes()) {
        return Ok(());
    }
    let given = String::from_utf8_lossy(given);
    Err(Problem::new(415, format!("a body needs the Content-Type {JSON}, not {given:?}")))
}

pub(super) fn unescaped(text: &str) -> Result<std::borrow::Cow<'_, str>, Problem> {
    json::unescaped(text).ok_or_else(|| Problem::new(400, format!("{text:?} has an invalid escape")))
}

/// As `RANK` of the routes says: JSON's integers are signed.
const RANK_MAX: u64 = i64::MAX as u64;

/// A whole number of the query, up to `most`.
pub(super) fn whole(request: &Request<'_>, name: &str, absent: u64, most: u64) -> Result<u64, Problem> {
    let Some(text) = request.query(name) else { return Ok(absent) };
    let number = text.parse().ok().filter(|number| *number <= most && !text.starts_with('+'));
    number.ok_or_else(|| Problem::new(422, format!("{name} is a whole number up to {most}, not {text:?}")))
}
