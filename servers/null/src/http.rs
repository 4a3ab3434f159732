//! Answers to requests: `200` and `ok`, or as many bytes as `/bytes/N` asks for.
//!
//! Pure, and bounded for a client that requests much and reads little: answers are produced in portions, the next one
//! when the last one has been sent. Between requests a connection holds no memory here.

use servers_shared::http::request::{self, Front, Limits, Request};
use servers_shared::http::response;

/// The longest body that can be requested.
const BYTES_MAX: usize = 1024 * 1024;

/// A portion ends with the answer that reaches this, and a long body is cut here.
const PORTION_BYTES: usize = 64 * 1024;

const TEXT: &str = "text/plain";

/// One client's side of the conversation.
#[derive(Default)]
pub(super) struct Http {
    /// Input that is not answered yet: the beginning of a request, or what follows a full portion.
    input: Vec<u8>,
    /// So much of the last answer's body is still to come.
    body_bytes_left: usize,
    /// The last portion was full: there may be more to answer.
    full: bool,
    /// Nothing is answered after this.
    last: bool,
}

impl Http {
    /// True while not all answers to the received input have been taken.
    pub(super) fn has_more(&self) -> bool {
        self.full || self.body_bytes_left > 0
    }

    /// True from the first byte of a request to its last.
    pub(super) fn is_within_a_request(&self) -> bool {
        !self.input.is_empty() && !self.has_more()
    }

    /// Appends the next portion of answers to `out`; true when it was the last one of the conversation.
    pub(super) fn hear(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        self.full = false;
        self.put_body(out);
        if self.input.is_empty() {
            let taken = self.answer(bytes, out);
            if taken < bytes.len() {
                self.input = bytes[taken..].to_vec();
            }
        } else {
            let mut input = std::mem::take(&mut self.input);
            input.extend_from_slice(bytes);
            let taken = self.answer(&input, out);
            if taken < input.len() {
                input.drain(..taken);
                self.input = input;
            }
        }
        self.last && self.body_bytes_left == 0
    }

    /// Answers whole requests until the portion is full. Returns how many bytes they took.
    fn answer(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut taken = 0;
        while !self.last && taken < bytes.len() {
            if out.len() >= PORTION_BYTES {
                self.full = true;
                break;
            }
            match request::front(&bytes[taken..], &Limits::default()) {
                Front::Incomplete => break,
                Front::Broken(fault) => {
                    response::write(out, fault.status(), TEXT, false, b"");
                    self.last = true;
                }
                Front::Whole { request, bytes } => {
                    taken += bytes;
                    self.put_answer(&request, out);
                }
            }
        }
        taken
    }

    fn put_answer(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        self.last = !request.keep_alive;
        let head_only = request.method == "HEAD";
        match request.path().strip_prefix("/bytes/").map(wanted_bytes) {
            None if head_only => response::write_head(out, 200, TEXT, request.keep_alive, 2),
            None => response::write(out, 200, TEXT, request.keep_alive, b"ok"),
            Some(None) => response::write(out, 400, TEXT, request.keep_alive, b""),
            Some(Some(bytes)) => {
                response::write_head(out, 200, TEXT, request.keep_alive, bytes);
                self.body_bytes_left = if head_only { 0 } else { bytes };
                self.put_body(out);
            }
        }
    }

    fn put_body(&mut self, out: &mut Vec<u8>) {
        let bytes = self.body_bytes_left.min(PORTION_BYTES.saturating_sub(out.len()));
        out.resize(out.len() + bytes, b'x');
        self.body_bytes_left -= bytes;
    }
}

fn wanted_bytes(text: &str) -> Option<usize> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|bytes| is_number && *bytes <= BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

    /// All that these bytes are answered with, and whether the conversation is over.
    fn answers(http: &mut Http, bytes: &[u8]) -> (String, bool) {
        let mut out = Vec::new();
        let mut over = http.hear(bytes, &mut out);
        while !over && http.has_more() {
            let mut portion = Vec::new();
            over = http.hear(&[], &mut portion);
            assert!(!portion.is_empty() || !http.has_more(), "a portion gets further");
            assert!(portion.len() < PORTION_BYTES + 200);
            out.extend(portion);
        }
        (String::from_utf8(out).unwrap(), over)
    }

    fn get(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    #[track_caller]
    fn check(request: &str, answer: &str, over: bool) {
        assert_eq!(answers(&mut Http::default(), request.as_bytes()), (answer.to_string(), over));
    }

    #[test]
    fn every_path_and_method_is_answered_ok_and_head_without_the_body() {
        check(&get("/"), OK, false);
        check(&get("/any?thing"), OK, false);
        check("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", OK, false);
        check("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", OK.strip_suffix("ok").unwrap(), false);
        let last = OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        check("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n", &last, true);
    }

    #[test]
    fn as_many_bytes_come_as_are_asked_for() {
        for bytes in [0, 1, PORTION_BYTES, BYTES_MAX] {
            let head = OK.replace("Length: 2", &format!("Length: {bytes}")).replace("ok", "");
            check(&get(&format!("/bytes/{bytes}")), &(head.clone() + &"x".repeat(bytes)), false);
            check(&get(&format!("/bytes/{bytes}")).replace("GET", "HEAD"), &head, false);
        }
        for wrong in ["/bytes/", "/bytes/-1", "/bytes/+1", "/bytes/1048577", "/bytes/x", "/bytes/1/2"] {
            let (answer, over) = answers(&mut Http::default(), get(wrong).as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 ") && !over, "{wrong}: {answer}");
        }
    }

    #[test]
    fn a_fault_is_answered_after_the_requests_before_it_and_ends_the_conversation() {
        let (answer, over) =
            answers(&mut Http::default(), (get("/") + "nonsense\r\n\r\n" + &get("/")).as_bytes());
        assert!(answer.starts_with(OK) && over);
        assert!(answer[OK.len()..].starts_with("HTTP/1.1 400 Bad Request\r\n"));
        assert!(answer.ends_with("\r\nConnection: close\r\n\r\n"));
    }

    #[test]
    fn a_long_last_answer_is_whole_before_the_conversation_is_over() {
        let mut http = Http::default();
        let request = get("/bytes/100000").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let mut out = Vec::new();
        assert!(!http.hear(request.as_bytes(), &mut out) && http.has_more());
        let mut rest = Vec::new();
        assert!(http.hear(&[], &mut rest) && !http.has_more());
        assert!([out, rest].concat().ends_with(&b"x".repeat(100_000)));
    }

    #[test]
    fn a_thousand_long_bodies_asked_for_at_once_are_never_held_at_once() {
        let mut http = Http::default();
        let requests = get("/bytes/1048576").repeat(1_000);
        let (mut out, mut bytes) = (Vec::new(), 0);
        http.hear(requests.as_bytes(), &mut out);
        while http.has_more() && bytes < 100 * BYTES_MAX {
            assert!(out.len() < PORTION_BYTES + 200 && http.input.len() <= requests.len());
            bytes += out.len();
            out.clear();
            http.hear(&[], &mut out);
        }
        assert!(bytes >= 100 * BYTES_MAX);
    }

    proptest! {
        #[test]
        fn answers_do_not_depend_on_how_the_requests_were_cut(
            sizes in proptest::collection::vec(prop_oneof![Just(None), (0usize..100_000).prop_map(Some)], 1..8),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        ) {
            let path = |size: &Option<usize>| size.map_or("/".to_string(), |size| format!("/bytes/{size}"));
            let all: String = sizes.iter().map(|size| get(&path(size))).collect();
            let (at_once, _) = answers(&mut Http::default(), all.as_bytes());
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
            cuts.sort_unstable();
            cuts.push(all.len());
            let (mut http, mut heard, mut from) = (Http::default(), String::new(), 0);
            for to in cuts {
                heard += &answers(&mut http, &all.as_bytes()[from..to]).0;
                prop_assert_eq!(http.is_within_a_request(), !http.input.is_empty());
                from = to;
            }
            prop_assert_eq!(heard, at_once);
            prop_assert!(!http.is_within_a_request() && http.input.capacity() == 0);
        }
    }
}
