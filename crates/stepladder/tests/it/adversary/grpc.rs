//! gRPC over HTTP/2: unary calls whose reply type the schema defines.

use std::io;

use super::http2::{
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, SETTINGS, frame, greet, request,
};
use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load = Load::new(
    "gRPC",
    "grpc://127.0.0.1:PORT/game.v1.Game/Move --proto game.proto --body {\"x\":5} --requesters 4 \
     --timeout 500ms --think 20ms",
)
.with_files(|_| vec![("game.proto", SCHEMA.to_owned())]);

pub(super) const SCHEMA: &str = r#"
syntax = "proto3";
package game.v1;
message Position { int32 x = 1; uint64 id = 2; }
service Game { rpc Move(Position) returns (Position); }
"#;

/// `:status 200` and `content-type: application/grpc`.
pub(super) const HEAD: &[u8] = b"\x88\x0f\x10\x10application/grpc";
/// `x: 5`
pub(super) const FIVE: &[u8] = &[0x08, 5];

const MALFORMED: &str = "malformed message";

/// A message with its flag and length in front.
fn message(bytes: &[u8]) -> Vec<u8> {
    [&[0][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

fn trailers(stream: u32, status: &str) -> Vec<u8> {
    let header = [b"\x00\x0bgrpc-status", &[status.len() as u8][..], status.as_bytes()].concat();
    last(stream, &header)
}

fn with_body(stream: u32, body: &[u8]) -> Vec<u8> {
    answer(stream, HEAD, body, "0")
}

/// An answer that goes on.
fn begun(stream: u32, head: &[u8], body: &[u8]) -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, stream, head), frame(DATA, 0, stream, body)].concat()
}

/// A whole answer with this status in its trailers.
fn answer(stream: u32, head: &[u8], body: &[u8], status: &str) -> Vec<u8> {
    [begun(stream, head, body), trailers(stream, status)].concat()
}

/// The last head of an answer.
fn last(stream: u32, fields: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, fields)
}

pub(super) fn right(stream: u32) -> Vec<u8> {
    with_body(stream, &message(FIVE))
}

fn calls(answers: impl Fn(u32, usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        greet(peer, &[])?;
        for number in 0.. {
            let stream = request(peer)?;
            // These rows are not about the probe.
            let bytes = if peer.is_probe() { right(stream) } else { answers(stream, number) };
            peer.say(bytes)?;
        }
        Ok(())
    }
}

/// Behaves until the load starts; then it receives a call and does this with its stream.
fn later(does: impl Fn(&mut Peer, u32) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        greet(peer, &[])?;
        loop {
            let stream = request(peer)?;
            if !peer.is_probe() {
                return does(peer, stream);
            }
            peer.say(right(stream))?;
        }
    }
}

fn body(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    calls(move |stream, _| with_body(stream, bytes.as_ref()))
}

/// A field that is in no table.
fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

/// An answer whose status of HTTP, head and trailers say these codes.
fn states(
    status: &'static [u8],
    in_head: &[&str],
    in_trailers: &[&str],
) -> impl Fn(&mut Peer) -> io::Result<()> {
    let fields =
        |codes: &[&str]| codes.iter().flat_map(|code| field("grpc-status", code)).collect::<Vec<u8>>();
    let head = [status, &HEAD[1..], &fields(in_head)].concat();
    let end = fields(in_trailers);
    calls(move |stream, _| [begun(stream, &head, &message(FIVE)), last(stream, &end)].concat())
}

/// Refuses each call of the load with this text for its number.
pub(super) fn refuses(text: impl Fn(usize) -> String) -> impl Fn(&mut Peer) -> io::Result<()> {
    calls(move |stream, number| {
        let head = [HEAD, &field("grpc-status", "16"), &field("grpc-message", &text(number))].concat();
        last(stream, &head)
    })
}

/// `:status`, from the static table.
const STATUS_200: &[u8] = &[0x88];
const STATUS_500: &[u8] = &[0x8e];

/// Statuses of HTTP and gRPC, in head and trailers, that contradict each other about success.
fn contradictions() -> Vec<Row> {
    const UNKNOWN: &str = "UNKNOWN";
    vec![
        row("says 0 in its head and 13 in its trailers", Fails, UNKNOWN, states(STATUS_200, &["0"], &["13"])),
        long(
            "says 13 in its head and 0 in its trailers",
            Fails,
            UNKNOWN,
            states(STATUS_200, &["13"], &["0"]),
        ),
        long("says 0 and then 13 in its trailers", Fails, UNKNOWN, states(STATUS_200, &[], &["0", "13"])),
        long("says 13 and then 0 in its trailers", Fails, UNKNOWN, states(STATUS_200, &[], &["13", "0"])),
        row("says 0 and status 500 of HTTP", Fails, UNKNOWN, states(STATUS_500, &[], &["0"])),
        long("says 0 and status 500 of HTTP without a message", Fails, UNKNOWN, |peer: &mut Peer| {
            let head = [STATUS_500, &HEAD[1..]].concat();
            calls(move |stream, _| {
                [frame(HEADERS, END_HEADERS, stream, &head), trailers(stream, "0")].concat()
            })(peer)
        }),
        long(
            "says 0 in its head and in its trailers, as it may",
            Passes,
            "",
            states(STATUS_200, &["0"], &["0"]),
        ),
        long("says 00, as a number it may", Passes, "", states(STATUS_200, &[], &["00"])),
        long("says 256", Fails, UNKNOWN, states(STATUS_200, &[], &["256"])),
        long("says -0", Fails, UNKNOWN, states(STATUS_200, &[], &["-0"])),
        long("says nothing where the status stands", Fails, UNKNOWN, states(STATUS_200, &[], &[""])),
        row(
            "says 0 in its head and nothing in its trailers",
            Fails,
            MALFORMED,
            states(STATUS_200, &["0"], &[]),
        ),
        long(
            "ends with trailers alone and status 0",
            Fails,
            MALFORMED,
            calls(|stream, _| {
                let head = [HEAD, &field("grpc-status", "0")].concat();
                last(stream, &head)
            }),
        ),
        long(
            "compresses a message by an encoding that nobody asked for",
            Fails,
            MALFORMED,
            calls(|stream, _| {
                let head = [HEAD, &field("grpc-encoding", "gzip")].concat();
                answer(stream, &head, &[&[1, 0, 0, 0, 2][..], FIVE].concat(), "0")
            }),
        ),
        long(
            "answers with a redirect",
            Fails,
            "status|UNKNOWN|redirect|malformed message",
            calls(|stream, _| {
                // `:status: 302`, a literal with its name from the static table.
                let head = [b"\x08\x03302", &field("location", "http://169.254.169.254/")[..]].concat();
                last(stream, &head)
            }),
        ),
        long(
            "sends trailers of 16 kB",
            Fails,
            "http/2 error|wrong|too large|too much",
            calls(|stream, _| {
                let fields: Vec<u8> =
                    (0..200).flat_map(|at| field(&format!("a{at}"), &"v".repeat(100))).collect();
                let fields = last(stream, &fields[..16_000.min(fields.len())]);
                [begun(stream, HEAD, &message(FIVE)), fields].concat()
            }),
        ),
    ]
}

fn rows() -> Vec<Row> {
    vec![
        row("answers, as it should", Passes, "", calls(|stream, _| right(stream))),
        long("accepts and says nothing", Unmeasured, "did not accept a connection within 5 s", Peer::hold),
        row("closes at once", Unmeasured, "closes connections", |_| Ok(())),
        row("answers in HTTP/1.1", Unmeasured, "is not a HTTP/2 server", |peer| {
            peer.bytes::<24>()?;
            peer.say_last("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        }),
        row("answers nothing", Fails, "no answer in time", later(|peer, _| peer.hold())),
        long(
            "answers five calls and then nothing",
            Fails,
            "no answer in time",
            calls(|stream, number| if number < 5 { right(stream) } else { Vec::new() }),
        ),
        long("answers twice", Fails, "unasked bytes", calls(|stream, _| right(stream).repeat(2))),
        long("closes when it is called", Fails, "connection lost", later(|_, _| Ok(()))),
        long("resets when it is called", Fails, "connection reset", later(|peer, _| peer.reset())),
        long(
            "says a longer message than comes",
            Fails,
            MALFORMED,
            body([&[0, 0, 0, 0, 9][..], FIVE].concat()),
        ),
        long(
            "says a message of 4 GiB",
            Fails,
            "body too large",
            body([&[0, 255, 255, 255, 255][..], FIVE].concat()),
        ),
        long(
            "says a shorter message than comes",
            Fails,
            MALFORMED,
            body([&[0, 0, 0, 0, 1][..], FIVE].concat()),
        ),
        long("sends half a message's head", Fails, MALFORMED, body([0, 0, 0])),
        long(
            "flags a message as compressed without an encoding",
            Fails,
            MALFORMED,
            body([&[1, 0, 0, 0, 2][..], FIVE].concat()),
        ),
        long(
            "sets a flag that has no meaning",
            Fails,
            MALFORMED,
            body([&[7, 0, 0, 0, 2][..], FIVE].concat()),
        ),
        long("sends no message", Fails, MALFORMED, body([])),
        long(
            "sends two messages to a unary call",
            Fails,
            MALFORMED,
            body([message(FIVE), message(FIVE)].concat()),
        ),
        row("sends what is no protobuf", Fails, "wrong message", body(message(&[0xff; 10]))),
        row("sends a field of another type", Fails, "wrong message", body(message(b"\x0a\x01x"))),
        row("sends a field that is cut", Fails, "wrong message", body(message(&[0x08, 0x80]))),
        long(
            "sends no trailers",
            Fails,
            MALFORMED,
            calls(|stream, _| {
                [frame(HEADERS, END_HEADERS, stream, HEAD), frame(DATA, END_STREAM, stream, &message(FIVE))]
                    .concat()
            }),
        ),
        long(
            "sends trailers without grpc-status",
            Fails,
            MALFORMED,
            calls(|stream, _| {
                [begun(stream, HEAD, &message(FIVE)), last(stream, b"\x00\x01a\x01b")].concat()
            }),
        ),
        row(
            "ends with a grpc-status that is no number",
            Fails,
            "UNKNOWN",
            calls(|stream, _| answer(stream, HEAD, &message(FIVE), "x")),
        ),
        row(
            "ends with status 14, unavailable",
            Fails,
            "UNAVAILABLE",
            calls(|stream, _| [frame(HEADERS, END_HEADERS, stream, HEAD), trailers(stream, "14")].concat()),
        ),
        row(
            "ends with status 99",
            Fails,
            "UNKNOWN",
            calls(|stream, _| [frame(HEADERS, END_HEADERS, stream, HEAD), trailers(stream, "99")].concat()),
        ),
        row(
            "answers as JSON",
            Fails,
            MALFORMED,
            calls(|stream, _| answer(stream, b"\x88\x0f\x10\x10application/json", &message(FIVE), "0")),
        ),
        row(
            "does not say what its answer is",
            Fails,
            MALFORMED,
            calls(|stream, _| answer(stream, b"\x88", &message(FIVE), "0")),
        ),
        row(
            "never ends its answer",
            Fails,
            "answer never ended",
            calls(|stream, _| begun(stream, HEAD, &message(FIVE))),
        ),
        long(
            "sends a message without end",
            Fails,
            "body too large",
            later(|peer, stream| {
                peer.say(frame(HEADERS, END_HEADERS, stream, HEAD))?;
                peer.say(frame(DATA, 0, stream, &[0, 0x7f, 255, 255, 255]))?;
                peer.flood(frame(DATA, 0, stream, &[0; 16_000]))
            }),
        ),
        long(
            "sends messages without end",
            Fails,
            "http/2 error",
            later(|peer, stream| {
                peer.say(frame(HEADERS, END_HEADERS, stream, HEAD))?;
                peer.flood(frame(DATA, 0, stream, &message(FIVE)))
            }),
        ),
        long(
            "refuses each stream",
            Fails,
            "http/2 error",
            calls(|stream, _| frame(RST_STREAM, 0, stream, &[0, 0, 0, 7])),
        ),
        long(
            "goes away when it is called",
            Fails,
            "connection lost",
            later(|peer, _| peer.say_last(frame(GOAWAY, 0, 0, &[0; 8]))),
        ),
        row(
            "allows no stream after the first call",
            Fails,
            "never sent",
            later(|peer, stream| {
                peer.say(right(stream))?;
                peer.say_last(frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0]))
            }),
        ),
    ]
}

#[test]
fn hostile_grpc_servers_do_not_pass() {
    check(&LOAD, &[rows(), contradictions()].into_iter().flatten().collect::<Vec<_>>());
}
