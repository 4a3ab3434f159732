//! HTTP/1.1 (RFC 9112): four requesters, each of which waits for its answer.
//!
//! A fault in the answer to a climb's first request can be refused before any load, so most servers here behave until
//! then.

use std::io;
use std::thread;
use std::time::Duration;

use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load =
    Load::new("HTTP/1.1", "http://127.0.0.1:PORT/ --requesters 4 --timeout 500ms --think 20ms");

const UNENDED: &str = "stopped replying|never answered|answer never ended";

pub(super) const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Answers each request in order, by what `answer` makes of its number on this connection.
pub(super) fn answers(peer: &mut Peer, answer: impl Fn(usize) -> Vec<u8>) -> io::Result<()> {
    for number in 0.. {
        peer.head()?;
        peer.say(answer(number))?;
    }
    Ok(())
}

/// Behaves until the load starts; then it receives a request and does this.
pub(super) fn later(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        if peer.is_probe() {
            return answers(peer, |_| RIGHT.into());
        }
        peer.head()?;
        does(peer)
    }
}

/// Hears a request of the load, says this, and then nothing.
pub(super) fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    later(move |peer| peer.say_last(&bytes))
}

/// Answers every request of the load like this.
fn always(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    later(move |peer| {
        peer.say(&bytes)?;
        answers(peer, |_| bytes.as_ref().to_vec())
    })
}

/// Says this, and then the same bytes again and again.
fn floods(first: &'static str, then: &'static str) -> impl Fn(&mut Peer) -> io::Result<()> {
    later(move |peer| {
        peer.say(first)?;
        peer.flood(then)
    })
}

fn first_request() -> Vec<Row> {
    let asked = |bytes: &'static [u8]| {
        move |peer: &mut Peer| {
            peer.head()?;
            peer.say_last(bytes)
        }
    };
    vec![
        row("accepts and says nothing", Unmeasured, "did not answer GET / within 0.5 s", Peer::hold),
        long("closes at once", Unmeasured, "closes connections instead of answering GET /", |_| Ok(())),
        long("resets at once", Unmeasured, "closes connections|cannot reach", Peer::reset),
        row("speaks first, of something else", Unmeasured, "is not an HTTP server", |peer| {
            peer.say_last("SSH-2.0-OpenSSH_9.2\r\n")
        }),
        row("answers garbage", Unmeasured, "is not an HTTP server", asked(&[0xff; 100])),
        row("answers with a TLS alert", Unmeasured, "wants TLS", asked(b"\x15\x03\x01\x00\x02\x02\x46")),
        row("answers 404", Unmeasured, "status 404", asked(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")),
        row("answers one byte in 100 ms", Unmeasured, "did not answer GET / within 0.5 s", |peer| {
            peer.head()?;
            peer.say_slowly(RIGHT, Duration::from_millis(100))
        }),
        row("answers half a head", Unmeasured, "did not answer", asked(b"HTTP/1.1 200 OK\r\nContent-Le")),
        row("answers in HTTP/2", Unmeasured, "is not an HTTP server", asked(b"\0\0\0\x04\0\0\0\0\0")),
    ]
}

fn heads() -> Vec<Row> {
    const HEADER: &str = "broken header";
    vec![
        long("sends an endless status line", Fails, "too much header", floods("HTTP/1.1 200 ", "a")),
        long("sends an endless header line", Fails, "too much header", floods("HTTP/1.1 200 OK\r\nX: ", "a")),
        long(
            "sends endless headers",
            Fails,
            "too much header",
            floods("HTTP/1.1 200 OK\r\n", "X-Header: value\r\n"),
        ),
        row(
            "sends 100 Continue without end",
            Fails,
            "stopped replying|never answered|no answer in time",
            floods("", "HTTP/1.1 100 Continue\r\n\r\n"),
        )
        .with(&["--hold", "2s"]),
        long(
            "switches protocols unasked",
            Fails,
            "status not expected",
            always("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
        ),
        long("answers with status 99", Fails, "broken status line", always("HTTP/1.1 99 Low\r\n\r\n")),
        long("answers with status 1000", Fails, "broken status line", always("HTTP/1.1 1000 High\r\n\r\n")),
        long(
            "answers in HTTP/3.0",
            Fails,
            "broken status line",
            always("HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ),
        long("sends a header without a colon", Fails, HEADER, always("HTTP/1.1 200 OK\r\nhello\r\n\r\n")),
        long(
            "sends a header with a blank before the colon",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n"),
        ),
        long(
            "sends a header with a NUL",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n"),
        ),
        long(
            "sends a negative length",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        ),
        long(
            "sends a length with a plus",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello"),
        ),
        long(
            "sends a length of 2^64",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n"),
        ),
        long(
            "sends two lengths that differ",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        ),
        long(
            "sends length and chunks, one of which a proxy believes",
            Fails,
            HEADER,
            always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ),
        long(
            "sends an encoding that nobody asked for",
            Fails,
            UNENDED,
            always("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello"),
        ),
    ]
}

fn bodies() -> Vec<Row> {
    const CHUNK: &str = "broken chunk";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = |rest: &str| says(format!("{CHUNKED}{rest}"));
    vec![
        long(
            "says a length of 2^63 and sends it",
            Fails,
            "body too large",
            floods("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", "a"),
        ),
        long(
            "sends a body that ends with the connection, and never ends it",
            Fails,
            UNENDED,
            floods("HTTP/1.1 200 OK\r\n\r\n", "a"),
        ),
        long(
            "closes within a body",
            Fails,
            "answer cut off",
            later(|peer| peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")),
        ),
        row(
            "stops within a body",
            Fails,
            "answer never ended",
            says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
        ),
        long("sends more than it said", Fails, "unasked bytes", always(format!("{RIGHT}more"))),
        long(
            "sends one byte of a body in 100 ms",
            Fails,
            "answer never ended",
            later(|peer| {
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n")?;
                peer.say_slowly([b'a'; 50], Duration::from_millis(100))
            }),
        ),
        long("sends a chunk of 2^64 bytes", Fails, CHUNK, chunks("10000000000000000\r\n")),
        long("sends a chunk of 2^63 bytes", Fails, UNENDED, chunks("8000000000000000\r\n")),
        long("sends a chunk of a size that is no number", Fails, CHUNK, chunks("hello\r\n")),
        long("sends a chunk of a negative size", Fails, CHUNK, chunks("-5\r\nhello\r\n")),
        long("sends a chunk that is longer than it says", Fails, CHUNK, chunks("3\r\nhello\r\n0\r\n\r\n")),
        row("stops within a chunk", Fails, "answer never ended", chunks("5\r\nhel")),
        row("sends chunks without end", Fails, UNENDED, floods(CHUNKED, "5\r\nhello\r\n")),
        long("sends empty lines instead of a size", Fails, CHUNK, floods(CHUNKED, "\r\n")),
        long(
            "sends a chunk's extension without end",
            Fails,
            CHUNK,
            floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", "a"),
        ),
        long(
            "sends trailers without end",
            Fails,
            "too much header",
            floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"),
        ),
    ]
}

fn answering() -> Vec<Row> {
    let moved = |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let redirects = |name: &'static str, reason: &'static str, to: &str| {
        long(name, Fails, reason, always(moved(to))).with(&["--redirects", "3"])
    };
    const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    vec![
        row("answers, as it should", Passes, "", always(RIGHT)),
        row(
            "says 100 Continue before each answer, as it may",
            Passes,
            "",
            always(format!("HTTP/1.1 100 Continue\r\n\r\n{RIGHT}")),
        ),
        long("closes when it is asked", Fails, "connection lost", later(|_| Ok(()))),
        long("resets when it is asked", Fails, "connection reset", later(Peer::reset)),
        long("ends its side when it is asked", Fails, "connection lost", later(Peer::half_close)),
        long("answers nothing", Fails, "no answer in time", later(Peer::hold)),
        long(
            "answers five requests of a connection and then nothing",
            Fails,
            "no answer in time",
            later(|peer| {
                peer.say(RIGHT)?;
                answers(peer, |number| if number < 4 { RIGHT.into() } else { Vec::new() })
            }),
        ),
        long(
            "answers after 700 ms, beyond the timeout",
            Fails,
            "no answer in time",
            later(|peer| {
                thread::sleep(Duration::from_millis(700));
                peer.say(RIGHT)
            }),
        ),
        long("answers twice", Fails, "unasked bytes", always([RIGHT, RIGHT].concat())),
        long("answers before it is asked", Fails, "unasked bytes", |peer| {
            if peer.is_probe() {
                return answers(peer, |_| RIGHT.into());
            }
            loop {
                peer.say(RIGHT)?;
                peer.head()?;
            }
        }),
        row("answers 503", Fails, "rejected (429, 503)", always(BUSY)),
        long("answers 500", Fails, "status 5xx", always("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")),
        long(
            "answers 404 once the load has come",
            Fails,
            "status 4xx",
            always("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
        ),
        row(
            "answers one request of five with 503",
            Fails,
            "rejected (429, 503)",
            later(|peer| {
                peer.say(RIGHT)?;
                answers(peer, |number| if number % 5 == 3 { BUSY.into() } else { RIGHT.into() })
            }),
        ),
        long("answers another body", Fails, "wrong body", always(RIGHT.replace("hello", "HELLO")))
            .with(&["--expect-text", "hello"]),
        long(
            "answers an empty body",
            Fails,
            "wrong body",
            always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        )
        .with(&["--expect-text", "hello"]),
        long(
            "answers 204 with a body",
            Fails,
            "unasked bytes",
            always("HTTP/1.1 204 No Content\r\n\r\nhello"),
        ),
        row(
            "redirects to a cloud's metadata service",
            Fails,
            "redirect elsewhere",
            always(moved("http://169.254.169.254/latest/")),
        )
        .with(&["--redirects", "3"]),
        redirects("redirects to another port", "redirect elsewhere", "http://127.0.0.1:1/"),
        redirects("redirects to a file", "redirect elsewhere", "file:///etc/passwd"),
        redirects("redirects by a path of the network", "redirect elsewhere", "//169.254.169.254/latest/"),
        row(
            "redirects with a user name that is another host",
            Fails,
            "redirect elsewhere|redirect",
            always(moved("http://169.254.169.254@127.0.0.1/")),
        )
        .with(&["--redirects", "3"]),
        redirects("redirects with backslashes", "redirect", "\\\\169.254.169.254/"),
        redirects("redirects with a tab and a version in the path", "redirect|status", "/x\tHTTP/1.1"),
        long(
            "redirects to longer and longer paths",
            Fails,
            "too much header|redirect",
            later(|peer| {
                let mut path = "/x".to_owned();
                loop {
                    path += &"x".repeat(3000);
                    peer.say(format!("HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n"))?;
                    peer.head()?;
                }
            }),
        )
        .with(&["--redirects", "10"]),
        long(
            "redirects to a new path each time",
            Fails,
            "redirect",
            later(|peer| {
                peer.say("HTTP/1.1 302 Found\r\nLocation: /first\r\nContent-Length: 0\r\n\r\n")?;
                answers(peer, |number| {
                    format!("HTTP/1.1 302 Found\r\nLocation: /a{number}\r\nContent-Length: 0\r\n\r\n").into()
                })
            }),
        )
        .with(&["--redirects", "10"]),
        redirects("redirects to itself", "redirect loop", "/"),
    ]
}

#[test]
fn hostile_http_1_servers_do_not_pass() {
    check(
        &LOAD,
        &[first_request(), heads(), bodies(), answering()].into_iter().flatten().collect::<Vec<_>>(),
    );
}
