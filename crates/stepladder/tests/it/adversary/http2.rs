//! HTTP/2 (RFC 9113): four requesters with a connection each.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::Duration;

use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load =
    Load::new("HTTP/2", "http://127.0.0.1:PORT/ --http 2 --requesters 4 --timeout 500ms --think 20ms");

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// `:status 200`, from the static table.
pub(super) const OK: &[u8] = &[0x88];

const ERROR: &str = "http/2 error";

/// A frame: length, type, flags, stream, payload.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A whole answer.
fn answer(stream: u32, head: &[u8], body: &[u8]) -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, stream, head), frame(DATA, END_STREAM, stream, body)].concat()
}

/// A right answer.
pub(super) fn right(stream: u32) -> Vec<u8> {
    answer(stream, OK, b"hello")
}

/// Reads the preface and says these settings.
pub(super) fn greet(peer: &mut Peer, settings: &[u8]) -> io::Result<()> {
    peer.bytes::<24>()?;
    peer.say(frame(SETTINGS, 0, 0, settings))
}

/// A frame of the client.
struct Heard {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Heard {
    fn ends_a_request(&self) -> bool {
        [HEADERS, DATA].contains(&self.kind) && self.flags & END_STREAM != 0
    }
}

/// The next frame; settings and pings are answered.
fn hear(peer: &mut Peer) -> io::Result<Heard> {
    let [a, b, c, kind, flags] = peer.bytes()?;
    let stream = u32::from_be_bytes(peer.bytes()?);
    let payload = peer.take(u32::from_be_bytes([0, a, b, c]) as usize)?;
    match kind {
        SETTINGS if flags & ACK == 0 => peer.say(frame(SETTINGS, ACK, 0, &[]))?,
        PING if flags & ACK == 0 => peer.say(frame(PING, ACK, 0, &payload))?,
        _ => {}
    }
    Ok(Heard { kind, flags, stream, payload })
}

/// The stream of the next whole request.
pub(super) fn request(peer: &mut Peer) -> io::Result<u32> {
    loop {
        let heard = hear(peer)?;
        if heard.ends_a_request() {
            return Ok(heard.stream);
        }
    }
}

/// Answers each request of the load with this head, these bytes and then `x` until the body has `length` bytes, as the
/// client's windows allow, and never ends it. Probes are answered `right`.
pub(super) fn stalls(
    right: fn(u32) -> Vec<u8>,
    head: &'static [u8],
    begin: Vec<u8>,
    length: usize,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        greet(peer, &[])?;
        if peer.is_probe() {
            return answers(peer, |stream, _| right(stream));
        }
        let body = [&begin[..], &vec![b'x'; length - begin.len()]].concat();
        // The connection's window and the initial window of a stream; for each stream the bytes sent, and its window.
        let (mut window, mut first_window) = (65_535_i64, 65_535_i64);
        let mut streams = BTreeMap::<u32, (usize, i64)>::new();
        loop {
            let heard = hear(peer)?;
            let increment =
                || heard.payload.first_chunk().map_or(0, |bytes| i64::from(u32::from_be_bytes(*bytes)));
            match heard.kind {
                SETTINGS => {
                    let mut of_windows =
                        heard.payload.chunks_exact(6).filter(|setting| setting[..2] == [0, 4]);
                    if let Some(value) = of_windows.next_back().and_then(|setting| setting.last_chunk()) {
                        first_window = i64::from(u32::from_be_bytes(*value));
                    }
                }
                WINDOW_UPDATE if heard.stream == 0 => window += increment(),
                WINDOW_UPDATE => {
                    if let Some((_, window)) = streams.get_mut(&heard.stream) {
                        *window += increment();
                    }
                }
                RST_STREAM => drop(streams.remove(&heard.stream)),
                _ if heard.ends_a_request() => {
                    peer.say(frame(HEADERS, END_HEADERS, heard.stream, head))?;
                    streams.insert(heard.stream, (0, first_window));
                }
                _ => {}
            }
            for (stream, (sent, own)) in &mut streams {
                loop {
                    let room = window.min(*own).clamp(0, 16_384) as usize;
                    let piece = &body[*sent..body.len().min(*sent + room)];
                    if piece.is_empty() {
                        break;
                    }
                    peer.say(frame(DATA, 0, *stream, piece))?;
                    *sent += piece.len();
                    window -= piece.len() as i64;
                    *own -= piece.len() as i64;
                }
            }
        }
    }
}

/// Answers each request by what `answer` makes of its stream and its number on this connection.
fn answers(peer: &mut Peer, answer: impl Fn(u32, usize) -> Vec<u8>) -> io::Result<()> {
    for number in 0.. {
        let stream = request(peer)?;
        peer.say(answer(stream, number))?;
    }
    Ok(())
}

/// Behaves until the load starts; then it receives a request and does this with its stream.
fn later(does: impl Fn(&mut Peer, u32) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        greet(peer, &[])?;
        if peer.is_probe() {
            return answers(peer, |stream, _| right(stream));
        }
        let stream = request(peer)?;
        does(peer, stream)
    }
}

/// Answers every request of the load like this.
fn always(answer: impl Fn(u32) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    later(move |peer, stream| {
        peer.say(answer(stream))?;
        answers(peer, |stream, _| answer(stream))
    })
}

/// Says these settings and behaves otherwise.
fn sets(number: u8, value: u32) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        greet(peer, &[&[0, number][..], &value.to_be_bytes()].concat())?;
        answers(peer, |stream, _| right(stream))
    }
}

fn floods(of: impl Fn(u32) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    later(move |peer, stream| peer.flood(of(stream)))
}

fn connections() -> Vec<Row> {
    const NOT_TWO: &str = "does not speak HTTP/2";
    vec![
        long("accepts and says nothing", Unmeasured, "did not accept a connection within 5 s", Peer::hold),
        row("closes at once", Unmeasured, "closes connections", |_| Ok(())),
        long("resets at once", Unmeasured, "closes connections", Peer::reset),
        row("answers in HTTP/1.1", Unmeasured, NOT_TWO, |peer| {
            peer.bytes::<24>()?;
            peer.say_last("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        }),
        row("answers garbage", Unmeasured, NOT_TWO, |peer| peer.say_last([0xff; 100])),
        long(
            "sends its settings one byte in 100 ms",
            Unmeasured,
            "did not accept a connection within 5 s",
            |peer| peer.say_slowly(frame(SETTINGS, 0, 0, &[0; 60]), Duration::from_millis(100)),
        ),
        long("allows no stream at all", Unmeasured, "did not accept a connection within 5 s", sets(3, 0)),
        row("allows a window of nothing, as it may for requests without a body", Passes, "", sets(4, 0)),
        row("sets a window beyond 2^31", Unmeasured, NOT_TWO, sets(4, 1 << 31)),
        row("sets a largest frame of 1 byte", Unmeasured, NOT_TWO, sets(5, 1)),
        row("goes away at once", Unmeasured, "does not speak HTTP/2|closes connections", |peer| {
            greet(peer, &[])?;
            peer.say_last(frame(GOAWAY, 0, 0, &[0; 8]))
        }),
    ]
}

fn frames() -> Vec<Row> {
    vec![
        long("sends data on stream 0", Fails, ERROR, always(|_| frame(DATA, END_STREAM, 0, b"hello"))),
        long("sends a head on stream 0", Fails, ERROR, always(|_| frame(HEADERS, END_HEADERS, 0, OK))),
        long(
            "sends a head on a stream of its own",
            Fails,
            ERROR,
            always(|_| frame(HEADERS, END_HEADERS | END_STREAM, 2, OK)),
        ),
        long("answers a stream that was not begun", Fails, ERROR, always(|stream| right(stream + 100))),
        long(
            "sends data without a head",
            Fails,
            ERROR,
            always(|stream| frame(DATA, END_STREAM, stream, b"hello")),
        ),
        long(
            "sends a head without a status",
            Fails,
            ERROR,
            always(|stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &[])),
        ),
        long(
            "sends a head that no table explains",
            Fails,
            ERROR,
            always(|stream| frame(HEADERS, END_HEADERS, stream, &[0xff; 20])),
        ),
        long(
            "sends a frame of 16 MB",
            Fails,
            ERROR,
            later(|peer, _| {
                peer.say([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])?;
                peer.flood("x")
            }),
        ),
        long("sends settings of 5 bytes", Fails, ERROR, always(|_| frame(SETTINGS, 0, 0, &[0; 5]))),
        long("sends a ping of 7 bytes", Fails, ERROR, always(|_| frame(PING, 0, 0, &[0; 7]))),
        long(
            "sends a window that grows by nothing",
            Fails,
            ERROR,
            always(|_| frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
        ),
        long(
            "sends a window that grows beyond 2^31",
            Fails,
            ERROR,
            always(|_| frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255])),
        ),
        long(
            "continues a head that has ended",
            Fails,
            ERROR,
            always(|stream| frame(CONTINUATION, END_HEADERS, stream, OK)),
        ),
        long(
            "sends a ping within a head",
            Fails,
            ERROR,
            always(|stream| [frame(HEADERS, 0, stream, OK), frame(PING, 0, 0, &[0; 8])].concat()),
        ),
        long(
            "promises an answer that nobody asked for",
            Fails,
            ERROR,
            always(|stream| {
                let promise = [&2_u32.to_be_bytes()[..], &[0x82, 0x86, 0x84]].concat();
                [frame(PUSH_PROMISE, END_HEADERS, stream, &promise), right(stream)].concat()
            }),
        ),
        long(
            "stops within a head",
            Fails,
            "no answer in time",
            later(|peer, stream| peer.say_last(frame(HEADERS, 0, stream, OK))),
        ),
        long(
            "stops within a frame",
            Fails,
            "no answer in time",
            later(|peer, stream| peer.say_last(&frame(HEADERS, END_HEADERS, stream, &[0x88; 40])[..20])),
        ),
        row(
            "sends pings without end",
            Fails,
            "stopped replying|never answered|malformed message",
            floods(|_| frame(PING, 0, 0, &[7; 8])),
        ),
        row(
            "sends settings without end",
            Fails,
            "stopped replying|never answered|malformed message",
            floods(|_| frame(SETTINGS, 0, 0, &[])),
        ),
        long(
            "sends empty data without end",
            Fails,
            ERROR,
            later(|peer, stream| {
                peer.say(frame(HEADERS, END_HEADERS, stream, OK))?;
                peer.flood(frame(DATA, 0, stream, &[]))
            }),
        ),
        long(
            "sends continuations without end",
            Fails,
            ERROR,
            later(|peer, stream| {
                peer.say(frame(HEADERS, 0, stream, OK))?;
                peer.flood(frame(CONTINUATION, 0, stream, b"\x00\x01a\x01b"))
            }),
        ),
        long(
            "sends a head that unpacks to 64 times its size",
            Fails,
            ERROR,
            later(|peer, stream| {
                // A header of 4,000 bytes enters the table; each byte after it is that header again.
                let header = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'b'; 4000]].concat();
                peer.say(frame(HEADERS, 0, stream, &[OK, &header].concat()))?;
                peer.flood(frame(CONTINUATION, 0, stream, &[0xbe; 8000]))
            }),
        ),
        long(
            "resets streams without end",
            Fails,
            ERROR,
            floods(|stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])),
        ),
        long(
            "sends a window without end",
            Fails,
            "stopped replying|never answered|no answer in time",
            floods(|_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ),
        row(
            "sends priorities without end",
            Fails,
            "no answer in time",
            floods(|_| frame(2, 0, 3, &[0, 0, 0, 0, 1])),
        ),
        row(
            "sends frames of an unknown type without end",
            Fails,
            "no answer in time",
            floods(|_| frame(0xfa, 0, 0, b"x")),
        ),
    ]
}

fn answering() -> Vec<Row> {
    let status = |of: &'static str| {
        move |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &[b"\x08\x03", of.as_bytes()].concat())
    };
    vec![
        row("answers, as it should", Passes, "", always(right)),
        row(
            "says a ping before each answer, as it may",
            Passes,
            "",
            always(|stream| [frame(PING, 0, 0, &[7; 8]), right(stream)].concat()),
        ),
        long("closes when it is asked", Fails, "connection lost", later(|_, _| Ok(()))),
        row("resets when it is asked", Fails, "connection reset", later(|peer, _| peer.reset())),
        long("ends its side when it is asked", Fails, "connection lost", later(|peer, _| peer.half_close())),
        row(
            "says an interim head before each answer, as it may",
            Passes,
            "",
            always(|stream| [frame(HEADERS, END_HEADERS, stream, b"\x08\x03103"), right(stream)].concat()),
        ),
        long(
            "resets each stream behind the whole answer, as it may",
            Passes,
            "",
            always(|stream| [right(stream), frame(RST_STREAM, 0, stream, &[0; 4])].concat()),
        ),
        row("answers twice", Fails, "unasked bytes", always(|stream| right(stream).repeat(2))),
        long(
            "goes on behind the end of its answer",
            Fails,
            "unasked bytes",
            always(|stream| [right(stream), frame(DATA, 0, stream, b"more")].concat()),
        ),
        long(
            "answers the request before once more",
            Fails,
            "unasked bytes",
            always(|stream| {
                let before = if stream > 1 { right(stream - 2) } else { Vec::new() };
                [before, right(stream)].concat()
            }),
        ),
        long("answers nothing", Fails, "no answer in time", later(|peer, _| peer.hold())),
        long(
            "answers five requests and then nothing",
            Fails,
            "no answer in time",
            later(|peer, stream| {
                peer.say(right(stream))?;
                answers(peer, |stream, number| if number < 4 { right(stream) } else { Vec::new() })
            }),
        ),
        long(
            "answers after 700 ms, beyond the timeout",
            Fails,
            "no answer in time",
            later(|peer, stream| {
                thread::sleep(Duration::from_millis(700));
                peer.say(right(stream))
            }),
        ),
        row(
            "stops within a body",
            Fails,
            "answer never ended",
            always(|stream| {
                [frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, 0, stream, b"hel")].concat()
            }),
        ),
        long(
            "says a length that the body has not",
            Fails,
            ERROR,
            // `OK` and `content-length: 9`, a literal with its name from the static table.
            always(|stream| answer(stream, b"\x88\x0f\x0d\x019", b"hello")),
        ),
        long(
            "sends more than its length",
            Fails,
            ERROR,
            always(|stream| answer(stream, b"\x88\x0f\x0d\x011", b"hello")),
        ),
        long("answers 503", Fails, "rejected (429, 503)", always(status("503"))),
        long("answers 500", Fails, "status 5xx", always(status("500"))),
        long(
            "answers with status 1",
            Fails,
            ERROR,
            always(|stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x08\x011")),
        ),
        row("answers another body", Fails, "wrong body", always(|stream| answer(stream, OK, b"HELLO")))
            .with(&["--expect-text", "hello"]),
        long(
            "refuses each stream",
            Fails,
            ERROR,
            always(|stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 7])),
        ),
        long(
            "ends each stream with an internal error",
            Fails,
            ERROR,
            always(|stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 2])),
        ),
        long(
            "goes away when it is asked",
            Fails,
            "connection lost",
            later(|peer, _| peer.say_last(frame(GOAWAY, 0, 0, &[0; 8]))),
        ),
        long(
            "allows no stream after the first request",
            Fails,
            "never sent",
            later(|peer, stream| {
                peer.say(right(stream))?;
                peer.say(frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0]))?;
                answers(peer, |stream, _| right(stream))
            }),
        ),
        long(
            "sends a body without end",
            Fails,
            "stopped replying|never answered|answer never ended",
            later(|peer, stream| {
                peer.say(frame(HEADERS, END_HEADERS, stream, OK))?;
                peer.flood(frame(DATA, 0, stream, &[b'x'; 16_000]))
            }),
        ),
    ]
}

#[test]
fn hostile_http_2_servers_do_not_pass() {
    check(&LOAD, &[connections(), frames(), answering()].into_iter().flatten().collect::<Vec<_>>());
}
