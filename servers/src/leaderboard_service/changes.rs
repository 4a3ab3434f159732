//! All changes of boards. What has to happen with each of them, besides the change itself, happens here.

use std::sync::Arc;

use super::Shared;
use super::problem::Problem;
use crate::leaderboard::{self, Board, Deleted, Mode, Outcome, Score, Update};

pub(super) fn update(
    _shared: &Shared,
    board: &Board,
    member: &str,
    mode: Mode,
    score: &Score,
) -> Result<Outcome, Problem> {
    Ok(board.leaderboard.update(member, mode, score)?)
}

pub(super) fn update_bulk(
    shared: &Shared,
    parts: &[(&str, Vec<Update<'_>>)],
) -> Result<Vec<Vec<Outcome>>, Problem> {
    Ok(shared.boards.update_bulk(parts)?)
}

pub(super) fn delete_member(_shared: &Shared, board: &Board, member: &str) -> Option<Deleted> {
    board.leaderboard.delete(member)
}

pub(super) fn create_board(
    shared: &Shared,
    name: Option<&str>,
    options: leaderboard::Options,
) -> Result<Arc<Board>, Problem> {
    Ok(shared.boards.create(name, options)?)
}

pub(super) fn delete_board(shared: &Shared, name: &str) -> Option<Arc<Board>> {
    shared.boards.delete(name)
}
