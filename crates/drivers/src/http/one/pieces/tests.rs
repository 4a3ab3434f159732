use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::http::one::exchange::tests::{self as whole, GET, mangled, planted, split};
use crate::http::{HEAD_BYTES_MAX, Parts};
use crate::unfinished::reserved_bytes;

/// Everything reported for one answer, with the parts of its body joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    status: Option<u16>,
    reason: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// whether the connection closes with it
    end: Option<bool>,
}

fn hear(pieces: &mut Pieces, buffer: &mut ReadBuffer, told: &mut Told) -> Result<(), Fault> {
    while let Some(piece) = pieces.next(buffer)? {
        match piece {
            Piece::Head(Head { tag: 7, status, reason, headers }) => {
                assert!(told.status.replace(status).is_none(), "one head");
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                told.reason = text(reason);
                told.headers = headers.iter().map(|(name, value)| (text(name), text(value))).collect();
            }
            Piece::Part { tag: 7, bytes } => {
                assert!(told.status.is_some() && !bytes.is_empty());
                told.body.extend_from_slice(bytes);
            }
            Piece::End { tag: 7, closes } => assert!(told.end.replace(closes).is_none(), "one end"),
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

fn read(pieces: &mut Pieces, buffer: &mut ReadBuffer, bytes: &[u8], told: &mut Told) -> Result<(), Fault> {
    pieces.lay(buffer)[..bytes.len()].copy_from_slice(bytes);
    pieces.came(bytes.len(), buffer);
    hear(pieces, buffer, told)
}

fn asked(parts: &Parts<'_>) -> Pieces {
    let mut pieces = Pieces::default();
    assert!(pieces.ask(Request::new(parts), 7));
    pieces.wrote(pieces.unsent().len());
    pieces
}

/// Everything reported for one answer that comes in `reads`, and what the end of the stream means then.
fn outcome(parts: &Parts<'_>, reads: &[&[u8]]) -> (Told, Result<End, Fault>) {
    let (mut pieces, mut buffer, mut told) = (asked(parts), ReadBuffer::new(), Told::default());
    for bytes in reads {
        if let Err(fault) = read(&mut pieces, &mut buffer, bytes, &mut told) {
            return (told, Err(fault));
        }
    }
    pieces.lay(&mut buffer);
    let end = pieces.end(true);
    let heard = hear(&mut pieces, &mut buffer, &mut told);
    (told, heard.map(|()| end))
}

fn get(is_head: bool) -> Parts<'static> {
    Parts { method: if is_head { "HEAD" } else { "GET" }, body_bytes_max: u64::MAX, ..GET }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_pieces_of_an_answer_are_the_same_however_its_bytes_are_split(
        planted in planted(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
    ) {
        let stream = [planted.interim.as_bytes(), &planted.bytes].concat();
        let (told, end) = outcome(&get(planted.is_head), &split(&stream, &cuts));
        prop_assert_eq!(
            (told.status, &told.body, told.end),
            (Some(planted.status), &planted.body, Some(planted.closes))
        );
        prop_assert_eq!(&told.reason, "Some Reason");
        let head = String::from_utf8_lossy(&planted.bytes);
        let lines = head.split("\r\n").skip(1).take_while(|line| !line.is_empty());
        let lines: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
            .collect();
        prop_assert_eq!(told.headers, lines, "every line, in order");
        prop_assert_eq!(end, Ok(if planted.until_end { End::OfAnswer } else { End::OfConnection }));
    }

    /// Both readers take the same bytes for the same answer or for the same fault.
    #[test]
    fn a_mangled_answer_is_what_the_reader_of_whole_answers_takes_it_for(
        planted in planted(),
        wounds in proptest::collection::vec((any::<Index>(), 0u8..3, any::<u8>()), 1..4),
        cuts in proptest::collection::vec(any::<Index>(), 1..8),
    ) {
        let bytes = mangled(&planted.bytes, wounds);
        let parts = get(planted.is_head);
        let in_pieces = outcome(&parts, &split(&bytes, &cuts));
        prop_assert_eq!(&outcome(&parts, &split(&bytes, &[])), &in_pieces, "however it is split");
        let request = whole::request(&Parts { keeps_body: false, ..parts });
        let (answers, end) = whole::outcome(&request, &split(&bytes, &[]));
        prop_assert_eq!(&in_pieces.1, &end);
        if let Some(whole::Told::Answer { status, body_bytes, closes, .. }) = answers.last() {
            let (told, _) = &in_pieces;
            let expected = (Some(*status), *body_bytes, Some(*closes));
            prop_assert_eq!((told.status, told.body.len() as u64, told.end), expected);
        }
    }

    #[test]
    fn one_answer_follows_another_on_the_same_connection(
        answers in proptest::collection::vec((planted(), proptest::collection::vec(any::<Index>(), 0..4)), 1..8),
    ) {
        let (mut pieces, mut buffer) = (Pieces::default(), ReadBuffer::new());
        for (planted, cuts) in &answers {
            let mut told = Told::default();
            prop_assert!(pieces.ask(Request::new(&get(planted.is_head)), 7));
            prop_assert!(!pieces.ask(Request::new(&GET), 8), "one at a time");
            pieces.wrote(pieces.unsent().len());
            for bytes in split(&planted.bytes, cuts) {
                read(&mut pieces, &mut buffer, bytes, &mut told).unwrap();
            }
            if planted.until_end {
                pieces.lay(&mut buffer);
                prop_assert_eq!(pieces.end(true), End::OfAnswer);
                hear(&mut pieces, &mut buffer, &mut told).unwrap();
            }
            prop_assert_eq!((told.status, told.end), (Some(planted.status), Some(planted.closes)));
            prop_assert_eq!(pieces.wire.capacity(), 0, "a quiet connection keeps no request");
            if planted.closes {
                prop_assert!(!pieces.ask(Request::new(&GET), 8), "the connection takes no more");
                break;
            }
        }
    }
}

#[test]
fn what_a_hostile_server_says_is_a_fault_and_takes_little_memory() {
    let long = "b".repeat(HEAD_BYTES_MAX);
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = format!("{ok}Transfer-Encoding: chunked\r\n\r\n");
    let rows: [(&str, String, &str, Fault); 12] = [
        ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "", Fault::NotHttp),
        ("a header without an end", format!("{ok}A: {long}"), "", Fault::HeadTooLarge),
        ("too many headers", format!("{ok}{}\r\n", "A: b\r\n".repeat(129)), "", Fault::HeadTooLarge),
        ("two lengths", format!("{ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\na"), "", Fault::Header),
        ("a flood of interim heads", interim.repeat(usize::from(INTERIM_MAX) + 1), "", Fault::HeadTooLarge),
        ("no length of a chunk", format!("{chunked}zz\r\n"), "", Fault::Chunk),
        ("a chunk longer than it says", format!("{chunked}1\r\na\r\n2\r\nabc\r\n"), "aab", Fault::Chunk),
        ("a length that overflows", format!("{chunked}11111111111111111\r\n"), "", Fault::Chunk),
        ("trailers without an end", format!("{chunked}1\r\na\r\n0\r\nA: {long}"), "a", Fault::HeadTooLarge),
        ("two answers", format!("{ok}Content-Length: 1\r\n\r\na{ok}"), "a", Fault::Unasked),
        ("two answers without a body", format!("{ok}Content-Length: 0\r\n\r\n{ok}"), "", Fault::Unasked),
        ("more than its length", format!("{ok}Content-Length: 1\r\n\r\nab"), "a", Fault::Unasked),
    ];
    for (name, bytes, body, fault) in rows {
        for piece_bytes in [bytes.len(), 1000, 1] {
            // Always using pieces of this size makes a long head cost its length squared.
            if bytes.len() / piece_bytes > 2000 {
                continue;
            }
            let reads: Vec<&[u8]> = bytes.as_bytes().chunks(piece_bytes).collect();
            let (told, end) = outcome(&GET, &reads);
            assert_eq!((String::from_utf8_lossy(&told.body), end), (body.into(), Err(fault)), "{name}");
        }
    }
}

#[test]
fn a_body_without_an_end_is_heard_as_it_comes_and_nothing_of_it_stays() {
    let piece = vec![b'x'; 60_000];
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    for (head, wire) in [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &chunk),
        ("HTTP/1.1 200 OK\r\n\r\n", &piece),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", &piece),
    ] {
        let (mut pieces, mut buffer) = (asked(&GET), ReadBuffer::new());
        read(&mut pieces, &mut buffer, head.as_bytes(), &mut Told::default()).unwrap();
        for _ in 0..1000 {
            let mut told = Told { status: Some(200), ..Told::default() };
            read(&mut pieces, &mut buffer, wire, &mut told).unwrap();
            assert_eq!(told.body.len(), piece.len(), "it is told at once");
            assert_eq!((pieces.carried.capacity(), reserved_bytes()), (0, 0));
        }
        assert_eq!(pieces.end(false), End::CutOff);
    }
}

#[test]
fn the_second_answer_is_not_taken_for_that_of_the_next_request() {
    let (mut pieces, mut buffer) = (asked(&GET), ReadBuffer::new());
    let twice = b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
    pieces.lay(&mut buffer)[..twice.len()].copy_from_slice(twice);
    pieces.came(twice.len(), &mut buffer);
    assert!(matches!(pieces.next(&mut buffer), Ok(Some(Piece::Head(_)))));
    assert!(matches!(pieces.next(&mut buffer), Ok(Some(Piece::End { closes: false, .. }))));
    assert!(!pieces.ask(Request::new(&GET), 8), "its answer was there before the request");
    assert_eq!(pieces.next(&mut buffer).unwrap_err(), Fault::Unasked);
}

#[test]
fn an_end_is_told_by_what_was_under_way() {
    let rows = [
        ("", End::OfConnection),
        ("HT", End::CutOff),
        ("HTTP/1.1 100 Continue\r\n\r\n", End::OfConnection),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", End::CutOff),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", End::CutOff),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", End::CutOff),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", End::OfConnection),
        ("HTTP/1.0 200 OK\r\n\r\na", End::OfAnswer),
    ];
    for (bytes, expected) in rows {
        assert_eq!(outcome(&GET, &[bytes.as_bytes()]).1, Ok(expected), "{bytes:?}");
    }
}

#[test]
fn an_answer_that_comes_before_its_request_is_written_ends_the_connection() {
    let mut buffer = ReadBuffer::new();
    let mut pieces = Pieces::default();
    assert!(pieces.ask(Request::new(&Parts { method: "POST", body: &[b'x'; 1000], ..GET }), 7));
    pieces.wrote(100);
    let mut told = Told::default();
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
    read(&mut pieces, &mut buffer, answer, &mut told).unwrap();
    assert_eq!((told.status, told.end), (Some(413), Some(true)));
    assert!(pieces.unsent().len() > 900 && !pieces.ask(Request::new(&GET), 8));
    pieces.stop_sending();
    assert!(pieces.unsent().is_empty());
}
