//! What our servers read of clients, and of their own files and stores.

use servers::fuzz::{self, Said, Spoken};

use crate::split::same_however_split;

/// Frames of a client: the same messages and the same end however they are split, and an echo server answers each.
pub(super) fn websocket_server(input: &[u8]) {
    same_however_split(input, |pieces| fuzz::websocket(pieces, 1000));
    let (heard, code) = fuzz::websocket(&[input], 1000);
    for said in &heard {
        match said {
            Said::Text(text) => assert!(std::str::from_utf8(text).is_ok() && text.len() <= 1000),
            Said::Binary(bytes) => assert!(bytes.len() <= 1000),
            Said::Ping(bytes) => assert!(bytes.len() <= 125),
            Said::Close(Some(code)) => {
                assert!((1000..5000).contains(code) && ![1004, 1005, 1006, 1015].contains(code), "{code}");
            }
            Said::Pong | Said::Close(None) => {}
        }
    }
    assert!(code.is_none_or(|code| [1002, 1007, 1009].contains(&code)));
}

fn client_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [1, 2, 3, 250];
    let mut out = vec![first];
    match payload.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        long => {
            out.push(0xfe);
            out.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

pub(super) fn websocket_seeds() -> Vec<Vec<u8>> {
    vec![
        client_frame(0x81, br#"{"type":"fire"}"#),
        [client_frame(0x01, b"\xe2\x82"), client_frame(0x89, b"ping"), client_frame(0x80, b"\xac")].concat(),
        [client_frame(0x82, &[7; 200]), client_frame(0x88, b"\x03\xe8bye")].concat(),
        vec![0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4],
    ]
}

const UPGRADE: &str = "GET /?snapshots HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// An upgrade request: taken only when whole, the same wherever it is cut before, and what follows is frames.
pub(super) fn websocket_upgrade(input: &[u8]) {
    match fuzz::upgrade(input) {
        Ok(Some(bytes)) => {
            for cut in 0..bytes {
                assert_eq!(fuzz::upgrade(&input[..cut]), Ok(None), "cut at {cut}");
            }
        }
        Ok(None) => {}
        Err(answer) => assert!(answer.starts_with("HTTP/1.1 4") && answer.contains("\r\n\r\n")),
    }
    same_however_split(input, fuzz::null_websocket);
}

pub(super) fn upgrade_seeds() -> Vec<Vec<u8>> {
    let frames = client_frame(0x81, b"echo");
    vec![UPGRADE.into(), [UPGRADE.as_bytes(), &frames].concat(), UPGRADE.replace("13", "8").into_bytes()]
}

pub(super) const UPGRADE_WORDS: &[&str] =
    &["Sec-WebSocket-Key: ", "Sec-WebSocket-Version: 13\r\n", "Upgrade: websocket\r\n", "\r\n\r\n"];

/// Requests of HTTP/1.1: the reference agrees at every one, and no verdict is withdrawn when more comes.
pub(super) fn http_server(input: &[u8]) {
    let mut rest = input;
    loop {
        match fuzz::http_request(rest) {
            Ok(Some(bytes)) => {
                assert!(bytes > 0 && bytes <= rest.len());
                for cut in [bytes / 4, bytes / 2, bytes - 1] {
                    assert_eq!(fuzz::http_request(&rest[..cut]), Ok(None), "at {cut} of {bytes}");
                }
                rest = &rest[bytes..];
            }
            Ok(None) => break,
            Err(status) => {
                assert!((400..=505).contains(&status));
                break;
            }
        }
    }
    same_however_split(input, fuzz::null_http);
}

pub(super) fn http_seeds() -> Vec<Vec<u8>> {
    [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nHEAD /bytes/20 HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /a?b=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET /bytes/3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "\r\nOPTIONS * HTTP/1.1\r\nhost:x\r\nConnection: close\r\n\r\n",
        "GET http://x:80/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub(super) const REQUEST_WORDS: &[&str] = &[
    "GET ",
    "POST ",
    "HEAD ",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    "Host: x\r\n",
    "Content-Length: ",
    "Connection: close\r\n",
    "Transfer-Encoding: chunked\r\n",
    "\r\n\r\n",
    "\r\n",
    "http://",
    "?limit=",
    "/bytes/",
];

/// Lines of a chat's clients: the same however they are split, Telnet's negotiation among them; and what each means.
pub(super) fn chat_server(input: &[u8]) {
    same_however_split(input, fuzz::chat_lines);
    for line in fuzz::chat_lines(&[input]).0 {
        assert!(line.len() <= 64 && !line.contains(&b'\n'));
        let (_, shown) = fuzz::chat_line(&line);
        assert!(!shown.chars().any(char::is_control), "what is shown moves a cursor: {shown:?}");
    }
}

pub(super) fn chat_seeds() -> Vec<Vec<u8>> {
    vec![
        b"hello\r\n/join kitchen\n/nick \xc3\xa9\n/who\n".to_vec(),
        b"\xff\xfb\x01a\xff\xfa\x18x\xff\xf0b\xff\xff\n".to_vec(),
    ]
}

pub(super) const CHAT_WORDS: &[&str] =
    &["/join ", "/nick ", "/who", "/books", "/quit", "/help", "//", "\r\n"];

/// What a chat's broker and its other nodes send: the same however it is split, and nothing of it is understood as
/// something else when it is said again.
pub(super) fn chat_nodes(input: &[u8]) {
    same_however_split(input, fuzz::chat_broker);
    fuzz::chat_node(input);
}

pub(super) fn chat_node_seeds() -> Vec<Vec<u8>> {
    let id = "00000000000000ff";
    vec![
        b"INFO {\"max_payload\":1048576,\"auth_required\":true}\r\n+OK\r\nPING\r\n-ERR 'Slow Consumer'\r\n"
            .to_vec(),
        format!("MSG stepladder-chat.room.r 16 30\r\nL {id} 1 40 1 9\na\n\r\nPONG\r\n").into_bytes(),
        format!("L {id} 3 40 2 9\nhello\n\n").into_bytes(),
        format!("HERE {id} one").into_bytes(),
        format!("FENCE {id} 12").into_bytes(),
    ]
}

pub(super) const CHAT_NODE_WORDS: &[&str] = &[
    "MSG ",
    "INFO {\"max_payload\":1}",
    "PING\r\n",
    "PONG\r\n",
    "\r\n",
    "L ",
    "HERE ",
    "OPENED ",
    "FENCE ",
    "LEAVING ",
];

/// A message of an arena's client: a shot is one by its JSON and by nothing else.
pub(super) fn arena_server(input: &[u8]) {
    let value: Option<serde_json::Value> = serde_json::from_slice(input).ok();
    let is_shot = value.is_some_and(|value| value.get("type").and_then(|kind| kind.as_str()) == Some("fire"));
    assert_eq!(fuzz::arena_is_shot(input), is_shot);
}

pub(super) fn arena_seeds() -> Vec<Vec<u8>> {
    vec![br#"{"type":"fire"}"#.to_vec(), br#"{ "type" : "fire", "x": [1, {"a": null}] }"#.to_vec()]
}

/// What arena nodes tell a lobby: nothing of it is understood as something else when it is told again.
pub(super) fn arena_nodes(input: &[u8]) {
    fuzz::arena_node(input);
}

pub(super) fn arena_node_seeds() -> Vec<Vec<u8>> {
    // A distribution without a value, as nodes without a game tell it.
    let none = "HISTEwAAAAEAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAE=";
    let ticks = format!(
        r#"{{"due":3,"on_time":0,"over":0,"under":0,"missed":3,"isr_numerator_ns":0,"interval_ms":[],
            "interval_ns":"{none}","busy_ns":"{none}","lateness_ns":"{none}"}}"#
    );
    let state = format!(
        r#"{{"node":"00000000000000ff","name":"one","address":"127.0.0.1:42069","key":"{}","free":9,
            "waiting":[[7,2]],"to_ms":1795230436000,"tick_rate":60,"figures":{{"games":1,"sockets":3}},"ticks":{ticks}}}"#,
        "5a".repeat(32)
    );
    vec![
        state.into_bytes(),
        br#"{"node":"00000000000000ff","leaving":true}"#.to_vec(),
        b"1795230441000-7-2-9-00112233445566778899aabbccddeeff".to_vec(),
    ]
}

pub(super) const JSON_WORDS: &[&str] = &[
    "{", "}", "[", "]", "\"", ":", ",", "null", "true", "\\u00e9", "\\ud800", "1e308", "\"type\"", "\"fire\"",
];

/// Statuses in a stream of HTTP answers.
fn statuses(answers: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answers);
    text.split("HTTP/1.1 ").skip(1).map(|answer| answer.chars().take(3).collect()).collect()
}

/// The leaderboard's HTTP interface: the same statuses however requests are split, none of them a server's fault.
pub(super) fn leaderboard_http(input: &[u8]) {
    same_however_split(input, |pieces| statuses(&fuzz::leaderboard(Spoken::Http, pieces)));
    let answers = fuzz::leaderboard(Spoken::Http, &[input]);
    assert!(!statuses(&answers).contains(&"500".to_owned()), "{}", answers.escape_ascii());
}

/// The leaderboard's WebSocket: as many bytes of answers however frames are split.
pub(super) fn leaderboard_websocket(input: &[u8]) {
    same_however_split(input, |pieces| fuzz::leaderboard(Spoken::WebSocket, pieces).len());
}

pub(super) fn leaderboard_websocket_seeds() -> Vec<Vec<u8>> {
    message_seeds().iter().map(|message| client_frame(0x82, message)).collect()
}

/// The leaderboard's gRPC and all of HTTP/2 below it: it ends, in bounded memory. How it frames its answers may differ with the
/// reads.
pub(super) fn leaderboard_grpc(input: &[u8]) {
    let _ = fuzz::leaderboard(Spoken::Grpc, &[input]);
    let (one, other) = input.split_at(input.len() / 2);
    let _ = fuzz::leaderboard(Spoken::Grpc, &[one, other]);
}

fn h2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// A field of a header block, as a literal that is not indexed.
fn literal(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

pub(super) fn grpc_seeds() -> Vec<Vec<u8>> {
    let settings = h2_frame(4, 0, 0, b"");
    let call = |method: &str, message: &[u8]| {
        let head = [
            literal(":method", "POST"),
            literal(":scheme", "http"),
            literal(":path", &format!("/stepladder.leaderboard.v1.Leaderboard/{method}")),
            literal(":authority", "x"),
            literal("content-type", "application/grpc"),
            literal("te", "trailers"),
        ]
        .concat();
        let message = [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat();
        [settings.clone(), h2_frame(1, 4, 1, &head), h2_frame(0, 1, 1, &message)].concat()
    };
    vec![
        call("Get", b"\x0a\x04main\x12\x03ann"),
        call("Top", b"\x0a\x04main\x10\x05"),
        call("Bulk", b"\x0a\x06\x0a\x04main"),
        [
            settings.clone(),
            h2_frame(6, 0, 0, b"12345678"),
            h2_frame(8, 0, 0, &[0, 0, 1, 0]),
            h2_frame(7, 0, 0, &[0; 8]),
        ]
        .concat(),
    ]
}

/// Messages and bodies of the leaderboard: protobuf that ours reads is protobuf, and no text is both.
pub(super) fn leaderboard_messages(input: &[u8]) {
    let (is_message, _) = fuzz::leaderboard_message(input);
    let fields = fuzz::protobuf_fields(input);
    assert!(!is_message || fields.is_some(), "a message that is no protobuf");
    // Ours on both sides were written apart: where one finds fields the other does.
    let theirs: Result<Vec<u32>, _> =
        drivers::messages::wire::Fields::of(input).map(|field| field.map(|(number, _)| number)).collect();
    assert_eq!(fields, theirs.ok(), "the client's reader and the server's differ");
}

pub(super) fn message_seeds() -> Vec<Vec<u8>> {
    vec![
        b"\x08\x01\x12\x0f\x0a\x04main\x12\x03ann\x18\x02\x20\x0a".to_vec(),
        b"\x08\x02\x1a\x0b\x0a\x04main\x12\x03ann".to_vec(),
        b"\x08\x03\x2a\x08\x0a\x04main\x10\x05".to_vec(),
        b"\x08\x04\x42\x11\x0a\x0f\x0a\x04main\x12\x07\x0a\x03ann\x10\x01".to_vec(),
        br#"{"leaderboards":[{"leaderboard":"main","scores":[{"member":"ann","score":"5","mode":"best"}]}]}"#
            .to_vec(),
        br#"{"name":"b","direction":"ascending","ties":"first"}"#.to_vec(),
    ]
}

/// A log file cut and changed at one place. The first three bytes choose what is changed; then payloads, with 0xff between.
pub(super) fn leaderboard_log_frames(input: &[u8]) {
    let Some(([at, byte, keep], payloads)) = input.split_first_chunk::<3>() else { return };
    let payloads: Vec<&[u8]> = payloads.split(|byte| *byte == 0xff).collect();
    fuzz::log_frames(&payloads, (usize::from(*at) * 3, *byte), usize::from(*keep) * 3);
}

pub(super) fn log_frame_seeds() -> Vec<Vec<u8>> {
    vec![
        b"\x10\x01\x20one\xfftwo\xffthree".to_vec(),
        b"\x30\x80\x40\xf5SLF\x04\0\0\0abcd\xff\0\0\xff".to_vec(),
    ]
}

/// Records of a snapshot and of a log behind it; the first byte says where the one ends, the second how many boards there
/// were.
pub(super) fn leaderboard_log_records(input: &[u8]) {
    let Some(([first, boards], records)) = input.split_first_chunk::<2>() else { return };
    let boards = if *boards < 200 { u64::from(*boards) } else { u64::MAX - u64::from(255 - *boards) };
    let (snapshot, log) = records.split_at((usize::from(*first) * 2).min(records.len()));
    let _ = fuzz::log_records(snapshot, log, boards);
}

pub(super) fn log_record_seeds() -> Vec<Vec<u8>> {
    let records = fuzz::record_seeds();
    let snapshot = |record: &Vec<u8>| {
        let mut input = vec![(record.len() / 2) as u8, 9];
        input.extend_from_slice(record);
        input
    };
    let mut seeds: Vec<Vec<u8>> = records.iter().map(snapshot).collect();
    seeds.extend(records.iter().map(|record| [&[0, 9], &record[..]].concat()));
    seeds
}

/// Replies of a store to the leaderboard: the same however they are split.
pub(super) fn leaderboard_store(input: &[u8]) {
    same_however_split(input, fuzz::store_replies);
}

pub(super) fn store_seeds() -> Vec<Vec<u8>> {
    vec![b"*4\r\n:1\r\n$2\r\nab\r\n$-1\r\n-ERR x\r\n+PONG\r\n:9\r\n*0\r\n".to_vec()]
}
