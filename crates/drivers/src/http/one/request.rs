//! Requests in HTTP/1.1 format: encoded once, shared by all connections that send them.

use std::cell::RefCell;
use std::io::Write;

use super::head::Memo;
use crate::http::harmless;
use crate::http::message::{Parts, is_idempotent};

/// A request, encoded.
#[derive(Debug)]
pub struct Request {
    /// head and body
    pub wire: Box<[u8]>,
    /// its answer has no body, whatever the answer's head says
    pub is_head: bool,
    /// the answer's body is looked at
    pub keeps_body: bool,
    /// the longest body that an answer may have
    pub body_cap: u64,
    /// of an unfinished body: what counts for nothing
    pub(super) free_bytes: usize,
    /// it is the last on its connection
    pub closes: bool,
    /// it may be resent if it is unknown whether it was executed
    pub is_idempotent: bool,
    /// the head of the last answer to it, on whichever connection
    pub(super) memo: RefCell<Memo>,
}

impl Request {
    /// Encodes it.
    pub fn new(parts: &Parts<'_>) -> Self {
        let has = |name| parts.header(name).is_some();
        let mut wire = Vec::with_capacity(128 + parts.path.len() + parts.body.len());
        wire.extend(harmless::token(parts.method));
        wire.push(b' ');
        harmless::write_path(&mut wire, parts.path, b"");
        wire.extend_from_slice(b" HTTP/1.1\r\n");
        if !has("host") {
            write_header(&mut wire, "Host", parts.authority);
        }
        for (name, value) in parts.headers {
            write_header(&mut wire, name, value);
        }
        if parts.sends_length() {
            // Writing to a Vec cannot fail.
            let _ = write!(wire, "Content-Length: {}\r\n", parts.body.len());
        }
        if !parts.keep_alive && !has("connection") {
            write_header(&mut wire, "Connection", "close");
        }
        wire.extend_from_slice(b"\r\n");
        wire.extend_from_slice(parts.body);
        Request {
            wire: wire.into_boxed_slice(),
            is_head: parts.method == "HEAD",
            keeps_body: parts.keeps_body,
            body_cap: parts.body_cap(),
            free_bytes: parts.body_bytes_free(),
            closes: parts.closes(),
            is_idempotent: is_idempotent(parts.method),
            memo: RefCell::default(),
        }
    }

    /// Puts a piece of a body into `store`, if anything reads it.
    pub(super) fn keep(&self, store: &mut Vec<u8>, data: &[u8]) {
        if self.keeps_body {
            store.extend_from_slice(data);
        }
    }
}

fn write_header(wire: &mut Vec<u8>, name: &str, value: &str) {
    wire.extend(harmless::token(name));
    wire.extend_from_slice(b": ");
    wire.extend(harmless::value(value));
    wire.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Parts<'static> =
        Parts { authority: "example.org:8080", body_bytes_max: 1000, ..Parts::get("/a?b=1") };

    fn check(parts: &Parts<'_>, expected: &str) {
        assert_eq!(String::from_utf8_lossy(&Request::new(parts).wire), expected);
    }

    fn headers(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_request_says_no_more_than_it_must() {
        check(&GET, "GET /a?b=1 HTTP/1.1\r\nHost: example.org:8080\r\n\r\n");
        check(
            &Parts { keep_alive: false, ..GET },
            "GET /a?b=1 HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\n\r\n",
        );
        check(
            &Parts { method: "POST", body: b"{}", ..GET },
            "POST /a?b=1 HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 2\r\n\r\n{}",
        );
        check(
            &Parts { method: "PUT", ..GET },
            "PUT /a?b=1 HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 0\r\n\r\n",
        );
    }

    #[test]
    fn given_headers_replace_ours() {
        let given = headers(&[("hOST", "other"), ("content-length", "1"), ("connection", "Upgrade, Close")]);
        let parts = Parts { headers: &given, body: b"xyz", keep_alive: false, ..GET };
        check(
            &parts,
            "GET /a?b=1 HTTP/1.1\r\nhOST: other\r\ncontent-length: 1\r\nconnection: Upgrade, Close\r\n\r\nxyz",
        );
        assert!(Request::new(&parts).closes, "the header says so");
        let given = headers(&[("Connection", "keep-alive")]);
        assert!(!Request::new(&Parts { headers: &given, keep_alive: false, ..GET }).closes);
    }

    #[test]
    fn no_value_begins_a_line_of_its_own() {
        let given = headers(&[("X-A", "1\r\nX-B: 2"), ("X:\r\nC", "ü")]);
        check(
            &Parts { path: "/a b\r\nX: 1/ü", headers: &given, ..GET },
            "GET /a%20b%0D%0AX:%201/%C3%BC HTTP/1.1\r\nHost: example.org:8080\r\nX-A: 1  X-B: 2\r\nXC: ü\r\n\r\n",
        );
    }
}
