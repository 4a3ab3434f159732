//! gRPC and WebSocket servers that echo a secret from the environment that their clients sent them: it appears nowhere.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::peer::Peer;
use super::{grpc, serve, websocket};
use crate::place::Place;

const SECRET: &str = "tok/En+9f86d081884c7d65=9a2feaa0";

/// In some of the forms in which servers say things.
fn forms() -> Vec<String> {
    let hexadecimal: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = SECRET.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
    vec![SECRET.to_owned(), SECRET[..20].to_owned(), percent, hexadecimal, STANDARD.encode(SECRET)]
}

/// The form of an answer's number.
fn form(number: usize) -> String {
    forms().swap_remove(number % forms().len())
}

const SCHEMA: &str = r#"
syntax = "proto3";
package game.v1;
message Login { string token = 1; uint64 id = 2; }
"#;

/// Sends the secret in each message.
fn scenario(port: u16) -> String {
    format!(
        "subject: {{ target: 'ws://127.0.0.1:{port}/' }}
bots:
  kind: protobuf
  proto: game.proto
  request_message: game.v1.Login
  reply_message: game.v1.Login
  id_field: id
  requests:
    - name: login
      json: {{ token: '${{PLANTED}}' }}
      check: {{ json: {{ /token: right }} }}
ladder: {{ rate: [100] }}
objectives: [ errors == 0 ]
"
    )
}

/// Climbs it with the secret in a header, and looks wherever something is written.
#[track_caller]
fn check(words: &[&str], files: &[(&str, String)], port: u16) {
    let place = Place::new();
    files.iter().for_each(|(name, text)| drop(place.write(name, text)));
    let outputs =
        ["--json", "run.json", "--report", "run.html", "--ndjson", "live.ndjson", "--junit", "run.xml"];
    let mut command = place.command(["climb"]);
    command.args(words).args(["--hold", "1s", "--settle", "100ms", "--no-calibration"]);
    command.args(outputs).env("PLANTED", SECRET);
    let ran = place.start_command(command).finish();
    assert!(ran.code != 0 && !ran.err.contains("panicked"), "{ran:#?}");
    let mut masked = ran.err.contains("•••") || ran.out.contains("•••");
    let named = |name: &str| std::fs::read(place.path(name)).unwrap_or_default();
    let written =
        ["run.json", "run.html", "live.ndjson", "run.xml", "stepladder.db"].map(|name| (name, named(name)));
    let printed =
        [("standard error", ran.err.clone().into_bytes()), ("standard output", ran.out.clone().into_bytes())];
    for (name, bytes) in written.into_iter().chain(printed) {
        let holds = |piece: &str| {
            bytes.windows(piece.len()).any(|window| window.eq_ignore_ascii_case(piece.as_bytes()))
        };
        masked |= holds("•••");
        for form in forms() {
            assert!(!holds(&form), "{name} has {form}, port {port}: {ran:#?}");
        }
    }
    // Ensures that there was something to mask.
    assert!(masked, "{ran:#?}");
}

#[test]
fn hostile_servers_over_grpc_and_websocket_say_no_secret_back_to_anyone_else() {
    let port = serve(Arc::new(grpc::refuses(form)));
    let target = format!("grpc://127.0.0.1:{port}/game.v1.Game/Move");
    let schema = [("game.proto", grpc::SCHEMA.to_owned())];
    let words = [
        &target[..],
        "--proto",
        "game.proto",
        "--body",
        r#"{"x":5}"#,
        "--requesters",
        "2",
        "--think",
        "20ms",
        "--header",
        "X-Key: ${PLANTED}",
    ];
    check(&words, &schema, port);

    // Receives a message, and echoes the secret as its close reason, or in a reply with the number of the request.
    let closes = |peer: &mut Peer, _: &[u8], form: &str| {
        peer.say(websocket::frame(0x88, &[&[0x03, 0xf3], form.as_bytes()].concat()))
    };
    let replies = |peer: &mut Peer, request: &[u8], form: &str| {
        let number = &request[2 + usize::from(request[1])..];
        peer.say(websocket::frame(0x82, &[&[0x0a, form.len() as u8], form.as_bytes(), number].concat()))
    };
    type Says = fn(&mut Peer, &[u8], &str) -> io::Result<()>;
    for says in [closes as Says, replies] {
        let port = serve(Arc::new(move |peer: &mut Peer| {
            websocket::open(peer)?;
            let request = websocket::message(peer)?;
            says(peer, &request, &form(peer.number))?;
            peer.hold()
        }));
        let files = [("game.proto", SCHEMA.to_owned()), ("game.yaml", scenario(port))];
        check(&["game.yaml", "--timeout", "500ms"], &files, port);
    }
    let port = serve(Arc::new(|peer: &mut Peer| {
        peer.head()?;
        peer.say(format!("HTTP/1.1 401 {SECRET}\r\nContent-Length: {}\r\n\r\n{SECRET}", SECRET.len()))
    }));
    let files = [("game.proto", SCHEMA.to_owned()), ("game.yaml", scenario(port))];
    check(&["game.yaml"], &files, port);

    // The handshake header's value.
    let port = serve(Arc::new(|peer: &mut Peer| {
        let request = peer.head()?;
        let is_key = |line: &&str| line.starts_with("Authorization: ");
        let key = request.lines().find(is_key).unwrap_or("none");
        peer.say(format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\n\r\n{key}", key.len()))
    }));
    let target = format!("ws://127.0.0.1:{port}");
    check(&[&target, "--bots", "echo", "--header", "Authorization: Bearer ${PLANTED}"], &[], port);
}
