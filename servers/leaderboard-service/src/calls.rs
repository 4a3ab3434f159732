//! Executes operations that arrive as messages of `proto/leaderboard.proto`, over WebSocket or gRPC.

use std::cell::Cell;
use std::sync::Arc;

use super::messages::{self, Bulk, Operation, Request};
use super::once::Begun;
use super::problem::Problem;
use super::responder::{EACH_SIDE_BY_DEFAULT, EACH_SIDE_MAX, ROWS_BY_DEFAULT, ROWS_MAX};
use super::signing::Claim;
use super::tally::{Channel, Tally};
use super::{Shared, changes, planted};
use crate::protobuf::put_message;
use leaderboard::{self, Board, Update};
use servers_shared::fault::ThreadFaults;

/// The first line of what is signed, where HTTP has its method.
const SIGNED_AS: &str = "PROTOBUF";

/// One connection may have this part of `--total-unfinished`.
const CONNECTION_PARTS: usize = 16;

/// What carries out the operations of one thread.
pub(super) struct Caller {
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    /// A result since `take_touched` shows something of the boards, or has changed them.
    has_touched: Cell<bool>,
}

impl Caller {
    pub(super) fn new(shared: &Arc<Shared>, me: usize) -> Caller {
        Caller { shared: shared.clone(), tally: shared.tallies[me].clone(), has_touched: Cell::new(false) }
    }

    /// Whether a result since the last call must wait for the disk.
    pub(super) fn take_touched(&self) -> bool {
        self.has_touched.take()
    }

    /// The longest message, in bytes.
    pub(super) fn message_bytes_max(&self) -> usize {
        self.shared.options.body_max
    }

    /// What all messages of one connection that are not whole may take together, in bytes.
    pub(super) fn unfinished_bytes_max(&self) -> usize {
        self.shared.options.total_unfinished / CONNECTION_PARTS
    }

    /// Carries out a request and appends its result's message. Errors: it was refused, and nothing appended.
    pub(super) fn call(
        &self,
        channel: Channel,
        request: &Request<'_>,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let from = out.len();
        let done = match &request.operation {
            Some(_) if self.shared.store.is_some() => Err(Problem::not_with_a_store()),
            Some(operation) if self.shared.log.as_ref().is_some_and(|log| log.is_full()) => {
                Err(Problem::no_room(operation.changes()))
            }
            Some(operation) if operation.changes() => self.change(request, operation, faults, out),
            Some(operation) => self.follow(operation, faults, out),
            None => Err(Problem::new(400, "the request has no operation that this service knows")),
        };
        let status = done.as_ref().map_or_else(|problem| problem.status, |()| 200);
        self.tally.count_message(channel, request.operation.as_ref().map(Operation::index), status);
        done.inspect_err(|_| out.truncate(from))
    }

    /// Counts a message that could not be read.
    pub(super) fn count_malformed(&self, channel: Channel) {
        self.tally.count_message(channel, None, 400);
    }

    /// A change, which has to be signed, and is not repeated with the same idempotency key.
    fn change(
        &self,
        request: &Request<'_>,
        operation: &Operation<'_>,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        self.shared.check_pending()?;
        let signer = request.signature.as_ref().map_or(&[][..], |signature| signature.key);
        let name = messages::OPERATIONS[operation.index()];
        let is_one = self.shared.keys.is_some() || !request.idempotency_key.is_empty();
        let _together = if is_one { changes::together(&self.shared) } else { None };
        if let Err(problem) = self.check_signature(request, name) {
            planted::forged(problem, faults)?;
        }
        if request.idempotency_key.is_empty() {
            return self.follow(operation, faults, out);
        }
        let (what, body) = ([SIGNED_AS, name], request.operation_bytes);
        match self.shared.once.begin_with(signer, request.idempotency_key, what, body)? {
            Begun::Again(_, result) => {
                // The first result may still wait for the disk.
                self.has_touched.set(true);
                out.extend_from_slice(&result);
                Ok(())
            }
            Begun::First(id) => {
                let from = out.len();
                let done = self.follow(operation, faults, out);
                let result = done.as_ref().ok().map(|()| (200, &out[from..]));
                changes::keep_answer(&self.shared, &id, result);
                done
            }
        }
    }

    /// Whether a change may be made. Its nonce is used up then, also for after a restart.
    fn check_signature(&self, request: &Request<'_>, name: &str) -> Result<(), Problem> {
        let Some(keys) = &self.shared.keys else { return Ok(()) };
        let refused = |detail| Problem::new(401, detail);
        let signature = request.signature.as_ref();
        let signature = signature.ok_or_else(|| refused("the change is not signed: it has no signature"))?;
        if request.operation_parts != 1 {
            return Err(refused("what is signed has to come in one part"));
        }
        // Each ends a line of the signed text; with embedded line feeds one text could mean two things.
        if [signature.key, signature.nonce, request.idempotency_key].iter().any(|text| text.contains(&b'\n'))
        {
            return Err(refused("key, nonce and idempotency key have no line feeds"));
        }
        let expires = signature.expires_s.to_string();
        let claim = Claim {
            method: SIGNED_AS,
            target: name,
            key: signature.key,
            nonce: signature.nonce,
            expires: expires.as_bytes(),
            idempotency: request.idempotency_key,
            body: request.operation_bytes,
        };
        let signed = keys.check_claim(&claim, signature.signature, &self.shared.nonces)?;
        changes::keep_nonce(&self.shared, &signed);
        Ok(())
    }

    fn follow(
        &self,
        operation: &Operation<'_>,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        self.has_touched.set(true);
        match operation {
            Operation::Update(update) => {
                let board = self.board(update.board)?;
                let (mode, score) = update.item.change()?;
                let member = update.item.member;
                let outcome = match faults.are_planted() {
                    false => changes::update(&self.shared, &board, member, mode, &score)?,
                    true => planted::update(&self.shared, &board, member, mode, &score, faults)?,
                };
                self.tally.count_updates(1);
                messages::put_standing(out, &outcome.score, planted::rank(outcome.rank, faults));
            }
            Operation::Get(get) => {
                let standing = self.board(get.board)?.leaderboard.get(get.member);
                let standing = standing.ok_or_else(|| Problem::no_member(get.member))?;
                messages::put_standing(out, &standing.score, planted::rank(standing.rank, faults));
            }
            Operation::Ranks(ranks) => {
                self.shared.check_items(ranks.members.len())?;
                ranks.members.iter().try_for_each(|member| leaderboard::check_member(member))?;
                for standing in self.board(ranks.board)?.leaderboard.get_many(&ranks.members) {
                    put_message(out, 1, |out| {
                        if let Some(standing) = standing {
                            messages::put_standing(
                                out,
                                &standing.score,
                                planted::rank(standing.rank, faults),
                            );
                        }
                    });
                }
            }
            Operation::Top(top) => {
                let limit = within("limit", top.limit, ROWS_BY_DEFAULT, ROWS_MAX)?;
                messages::put_page(out, &self.board(top.board)?.leaderboard.range(1, limit));
            }
            Operation::Range(range) => {
                let limit = within("limit", range.limit, ROWS_BY_DEFAULT, ROWS_MAX)?;
                let board = self.board(range.board)?;
                messages::put_page(out, &board.leaderboard.range(range.first.unwrap_or(1), limit));
            }
            Operation::Around(around) => {
                let each_side = within("each_side", around.each_side, EACH_SIDE_BY_DEFAULT, EACH_SIDE_MAX)?;
                let page = self.board(around.board)?.leaderboard.around(around.member, each_side);
                messages::put_page(out, &page.ok_or_else(|| Problem::no_member(around.member))?);
            }
            Operation::Bulk(bulk) => self.bulk(bulk, faults, out)?,
        }
        Ok(())
    }

    fn bulk(&self, bulk: &Bulk<'_>, faults: &mut ThreadFaults, out: &mut Vec<u8>) -> Result<(), Problem> {
        let items = bulk.parts.iter().map(|part| part.items.len()).sum::<usize>();
        self.shared.check_items(items)?;
        let mut parts: Vec<(&str, Vec<Update<'_>>)> = Vec::with_capacity(bulk.parts.len());
        for (place, part) in bulk.parts.iter().enumerate() {
            let mut updates = Vec::with_capacity(part.items.len());
            for (item, given) in part.items.iter().enumerate() {
                let at = |problem: Problem| problem.at_board(place).at_item(item);
                let (mode, score) = given.change().map_err(at)?;
                leaderboard::check_member(given.member).map_err(|refused| at(refused.into()))?;
                updates.push(Update { member: given.member, mode, score });
            }
            parts.push((part.board, updates));
        }
        let outcomes = match faults.are_planted() {
            false => changes::update_bulk(&self.shared, &parts)?,
            true => planted::update_bulk(&self.shared, &parts, faults)?,
        };
        self.tally.count_updates(items as u64);
        for outcomes in &outcomes {
            put_message(out, 1, |out| {
                for outcome in outcomes {
                    let rank = planted::rank(outcome.rank, faults);
                    put_message(out, 1, |out| messages::put_standing(out, &outcome.score, rank));
                }
            });
        }
        Ok(())
    }

    fn board(&self, name: &str) -> Result<Arc<Board>, Problem> {
        self.shared.boards.get(name).ok_or_else(|| Problem::no_board(name))
    }
}

/// A whole number up to `most`.
fn within(name: &str, given: Option<u64>, absent: u64, most: u64) -> Result<usize, Problem> {
    let number = given.unwrap_or(absent);
    if number <= most {
        return Ok(number as usize);
    }
    Err(Problem::new(422, format!("{name} is a whole number up to {most}, not {number}")))
}
