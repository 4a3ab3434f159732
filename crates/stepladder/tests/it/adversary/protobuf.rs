//! Messages of a protobuf schema over WebSocket: each reply carries the number of its request.

use std::io;
use std::thread;
use std::time::Duration;

use super::grpc::{FIVE, SCHEMA};
use super::peer::Peer;
use super::websocket::{frame, message, open};
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load = Load::new("protobuf over WebSocket", "game.yaml --timeout 500ms")
    .with_files(|port| vec![("game.proto", SCHEMA.to_owned()), ("game.yaml", scenario(port))]);

const BINARY: u8 = 0x82;

fn scenario(port: u16) -> String {
    format!(
        "subject: {{ target: 'ws://127.0.0.1:{port}/' }}
bots:
  kind: protobuf
  proto: game.proto
  request_message: game.v1.Position
  reply_message: game.v1.Position
  id_field: id
  requests:
    - name: move
      json: {{ x: 5 }}
      check: {{ json: {{ /x: 5 }} }}
ladder: {{ rate: [100] }}
objectives: [ errors == 0 ]
"
    )
}

/// Answers each request by what `answer` makes of it and its number on this connection.
fn answers(answer: impl Fn(&[u8], usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        open(peer)?;
        for number in 0.. {
            let request = message(peer)?;
            peer.say(answer(&request, number))?;
        }
        Ok(())
    }
}

fn then(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        open(peer)?;
        message(peer)?;
        does(peer)
    }
}

/// A reply is the request again, which has the same fields.
fn right(request: &[u8]) -> Vec<u8> {
    frame(BINARY, request)
}

fn rows() -> Vec<Row> {
    vec![
        row("answers, as it should", Passes, "", answers(|request, _| right(request))),
        long("answers nothing", Fails, "no answer in time", answers(|_, _| Vec::new())),
        long(
            "answers with another number",
            Fails,
            "unpaired reply",
            answers(|_, _| right(&[FIVE, &[0x10, 0xff, 0x7f]].concat())),
        ),
        long("answers without a number", Fails, "unpaired reply", answers(|_, _| right(FIVE))),
        row("answers twice", Fails, "unpaired reply", answers(|request, _| right(request).repeat(2))),
        row(
            "answers with another field",
            Fails,
            "wrong field",
            answers(|request, _| right(&[request, &[0x08, 6]].concat())),
        ),
        long("answers with an empty message", Fails, "unpaired reply", answers(|_, _| right(b""))),
        row("answers what is no protobuf", Fails, "malformed message", answers(|_, _| right(&[0xff; 10]))),
        row(
            "answers a field that is cut",
            Fails,
            "malformed message",
            answers(|request, _| right(&[request, &[0x08, 0x80]].concat())),
        ),
        row("answers as text", Fails, "malformed message", answers(|request, _| frame(0x81, request))),
        row("answers after 700 ms, beyond the timeout", Fails, "no answer in time", |peer| {
            open(peer)?;
            loop {
                let request = message(peer)?;
                thread::sleep(Duration::from_millis(700));
                peer.say(right(&request))?;
            }
        }),
        row("closes with 4001 before it is asked", Unmeasured, "code 4001: \"login first\"", |peer| {
            open(peer)?;
            peer.say_last(frame(0x88, b"\x0f\xa1login first"))
        }),
        row("closes when it is asked", Fails, "connection lost", then(|_| Ok(()))),
        row("resets when it is asked", Fails, "connection reset", then(Peer::reset)),
        row(
            "closes with code 1011 when it is asked",
            Fails,
            "connection lost",
            then(|peer| peer.say_last(frame(0x88, b"\x03\xf3oops"))),
        ),
        long(
            "sends replies that nobody asked for without end",
            Fails,
            "stopped replying|never answered|no answer in time",
            then(|peer| peer.flood(right(&[FIVE, &[0x10, 0xff, 0x7f]].concat()))),
        ),
        row(
            "sends a message without end",
            Fails,
            "body too large",
            then(|peer| {
                peer.say([0x02, 1, b'x'])?;
                peer.flood([&[0x00, 126, 0x40, 0][..], &[b'x'; 0x4000]].concat())
            }),
        ),
        long(
            "sends fields that nobody knows, as it may",
            Passes,
            "",
            answers(|request, _| right(&[request, b"\xfa\x01\x03new"].concat())),
        ),
        row(
            "sends a reply of 1 MiB of unknown fields",
            Fails,
            "body too large",
            answers(|request, _| right(&[request, b"\xfa\x01\x80\x80\x40", &vec![b'x'; 1 << 20]].concat())),
        ),
    ]
}

#[test]
fn hostile_protobuf_servers_do_not_pass() {
    check(&LOAD, &rows());
}
