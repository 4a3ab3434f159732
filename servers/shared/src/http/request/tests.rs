use proptest::prelude::*;

use super::*;
use crate::http::naive;

const SMALL: Limits = Limits { head_bytes: 200, body_bytes: 20 };

#[track_caller]
fn check_broken(bytes: &str, fault: Fault) {
    let front = front(bytes.as_bytes(), &SMALL);
    assert_eq!(front, Front::Broken(fault), "{bytes:?}");
}

/// The request in these bytes, which it must use up.
#[track_caller]
fn whole(bytes: &str) -> Request<'_> {
    match front(bytes.as_bytes(), &SMALL) {
        Front::Whole { request, bytes: taken } if taken == bytes.len() => request,
        other => panic!("{other:?} of {bytes:?}"),
    }
}

#[test]
fn a_request_is_read_with_its_body_and_the_next_one_stays() {
    let bytes = b"POST /echo?a=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET / HT";
    let Front::Whole { request, bytes: taken } = front(bytes, &SMALL) else { panic!() };
    assert_eq!((request.method, request.target, request.body), ("POST", "/echo?a=1", &b"hello"[..]));
    assert!(request.keep_alive && !request.http_1_0);
    assert_eq!(&bytes[taken..], b"GET / HT");
    assert_eq!(front(&bytes[taken..], &SMALL), Front::Incomplete);
    assert_eq!(front(b"", &SMALL), Front::Incomplete);
}

#[test]
fn path_and_query_come_apart_and_a_proxys_form_loses_its_host() {
    let request = whole("GET /object?id=7&name&id=8 HTTP/1.1\r\nHost:x\r\n\r\n");
    assert_eq!(request.path(), "/object");
    assert_eq!(request.query("id"), Some("7"));
    assert_eq!(request.query("name"), Some(""));
    assert_eq!(request.query("nam"), None);
    assert_eq!(whole("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").query("id"), None);
    assert_eq!(whole("GET http://x:80/a?b HTTP/1.1\r\nHost: x\r\n\r\n").target, "/a?b");
    assert_eq!(whole("GET HTTP://x HTTP/1.1\r\nHost: x\r\n\r\n").target, "/");
    assert_eq!(whole("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").target, "*");
}

#[test]
fn a_connection_goes_on_by_default_in_1_1_and_on_request_in_1_0() {
    let keeps = |version: &str, connection: &str| {
        whole(&format!("GET / HTTP/{version}\r\nHost: x\r\n{connection}\r\n")).keep_alive
    };
    assert!(keeps("1.1", ""));
    assert!(keeps("1.1", "Connection: keep-alive\r\n"));
    assert!(!keeps("1.1", "connection:\tUpgrade, CLOSE \r\n"));
    assert!(!keeps("1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    assert!(!keeps("1.0", ""));
    assert!(keeps("1.0", "Connection: Keep-Alive\r\n"));
    assert!(keeps("1.9", ""));
    assert!(!keeps("1.1", "Connection: closed, close\r\n"));
    assert!(keeps("1.1", "Connection: closed\r\n"));
}

#[test]
fn lines_that_two_readers_could_understand_differently_are_refused() {
    for bytes in [
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\tfolded: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n: no name\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nN(me: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: \x7f\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        check_broken(bytes, Fault::BadRequest);
    }
}

#[test]
fn request_lines_have_one_form() {
    for line in [
        "GET  / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /",
        "GET",
        "GET  HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.10",
        "GET / HTTP/11",
        "GET /\x01 HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET /#there HTTP/1.1",
        "GET there HTTP/1.1",
        "GET * HTTP/1.1",
        "GET https://x/ HTTP/1.1",
        "GET http:/// HTTP/1.1",
        "GET http://x?y HTTP/1.1",
        "CONNECT x:443 HTTP/1.1",
        "\r",
    ] {
        check_broken(&format!("{line}\r\nHost: x\r\n\r\n"), Fault::BadRequest);
    }
    for line in ["GET / HTTP/2.0", "PRI * HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/3.0"] {
        check_broken(&format!("{line}\r\n\r\n"), Fault::BadVersion);
    }
    check_broken("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::BadRequest);
    whole("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
}

#[test]
fn lengths_are_digits_said_once_and_within_the_limit() {
    for length in ["", "+1", "-1", "1,1", "1 1", "0x1", "18446744073709551616", "1\r\nContent-Length: 1"] {
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        check_broken(&head, Fault::BadLength);
    }
    let head = |length| format!("POST / HTTP/1.1\r\nHost: x\r\ncontent-length: {length}\r\n\r\n");
    check_broken(&head("21"), Fault::BodyTooLarge);
    check_broken(&head("18446744073709551615"), Fault::BodyTooLarge);
    assert_eq!(whole(&format!("{}{}", head("0020"), "b".repeat(20))).body, [b'b'; 20]);
    let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_broken(chunked, Fault::LengthRequired);
}

#[test]
fn a_head_may_take_its_limit_and_not_one_byte_more() {
    let head = |bytes: usize| {
        let frame = "GET / HTTP/1.1\r\nHost: \r\n\r\n";
        frame.replace("Host: ", &format!("Host: {}", "x".repeat(bytes - frame.len())))
    };
    whole(&head(200));
    check_broken(&head(201), Fault::HeadTooLarge);
    let endless = "GET /".to_string() + &"x".repeat(300);
    assert_eq!(front(&endless.as_bytes()[..199], &SMALL), Front::Incomplete);
    check_broken(&endless[..200], Fault::HeadTooLarge);
}

#[test]
fn who_does_not_speak_http_is_known_by_the_first_bytes() {
    for bytes in ["\x16\x03\x01", "{\"", "\0", " ", "GET\r", "\r\n\r", &"A".repeat(33)] {
        check_broken(bytes, Fault::BadRequest);
    }
    for bytes in ["G", "GET", "GET ", "\r", "\r\n", "\r\nPOST"] {
        assert_eq!(front(bytes.as_bytes(), &SMALL), Front::Incomplete, "{bytes:?}");
    }
}

#[test]
fn every_fault_has_its_status() {
    for (fault, status) in [
        (Fault::BadRequest, 400),
        (Fault::BadLength, 400),
        (Fault::LengthRequired, 411),
        (Fault::BodyTooLarge, 413),
        (Fault::HeadTooLarge, 431),
        (Fault::BadVersion, 505),
    ] {
        assert_eq!(fault.status(), status);
    }
}

/// Pieces that are right, nearly right or wrong, so that whole requests and every fault come up often.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        6 => Just("GET / HTTP/1.1\r\n".to_string()),
        2 => Just("POST http://a/b?c=d HTTP/1.0\r\n".to_string()),
        1 => "[A-Z]{0,3} {0,2}[/*h][a-z:/?#]{0,9} HTTP/[0-3]\\.[0-9]\r?\n",
        1 => Just("\r\nGET /after-an-empty-line HTTP/1.1\r\n".to_string()),
    ];
    let field = prop_oneof![
        3 => Just("Host: x\r\n".to_string()),
        2 => "(Content-Length|content-length):[ \t]?[0-9]{1,2}[ ]?\r\n",
        1 => "Transfer-Encoding: (chunked|gzip)\r\n",
        1 => "Connection: ?(close|keep-alive|Close , upgrade)\r\n",
        1 => "Long: x{60,140}\r\n",
        1 => "[A-Za-z!~]{1,9}:[ -~\t]{0,12}\r\n",
        1 => "[ \tA(]?[a-z]{0,3} ?:?[^\u{100}-\u{10ffff}]{0,6}\r?\n",
    ];
    let noise = proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..2);
    let body = proptest::collection::vec(any::<u8>(), 0..40);
    (first, proptest::collection::vec(field, 0..6), body, noise, any::<bool>()).prop_map(
        |(first, fields, body, noise, noisy)| {
            let mut bytes = [first.as_bytes(), fields.concat().as_bytes(), b"\r\n", &body].concat();
            for (at, byte) in noise.into_iter().filter(|_| noisy) {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        },
    )
}

fn verdict_of_the_reference(bytes: &[u8]) -> Result<Option<naive::Request>, Fault> {
    naive::read(bytes, &SMALL)
}

fn verdict(bytes: &[u8]) -> Result<Option<naive::Request>, Fault> {
    match front(bytes, &SMALL) {
        Front::Incomplete => Ok(None),
        Front::Broken(fault) => Err(fault),
        Front::Whole { request, bytes } => Ok(Some(naive::Request {
            method: request.method.to_string(),
            target: request.target.to_string(),
            http_1_0: request.http_1_0,
            keep_alive: request.keep_alive,
            body: request.body.to_vec(),
            bytes,
        })),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_reference_comes_to_the_same_verdict(bytes in requests()) {
        prop_assert_eq!(verdict(&bytes), verdict_of_the_reference(&bytes));
    }

    #[test]
    fn noise_is_never_read_differently_nor_beyond_its_end(
        bytes in proptest::collection::vec(any::<u8>(), 0..260)
    ) {
        prop_assert_eq!(verdict(&bytes), verdict_of_the_reference(&bytes));
    }

    #[test]
    fn a_verdict_does_not_depend_on_how_the_bytes_were_cut(
        bytes in requests(), cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8)
    ) {
        let at_once = verdict(&bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        for cut in cuts {
            let early = verdict(&bytes[..cut]);
            if early != Ok(None) {
                prop_assert_eq!(&early, &at_once);
            }
        }
    }

    #[test]
    fn pipelined_requests_come_out_as_they_went_in(paths in proptest::collection::vec("/[a-z]{0,9}", 1..9)) {
        let all: String = paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
        let (mut rest, mut heard) = (all.as_bytes(), Vec::new());
        while let Front::Whole { request, bytes } = front(rest, &SMALL) {
            heard.push(request.target.to_string());
            rest = &rest[bytes..];
        }
        prop_assert_eq!(heard, paths);
        prop_assert!(rest.is_empty());
    }
}

#[test]
fn the_generated_requests_are_whole_often_and_meet_every_fault() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut verdicts = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..5_000 {
        let bytes = requests().new_tree(&mut runner).unwrap().current();
        let name = match verdict(&bytes) {
            Ok(None) => "incomplete".to_string(),
            Ok(Some(_)) => "whole".to_string(),
            Err(fault) => format!("{fault:?}"),
        };
        *verdicts.entry(name).or_default() += 1;
    }
    assert!(verdicts["whole"] > 500, "{verdicts:?}");
    let faults = ["BadRequest", "BadLength", "BadVersion", "HeadTooLarge", "BodyTooLarge", "LengthRequired"];
    for other in ["incomplete"].into_iter().chain(faults) {
        assert!(verdicts[other] > 20, "{verdicts:?}");
    }
}
