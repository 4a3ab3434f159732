//! All changes of boards: each is applied and recorded as one step if there is a log.

use std::sync::Arc;

use parking_lot::RwLockReadGuard;

use super::log::Records;
use super::once::Id;
use super::problem::Problem;
use super::signing::Signed;
use super::{Shared, unix_s};
use leaderboard::{self, Archive, Board, Deleted, MAX_SEASONS, Mode, Outcome, Schedule, Score, Update};

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

/// Attaches a text to a member, or takes it off. False if there is no such member.
pub(super) fn set_metadata(
    shared: &Shared,
    board: &Board,
    member: &str,
    text: Option<&str>,
) -> Result<bool, Problem> {
    with_log(shared, |records| {
        let Some(sequence) = board.leaderboard.set_metadata(member, text)? else { return Ok(false) };
        if let Some(records) = records {
            records.set_metadata(board, sequence, member, text);
        }
        Ok(true)
    })
}

/// Archives the standings under a name, and empties the board.
pub(super) fn end_season(shared: &Shared, board: &Board, season: &str) -> Result<Arc<Archive>, Problem> {
    with_log(shared, |records| {
        let archive = board.reset(season, unix_s())?;
        if let Some(records) = records {
            records.ended_season(board, &archive);
        }
        Ok(archive)
    })
}

pub(super) fn delete_season(shared: &Shared, board: &Board, season: &str) -> Option<Arc<Archive>> {
    with_log(shared, |records| delete_archive(board, season, records))
}

fn delete_archive(board: &Board, season: &str, records: Option<&mut Records<'_>>) -> Option<Arc<Archive>> {
    let archive = board.delete_archive(board.archive(season)?.snapshot().sequence)?;
    if let Some(records) = records {
        records.deleted_season(board, &archive);
    }
    Some(archive)
}

pub(super) fn set_schedule(shared: &Shared, board: &Board, schedule: Option<Schedule>) -> Option<Schedule> {
    with_log(shared, |records| {
        let before = board.set_schedule(schedule);
        if let Some(records) = records {
            records.scheduled(board, schedule);
        }
        before
    })
}

/// Ends the seasons whose time has come. Each is called by the second in which it was to end.
///
/// A board that has all archives it may have loses the oldest.
pub(super) fn end_due_seasons(shared: &Shared, now_s: u64) {
    // Checked without the log's lock, and once more with it.
    for board in shared.boards.due(now_s) {
        if shared.log.as_ref().is_some_and(|log| log.is_full()) {
            return;
        }
        with_log(shared, |mut records| {
            let Some(schedule) = board.due(now_s) else { return };
            if let Some(oldest) = board.archives().first().filter(|_| board.archives().len() >= MAX_SEASONS) {
                delete_archive(&board, &oldest.season, records.as_deref_mut());
            }
            // If a season of that name was already ended manually, the name is that of the next second.
            let names = (schedule.next_end_s..).take(MAX_SEASONS + 1).map(|end_s| end_s.to_string());
            let archive = names.map(|name| board.reset(&name, now_s)).find_map(Result::ok);
            let schedule = schedule.after(now_s);
            board.set_schedule(Some(schedule));
            if let (Some(records), Some(archive)) = (records, archive) {
                records.ended_season(&board, &archive);
                records.scheduled(&board, Some(schedule));
            }
        });
    }
}

/// Lets a nonce not be used again after a restart, either.
pub(super) fn keep_nonce(shared: &Shared, signed: &Signed<'_>) {
    if let Some(log) = &shared.log {
        log.change(|records| records.used_nonce(signed));
    }
}

/// Keeps the answer to a change with an idempotency key, or forgets that there was one, if it was refused.
pub(super) fn keep_answer(shared: &Shared, id: &Id, answer: Option<(u16, &[u8])>) {
    shared.once.end(id, answer, |answer| {
        if let Some(log) = &shared.log {
            log.change(|records| records.answered(answer));
        }
    });
}

/// While this is held, a crash leaves all changes of this thread or none. None without a log.
pub(super) fn together(shared: &Shared) -> Option<RwLockReadGuard<'_, ()>> {
    shared.log.as_ref().map(|log| log.together())
}

fn with_log<R>(shared: &Shared, change: impl FnOnce(Option<&mut Records<'_>>) -> R) -> R {
    match &shared.log {
        None => change(None),
        Some(log) => log.change(|records| change(Some(records))),
    }
}
