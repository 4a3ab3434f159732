//! Injected faults in single commands and replies, for bots that read and write keys to find.
//!
//! A server without faults does not come here.

use std::collections::HashMap;

use super::commands::{self, After, Call, Does};
use super::reply;
use servers_shared::fault::ThreadFaults;

/// What is needed to answer wrongly.
#[derive(Default)]
pub(super) struct Planted {
    /// The value before the last `SET` of each key, while stale reads are planted.
    before: HashMap<Box<[u8]>, Box<[u8]>>,
}

/// Carries out a command, or not, and answers it rightly or wrongly. A large value is part of the reply at once.
pub(super) fn execute(call: &mut Call<'_>, faults: &mut ThreadFaults, planted: &mut Planted) -> After {
    let name = commands::find(call.words.at(0)).map_or("", |at| commands::COMMANDS[at].name);
    let does = commands::find(call.words.at(0)).map_or(Does::Neither, |at| commands::COMMANDS[at].does);
    if does != Does::Neither && faults.refused.selects_next() {
        return commands::refused(call, "ERR a planted refusal");
    }
    let is_update = matches!(name, "set" | "setex" | "psetex" | "mset" | "del" | "unlink");
    if is_update && faults.unapplied.selects_next() {
        match name {
            "del" | "unlink" => reply::number(call.out, 1),
            _ => reply::ok(call.out),
        }
        return After::Nothing;
    }
    let key = call.words.at(1);
    if name == "set"
        && faults.stale.is_planted()
        && let Some(entry) = call.keys.get(key, call.now_ms)
    {
        planted.before.insert(key.into(), entry.value().into());
    }
    let begin = call.out.len();
    let after = match commands::execute(call) {
        After::Value(large) => {
            call.out.extend_from_slice(large.bytes());
            call.out.extend_from_slice(b"\r\n");
            After::Nothing
        }
        // A deferred reply could not be made wrong.
        After::OkWhenFreed(_) => {
            call.keys.free_cleared(usize::MAX);
            reply::ok(call.out);
            After::Nothing
        }
        after => after,
    };
    if faults.now.ignores_expiry && does == Does::Writes {
        call.keys.persist(key);
    }
    if name == "get" {
        answer_wrongly(call, begin, faults, planted);
    }
    after
}

/// Replaces the reply to a get that found its value, where one of these is planted.
fn answer_wrongly(call: &mut Call<'_>, begin: usize, faults: &mut ThreadFaults, planted: &Planted) {
    let key = call.words.at(1);
    let Some(entry) = call.keys.get(key, call.now_ms) else { return };
    let value = entry.value();
    let instead: Option<Box<[u8]>> = if faults.wrong.selects_next() {
        Some(altered(value))
    } else if faults.truncated.selects_next() {
        Some(value[..value.len().saturating_sub(1)].into())
    } else if faults.stale.selects_next() {
        planted.before.get(key).cloned()
    } else if faults.missed.selects_next() {
        call.out.truncate(begin);
        return reply::none(call.out, call.session.resp3);
    } else {
        None
    };
    if let Some(value) = instead {
        call.out.truncate(begin);
        reply::bulk(call.out, &value);
    }
}

/// As long, and another one at its end: only who compares all of it sees so.
fn altered(value: &[u8]) -> Box<[u8]> {
    let mut other: Box<[u8]> = value.into();
    if let Some(last) = other.last_mut() {
        *last = if *last == b'#' { b'+' } else { b'#' };
    }
    other
}

/// Drops the reply that begins at `begin`, or sends it twice, or delays it until after the next one.
pub(super) fn reply(out: &mut Vec<u8>, begin: usize, faults: &mut ThreadFaults, held: &mut Option<Vec<u8>>) {
    if faults.lost.selects_next() {
        return out.truncate(begin);
    }
    if faults.twice.selects_next() {
        out.extend_from_within(begin..);
    }
    let is_chosen = faults.swapped.selects_next();
    if is_chosen && held.is_none() {
        *held = Some(out.split_off(begin));
    } else if let Some(held) = held.take() {
        out.extend_from_slice(&held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_value_is_as_long_and_another_one() {
        for value in [&b"a"[..], b"#", b"abc"] {
            let other = altered(value);
            assert!(other.len() == value.len() && &*other != value);
        }
    }
}
