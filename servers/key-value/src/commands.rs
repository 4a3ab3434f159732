//! The commands: one table, shared by dispatch, `COMMAND` and the counts of `INFO commandstats`.
//!
//! Replies and error texts are those of Redis 7. There is one database, number 0.

use std::rc::Rc;

use super::about::{self, About};
use super::keyspace::{Expiry, FREED_AT_ONCE, Full, Keyspace, Large};
use super::reply;
use super::request::Words;

/// What the server knows of one connection besides its bytes.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) resp3: bool,
    pub(super) name: Box<[u8]>,
}

/// A command that is being executed.
pub(super) struct Call<'a> {
    pub(super) words: Words<'a>,
    pub(super) session: &'a mut Session,
    pub(super) keys: &'a mut Keyspace,
    pub(super) about: &'a mut About,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) now_ms: u64,
}

/// What follows a reply that was written.
#[derive(Debug)]
pub(super) enum After {
    Nothing,
    /// This value and a line end belong to the reply.
    Value(Rc<Large>),
    /// The reply is OK, once the keyspace has freed what this number identifies; nothing was written yet.
    OkWhenFreed(u64),
    /// The connection ends with this reply.
    End,
}

pub(super) struct Command {
    pub(super) name: &'static str,
    /// Words, the name included; negative: so many and more.
    pub(super) arity: i64,
    pub(super) does: Does,
    run: fn(&mut Call<'_>) -> After,
}

/// What a command does to keys, for `COMMAND` and for planted faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Reads,
    Writes,
    Neither,
}

use Does::{Neither, Reads, Writes};

const fn row(name: &'static str, arity: i64, does: Does, run: fn(&mut Call<'_>) -> After) -> Command {
    Command { name, arity, does, run }
}

/// The most frequent first, since a name is searched for from the beginning.
pub(super) const COMMANDS: [Command; 31] = [
    row("get", 2, Reads, get),
    row("set", -3, Writes, set),
    row("del", -2, Writes, del),
    row("mget", -2, Reads, mget),
    row("mset", -3, Writes, mset),
    row("incr", 2, Writes, incr),
    row("exists", -2, Reads, exists),
    row("expire", 3, Writes, |call| expire(call, 1000)),
    row("pexpire", 3, Writes, |call| expire(call, 1)),
    row("ttl", 2, Reads, |call| ttl(call, 1000)),
    row("pttl", 2, Reads, |call| ttl(call, 1)),
    row("setex", 4, Writes, |call| set_with_time(call, 1000)),
    row("psetex", 4, Writes, |call| set_with_time(call, 1)),
    row("getdel", 2, Writes, getdel),
    row("strlen", 2, Reads, strlen),
    row("type", 2, Reads, type_of),
    row("unlink", -2, Writes, del),
    row("ping", -1, Neither, ping),
    row("echo", 2, Neither, echo),
    row("dbsize", 1, Reads, dbsize),
    row("flushdb", -1, Writes, flush),
    row("flushall", -1, Writes, flush),
    row("select", 2, Neither, select),
    row("hello", -1, Neither, about::hello),
    row("client", -2, Neither, about::client),
    row("info", -1, Neither, about::info),
    row("config", -2, Neither, about::config),
    row("command", -1, Neither, about::command),
    row("auth", -2, Neither, auth),
    row("reset", 1, Neither, reset),
    row("quit", -1, Neither, quit),
];

/// The row of a command by its name, in either case.
pub(super) fn find(name: &[u8]) -> Option<usize> {
    COMMANDS.iter().position(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Carries out a command that has a word at least.
pub(super) fn execute(call: &mut Call<'_>) -> After {
    let name = call.words.at(0);
    let Some(at) = find(name) else { return unknown(call) };
    let command = &COMMANDS[at];
    if !fits(command.arity, call.words.len()) {
        let text = format!("ERR wrong number of arguments for '{}' command", command.name);
        return refused(call, &text);
    }
    call.about.calls[at] += 1;
    (command.run)(call)
}

fn fits(arity: i64, words: usize) -> bool {
    words as i64 == arity || (arity < 0 && words as i64 >= -arity)
}

/// Bytes of a client's word in an error.
const SHOWN_BYTES_MAX: usize = 128;

fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(SHOWN_BYTES_MAX)]).into_owned()
}

fn unknown(call: &mut Call<'_>) -> After {
    let mut text = format!("ERR unknown command '{}', with args beginning with: ", shown(call.words.at(0)));
    for word in call.words.from(1) {
        if text.len() >= 2 * SHOWN_BYTES_MAX {
            break;
        }
        text.extend(["'", &shown(word), "' "]);
    }
    refused(call, &text)
}

pub(super) fn refused(call: &mut Call<'_>, text: &str) -> After {
    reply::error(call.out, text);
    After::Nothing
}

fn syntax_error(call: &mut Call<'_>) -> After {
    refused(call, "ERR syntax error")
}

const NOT_A_NUMBER: &str = "ERR value is not an integer or out of range";

/// A number as Redis takes one: no spaces, no `+`, no leading zeros.
fn number(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let is_plain = match digits {
        [b'0'] => word.len() == 1,
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
        [] => false,
    };
    std::str::from_utf8(word).ok().filter(|_| is_plain)?.parse().ok()
}

fn done(call: &mut Call<'_>, stored: Result<(), Full>) -> After {
    match stored {
        Ok(()) => reply::ok(call.out),
        Err(Full) => reply::error(call.out, FULL),
    }
    After::Nothing
}

pub(super) const FULL: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn get(call: &mut Call<'_>) -> After {
    match call.keys.get(call.words.at(1), call.now_ms) {
        None => reply::none(call.out, call.session.resp3),
        Some(entry) => match entry.large() {
            Some(large) => {
                reply::bulk_head(call.out, large.bytes().len());
                return After::Value(large.clone());
            }
            None => reply::bulk(call.out, entry.value()),
        },
    }
    After::Nothing
}

/// What follows the value of a `SET`.
struct Conditions {
    expiry: Expiry,
    /// Only where the key is (XX) or is not (NX).
    only_if: Option<bool>,
    /// The reply is the value before.
    gets: bool,
}

impl Conditions {
    fn of(call: &Call<'_>) -> Result<Conditions, &'static str> {
        const SYNTAX: &str = "ERR syntax error";
        let mut conditions = Conditions { expiry: Expiry::Never, only_if: None, gets: false };
        let mut at = 3;
        while at < call.words.len() {
            let word = call.words.at(at);
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let has_expiry = conditions.expiry != Expiry::Never;
            if (is("NX") || is("XX")) && conditions.only_if.is_none() {
                conditions.only_if = Some(is("XX"));
            } else if is("GET") {
                conditions.gets = true;
            } else if is("KEEPTTL") && !has_expiry {
                conditions.expiry = Expiry::Kept;
            } else if (is("EX") || is("PX")) && !has_expiry && at + 1 < call.words.len() {
                at += 1;
                let unit_ms = if is("EX") { 1000 } else { 1 };
                conditions.expiry = time_to_live(call, at, unit_ms, "set")?;
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        Ok(conditions)
    }
}

/// The time to live in this word, above 0.
fn time_to_live(call: &Call<'_>, at: usize, unit_ms: i64, of: &str) -> Result<Expiry, &'static str> {
    let count = number(call.words.at(at)).ok_or(NOT_A_NUMBER)?;
    let ms = count.checked_mul(unit_ms).filter(|ms| *ms > 0 && *ms < i64::MAX / 2);
    let ms = ms.ok_or(match of {
        "set" => "ERR invalid expire time in 'set' command",
        "setex" => "ERR invalid expire time in 'setex' command",
        _ => "ERR invalid expire time in 'psetex' command",
    })?;
    Ok(Expiry::AtMs(call.now_ms + ms as u64))
}

fn set(call: &mut Call<'_>) -> After {
    let (key, value) = (call.words.at(1), call.words.at(2));
    if call.words.len() == 3 {
        let stored = call.keys.set(key, value, Expiry::Never);
        return done(call, stored);
    }
    let conditions = match Conditions::of(call) {
        Ok(conditions) => conditions,
        Err(text) => return refused(call, text),
    };
    // An expired key does not exist; the lookup removes it, so that its expiry time is not kept.
    let is_there = call.keys.get(key, call.now_ms).is_some();
    let applies = conditions.only_if.is_none_or(|wanted| wanted == is_there);
    if !conditions.gets {
        if !applies {
            reply::none(call.out, call.session.resp3);
            return After::Nothing;
        }
        let stored = call.keys.set(key, value, conditions.expiry);
        return done(call, stored);
    }
    let begin = call.out.len();
    put_value(call, key);
    if applies && call.keys.set(key, value, conditions.expiry).is_err() {
        call.out.truncate(begin);
        return refused(call, FULL);
    }
    After::Nothing
}

fn set_with_time(call: &mut Call<'_>, unit_ms: i64) -> After {
    let (key, value) = (call.words.at(1), call.words.at(3));
    match time_to_live(call, 2, unit_ms, if unit_ms == 1 { "psetex" } else { "setex" }) {
        Err(text) => refused(call, text),
        Ok(expiry) => {
            let stored = call.keys.set(key, value, expiry);
            done(call, stored)
        }
    }
}

/// The value, copied, or none.
fn put_value(call: &mut Call<'_>, key: &[u8]) {
    match call.keys.get(key, call.now_ms) {
        Some(entry) => reply::bulk(call.out, entry.value()),
        None => reply::none(call.out, call.session.resp3),
    }
}

// Multi-key commands are executed as a whole, as in Redis: no client sees half of one. With 1,048,575 words they take
// 0.16 s (EXISTS) to 0.33 s (MGET) (docs/method/grid.md).

/// The most that one reply of many values has: the room for it is taken before it can be sent.
const MGET_BYTES_MAX: usize = 64 << 20;

fn mget(call: &mut Call<'_>) -> After {
    let begin = call.out.len();
    reply::array(call.out, call.words.len() - 1);
    for key in call.words.from(1) {
        put_value(call, key);
        if call.out.len() - begin > MGET_BYTES_MAX {
            call.out.truncate(begin);
            return refused(call, "ERR the values are more than 64 MiB; ask for fewer at once");
        }
    }
    After::Nothing
}

fn mset(call: &mut Call<'_>) -> After {
    if call.words.len().is_multiple_of(2) {
        return refused(call, "ERR wrong number of arguments for 'mset' command");
    }
    let mut stored = Ok(());
    for at in (1..call.words.len()).step_by(2) {
        stored = stored.and(call.keys.set(call.words.at(at), call.words.at(at + 1), Expiry::Never));
    }
    done(call, stored)
}

fn incr(call: &mut Call<'_>) -> After {
    let key = call.words.at(1);
    let value = call.keys.get(key, call.now_ms).map_or(Some(0), |entry| number(entry.value()));
    let Some(value) = value else { return refused(call, NOT_A_NUMBER) };
    let Some(value) = value.checked_add(1) else {
        return refused(call, "ERR increment or decrement would overflow");
    };
    match call.keys.set(key, value.to_string().as_bytes(), Expiry::Kept) {
        Ok(()) => reply::number(call.out, value),
        Err(Full) => reply::error(call.out, FULL),
    }
    After::Nothing
}

fn del(call: &mut Call<'_>) -> After {
    let removed = call.words.from(1).filter(|key| call.keys.remove(key, call.now_ms)).count();
    reply::number(call.out, removed as i64);
    After::Nothing
}

fn exists(call: &mut Call<'_>) -> After {
    let there = call.words.from(1).filter(|key| call.keys.get(key, call.now_ms).is_some()).count();
    reply::number(call.out, there as i64);
    After::Nothing
}

fn getdel(call: &mut Call<'_>) -> After {
    let key = call.words.at(1);
    put_value(call, key);
    call.keys.remove(key, call.now_ms);
    After::Nothing
}

fn strlen(call: &mut Call<'_>) -> After {
    let bytes = call.keys.get(call.words.at(1), call.now_ms).map_or(0, |entry| entry.value().len());
    reply::number(call.out, bytes as i64);
    After::Nothing
}

fn type_of(call: &mut Call<'_>) -> After {
    let is_there = call.keys.get(call.words.at(1), call.now_ms).is_some();
    reply::simple(call.out, if is_there { "string" } else { "none" });
    After::Nothing
}

fn expire(call: &mut Call<'_>, unit_ms: i64) -> After {
    let key = call.words.at(1);
    let Some(count) = number(call.words.at(2)) else { return refused(call, NOT_A_NUMBER) };
    let Some(ms) = count.checked_mul(unit_ms).filter(|ms| *ms < i64::MAX / 2) else {
        return refused(call, "ERR invalid expire time in 'expire' command");
    };
    let is_there = if ms > 0 {
        call.keys.expire(key, call.now_ms + ms as u64, call.now_ms)
    } else {
        call.keys.remove(key, call.now_ms)
    };
    reply::number(call.out, i64::from(is_there));
    After::Nothing
}

fn ttl(call: &mut Call<'_>, unit_ms: u64) -> After {
    let now_ms = call.now_ms;
    let left = match call.keys.get(call.words.at(1), now_ms).map(|entry| entry.expires_ms()) {
        None => -2,
        Some(None) => -1,
        // Rounded to nearest, as Redis does.
        Some(Some(at_ms)) => ((at_ms - now_ms + unit_ms / 2) / unit_ms) as i64,
    };
    reply::number(call.out, left);
    After::Nothing
}

fn ping(call: &mut Call<'_>) -> After {
    match call.words.len() {
        1 => reply::simple(call.out, "PONG"),
        2 => reply::bulk(call.out, call.words.at(1)),
        _ => return refused(call, "ERR wrong number of arguments for 'ping' command"),
    }
    After::Nothing
}

fn echo(call: &mut Call<'_>) -> After {
    reply::bulk(call.out, call.words.at(1));
    After::Nothing
}

fn dbsize(call: &mut Call<'_>) -> After {
    reply::number(call.out, call.keys.count() as i64);
    After::Nothing
}

fn flush(call: &mut Call<'_>) -> After {
    let how = call.words.at(1);
    let is_known = how.eq_ignore_ascii_case(b"ASYNC") || how.eq_ignore_ascii_case(b"SYNC");
    if call.words.len() > 2 || (call.words.len() == 2 && !is_known) {
        return syntax_error(call);
    }
    call.keys.clear();
    // The keys are gone for all clients. Their memory is freed a portion per turn, so that no other request waits for
    // all of it, and counts as used until then. Only a client that has not asked for ASYNC waits, as in Redis since
    // 7.4.
    if !how.eq_ignore_ascii_case(b"ASYNC") {
        call.keys.free_cleared(FREED_AT_ONCE);
        if call.keys.is_freeing() {
            return After::OkWhenFreed(call.keys.cleared_total());
        }
    }
    reply::ok(call.out);
    After::Nothing
}

fn select(call: &mut Call<'_>) -> After {
    match number(call.words.at(1)) {
        Some(0) => reply::ok(call.out),
        Some(_) => reply::error(call.out, "ERR DB index is out of range"),
        None => reply::error(call.out, NOT_A_NUMBER),
    }
    After::Nothing
}

fn auth(call: &mut Call<'_>) -> After {
    refused(
        call,
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
    )
}

fn reset(call: &mut Call<'_>) -> After {
    *call.session = Session { id: call.session.id, ..Session::default() };
    reply::simple(call.out, "RESET");
    After::Nothing
}

fn quit(call: &mut Call<'_>) -> After {
    reply::ok(call.out);
    After::End
}
