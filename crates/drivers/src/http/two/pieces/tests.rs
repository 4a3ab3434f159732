use std::pin::pin;
use std::task::Waker;

use proptest::prelude::*;

use super::super::channel::End;
use super::*;
use crate::http::Parts;

const GET: Parts<'static> = Parts { authority: "a", ..Parts::get("/") };

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Of HEADERS: the whole head; of HEADERS and DATA: nothing more comes on this stream.
const END_HEADERS: u8 = 4;
const END: u8 = 1;
/// `:status: 200` by its place in the static table.
const STATUS_200: &[u8] = &[0x88];
/// `:status: 103`, as the name in the static table and a literal.
const STATUS_103: &[u8] = &[0x08, 3, b'1', b'0', b'3'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn head(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, STATUS_200)
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RESET, 0, stream, &code.to_be_bytes())
}

fn goodbye(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// A connection with requests open of these tags, on the streams 1, 3, 5 …
fn asked(tags: &[u32]) -> Pieces {
    let begun = pin!(Pieces::begin(Origin::default())).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(mut pieces)) = begun else { panic!("its first bytes need no answer") };
    // With what it takes from us, whose windows are wider than those without it.
    came(&mut pieces, &[frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, 1, 0, &[])].concat());
    assert!(tags.iter().all(|tag| pieces.ask(&Request::new(&GET), *tag)));
    pieces
}

fn came(pieces: &mut Pieces, bytes: &[u8]) {
    pieces.channel.pipe().borrow_mut().came(bytes);
    pieces.turn();
    let unsent = pieces.channel.pipe().borrow().unsent().len();
    pieces.channel.pipe().borrow_mut().wrote(unsent);
}

/// What is reported, in words, with the parts of each body joined.
fn told(pieces: &mut Pieces, buffer: &mut ReadBuffer, words: &mut Vec<String>) {
    loop {
        let said = match pieces.next(buffer) {
            Ok(None) => return,
            Err(fault) => format!("broken: {fault}: {}", String::from_utf8_lossy(buffer.rest())),
            Ok(Some(Piece::Leaving)) => "leaving".to_owned(),
            Ok(Some(Piece::PutOff { tag })) => format!("{tag} put off"),
            Ok(Some(Piece::End { tag, closes })) => {
                format!("{tag} end{}", if closes { ", closes" } else { "" })
            }
            Ok(Some(Piece::Failed { tag, fault, words })) => {
                format!("{tag} failed: {fault}: {}", String::from_utf8_lossy(words))
            }
            Ok(Some(Piece::Head(Head { tag, status, headers, .. }))) => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                let lines: Vec<String> =
                    headers.iter().map(|(name, value)| format!(" {}={}", text(name), text(value))).collect();
                format!("{tag} head {status}{}", lines.concat())
            }
            Ok(Some(Piece::Part { tag, bytes })) => {
                let part = String::from_utf8_lossy(bytes);
                let begin = format!("{tag} part ");
                if let Some(before) = words.iter_mut().find(|before| before.starts_with(&begin)) {
                    before.push_str(&part);
                    continue;
                }
                begin + &part
            }
        };
        words.push(said);
    }
}

/// Everything reported when these frames come after requests with the tags 5 and 6, in pieces of `step` bytes.
fn heard(frames: &[Vec<u8>], step: usize) -> (Vec<String>, Option<End>) {
    let (mut pieces, mut buffer, mut words) = (asked(&[5, 6]), ReadBuffer::new(), Vec::new());
    for piece in frames.concat().chunks(step) {
        came(&mut pieces, piece);
        told(&mut pieces, &mut buffer, &mut words);
    }
    (words, pieces.channel.end())
}

/// What a server sends, its frames, and everything reported for them.
type Row<'a> = (&'a str, &'a [Vec<u8>], &'a [&'a str]);

#[test]
fn what_a_server_says_is_told_of_each_answer_by_itself() {
    // "x-a: b" and "x-a: c", literals that are not indexed.
    let lines = [b"\x88\0\x03x-a\x01b".as_slice(), b"\0\x03x-a\x01c"].concat();
    let rows: [Row<'_>; 11] = [
        (
            "two answers at once",
            &[
                head(3),
                head(1),
                frame(DATA, 0, 1, b"ab"),
                frame(DATA, END, 3, b"x"),
                frame(DATA, END, 1, b"c"),
            ],
            &["5 head 200", "5 part abc", "5 end", "6 head 200", "6 part x", "6 end"],
        ),
        (
            "header lines",
            &[frame(HEADERS, END_HEADERS | END, 1, &lines)],
            &["5 head 200 x-a=b x-a=c", "5 end"],
        ),
        (
            "interim heads",
            &[frame(HEADERS, END_HEADERS, 1, STATUS_103).repeat(3), frame(HEADERS, 5, 1, STATUS_200)],
            &["5 head 200", "5 end"],
        ),
        (
            "a flood of interim heads",
            &[frame(HEADERS, END_HEADERS, 1, STATUS_103).repeat(40), frame(HEADERS, 5, 3, STATUS_200)],
            &["5 failed: too much header: more than 32 interim heads", "6 head 200", "6 end"],
        ),
        (
            "a reset instead of an answer",
            &[reset(1, 2), frame(HEADERS, 5, 3, STATUS_200)],
            &[
                "5 failed: an HTTP/2 error: stream error received: unexpected internal error encountered",
                "6 head 200",
                "6 end",
            ],
        ),
        (
            "a reset inside a body",
            &[head(1), frame(DATA, 0, 1, b"a"), reset(1, 8), frame(HEADERS, 5, 3, STATUS_200)],
            &[
                "5 head 200",
                "5 part a",
                "5 failed: an HTTP/2 error: stream error received: stream no longer needed",
                "6 head 200",
                "6 end",
            ],
        ),
        ("a refusal to look at it", &[reset(1, 7)], &["5 put off"]),
        (
            "a goodbye",
            &[goodbye(1, 0), frame(HEADERS, 5, 1, STATUS_200)],
            &["leaving", "5 head 200", "5 end, closes", "6 put off"],
        ),
        (
            "a goodbye with an error",
            &[goodbye(0, 11)],
            &[
                "broken: an HTTP/2 error: connection error received: detected excessive load generating behavior",
            ],
        ),
        (
            "a broken frame",
            &[frame(DATA, 0, 0, b"x")],
            &["broken: an HTTP/2 error: connection error detected: unspecific protocol error detected"],
        ),
        (
            "two answers to one request",
            &[frame(HEADERS, 5, 1, STATUS_200).repeat(2)],
            &[
                "5 head 200",
                "5 end",
                "broken: bytes that were not requested: a frame on a stream that the server has ended: an answer came \
                 twice, or went on",
            ],
        ),
    ];
    for (name, frames, expected) in rows {
        assert_eq!(heard(frames, usize::MAX).0, expected, "{name}");
        let (mut in_pieces, mut at_once) = (heard(frames, 1).0, expected.to_vec());
        // Within one read, answers are ordered as they were requested.
        in_pieces.sort();
        at_once.sort_unstable();
        assert_eq!(in_pieces, at_once, "{name}, byte by byte");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_told_or_refused_but_never_panic(
        frames in proptest::collection::vec(
            (0u8..10, any::<u8>(), 0u32..5, proptest::collection::vec(any::<u8>(), 0..40)),
            0..12,
        ),
        step in 1usize..60,
    ) {
        let frames: Vec<Vec<u8>> =
            frames.iter().map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
        heard(&frames, step);
    }
}

#[test]
fn an_answer_that_was_given_up_is_heard_no_more_and_the_server_is_told() {
    let (mut pieces, mut buffer, mut words) = (asked(&[5, 6]), ReadBuffer::new(), Vec::new());
    pieces.channel.pipe().borrow_mut().came(&[head(1), frame(DATA, 0, 1, b"ab")].concat());
    pieces.turn();
    let unsent = pieces.channel.pipe().borrow().unsent().len();
    pieces.channel.pipe().borrow_mut().wrote(unsent);
    assert!(pieces.cancel(5));
    let wire = pieces.channel.pipe().borrow().unsent().to_vec();
    assert_eq!(wire, reset(1, 8), "CANCEL");
    // What was in flight.
    came(&mut pieces, &[frame(DATA, 0, 1, b"cd"), frame(HEADERS, 5, 3, STATUS_200)].concat());
    told(&mut pieces, &mut buffer, &mut words);
    assert_eq!(words, ["6 head 200", "6 end"]);
    assert!(!pieces.cancel(5) && !pieces.cancel(6), "neither is open");
    assert!(pieces.ask(&Request::new(&GET), 7));
}

#[test]
fn the_end_of_the_connection_inside_an_answer_is_a_cut() {
    for (frames, expected) in
        [(vec![head(1)], End::CutOff), (vec![], End::OfConnection), (vec![head(1), head(3)], End::CutOff)]
    {
        let mut pieces = asked(&[5, 6]);
        came(&mut pieces, &frames.concat());
        pieces.channel.pipe().borrow_mut().end();
        pieces.turn();
        assert_eq!(pieces.channel.end(), Some(expected));
        assert!(!pieces.ask(&Request::new(&GET), 7));
    }
}

/// 64 MiB of it, and nothing is kept but what one read brought.
#[test]
fn a_body_without_an_end_is_heard_as_it_comes() {
    let (mut pieces, mut buffer) = (asked(&[5]), ReadBuffer::new());
    came(&mut pieces, &head(1));
    let read = frame(DATA, 0, 1, &[b'x'; 16_000]).repeat(8);
    let mut body_bytes = 0;
    for _ in 0..500 {
        came(&mut pieces, &read);
        assert!(pieces.told.len() <= 9, "{} pieces wait", pieces.told.len());
        assert!(pieces.channel.fault.is_none(), "{:?}", pieces.channel.fault);
        while let Some(piece) = pieces.next(&mut buffer).unwrap() {
            if let Piece::Part { bytes, .. } = piece {
                body_bytes += bytes.len();
            }
        }
    }
    assert_eq!(body_bytes, 500 * 8 * 16_000, "the windows are opened again as it is heard");
}
