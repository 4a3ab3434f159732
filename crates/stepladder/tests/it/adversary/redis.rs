//! Redis: operations on a few keys, four in flight.

use std::io;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load = Load::new(
    "Redis",
    "redis://127.0.0.1:PORT --rate 200 --op 1:1 --keys uniform:10 --value 8 --objective errors==0",
);

fn bulk(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

/// The words of the next command.
fn command(peer: &mut Peer) -> io::Result<Vec<Vec<u8>>> {
    let number = |line: Vec<u8>| {
        let digits = String::from_utf8_lossy(&line[1..]).into_owned();
        digits.parse::<usize>().map_err(|_| io::ErrorKind::InvalidData.into())
    };
    let count: io::Result<usize> = number(peer.line()?);
    (0..count?)
        .map(|_| {
            let length: io::Result<usize> = number(peer.line()?);
            let mut word = peer.take(length? + 2)?;
            word.truncate(word.len() - 2);
            Ok(word)
        })
        .collect()
}

/// What a store says to a command.
fn honest(peer: &mut Peer, words: &[Vec<u8>]) -> Vec<u8> {
    let mut values = peer.shared.values.lock().unwrap_or_else(PoisonError::into_inner);
    match words {
        [name, key] if name.eq_ignore_ascii_case(b"get") => {
            values.get(key).map_or(b"$-1\r\n".to_vec(), |value| bulk(value))
        }
        [name, key, value, ..] if name.eq_ignore_ascii_case(b"set") => {
            values.insert(key.clone(), value.clone());
            b"+OK\r\n".to_vec()
        }
        _ => b"+OK\r\n".to_vec(),
    }
}

fn is_get(words: &[Vec<u8>]) -> bool {
    words[0].eq_ignore_ascii_case(b"get")
}

/// A store that answers gets by what `answer` makes of the right answer and the number of the get on this connection.
fn gets(answer: impl Fn(Vec<u8>, usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        let mut number = 0;
        loop {
            let words = command(peer)?;
            let right = honest(peer, &words);
            if is_get(&words) {
                peer.say(answer(right, number))?;
                number += 1;
            } else {
                peer.say(right)?;
            }
        }
    }
}

/// A store until the first get; then it does this.
fn at_get(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| loop {
        let words = command(peer)?;
        if is_get(&words) {
            return does(peer);
        }
        let right = honest(peer, &words);
        peer.say(right)?;
    }
}

pub(super) fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    at_get(move |peer| peer.say_last(&bytes))
}

fn floods(first: &'static str, then: &'static str) -> impl Fn(&mut Peer) -> io::Result<()> {
    at_get(move |peer| {
        peer.say(first)?;
        peer.flood(then)
    })
}

/// Answers the selection of the database with this.
fn selects(bytes: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        command(peer)?;
        peer.say_last(bytes)
    }
}

fn opening() -> Vec<Row> {
    const NOT_REDIS: &str = "is not a Redis server";
    vec![
        long(
            "accepts and says nothing",
            Unmeasured,
            "did not answer as a redis server does within 5 s",
            Peer::hold,
        ),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        row("resets at once", Unmeasured, "127.0.0.1", Peer::reset),
        row("speaks HTTP", Unmeasured, NOT_REDIS, selects(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        row(
            "asks for a password",
            Unmeasured,
            "it asks for a password",
            selects(b"-NOAUTH Authentication required.\r\n"),
        ),
        row("is loading", Unmeasured, "wait until it is ready", selects(b"-LOADING Redis is loading\r\n")),
        row("is full", Unmeasured, "see why it is full", selects(b"-ERR max number of clients reached\r\n")),
        row("answers the selection with a number", Unmeasured, NOT_REDIS, selects(b":1\r\n")),
        row("answers garbage", Unmeasured, NOT_REDIS, selects(&[0xff; 100])),
        long("answers one byte in 500 ms", Unmeasured, "within 5 s", |peer| {
            command(peer)?;
            peer.say_slowly([b'+'; 100], Duration::from_millis(500))
        }),
        row("answers a line without end", Unmeasured, NOT_REDIS, |peer| {
            command(peer)?;
            peer.say("+")?;
            peer.flood("a")
        }),
        long("stores nothing and answers nothing to it", Fails, "stopped replying|never answered", |peer| {
            command(peer)?;
            peer.say_last("+OK\r\n")
        }),
    ]
}

fn replies() -> Vec<Row> {
    const BROKEN: &str = "broken protocol";
    vec![
        long("sends a text of length -2", Fails, BROKEN, says("$-2\r\n")),
        long("sends a text of length 2^63", Fails, BROKEN, says("$9223372036854775808\r\n")),
        long("sends a text of 1 GiB", Fails, BROKEN, floods("$1073741824\r\n", "x")),
        long("sends a text that is longer than it says", Fails, BROKEN, says("$3\r\nhello\r\n")),
        long("sends a length that is no number", Fails, BROKEN, says("$five\r\nhello\r\n")),
        long("sends an array of 99,999,999", Fails, BROKEN, says("*99999999\r\n")),
        long("sends an array of length -2", Fails, BROKEN, says("*-2\r\n")),
        long("sends 10,000 arrays in each other", Fails, BROKEN, says("*1\r\n".repeat(10_000))),
        long("sends arrays in each other without end", Fails, BROKEN, floods("", "*1\r\n")),
        long("sends a type that there is not", Fails, BROKEN, says("?what\r\n")),
        long("sends a number that is none", Fails, BROKEN, says(":five\r\n")),
        long("sends a line without end", Fails, BROKEN, floods("+", "a")),
        long("sends an error without end", Fails, BROKEN, floods("-ERR ", "a")),
        long("stops within a text", Fails, "stopped", says("$8\r\nhel")),
        long(
            "sends texts that nobody asked for without end",
            Fails,
            "reply of another kind",
            floods("", "$5\r\nhello\r\n"),
        ),
        long("sends OK without end", Fails, "reply of another kind", floods("", "+OK\r\n")),
    ]
}

fn answering() -> Vec<Row> {
    vec![
        row("answers, as it should", Passes, "", gets(|right, _| right)),
        long("answers nothing to gets", Fails, "reply of another kind", gets(|_, _| Vec::new())),
        long(
            "answers five gets and then nothing",
            Fails,
            "reply of another kind",
            gets(|right, number| if number < 5 { right } else { Vec::new() }),
        ),
        row("answers OK to gets", Fails, "reply of another kind", gets(|_, _| b"+OK\r\n".to_vec())),
        long("answers a number to gets", Fails, "reply of another kind", gets(|_, _| b":5\r\n".to_vec())),
        long(
            "answers an array to gets",
            Fails,
            "broken protocol",
            gets(|right, _| [b"*1\r\n", &right[..]].concat()),
        ),
        row("finds nothing", Fails, "value not found", gets(|_, _| b"$-1\r\n".to_vec())),
        long("finds another value", Fails, "wrong value", gets(|_, _| bulk(b"8 bytes!"))),
        row(
            "finds the value without its last byte",
            Fails,
            "wrong value",
            gets(|right, _| {
                let text = &right[4..right.len() - 2];
                bulk(&text[1..])
            }),
        ),
        long("finds an empty value", Fails, "wrong value", gets(|_, _| bulk(b""))),
        row("answers gets with an error", Fails, "operation refused", gets(|_, _| b"-ERR no\r\n".to_vec())),
        long(
            "refuses one get of ten",
            Fails,
            "operation refused",
            gets(|right, number| if number % 10 == 3 { b"-BUSY later\r\n".to_vec() } else { right }),
        ),
        long("answers twice", Fails, "reply of another kind", gets(|right, _| right.repeat(2))),
        row("gives old values: it acknowledges sets and keeps the first", Fails, "stale value", |peer| {
            loop {
                let words = command(peer)?;
                let has_one = words.get(1).is_some_and(|key| {
                    peer.shared.values.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
                });
                let answer =
                    if !is_get(&words) && has_one { b"+OK\r\n".to_vec() } else { honest(peer, &words) };
                peer.say(answer)?;
            }
        }),
        long("gives the values of other keys", Fails, "stale value", |peer| {
            loop {
                let mut words = command(peer)?;
                if is_get(&words) {
                    words[1] = if words[1] == b"k0" { b"k1".to_vec() } else { b"k0".to_vec() };
                }
                let answer = honest(peer, &words);
                peer.say(answer)?;
            }
        }),
        row("swaps answers", Fails, "reply of another kind", |peer| {
            let words = command(peer)?;
            let mut kept = honest(peer, &words);
            peer.say(std::mem::take(&mut kept))?;
            loop {
                let first = command(peer)?;
                let first = honest(peer, &first);
                let second = command(peer)?;
                let second = honest(peer, &second);
                peer.say([second, first].concat())?;
            }
        }),
        long(
            "answers after 1.5 s, beyond the patience",
            Fails,
            "value not found",
            at_get(|peer| {
                thread::sleep(Duration::from_millis(1500));
                peer.say_last("$-1\r\n")
            }),
        ),
        long("closes at a get", Fails, "connection lost", at_get(|_| Ok(()))),
        long("resets at a get", Fails, "connection reset", at_get(Peer::reset)),
        long("ends its side at a get", Fails, "connection lost", at_get(Peer::half_close)),
        long("refuses sets, being out of memory", Fails, "operation refused", |peer| {
            loop {
                let words = command(peer)?;
                let is_set = words[0].eq_ignore_ascii_case(b"set");
                let answer =
                    if is_set { b"-OOM command not allowed\r\n".to_vec() } else { honest(peer, &words) };
                peer.say(answer)?;
            }
        }),
    ]
}

#[test]
fn hostile_redis_servers_do_not_pass() {
    check(&LOAD, &[opening(), replies(), answering()].into_iter().flatten().collect::<Vec<_>>());
}
