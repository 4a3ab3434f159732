//! All changes of boards: each is made and recorded as one step where there is a log.

use std::sync::Arc;

use super::Shared;
use super::log::Records;
use super::problem::Problem;
use crate::leaderboard::{self, Board, Deleted, Mode, Outcome, Score, Update};

pub(super) fn update(
    shared: &Shared,
    board: &Board,
    member: &str,
    mode: Mode,
    score: &Score,
) -> Result<Outcome, Problem> {
    with_log(shared, |records| {
        let outcome = board.leaderboard.update(member, mode, score)?;
        if let Some(records) = records {
            records.updated(board, member, &outcome);
        }
        Ok(outcome)
    })
}

pub(super) fn update_bulk(
    shared: &Shared,
    parts: &[(&str, Vec<Update<'_>>)],
) -> Result<Vec<Vec<Outcome>>, Problem> {
    with_log(shared, |records| {
        let all = shared.boards.update_bulk(parts)?;
        if let Some(records) = records {
            for ((name, updates), outcomes) in parts.iter().zip(&all) {
                // With a log no board is deleted meanwhile.
                let Some(board) = shared.boards.get(name) else { continue };
                for (update, outcome) in updates.iter().zip(outcomes) {
                    records.updated(&board, update.member, outcome);
                }
            }
        }
        Ok(all)
    })
}

pub(super) fn delete_member(shared: &Shared, board: &Board, member: &str) -> Option<Deleted> {
    with_log(shared, |records| {
        let deleted = board.leaderboard.delete(member)?;
        if let Some(records) = records {
            records.deleted_member(board, member, &deleted);
        }
        Some(deleted)
    })
}

pub(super) fn create_board(
    shared: &Shared,
    name: Option<&str>,
    options: leaderboard::Options,
) -> Result<Arc<Board>, Problem> {
    with_log(shared, |records| {
        let board = shared.boards.create(name, options)?;
        if let Some(records) = records {
            records.created(&board);
        }
        Ok(board)
    })
}

pub(super) fn delete_board(shared: &Shared, name: &str) -> Option<Arc<Board>> {
    with_log(shared, |records| {
        let board = shared.boards.delete(name)?;
        if let Some(records) = records {
            records.deleted_board(&board);
        }
        Some(board)
    })
}

fn with_log<R>(shared: &Shared, change: impl FnOnce(Option<&mut Records<'_>>) -> R) -> R {
    match &shared.log {
        None => change(None),
        Some(log) => log.change(|records| change(Some(records))),
    }
}
