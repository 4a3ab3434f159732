//! The answer to one client's bytes. Pure: bytes in, bytes out.

use super::Protocol;
use super::http::Http;
use servers_shared::websocket::{Heard, Opcode, Receiver, frame, handshake};

/// The longest message that a client may send.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// One client's side of the conversation.
pub(super) enum Echo {
    /// The request so far.
    Opening(Vec<u8>),
    Open(Receiver),
    /// Lines: nothing to open, and nothing to know about them.
    Lines,
    Http(Http),
    /// A close frame or a refusal is out; what comes now is ignored.
    Closed,
}

impl Echo {
    pub(super) fn new(protocol: Protocol) -> Echo {
        match protocol {
            Protocol::WebSocket => Echo::Opening(Vec::new()),
            Protocol::Lines => Echo::Lines,
            Protocol::Http => Echo::Http(Http::default()),
        }
    }

    /// True for a client that has nothing to complete by a deadline.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Echo::Opening(_) | Echo::Closed) && !self.is_within_a_request()
    }

    /// A request, or a frame or message, has begun and not ended.
    pub(super) fn is_within_a_request(&self) -> bool {
        match self {
            Echo::Http(http) => http.is_within_a_request(),
            Echo::Open(receiver) => receiver.is_waiting(),
            Echo::Lines | Echo::Opening(_) | Echo::Closed => false,
        }
    }

    /// True when there are more answers to input already received; `hear` gives them for no bytes.
    pub(super) fn has_more(&self) -> bool {
        matches!(self, Echo::Http(http) if http.has_more())
    }

    /// Appends the answer to these bytes to `out`. The input is scribbled on.
    pub(super) fn hear(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) {
        match self {
            Echo::Closed => {}
            Echo::Lines => out.extend_from_slice(bytes),
            Echo::Http(http) => {
                if http.hear(bytes, out) {
                    *self = Echo::Closed;
                }
            }
            Echo::Open(receiver) => {
                if converse(receiver, bytes, out) {
                    *self = Echo::Closed;
                }
            }
            Echo::Opening(request) => {
                request.extend_from_slice(bytes);
                match handshake::read(request) {
                    Ok(None) => {}
                    Err(handshake::Refused(answer)) => {
                        out.extend_from_slice(answer.as_bytes());
                        *self = Echo::Closed;
                    }
                    Ok(Some(upgrade)) => {
                        handshake::put_answer(out, &upgrade);
                        let mut rest = request.split_off(upgrade.request_bytes);
                        *self = Echo::Open(Receiver::default());
                        self.hear(&mut rest, out);
                    }
                }
            }
        }
    }
}

/// True when the conversation is over.
fn converse(receiver: &mut Receiver, bytes: &mut [u8], out: &mut Vec<u8>) -> bool {
    let mut over = false;
    let result = receiver.feed(bytes, MESSAGE_BYTES_MAX, |heard| {
        match heard {
            Heard::Text(payload) => frame::put(out, Opcode::Text, payload),
            Heard::Binary(payload) => frame::put(out, Opcode::Binary, payload),
            Heard::Ping(payload) => frame::put(out, Opcode::Pong, payload),
            Heard::Pong => {}
            Heard::Close(Some(code)) => frame::put_close(out, code),
            Heard::Close(None) => frame::put(out, Opcode::Close, &[]),
        }
        over = matches!(heard, Heard::Close(_));
        !over
    });
    if let Err(violation) = result {
        frame::put_close(out, violation.close_code());
        over = true;
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;
    use servers_shared::testing::UPGRADE;
    use servers_shared::testing::client_frame;

    #[test]
    fn all_frames_of_one_read_are_answered_in_one_piece_and_in_order() {
        let mut echo = Echo::new(Protocol::WebSocket);
        let mut out = Vec::new();
        let mut bytes = UPGRADE.to_vec();
        bytes.extend(client_frame(true, 1, b"one", [1, 2, 3, 4]));
        bytes.extend(client_frame(true, 9, b"ping", [1, 2, 3, 4]));
        bytes.extend(client_frame(true, 2, &[0, 255], [9, 9, 9, 9]));
        let (first, second) = bytes.split_at_mut(UPGRADE.len() - 10);
        echo.hear(first, &mut out);
        assert!(out.is_empty());
        echo.hear(second, &mut out);
        assert!(out.starts_with(b"HTTP/1.1 101 "));
        assert!(out.ends_with(b"\r\n\r\n\x81\x03one\x8a\x04ping\x82\x02\x00\xff"), "{out:02x?}");
    }

    #[test]
    fn a_close_and_a_violation_end_the_conversation() {
        for (frame, answer) in [
            (client_frame(true, 8, &1000u16.to_be_bytes(), [5; 4]), &[0x88, 2, 0x03, 0xe8][..]),
            (client_frame(true, 8, &[], [5; 4]), &[0x88, 0]),
            (client_frame(true, 1, &[0xff], [5; 4]), &[0x88, 2, 0x03, 0xef]),
        ] {
            let mut echo = Echo::Open(Receiver::default());
            let mut out = Vec::new();
            let mut bytes = [frame, client_frame(true, 1, b"after", [0; 4])].concat();
            echo.hear(&mut bytes, &mut out);
            assert_eq!(out, answer);
            assert!(matches!(echo, Echo::Closed));
        }
    }
}
