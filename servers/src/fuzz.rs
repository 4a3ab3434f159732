//! Entry points for fuzzing: the servers' parsers' results for bytes in these pieces, in a comparable form. Compiled
//! for `proof/fuzz` only, which states the properties.

pub use arena_server::fuzz::{arena_is_shot, arena_node};
pub use chat_server::fuzz::{chat_broker, chat_line, chat_lines, chat_node};
pub use leaderboard_service::fuzz::{
    Spoken, leaderboard, leaderboard_message, log_frames, log_records, protobuf_fields, record_seeds,
    seeds as leaderboard_seeds, store_replies,
};
pub use null_server::fuzz::{null_http, null_websocket};
use servers_shared::http::naive;
use servers_shared::http::request::{Fault, Front, Limits, front};
use servers_shared::websocket::{Heard, Receiver, handshake};

/// What a client of a WebSocket said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// UTF-8
    Text(Vec<u8>),
    /// bytes
    Binary(Vec<u8>),
    /// and what a pong has to carry
    Ping(Vec<u8>),
    /// no answer
    Pong,
    /// with its code
    Close(Option<u16>),
}

/// What a WebSocket server hears, up to a close frame, and the code that it ends a faulty connection with.
pub fn websocket(pieces: &[&[u8]], message_bytes_max: usize) -> (Vec<Said>, Option<u16>) {
    let mut receiver = Receiver::default();
    let mut heard = Vec::new();
    for piece in pieces {
        let mut is_closed = false;
        let fed = receiver.feed(&mut piece.to_vec(), message_bytes_max, |one| {
            heard.push(match one {
                Heard::Text(text) => Said::Text(text.to_vec()),
                Heard::Binary(bytes) => Said::Binary(bytes.to_vec()),
                Heard::Ping(bytes) => Said::Ping(bytes.to_vec()),
                Heard::Pong => Said::Pong,
                Heard::Close(code) => Said::Close(code),
            });
            is_closed = matches!(heard.last(), Some(Said::Close(_)));
            !is_closed
        });
        match fed {
            Err(violation) => return (heard, Some(violation.close_code())),
            Ok(()) if is_closed => return (heard, None),
            Ok(()) => {}
        }
    }
    (heard, None)
}

/// How many bytes an upgrade at the front takes; `None` while it is not whole. Errors: the answer that refuses it.
pub fn upgrade(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    match handshake::read(bytes) {
        Ok(upgrade) => Ok(upgrade.map(|upgrade| upgrade.request_bytes)),
        Err(handshake::Refused(answer)) => Err(answer),
    }
}

/// Limits that short inputs reach.
const SMALL: Limits = Limits { head_bytes: 1000, body_bytes: 100 };

/// How many bytes the HTTP request at the front takes; `None` while it is not whole. Errors: the status that refuses it.
/// Panics when the plain reference comes to another verdict.
pub fn http_request(bytes: &[u8]) -> Result<Option<usize>, u16> {
    let read: Result<Option<naive::Request>, Fault> = match front(bytes, &SMALL) {
        Front::Incomplete => Ok(None),
        Front::Broken(fault) => Err(fault),
        Front::Whole { request, bytes } => {
            let _ = (request.path(), request.query("limit"), request.field("idempotency-key"));
            Ok(Some(naive::Request {
                method: request.method.to_string(),
                target: request.target.to_string(),
                http_1_0: request.http_1_0,
                keep_alive: request.keep_alive,
                body: request.body.to_vec(),
                bytes,
            }))
        }
    };
    assert_eq!(read, naive::read(bytes, &SMALL), "the reference reads it differently");
    read.map(|request| request.map(|request| request.bytes)).map_err(Fault::status)
}
