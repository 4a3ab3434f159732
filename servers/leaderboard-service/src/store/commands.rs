//! Requests to a store: each is one call of a script.
//!
//! Keys begin with `stepladder:`. Each board has three: `rules:NAME` (a hash: direction, ties, and `sequence`, the
//! count of changes), `ranks:NAME` (the sorted set) and `members:NAME` (a hash of ties and scores). `boards` is a
//! sorted set of all names. `once:` and `nonce:` expire.

use super::resp::Command;
use super::scripts::Script;
use crate::bodies;
use crate::problem::Problem;
use crate::{once, signing};
use leaderboard::{self, Mode, Score};

const RULES: &[u8] = b"stepladder:rules:";
const RANKS: &[u8] = b"stepladder:ranks:";
const MEMBERS: &[u8] = b"stepladder:members:";
const BOARDS: &[u8] = b"stepladder:boards";
const ONCE: &[u8] = b"stepladder:once:";
const NONCE: &[u8] = b"stepladder:nonce:";

/// The largest score of a store, and with a minus sign the lowest: a sorted set has floats of 53 bits.
pub(super) const SCORE_MAX: i64 = 1 << 53;

/// Ranks and numbers of rows in a request are cut to this, which no board reaches.
const RANK_MAX: u64 = 1 << 52;

/// Keys and arguments with which every changing script begins.
const GUARD_KEYS: usize = 2;
const GUARD_ARGUMENTS: usize = 3;

/// The score as a store keeps it.
///
/// Errors: one that would be rounded.
pub(super) fn exact(score: &Score) -> Result<i64, Problem> {
    let within = |score: &i64| (-SCORE_MAX..=SCORE_MAX).contains(score);
    score.as_i64().filter(within).ok_or_else(beyond)
}

/// A score, given or calculated, that a store cannot keep exactly.
pub(super) fn beyond() -> Problem {
    let range = format!("-{SCORE_MAX} to {SCORE_MAX}");
    Problem::new(422, format!("with --store scores go from {range} (53 bits), so that none is rounded"))
}

/// A signer, and a key or nonce of his.
pub(super) type OfSigner = (Box<[u8]>, Box<[u8]>);

/// What keeps a change from being made twice. The default does nothing.
#[derive(Clone, Default)]
pub(super) struct Guard {
    /// Signer and idempotency key.
    pub(super) once: Option<OfSigner>,
    /// Of the request, in hexadecimal digits.
    pub(super) digest: String,
    /// Signer and nonce.
    pub(super) nonce: Option<OfSigner>,
}

impl Guard {
    fn put_keys(&self, command: &mut Command<'_>) {
        put_pair(command, ONCE, self.once.as_ref());
        put_pair(command, NONCE, self.nonce.as_ref());
    }

    fn put_arguments(&self, command: &mut Command<'_>) {
        command.word(self.digest.as_bytes()).number(once::KEPT_S).number(signing::LIFE_S + 1);
    }
}

/// The key of a signer and something of his, or an empty one.
fn put_pair(command: &mut Command<'_>, begin: &[u8], pair: Option<&OfSigner>) {
    match pair {
        None => command.word(b""),
        // The length distinguishes pairs whose concatenations are the same.
        Some((signer, own)) => {
            command.word_of(&[begin, signer.len().to_string().as_bytes(), b":", signer, b":", own])
        }
    };
}

/// The call of a changing script on one board, up to its own arguments.
fn change<'o>(
    out: &'o mut Vec<u8>,
    script: Script,
    guard: &Guard,
    board: &str,
    more_keys: &[&[u8]],
    arguments: usize,
) -> Command<'o> {
    let keys = GUARD_KEYS + 3 + more_keys.len();
    let mut command = script.call(out, keys, GUARD_ARGUMENTS + arguments);
    guard.put_keys(&mut command);
    put_board(&mut command, board);
    for key in more_keys {
        command.word(key);
    }
    guard.put_arguments(&mut command);
    command
}

fn put_board(command: &mut Command<'_>, board: &str) {
    for begin in [RULES, RANKS, MEMBERS] {
        command.word_of(&[begin, board.as_bytes()]);
    }
}

fn put_update(command: &mut Command<'_>, mode: Mode, score: i64, member: &str, tie: u64) {
    let mode: &[u8] = match mode {
        Mode::Replace => b"r",
        Mode::Increment => b"i",
        Mode::Decrement => b"d",
        Mode::Best => b"b",
    };
    let sign: &[u8] = if score < 0 { b"-" } else { b"" };
    let digits = &mut [0; 20];
    let digits = servers_shared::http::response::decimal(score.unsigned_abs(), digits);
    command.word(mode).word_of(&[sign, digits]).word(member.as_bytes()).word(&hex(tie));
}

/// 16 hexadecimal digits.
fn hex(number: u64) -> [u8; 16] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 15])
}

/// `tie` decides among equal scores under the rule `random`.
pub(super) fn update(
    out: &mut Vec<u8>,
    guard: &Guard,
    board: &str,
    (mode, score, member): (Mode, i64, &str),
    tie: u64,
) {
    put_update(&mut change(out, Script::Update, guard, board, &[], 4), mode, score, member, tie);
}

/// One part of a bulk: a board, and updates with scores that are `exact`.
pub(super) type Part<'a> = (&'a str, Vec<(Mode, i64, &'a str)>);

pub(super) fn bulk(
    out: &mut Vec<u8>,
    guard: &Guard,
    parts: &[Part<'_>],
    with_ties: bool,
    mut draw_tie: impl FnMut() -> u64,
) {
    let items: usize = parts.iter().map(|(_, updates)| updates.len()).sum();
    let arguments = GUARD_ARGUMENTS + 1 + parts.len() + 4 * items;
    let mut command = Script::Bulk.call(out, GUARD_KEYS + 3 * parts.len(), arguments);
    guard.put_keys(&mut command);
    parts.iter().for_each(|(board, _)| put_board(&mut command, board));
    guard.put_arguments(&mut command);
    command.word(if with_ties { b"1" } else { b"0" });
    for (_, updates) in parts {
        command.number(updates.len() as u64);
        for (mode, score, member) in updates {
            put_update(&mut command, *mode, *score, member, draw_tie());
        }
    }
}

pub(super) fn delete_member(out: &mut Vec<u8>, guard: &Guard, board: &str, member: &str) {
    change(out, Script::DeleteMember, guard, board, &[], 1).word(member.as_bytes());
}

pub(super) fn create_board(out: &mut Vec<u8>, guard: &Guard, name: &str, rules: leaderboard::Options) {
    let mut command = Script::CreateBoard.call(out, GUARD_KEYS + 2, GUARD_ARGUMENTS + 3);
    guard.put_keys(&mut command);
    command.word_of(&[RULES, name.as_bytes()]).word(BOARDS);
    guard.put_arguments(&mut command);
    command.word(name.as_bytes());
    command.word(bodies::direction_word(rules.direction).as_bytes());
    command.word(bodies::ties_word(rules.ties).as_bytes());
}

pub(super) fn delete_board(out: &mut Vec<u8>, guard: &Guard, name: &str) {
    change(out, Script::DeleteBoard, guard, name, &[BOARDS], 1).word(name.as_bytes());
}

pub(super) fn standings<'a>(out: &mut Vec<u8>, board: &str, members: impl ExactSizeIterator<Item = &'a str>) {
    let mut command = Script::Standings.call(out, 3, members.len());
    put_board(&mut command, board);
    for member in members {
        command.word(member.as_bytes());
    }
}

/// `limit` members from rank `first` on.
pub(super) fn range(out: &mut Vec<u8>, board: &str, first: u64, limit: u64) {
    let mut command = Script::Page.call(out, 3, 3);
    put_board(&mut command, board);
    command.number(first.clamp(1, RANK_MAX)).number(limit.min(RANK_MAX)).word(b"");
}

pub(super) fn around(out: &mut Vec<u8>, board: &str, member: &str, each_side: u64) {
    let mut command = Script::Page.call(out, 3, 3);
    put_board(&mut command, board);
    command.word(b"").number(each_side.min(RANK_MAX)).word(member.as_bytes());
}

pub(super) fn board(out: &mut Vec<u8>, name: &str) {
    let mut command = Script::Board.call(out, 2, 0);
    command.word_of(&[RULES, name.as_bytes()]).word_of(&[RANKS, name.as_bytes()]);
}

pub(super) fn boards(out: &mut Vec<u8>, after: Option<&str>, limit: u64) {
    let mut command = Script::Boards.call(out, 1, 4);
    command.word(BOARDS);
    match after {
        None => command.word(b"-"),
        Some(name) => command.word_of(&[b"(", name.as_bytes()]),
    };
    command.number(limit).word(RULES).word(RANKS);
}

pub(super) fn ping(out: &mut Vec<u8>) {
    Command::begin(out, 1).word(b"PING");
}
