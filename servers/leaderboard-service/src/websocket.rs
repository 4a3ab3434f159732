//! The leaderboard over WebSocket: each binary frame is a `Request` of `proto/leaderboard.proto`, and gets a
//! `Response`.
//!
//! A client may have many requests in flight; they are executed and answered in order, and all responses to one read
//! are sent with one write. An unreadable message is answered if its id was found, else the connection is closed with
//! 1007: its client could not tell which request has failed.

use super::calls::Caller;
use super::messages::{ERROR_FIELD, Operation, Request};
use super::problem::Problem;
use super::tally::Channel;
use super::thread::{PORTION_BYTES, Turn};
use crate::protobuf::{put_message, put_whole};
use servers_shared::fault::ThreadFaults;
use servers_shared::http::request as http;
use servers_shared::websocket::handshake::{self, Refused};
use servers_shared::websocket::{Heard, Opcode, Receiver, close_code, frame};

/// Where the protocol is switched.
pub(super) const PATH: &str = "/ws";

/// Requests of one connection that are executed before their responses are sent.
const IN_FLIGHT_MAX: usize = 4096;

/// Whether a request is for what speaks WebSocket only.
pub(super) fn is_upgrade(request: &http::Request<'_>) -> bool {
    request.method == "GET" && request.path() == PATH
}

/// Appends the answer to an upgrade at the front of `bytes`, which is whole. Returns how many bytes it took.
pub(super) fn upgrade(bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Refused> {
    match handshake::read(bytes)? {
        Some(upgrade) => {
            handshake::put_answer(out, &upgrade);
            Ok(upgrade.request_bytes)
        }
        // Both parsers agree on where a request ends; otherwise this would be refused.
        None => Err(handshake::UNAVAILABLE),
    }
}

/// A connection that speaks WebSocket.
#[derive(Default)]
pub(super) struct WebSocket {
    receiver: Receiver,
}

impl WebSocket {
    /// Answers the frames at the front of `bytes`, up to a portion. Their payloads are scribbled on.
    pub(super) fn answer(
        &mut self,
        bytes: &mut [u8],
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Turn {
        let (mut answered, mut closes) = (0, false);
        let max = caller.message_bytes_max();
        let fed = self.receiver.feed_until(bytes, max, |heard| {
            match heard {
                Heard::Binary(message) => {
                    answered += 1;
                    closes = !answer_message(message, caller, faults, out);
                }
                Heard::Text(_) => {
                    put_close(out, close_code::UNSUPPORTED, "requests are binary frames");
                    closes = true;
                }
                Heard::Ping(payload) => frame::put(out, Opcode::Pong, payload),
                Heard::Pong => {}
                Heard::Close(_) => {
                    put_close(out, close_code::NORMAL, "");
                    closes = true;
                }
            }
            !closes && out.len() < PORTION_BYTES && answered < IN_FLIGHT_MAX
        });
        let taken = fed.unwrap_or_else(|violation| {
            let reason = format!("no valid frame, or one of more than {max} bytes (--body-max)");
            put_close(out, violation.close_code(), &reason);
            closes = true;
            0
        });
        Turn { taken, answered, closes, has_more: taken < bytes.len() && !closes }
    }

    /// Says that the server goes down.
    pub(super) fn take_leave(out: &mut Vec<u8>) {
        put_close(out, close_code::GOING_AWAY, "the server goes down");
    }

    /// A frame or message has begun and not ended.
    pub(super) fn is_waiting(&self) -> bool {
        self.receiver.is_waiting()
    }

    /// Memory of that.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.receiver.waiting_bytes()
    }
}

/// Appends the response's frame; false when the connection is to be closed instead.
fn answer_message(message: &[u8], caller: &Caller, faults: &mut ThreadFaults, out: &mut Vec<u8>) -> bool {
    match Request::read(message) {
        Ok(request) => {
            put_frame(out, |out| {
                put_whole(out, 1, request.id);
                let field = request.operation.as_ref().map_or(ERROR_FIELD, Operation::result_field);
                let from = out.len();
                let done =
                    put_message(out, field, |out| caller.call(Channel::WebSocket, &request, faults, out));
                if let Err(problem) = done {
                    out.truncate(from);
                    put_message(out, ERROR_FIELD, |out| problem.put_message(out));
                }
            });
            true
        }
        Err((malformed, Some(id))) => {
            caller.count_malformed(Channel::WebSocket);
            put_frame(out, |out| {
                put_whole(out, 1, id);
                put_message(out, ERROR_FIELD, |out| Problem::from(malformed).put_message(out));
            });
            true
        }
        Err((malformed, None)) => {
            caller.count_malformed(Channel::WebSocket);
            put_close(out, close_code::BAD_PAYLOAD, &malformed.to_string());
            false
        }
    }
}

/// Appends a binary frame whose payload `put` writes.
fn put_frame(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    frame::put_with(out, Opcode::Binary, put);
}

/// Appends a close frame with a reason, which is cut where it would be too long.
fn put_close(out: &mut Vec<u8>, code: u16, reason: &str) {
    let most = frame::CONTROL_PAYLOAD_MAX - 2;
    let end = (0..=most.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
    let payload = [&code.to_be_bytes(), &reason.as_bytes()[..end]].concat();
    frame::put(out, Opcode::Close, &payload);
}
