//! Requests whose responses are passed on as they arrive: the head with all its lines, the body in parts, and the end.
//!
//! For scripts, whose `fetch` may read an endless body. Nothing is accumulated: the data of one read is passed on
//! before the next read, so that an endless body takes no memory here. The other HTTP drivers pass on whole responses,
//! and keep only those parts of a head that the built-in workloads use.
//! No `Accept-Encoding` is sent unless the request has one, so a server that follows RFC 9110 (section 12.5.3) sends
//! bodies without a coding; encoded ones are passed on unchanged.
//! Not here: redirects, cookies, resending a request (`Protocol::reopens`, `Fetch::is_idempotent`).

use crate::address::Address;
use crate::http::fault::Fault;
use crate::http::message::{Parts, is_idempotent};

/// The most interim heads (100 Continue, 103 Early Hints) that a response may have; none of them is passed on.
pub(super) const INTERIM_MAX: u8 = 32;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Fetch<'a> {
    /// the sender's own number for the request; each piece of the response carries it
    pub tag: u32,
    /// `GET`, `POST` …
    pub method: &'a str,
    /// path and query, beginning with `/`
    pub path: &'a str,
    /// name and value; a `Host`, `Content-Length` or `Connection` among them replaces ours
    pub headers: &'a [(String, String)],
    /// may be empty
    pub body: &'a [u8],
    /// the connection stays for further requests
    pub keep_alive: bool,
}

impl Fetch<'_> {
    /// Whether it may be resent if it is unknown whether it was executed.
    pub fn is_idempotent(&self) -> bool {
        is_idempotent(self.method)
    }

    pub(super) fn parts<'a>(&'a self, origin: &'a Origin) -> Parts<'a> {
        Parts {
            method: self.method,
            scheme: origin.scheme,
            authority: &origin.authority,
            path: self.path,
            headers: self.headers,
            body: self.body,
            keep_alive: self.keep_alive,
            keeps_body: false,
            body_bytes_max: u64::MAX,
            envelope: None,
        }
    }
}

/// What comes back.
#[derive(Debug)]
pub enum Piece<'d> {
    /// the head of an answer; interim ones are left out
    Head(Head<'d>),
    /// more of its body
    Part {
        /// of the request
        tag: u32,
        /// never empty
        bytes: &'d [u8],
    },
    /// the answer is whole
    End {
        /// of the request
        tag: u32,
        /// the connection takes no further request
        closes: bool,
    },
    /// the answer breaks off, and the connection goes on for others (HTTP/2); over HTTP/1.1 a fault ends the connection
    Failed {
        /// of the request
        tag: u32,
        /// what kind of fault
        fault: Fault,
        /// what the protocol says of it
        words: &'d [u8],
    },
    /// the server announced a close: the connection takes no more requests, and those that it has taken are answered
    Leaving,
    /// the server says that it did not look at a request: it may be sent again on another connection
    PutOff {
        /// of the request
        tag: u32,
    },
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Head<'d> {
    /// of the request
    pub tag: u32,
    /// three digits; never an interim one but 101
    pub status: u16,
    /// after the status, often empty; HTTP/2 has none
    pub reason: &'d [u8],
    /// all header lines
    pub headers: Headers<'d>,
}

/// Header lines in the order in which they came; those of HTTP/2 stand together by name.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'d>(&'d [u8]);

impl<'d> Headers<'d> {
    /// Lines that end with `\n` or `\r\n`, `name: value` each. What has no colon is left out.
    pub fn of(lines: &'d [u8]) -> Self {
        Headers(lines)
    }

    /// Names as they came and values without the blanks around them.
    pub fn iter(self) -> impl Iterator<Item = (&'d [u8], &'d [u8])> {
        self.0.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// The first value of that name.
    pub fn get(self, name: &str) -> Option<&'d [u8]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

/// Who is asked: what each request repeats.
#[derive(Debug, Default)]
pub struct Origin {
    scheme: &'static str,
    authority: Box<str>,
}

impl Origin {
    pub(super) fn of(to: &Address) -> Self {
        let scheme = if to.tls.is_some() { "https" } else { "http" };
        Origin { scheme, authority: to.host.as_str().into() }
    }
}
