//! Requests and responses common to all versions of HTTP.

use std::fmt;
use std::sync::Arc;

use crate::driver::Driver;
use crate::messages::envelope::Envelope;
use crate::unfinished::FREE_BYTES;

/// Nothing of an answer's head, its header lines included, may be larger.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// A kept body may be so large; larger ones are counted only where the request allows it. All that have not ended share
/// `UNFINISHED_BYTES_MAX`.
pub const KEPT_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A version of HTTP.
pub trait Http: for<'a> Driver<Send<'a> = Outgoing<'a, Self::Prepared>, Received<'a> = Received<'a>> {
    /// A request in the form in which it is sent.
    type Prepared: Clone + fmt::Debug + 'static;

    /// The protocol allows the server to close a connection between two requests, and the next request opens another.
    const REOPENS: bool;

    /// Puts a request into that form.
    fn prepare(parts: &Parts<'_>) -> Self::Prepared;

    /// Whether it may be resent if it is unknown whether it was executed: its method is idempotent.
    fn is_idempotent(prepared: &Self::Prepared) -> bool;

    /// What the body of the last answer is whose head has come, although its body may still be on its way. For the first look
    /// at a server, which has one request open.
    fn media(&self) -> Option<Media> {
        None
    }
}

/// Source: RFC 9110, section 9.2.2.
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
}

/// What a body is, as far as the first look at a server tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// `text/event-stream`: events that come as they happen, mostly without an end
    EventStream,
    /// `text/html`: a page for people
    Html,
    /// anything else, or not said
    Other,
}

impl Media {
    /// As a `Content-Type` says it, with or without parameters.
    pub fn of(content_type: Option<&[u8]>) -> Media {
        let name =
            content_type.and_then(|value| value.split(|byte| *byte == b';').next()).unwrap_or_default();
        match name.trim_ascii() {
            name if name.eq_ignore_ascii_case(b"text/event-stream") => Media::EventStream,
            name if name.eq_ignore_ascii_case(b"text/html") => Media::Html,
            _ => Media::Other,
        }
    }
}

/// A request as people write it.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// `GET`, `POST` …
    pub method: &'a str,
    /// `http` or `https`
    pub scheme: &'a str,
    /// host, and port where it is not the usual one
    pub authority: &'a str,
    /// path and query, beginning with `/`
    pub path: &'a str,
    /// name and value; a `Host`, `Content-Length` or `Connection` among them replaces ours
    pub headers: &'a [(String, String)],
    /// may be empty
    pub body: &'a [u8],
    /// the connection stays for further requests
    pub keep_alive: bool,
    /// the answer's body is looked at
    pub keeps_body: bool,
    /// an answer's body may be so long
    pub body_bytes_max: u64,
    /// for protobuf messages over WebSocket, where only this and the body count
    pub envelope: Option<&'a Arc<Envelope>>,
}

impl<'a> Parts<'a> {
    /// A GET over a connection that stays, whose answer is counted and may be of any length.
    pub const fn get(path: &'a str) -> Parts<'a> {
        Parts {
            method: "GET",
            scheme: "http",
            authority: "localhost",
            path,
            headers: &[],
            body: b"",
            keep_alive: true,
            keeps_body: false,
            body_bytes_max: u64::MAX,
            envelope: None,
        }
    }
}

impl Parts<'_> {
    /// The value of the first header of this name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let given = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        given.map(|(_, value)| value.as_str())
    }

    /// It is the last on its connection: the headers say so, or are silent and it does not keep it.
    pub(super) fn closes(&self) -> bool {
        match self.header("connection") {
            Some(value) => value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")),
            None => !self.keep_alive,
        }
    }

    /// Its body's length is ours to say: there is one or could be, and the headers do not say it.
    pub(super) fn sends_length(&self) -> bool {
        let expects_one = !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH");
        expects_one && self.header("content-length").is_none() && self.header("transfer-encoding").is_none()
    }

    /// The longest body that an answer may have, bytes.
    pub(super) fn body_cap(&self) -> u64 {
        let kept_max = if self.keeps_body { KEPT_BODY_BYTES_MAX as u64 } else { u64::MAX };
        self.body_bytes_max.min(kept_max)
    }

    /// So much of an unfinished body is reserved for it by the plan itself, which says how long a body may be; without its
    /// word all bodies share what there is.
    pub(super) fn body_bytes_free(&self) -> usize {
        // Below the cap of kept bodies it fits.
        let said = if self.body_cap() < KEPT_BODY_BYTES_MAX as u64 { self.body_cap() as usize } else { 0 };
        said.max(FREE_BYTES)
    }
}

/// A request on its way out.
#[derive(Debug)]
pub struct Outgoing<'a, P> {
    /// what is sent
    pub prepared: &'a P,
    /// comes back with the answer; the sender's own number for it
    pub tag: u32,
}

/// What comes back.
#[derive(Debug)]
pub enum Received<'d> {
    /// the first bytes of an answer whose rest is still to come; never said of one that came whole with one read
    Began {
        /// of the request
        tag: u32,
    },
    /// a whole answer
    Answer(Answer<'d>),
    /// the server announced a close: the connection takes no more requests, and those that it has taken are answered
    Leaving,
    /// with its close the server said that it did not process a request: it may be sent again on another connection
    PutOff {
        /// of the request
        tag: u32,
    },
    /// a message that is no answer to any request
    Unpaired {
        /// the message
        body: &'d [u8],
    },
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer<'d> {
    /// of the request
    pub tag: u32,
    /// three digits
    pub status: u16,
    /// empty where the request does not keep it
    pub body: &'d [u8],
    /// its length, kept or not
    pub body_bytes: u64,
    /// the `Location` of a redirect (status 3xx)
    pub location: Option<&'d str>,
    /// the connection takes no further request
    pub closes: bool,
    /// for gRPC: its status code; with a code other than 0 the body is the error text
    pub grpc: Option<u8>,
}
