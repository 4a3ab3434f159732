//! Requests that two parsers could understand differently, that are too long, or that are not HTTP.

use super::{Case, Evil};

/// What must never be taken for a request of its own.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";

/// Name, bytes, the statuses of which one is right; behind it the connection has to end.
fn table() -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let post =
        |fields: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n{body}").into_bytes();
    let raw = |text: &str| text.as_bytes().to_vec();
    let many: String = (0..4000).map(|i| format!("A{i}: b\r\n")).collect();
    vec![
        ("two lengths that differ", post("Content-Length: 0\r\nContent-Length: 35\r\n", HIDDEN), &[400]),
        ("two lengths that agree", post("Content-Length: 4\r\nContent-Length: 4\r\n", "body"), &[400]),
        ("a list of lengths", post("Content-Length: 4, 4\r\n", "body"), &[400]),
        ("two numbers in a length", post("Content-Length: 4 4\r\n", "body"), &[400]),
        ("a length with a plus", post("Content-Length: +4\r\n", "body"), &[400]),
        ("a length below zero", post("Content-Length: -1\r\n", ""), &[400]),
        ("a length in hexadecimal", post("Content-Length: 0x4\r\n", "body"), &[400]),
        ("a length with an underscore", post("Content-Length: 1_0\r\n", "body"), &[400]),
        ("a length of other digits", post("Content-Length: \u{0664}\r\n", "body"), &[400]),
        ("no digits in a length", post("Content-Length:\r\n", ""), &[400]),
        ("a length beyond 64 bits", post("Content-Length: 18446744073709551620\r\n", HIDDEN), &[400, 413]),
        (
            "a length and chunks",
            post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            &[400],
        ),
        (
            "chunks and a length",
            post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"),
            &[400],
        ),
        ("chunks", post("Transfer-Encoding: chunked\r\n", &format!("0\r\n\r\n{HIDDEN}")), &[411]),
        ("a chunk of 2^64 bytes", post("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n"), &[411]),
        ("a chunk with an extension", post("Transfer-Encoding: chunked\r\n", "0;x=\n\r\n\r\n"), &[411]),
        ("an unknown coding", post("Transfer-Encoding: xchunked\r\n", HIDDEN), &[411, 501]),
        (
            "chunked twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", HIDDEN),
            &[400, 411],
        ),
        ("a coding with a vertical tab", post("Transfer-Encoding: \u{b}chunked\r\n", HIDDEN), &[400]),
        ("a coding with a blank before its colon", post("Transfer-Encoding : chunked\r\n", HIDDEN), &[400]),
        ("a coding behind a bare CR", post("X: y\rTransfer-Encoding: chunked\r\n", HIDDEN), &[400]),
        ("a coding behind a bare LF", post("X: y\nTransfer-Encoding: chunked\r\n", HIDDEN), &[400]),
        ("a folded coding", post("Transfer-Encoding:\r\n chunked\r\n", HIDDEN), &[400]),
        ("a folded length", post("Content-Length:\r\n\t4\r\n", "body"), &[400]),
        ("chunks in HTTP/1.0", raw("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), &[400]),
        ("lines that end with LF", raw("GET / HTTP/1.1\nHost: x\n\n"), &[400]),
        ("a head that ends with LF", raw("GET / HTTP/1.1\r\nHost: x\r\n\n"), &[400]),
        ("no host", raw("GET / HTTP/1.1\r\n\r\n"), &[400]),
        ("two hosts", raw("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), &[400]),
        ("a NUL in a field", raw("GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n"), &[400]),
        ("a field without a colon", raw("GET / HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n"), &[400]),
        ("a field without a name", raw("GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n"), &[400]),
        ("a control character in the target", raw("GET /\u{1} HTTP/1.1\r\nHost: x\r\n\r\n"), &[400]),
        ("a line feed in the target", raw("GET /\n HTTP/1.1\r\nHost: x\r\n\r\n"), &[400]),
        ("HTTP/0.9", raw("GET /\r\n"), &[400]),
        ("HTTP/3.0", raw("GET / HTTP/3.0\r\nHost: x\r\n\r\n"), &[505]),
        ("a version of another case", raw("GET / http/1.1\r\nHost: x\r\n\r\n"), &[400]),
        ("two empty lines in front", raw("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), &[400]),
        ("a byte order mark in front", raw("\u{feff}GET / HTTP/1.1\r\nHost: x\r\n\r\n"), &[400]),
        ("the hello of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[400]),
        ("the hello of SSH", raw("SSH-2.0-OpenSSH_9.6\r\n"), &[400]),
        ("a command of Redis", raw("*1\r\n$4\r\nPING\r\n"), &[400]),
        ("a method without end", vec![b'G'; 100_000], &[400, 431]),
        ("a target without end", [&b"GET /"[..], &vec![b'a'; 40_000]].concat(), &[414, 431]),
        (
            "a field without end",
            [&b"GET / HTTP/1.1\r\nHost: x\r\nA: "[..], &vec![b'a'; 40_000]].concat(),
            &[431],
        ),
        ("four thousand fields", format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n").into_bytes(), &[431]),
        ("a body of 10 GB", post("Content-Length: 10000000000\r\n", "x"), &[413]),
        (
            "a body of 10 GB that waits",
            post("Content-Length: 10000000000\r\nExpect: 100-continue\r\n", ""),
            &[413],
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    let refusal = |(name, bytes, statuses): (&'static str, Vec<u8>, &'static [u16])| {
        Case::new(name, move |address| {
            let mut evil = Evil::connect(address);
            evil.send(&bytes);
            evil.send(HIDDEN.as_bytes());
            let heard = evil.read_out();
            let heard = String::from_utf8_lossy(&heard);
            let answers: Vec<&str> =
                heard.match_indices("HTTP/1.1 ").map(|(at, _)| &heard[at + 9..at + 12]).collect();
            // A reset may overtake the answer if the server has not read everything.
            assert!(answers.len() <= 1, "{answers:?}: a hidden request was answered");
            if let [status] = answers[..] {
                assert!(statuses.contains(&status.parse().unwrap()), "{status} instead of {statuses:?}");
            }
            assert!(!answers.is_empty() || bytes.len() > 20_000, "no answer");
        })
    };
    table().into_iter().map(refusal).collect()
}

/// Heads and bodies that do not end are cut.
pub fn slow() -> Vec<Case> {
    let slow = |name, bytes: &'static str, drip: &'static [u8]| {
        Case::new(name, move |address| {
            let mut evil = Evil::connect(address);
            evil.send(bytes.as_bytes());
            evil.is_cut_while_it_sends(drip);
        })
    };
    vec![
        slow("a head that stops", "GET / HTTP/1.1\r\nHo", b""),
        slow("a head byte by byte", "GET / HTTP/1.1\r\nHost: x\r\nA: ", b"a"),
        slow("a head field by field", "GET / HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n"),
        slow("a body that stops", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc", b""),
        slow("a body byte by byte", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n", b"a"),
    ]
}
