use proptest::prelude::*;

use super::*;

fn check(bytes: &str, expected: (u16, Body, bool)) {
    let head = read(bytes.as_bytes(), false).unwrap().unwrap();
    assert_eq!((head.status, head.body, head.closes), expected, "{bytes:?}");
    assert_eq!(head.bytes, bytes.len());
}

#[test]
fn the_body_ends_as_the_head_says() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", (200, Body::Sized(5), false));
    check("HTTP/1.1 200 OK\r\nContent-Length: 5,5\r\ncontent-length:5\r\n\r\n", (200, Body::Sized(5), false));
    check("HTTP/1.1 200\r\ntransfer-encoding: GZIP, Chunked\r\n\r\n", (200, Body::Chunked, false));
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", (200, Body::UntilEnd, true));
    check("HTTP/1.1 200 OK\r\n\r\n", (200, Body::UntilEnd, true));
    check("HTTP/1.1 204 No Content\r\n\r\n", (204, Body::Sized(0), false));
    check("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", (304, Body::Sized(0), false));
    check("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", (101, Body::Sized(0), true));
    let to_head = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true).unwrap().unwrap();
    assert_eq!((to_head.body, to_head.closes), (Body::Sized(0), false));
}

#[test]
fn the_connection_goes_on_as_the_head_says() {
    let none = "Content-Length: 0\r\n";
    check(&format!("HTTP/1.1 200 OK\r\n{none}Connection: Close\r\n\r\n"), (200, Body::Sized(0), true));
    check(&format!("HTTP/1.1 200 OK\r\n{none}Connection: a ,close,b\r\n\r\n"), (200, Body::Sized(0), true));
    check(&format!("HTTP/1.1 200 OK\r\n{none}Connection: closed\r\n\r\n"), (200, Body::Sized(0), false));
    check(&format!("HTTP/1.0 200 OK\r\n{none}\r\n"), (200, Body::Sized(0), true));
    check(&format!("HTTP/1.0 200 OK\r\n{none}Connection: Keep-Alive\r\n\r\n"), (200, Body::Sized(0), false));
    check(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
        (200, Body::Chunked, true),
    );
}

#[test]
fn only_a_redirect_has_a_location() {
    let location = |status: u16| {
        let bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nLOCATION:  /a?b \r\n\r\n");
        let head = read(bytes.as_bytes(), false).unwrap().unwrap();
        head.location.map(|range| bytes[range].to_owned())
    };
    assert_eq!(location(302), Some("/a?b".to_owned()));
    assert_eq!(location(201), None);
}

#[test]
fn a_line_feed_alone_ends_no_line() {
    let check = |bytes: &[u8]| {
        assert_eq!(read(bytes, false), Err(Fault::Header), "{:?}", String::from_utf8_lossy(bytes));
    };
    check(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n");
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n");
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n");
    check(b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n");
}

#[test]
fn a_location_that_is_no_text_is_a_fault_and_not_a_missing_one() {
    let of = |status: u16| {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nLocation: /?\r\n\r\n");
        let mut bytes = head.into_bytes();
        let at = bytes.iter().rposition(|byte| *byte == b'?').unwrap();
        bytes[at] = 0xFF;
        read(&bytes, false).map(|head| head.unwrap().location)
    };
    assert_eq!(of(302), Err(Fault::Header));
    assert_eq!(of(200), Ok(None), "elsewhere it means nothing");
}

#[test]
fn a_head_may_have_16_kib_and_not_one_byte_more() {
    let of = |bytes: usize| {
        let frame = "HTTP/1.1 204 No\r\nA: \r\n\r\n";
        frame.replace("A: ", &format!("A: {}", "b".repeat(bytes - frame.len())))
    };
    assert!(read(of(HEAD_BYTES_MAX).as_bytes(), false).unwrap().is_some());
    assert_eq!(read(of(HEAD_BYTES_MAX + 1).as_bytes(), false), Err(Fault::HeadTooLarge));
    let incomplete = |bytes| read(&of(2 * HEAD_BYTES_MAX).as_bytes()[..bytes], false);
    assert_eq!(incomplete(HEAD_BYTES_MAX - 1), Ok(None));
    assert_eq!(incomplete(HEAD_BYTES_MAX), Err(Fault::HeadTooLarge));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Recalling equals reading: whatever was remembered, and whatever comes after it.
    #[test]
    fn a_recalled_head_is_the_one_that_would_be_read(
        lengths in (0u8..3, 0u8..3),
        dates in ("[ -~]{0,8}", "[ -~\r\n]{0,8}"),
        wound in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        spare in 0usize..3,
    ) {
        let head = |length: u8, date: &str| {
            format!("HTTP/1.1 200 OK\r\nServer: x\r\nDate: {date}\r\nContent-Length: {length}\r\n\r\nab")
        };
        let (before, mut now) = (head(lengths.0, &dates.0), head(lengths.1, &dates.1).into_bytes());
        if let Some((at, byte)) = wound {
            let at = at.index(now.len());
            now[at] = byte;
        }
        now.truncate(now.len() - spare);
        let mut memo = Memo::default();
        let first = read(before.as_bytes(), false).unwrap().unwrap();
        memo.keep(before.as_bytes(), &first);
        prop_assert_eq!(memo.recall(before.as_bytes()), None, "one answer is not worth it");
        memo.keep(before.as_bytes(), &first);
        prop_assert_eq!(memo.recall(before.as_bytes()), Some(&first));
        if let Some(recalled) = memo.recall(&now) {
            prop_assert_eq!(read(&now, false), Ok(Some(recalled.clone())));
        }
    }
}

#[test]
fn an_answer_that_differs_in_its_date_only_is_recalled() {
    let at = |time: &str| {
        format!("HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 {time} GMT\r\nContent-Length: 2\r\n\r\nOK")
    };
    let mut memo = Memo::default();
    let first = read(at("11:00:00").as_bytes(), false).unwrap().unwrap();
    memo.keep(at("11:00:00").as_bytes(), &first);
    memo.keep(at("11:00:00").as_bytes(), &first);
    assert_eq!(memo.recall(at("11:59:01").as_bytes()), Some(&first));
    assert_eq!(memo.recall(at("11:59\r01").as_bytes()), None);
    assert_eq!(memo.recall(at("1:59:01").as_bytes()), None);
}

#[test]
fn a_date_with_blanks_around_it_is_read_again() {
    let dated = |date: &str| format!("HTTP/1.1 204 No\r\nDate: {date}\r\n\r\n");
    let mut memo = Memo::default();
    let first = read(dated("00").as_bytes(), false).unwrap().unwrap();
    memo.keep(dated("00").as_bytes(), &first);
    memo.keep(dated("00").as_bytes(), &first);
    for blank in ["  ", " 0", "0 "] {
        assert_eq!(memo.recall(dated(blank).as_bytes()), None, "{blank:?}");
    }
}
