//! Injected faults in answers, for an audit of a leaderboard to find.
//!
//! A server without faults comes here only for one comparison per rank.

use super::problem::Problem;
use super::{Shared, changes};
use leaderboard::{Board, Mode, Outcome, Score, Update};
use servers_shared::fault::ThreadFaults;

/// The reported rank: off by one in a share of answers.
pub(super) fn rank(rank: u64, faults: &mut ThreadFaults) -> u64 {
    if !faults.are_planted() || !faults.wrong.selects_next() {
        return rank;
    }
    if rank > 1 { rank - 1 } else { rank + 1 }
}

/// A change without a right signature, which may be made all the same.
pub(super) fn forged(problem: Problem, faults: &mut ThreadFaults) -> Result<(), Problem> {
    if faults.are_planted() && faults.forged.selects_next() { Ok(()) } else { Err(problem) }
}

/// An update that may be lost, or applied twice.
pub(super) fn update(
    shared: &Shared,
    board: &Board,
    member: &str,
    mode: Mode,
    score: &Score,
    faults: &mut ThreadFaults,
) -> Result<Outcome, Problem> {
    if faults.unapplied.selects_next() {
        leaderboard::check_member(member)?;
        return Ok(imagined(board, member, mode, score));
    }
    let outcome = changes::update(shared, board, member, mode, score)?;
    if adds(mode) && faults.twice.selects_next() {
        changes::update(shared, board, member, mode, score)?;
    }
    Ok(outcome)
}

/// A bulk whose items may be lost, or applied twice.
pub(super) fn update_bulk(
    shared: &Shared,
    parts: &[(&str, Vec<Update<'_>>)],
    faults: &mut ThreadFaults,
) -> Result<Vec<Vec<Outcome>>, Problem> {
    let mut done: Vec<(&str, Vec<Update<'_>>)> = Vec::new();
    // The position of each item's outcome among those of its part; None when it is lost.
    let mut places: Vec<Vec<Option<usize>>> = Vec::new();
    for (name, updates) in parts {
        let (mut kept, mut at) = (Vec::new(), Vec::new());
        for update in updates {
            if faults.unapplied.selects_next() {
                at.push(None);
                continue;
            }
            at.push(Some(kept.len()));
            kept.push(update.clone());
            if adds(update.mode) && faults.twice.selects_next() {
                kept.push(update.clone());
            }
        }
        done.push((name, kept));
        places.push(at);
    }
    let outcomes = changes::update_bulk(shared, &done)?;
    let mut told = Vec::new();
    for (((name, updates), at), outcomes) in parts.iter().zip(&places).zip(&outcomes) {
        let board = shared.boards.get(name).ok_or_else(|| Problem::no_board(name))?;
        let outcome = |(update, at): (&Update<'_>, &Option<usize>)| match at {
            Some(at) => outcomes[*at].clone(),
            None => imagined(&board, update.member, update.mode, &update.score),
        };
        told.push(updates.iter().zip(at).map(outcome).collect());
    }
    Ok(told)
}

fn adds(mode: Mode) -> bool {
    matches!(mode, Mode::Increment | Mode::Decrement)
}

/// What is reported for an update that is not applied.
fn imagined(board: &Board, member: &str, mode: Mode, score: &Score) -> Outcome {
    let had = board.leaderboard.get(member);
    let rank = had.as_ref().map_or_else(|| board.leaderboard.count() + 1, |had| had.rank);
    let had = had.map_or(Score::ZERO, |had| had.score);
    let score = match mode {
        Mode::Replace | Mode::Best => score.clone(),
        Mode::Increment => had.plus(score),
        Mode::Decrement => had.minus(score),
    };
    Outcome { score, rank, tie: 0, sequence: 0 }
}
