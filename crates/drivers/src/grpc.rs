//! gRPC over HTTP/2: one message in, one message out, followed by a status.
//!
//! Implements the gRPC documentation, "gRPC over HTTP2": a message is prefixed by five bytes, the status is in the
//! trailers. Messages are not compressed. A streaming call works as long as one message goes each way.
//! Codes count as the HTTP statuses that they correspond to (google.rpc.Code), so that all checks mean the same.

pub(crate) mod status;

use std::net::IpAddr;

use socket2::Socket;

use crate::address::Address;
use crate::driver::{Broken, Driver, OpenError, Refused};
use crate::http::fault::Fault;
use crate::http::message::{Answer, Http, Outgoing, Parts, Received};
use crate::http::two::Http2;
use crate::http::two::Prepared;
use crate::read_buffer::ReadBuffer;
use status::{PREFIX_BYTES, UNKNOWN};

/// Names of the codes from 1 on, and the statuses of HTTP that they correspond to.
const CODES: [(&str, u16); 16] = [
    ("CANCELLED", 499),
    ("UNKNOWN", 500),
    ("INVALID_ARGUMENT", 400),
    ("DEADLINE_EXCEEDED", 504),
    ("NOT_FOUND", 404),
    ("ALREADY_EXISTS", 409),
    ("PERMISSION_DENIED", 403),
    ("RESOURCE_EXHAUSTED", 429),
    ("FAILED_PRECONDITION", 400),
    ("ABORTED", 409),
    ("OUT_OF_RANGE", 400),
    ("UNIMPLEMENTED", 501),
    ("INTERNAL", 500),
    ("UNAVAILABLE", 503),
    ("DATA_LOSS", 500),
    ("UNAUTHENTICATED", 401),
];

/// The names of all codes but OK, in their order.
pub const NAMES: [&str; CODES.len()] = {
    let mut names = [""; CODES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = CODES[at].0;
        at += 1;
    }
    names
};

/// The index of a code's name in `NAMES`; unknown codes count as UNKNOWN. `None`: it is 0, success.
pub fn index(code: u8) -> Option<usize> {
    let index = usize::from(code).checked_sub(1)?;
    Some(if index < CODES.len() { index } else { usize::from(UNKNOWN) - 1 })
}

/// One open connection.
pub struct Grpc(Http2);

impl Http for Grpc {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn is_idempotent(prepared: &Prepared) -> bool {
        Http2::is_idempotent(prepared)
    }

    /// The path names the call, as `/package.Service/Method`; the body is the message. Headers are sent besides those that
    /// belong to gRPC.
    fn prepare(parts: &Parts<'_>) -> Prepared {
        let own = [("content-type", "application/grpc"), ("te", "trailers")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = [&own[..], parts.headers].concat();
        let length = u32::try_from(parts.body.len()).unwrap_or(u32::MAX);
        let body = [&[0][..], &length.to_be_bytes(), parts.body].concat();
        let more = PREFIX_BYTES as u64;
        Http2::prepare(&Parts {
            method: "POST",
            headers: &headers,
            body: &body,
            keeps_body: true,
            body_bytes_max: parts.body_bytes_max.saturating_add(more),
            ..*parts
        })
    }
}

impl Driver for Grpc {
    type Connecting = Socket;
    type Send<'a> = Outgoing<'a, Prepared>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        Http2::begin_connect(to, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        Http2::open(begin_connect, to).await.map(Grpc)
    }

    fn send(&mut self, what: Outgoing<'_, Prepared>) -> Result<(), Refused> {
        self.0.send(what)
    }

    forward!(0);

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        Some(match self.0.next(buffer)? {
            Ok(Received::Answer(answer)) => unwrapped(answer).map(Received::Answer).map_err(Broken::Http),
            other => other,
        })
    }
}

/// An answer with its message as its body, or its status' text. Errors: it is not what gRPC sends.
fn unwrapped(answer: Answer<'_>) -> Result<Answer<'_>, Fault> {
    let Some(code) = answer.grpc else {
        // A plain HTTP answer, such as a proxy's, is described by its status, unless that claims success.
        return if answer.status == 200 { Err(Fault::Message) } else { Ok(answer) };
    };
    if let Some(index) = index(code) {
        return Ok(Answer { status: CODES[index].1, ..answer });
    }
    if answer.status != 200 {
        // HTTP reports a failure, and gRPC success.
        return Ok(Answer { body: &[], body_bytes: 0, grpc: Some(UNKNOWN), ..answer });
    }
    let [0, a, b, c, d, message @ ..] = answer.body else { return Err(Fault::Message) };
    if u32::from_be_bytes([*a, *b, *c, *d]) as usize != message.len() {
        return Err(Fault::Message);
    }
    Ok(Answer { body: message, body_bytes: message.len() as u64, ..answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, grpc: Option<u8>, body: &[u8]) -> Answer<'_> {
        Answer { tag: 1, status, body, body_bytes: body.len() as u64, location: None, closes: false, grpc }
    }

    #[track_caller]
    fn check(given: Answer<'_>, expected: Result<(u16, &[u8]), Fault>) {
        let told = unwrapped(given).map(|answer| (answer.status, answer.body));
        assert_eq!(told, expected);
    }

    #[test]
    fn an_answer_is_a_message_or_a_status() {
        check(answer(200, Some(0), &[0, 0, 0, 0, 2, 8, 1]), Ok((200, &[8, 1])));
        check(answer(200, Some(0), &[0, 0, 0, 0, 0]), Ok((200, &[])));
        check(answer(200, Some(5), b"no such board"), Ok((404, b"no such board")));
        check(answer(200, Some(77), b""), Ok((500, b"")));
        check(answer(502, None, b"<html>"), Ok((502, b"<html>")));
        let both = unwrapped(answer(500, Some(0), &[0, 0, 0, 0, 2, 8, 1])).unwrap();
        assert_eq!((both.status, both.grpc, both.body), (500, Some(UNKNOWN), &[][..]));
    }

    #[test]
    fn what_grpc_does_not_send_is_a_fault() {
        let wrong = Err(Fault::Message);
        check(answer(200, None, &[0, 0, 0, 0, 0]), wrong);
        check(answer(200, Some(0), &[]), wrong);
        check(answer(200, Some(0), &[1, 0, 0, 0, 1, 8]), wrong);
        check(answer(200, Some(0), &[0, 0, 0, 0, 9, 8]), wrong);
        check(answer(200, Some(0), &[0, 0xff, 0xff, 0xff, 0xff]), wrong);
        // Two messages where one was expected.
        check(answer(200, Some(0), &[0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0]), wrong);
    }

    #[test]
    fn codes_have_the_names_and_numbers_of_the_specification() {
        for (code, expected) in
            [(1, "CANCELLED"), (5, "NOT_FOUND"), (8, "RESOURCE_EXHAUSTED"), (16, "UNAUTHENTICATED")]
        {
            assert_eq!(index(code).map(|index| NAMES[index]), Some(expected));
        }
        assert_eq!((index(0), index(17)), (None, index(UNKNOWN)));
    }
}
