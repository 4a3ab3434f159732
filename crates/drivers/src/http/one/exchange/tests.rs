use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::http::{HEAD_BYTES_MAX, KEPT_BODY_BYTES_MAX, Parts};
use crate::unfinished::{self, UNFINISHED_BYTES_MAX};

/// What was reported, in our own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Began(u32),
    Answer { tag: u32, status: u16, body: Vec<u8>, body_bytes: u64, location: Option<String>, closes: bool },
}

pub const GET: Parts<'static> =
    Parts { authority: "a", keeps_body: true, body_bytes_max: 1 << 20, ..Parts::get("/") };

pub fn request(parts: &Parts<'_>) -> Rc<Request> {
    Rc::new(Request::new(parts))
}

/// Asks and says that the request was written.
fn ask(exchange: &mut Exchange, request: &Rc<Request>, tag: u32) -> bool {
    let is_taken = exchange.ask(request, tag);
    if is_taken {
        exchange.wrote(request.wire.len());
    }
    is_taken
}

/// One read that brings `bytes`, and what is reported for it.
fn read(
    exchange: &mut Exchange,
    buffer: &mut ReadBuffer,
    bytes: &[u8],
    told: &mut Vec<Told>,
) -> Result<(), Fault> {
    exchange.lay(buffer)[..bytes.len()].copy_from_slice(bytes);
    exchange.came(bytes.len(), buffer);
    receive(exchange, buffer, told)
}

fn receive(exchange: &mut Exchange, buffer: &mut ReadBuffer, told: &mut Vec<Told>) -> Result<(), Fault> {
    while let Some(received) = exchange.next(buffer)? {
        told.push(match received {
            Received::Began { tag } => Told::Began(tag),
            Received::Unpaired { .. } | Received::Leaving | Received::PutOff { .. } => {
                unreachable!("answers have requests")
            }
            Received::Answer(Answer { tag, status, body, body_bytes, location, closes, grpc: _ }) => {
                Told::Answer {
                    tag,
                    status,
                    body: body.to_vec(),
                    body_bytes,
                    location: location.map(str::to_owned),
                    closes,
                }
            }
        });
    }
    Ok(())
}

/// With a head that was carried over, a read of so many bytes has room in the buffer.
const READ_MOST: usize = crate::read_buffer::READ_BUFFER_BYTES / 2;

/// The reads of a stream that is cut at `cuts`, and where a read would be too long.
pub fn split<'b>(bytes: &'b [u8], cuts: &[Index]) -> Vec<&'b [u8]> {
    let mut edges: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    edges.extend((0..bytes.len()).step_by(READ_MOST).chain([0, bytes.len()]));
    edges.sort_unstable();
    edges.dedup();
    edges.windows(2).map(|edge| &bytes[edge[0]..edge[1]]).collect()
}

/// Everything reported for one answer that comes in `reads`, and what the end of the stream means then.
pub fn outcome(request: &Rc<Request>, reads: &[&[u8]]) -> (Vec<Told>, Result<End, Fault>) {
    let (mut exchange, mut buffer, mut told) = (Exchange::default(), ReadBuffer::new(), Vec::new());
    assert!(ask(&mut exchange, request, 7));
    for bytes in reads {
        if let Err(fault) = read(&mut exchange, &mut buffer, bytes, &mut told) {
            return (told, Err(fault));
        }
    }
    exchange.lay(&mut buffer);
    let end = exchange.end(true);
    let received = receive(&mut exchange, &mut buffer, &mut told);
    (told, received.map(|()| end))
}

/// An answer and what must be reported for it.
#[derive(Clone, Debug)]
pub struct Planted {
    pub interim: String,
    pub bytes: Vec<u8>,
    pub status: u16,
    pub is_head: bool,
    pub keeps_body: bool,
    pub body: Vec<u8>,
    pub location: Option<&'static str>,
    pub until_end: bool,
    pub closes: bool,
}

impl Planted {
    fn request(&self) -> Rc<Request> {
        let method = if self.is_head { "HEAD" } else { "GET" };
        request(&Parts { method, keeps_body: self.keeps_body, ..GET })
    }

    fn told(&self, tag: u32) -> Told {
        Told::Answer {
            tag,
            status: self.status,
            body: if self.keeps_body { self.body.clone() } else { Vec::new() },
            body_bytes: self.body.len() as u64,
            location: self.location.map(str::to_owned),
            closes: self.closes,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Sized,
    Chunked,
    UntilEnd,
}

pub fn planted() -> impl Strategy<Value = Planted> {
    let ways = prop_oneof![4 => Just(Way::Sized), 4 => Just(Way::Chunked), 1 => Just(Way::UntilEnd)];
    let statuses = proptest::sample::select(vec![200u16, 200, 200, 201, 204, 301, 304, 404, 503]);
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        proptest::collection::vec(any::<u8>(), 0..5000),
    ];
    let chunk = (1usize..600, "( *;[a-z]{1,5}(=\"[a-z;]{0,5}\")?){0,2}", any::<bool>());
    let details = (
        proptest::collection::vec(chunk, 1..6),
        proptest::collection::vec("[A-Za-z-]{1,12}: ?[ -~]{0,20}", 0..3),
        proptest::collection::vec("X-[A-Za-z]{1,12}: {0,2}[!-~]{0,30}", 0..6),
        proptest::collection::vec(proptest::sample::select(vec![100u16, 102, 103]), 0..3),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (ways, statuses, body, details, flags).prop_map(|(way, status, body, details, flags)| {
        let (chunks, trailers, fillers, interims) = details;
        let (is_head, keeps_body, says_close, is_old) = flags;
        let has_none = is_head || matches!(status, 204 | 304);
        let is_old = is_old && way != Way::Chunked;
        let mut head = format!("HTTP/1.{} {status} Some Reason\r\n", if is_old { 0 } else { 1 });
        let mut lines = fillers;
        let mut wire = Vec::new();
        match way {
            Way::Sized => {
                lines.push(format!("content-LENGTH:{}", body.len()));
                wire.extend_from_slice(&body);
            }
            Way::Chunked => {
                lines.push("Transfer-Encoding: gzip , Chunked".to_owned());
                let mut rest = &body[..];
                for (bytes, extension, is_upper) in chunks.iter().cycle() {
                    let data = &rest[..(*bytes).min(rest.len())];
                    rest = &rest[data.len()..];
                    let length = data.len();
                    let length = if *is_upper { format!("{length:X}") } else { format!("00{length:x}") };
                    wire.extend_from_slice(format!("{length}{extension}\r\n").as_bytes());
                    if data.is_empty() {
                        break;
                    }
                    wire.extend_from_slice(data);
                    wire.extend_from_slice(b"\r\n");
                }
                for trailer in &trailers {
                    wire.extend_from_slice(format!("{trailer}\r\n").as_bytes());
                }
                wire.extend_from_slice(b"\r\n");
            }
            Way::UntilEnd => wire.extend_from_slice(&body),
        }
        let location = (status == 301).then_some("/else where?ü");
        lines.extend(location.map(|location| format!("Location: {location}")));
        let says_close = says_close || way == Way::UntilEnd;
        lines.push(if says_close { "Connection: x, close" } else { "Connection: keep-alive" }.to_owned());
        lines.sort();
        for line in lines {
            head.push_str(&line);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if !has_none {
            bytes.extend_from_slice(&wire);
        }
        let interim =
            interims.iter().map(|status| format!("HTTP/1.1 {status} Wait\r\nX: y\r\n\r\n")).collect();
        Planted {
            interim,
            bytes,
            status,
            is_head,
            keeps_body,
            body: if has_none { Vec::new() } else { body },
            location,
            until_end: way == Way::UntilEnd && !has_none,
            closes: says_close,
        }
    })
}

/// A byte more, another or one less, at places near the front, where the framing is.
pub fn mangled(bytes: &[u8], wounds: Vec<(Index, u8, u8)>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, kind, byte) in wounds {
        let at = at.index(bytes.len().clamp(1, 200));
        match kind {
            0 => bytes.insert(at.min(bytes.len()), byte),
            1 if at < bytes.len() => bytes[at] = byte,
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn an_answer_is_the_same_however_its_bytes_are_split(
        planted in planted(),
        cuts in proptest::collection::vec(any::<Index>(), 0..8),
    ) {
        let stream = [planted.interim.as_bytes(), &planted.bytes].concat();
        let reads = split(&stream, &cuts);
        let (mut told, end) = outcome(&planted.request(), &reads);
        let began = told.iter().filter(|one| **one == Told::Began(7)).count();
        told.retain(|one| *one != Told::Began(7));
        prop_assert_eq!(told, vec![planted.told(7)]);
        prop_assert_eq!(end, Ok(if planted.until_end { End::OfAnswer } else { End::OfConnection }));
        // If only an interim answer was in progress, its first few bytes may be taken for the answer's.
        if planted.interim.is_empty() || reads.len() == 1 {
            prop_assert_eq!(began, usize::from(reads.len() > 1 || planted.until_end));
        }
    }

    #[test]
    fn one_answer_follows_another_on_the_same_connection(
        answers in proptest::collection::vec((planted(), proptest::collection::vec(any::<Index>(), 0..4)), 1..8),
    ) {
        let (mut exchange, mut buffer) = (Exchange::default(), ReadBuffer::new());
        for (tag, (planted, cuts)) in answers.iter().enumerate() {
            let mut told = Vec::new();
            prop_assert!(ask(&mut exchange, &planted.request(), tag as u32));
            for bytes in split(&planted.bytes, cuts) {
                read(&mut exchange, &mut buffer, bytes, &mut told).unwrap();
            }
            if planted.until_end {
                exchange.lay(&mut buffer);
                prop_assert_eq!(exchange.end(true), End::OfAnswer);
                receive(&mut exchange, &mut buffer, &mut told).unwrap();
            }
            prop_assert_eq!(told.last(), Some(&planted.told(tag as u32)));
            prop_assert_eq!(exchange.store.capacity(), 0, "a quiet connection owns no buffer");
            if planted.closes {
                prop_assert!(!ask(&mut exchange, &planted.request(), 99), "the connection takes no more");
                break;
            }
        }
    }

    /// What a mangled answer is taken for may be anything, but not depend on how it was cut.
    #[test]
    fn a_mangled_answer_is_the_same_however_its_bytes_are_split(
        planted in planted(),
        wounds in proptest::collection::vec((any::<Index>(), 0u8..3, any::<u8>()), 1..4),
        cuts in proptest::collection::vec(any::<Index>(), 1..8),
    ) {
        let bytes = mangled(&planted.bytes, wounds);
        let without_began = |(told, end): (Vec<Told>, Result<End, Fault>)| {
            (told.into_iter().filter(|one| *one != Told::Began(7)).collect::<Vec<_>>(), end)
        };
        let request = planted.request();
        let whole = without_began(outcome(&request, &split(&bytes, &[])));
        prop_assert_eq!(without_began(outcome(&request, &split(&bytes, &cuts))), whole);
    }
}

#[test]
fn a_broken_answer_is_told_with_its_bytes() {
    let check = |answer: &str, expected: Fault, rest: &str| {
        let (mut exchange, mut buffer, mut told) = (Exchange::default(), ReadBuffer::new(), Vec::new());
        assert!(ask(&mut exchange, &request(&Parts { body_bytes_max: 10, ..GET }), 1));
        let received = read(&mut exchange, &mut buffer, answer.as_bytes(), &mut told);
        assert_eq!(
            (received, String::from_utf8_lossy(buffer.rest())),
            (Err(expected), rest.into()),
            "{answer:?}"
        );
    };
    let all = |answer: &str, expected| check(answer, expected, answer);
    all("SSH-2.0-OpenSSH_9.2\r\n", Fault::NotHttp);
    all("\u{15}\u{3}\u{1}", Fault::NotHttp);
    all("\r\nHTTP/1.1 200 OK\r\n\r\n", Fault::NotHttp);
    all("hello", Fault::NotHttp);
    all("HTTP/2 200 OK\r\n", Fault::StatusLine);
    all("HTTP/1.1 2x0 OK\r\n", Fault::StatusLine);
    all("HTTP/1.1 20 OK\r\n", Fault::StatusLine);
    all("HTTP/1.1 099 OK\r\n\r\n", Fault::StatusLine);
    all("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Fault::Header);
    all("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Fault::Header);
    all("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", Fault::Header);
    all("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nab", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nab", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nab", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nab", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", Fault::Header);
    all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", Fault::Header);
    all("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", Fault::BodyTooLarge);
    all("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nab", Fault::BodyTooLarge);
    all(&format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(HEAD_BYTES_MAX)), Fault::HeadTooLarge);
    all(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(129)), Fault::HeadTooLarge);
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    check(&chunked("zz\r\n"), Fault::Chunk, "zz\r\n");
    check(&chunked("1\r\na\r\n2\r\nabc\r\n"), Fault::Chunk, "c\r\n");
    check(&chunked("a\r\n0123456789\r\n1\r\na\r\n0\r\n\r\n"), Fault::BodyTooLarge, "\r\n1\r\na\r\n0\r\n\r\n");
    check(&chunked("0\r\nno colon\r\n\r\n"), Fault::Header, "0\r\nno colon\r\n\r\n");
    check("HTTP/1.0 200 OK\r\n\r\n01234567890", Fault::BodyTooLarge, "01234567890");
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", Fault::Unasked, "c");
    check("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nab", Fault::Unasked, "ab");
    check("HTTP/1.1 304 No\r\n\r\nHTTP/1.1 200 OK\r\n", Fault::Unasked, "HTTP/1.1 200 OK\r\n");
}

#[test]
fn what_nobody_asked_for_is_not_taken_for_the_next_answer() {
    let (mut exchange, mut buffer, get) = (Exchange::default(), ReadBuffer::new(), request(&GET));
    assert_eq!(
        read(&mut exchange, &mut buffer, b"HTTP/1.1 200 OK\r\n", &mut Vec::new()),
        Err(Fault::Unasked)
    );
    let (mut exchange, twice) = (Exchange::default(), b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\n");
    assert!(ask(&mut exchange, &get, 1));
    exchange.lay(&mut buffer)[..twice.len()].copy_from_slice(twice);
    exchange.came(twice.len(), &mut buffer);
    assert!(matches!(exchange.next(&mut buffer), Ok(Some(Received::Answer(Answer { status: 204, .. })))));
    assert!(!ask(&mut exchange, &get, 2), "the second answer is on the desk before its request was sent");
    assert!(matches!(exchange.next(&mut buffer), Err(Fault::Unasked)));
}

#[test]
fn an_end_before_the_answers_end_is_a_cut() {
    let get = request(&GET);
    let check = |bytes: &str, expected: End| {
        assert_eq!(outcome(&get, &[bytes.as_bytes()]).1, Ok(expected), "{bytes:?}");
    };
    check("HT", End::CutOff);
    check("HTTP/1.1 200 OK\r\nContent-Le", End::CutOff);
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", End::CutOff);
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", End::CutOff);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", End::CutOff);
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", End::OfConnection);
    check("HTTP/1.1 100 Continue\r\n\r\n", End::OfConnection);
    check("HTTP/1.0 200 OK\r\n\r\na", End::OfAnswer);
    let mut exchange = Exchange::default();
    assert_eq!(exchange.end(true), End::OfConnection);
    assert!(ask(&mut exchange, &get, 1));
    assert_eq!(exchange.end(true), End::OfConnection, "no byte of the answer came");
    let mut buffer = ReadBuffer::new();
    read(&mut exchange, &mut buffer, b"HTTP/1.0 200 OK\r\n\r\na", &mut Vec::new()).unwrap();
    assert_eq!(exchange.end(false), End::CutOff, "the end was not announced");
}

#[test]
fn an_answer_that_comes_before_its_request_is_written_ends_the_connection() {
    let (mut exchange, mut buffer) = (Exchange::default(), ReadBuffer::new());
    let post = request(&Parts { method: "POST", body: &[b'x'; 1000], ..GET });
    assert!(exchange.ask(&post, 1));
    exchange.wrote(100);
    let mut told = Vec::new();
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
    read(&mut exchange, &mut buffer, answer, &mut told).unwrap();
    assert!(matches!(told[..], [Told::Answer { status: 413, closes: true, .. }]), "{told:?}");
    assert_eq!(exchange.unsent().len(), post.wire.len() - 100);
    assert!(!exchange.ask(&post, 2));
    exchange.stop_sending();
    assert!(exchange.unsent().is_empty());
    assert!(exchange.asked.is_none(), "the request is let go");
}

/// A body that is not kept may be of any length; no byte of it stays.
#[test]
fn a_large_body_is_gathered_once_or_counted_through() {
    let piece = vec![b'x'; 60_000];
    let count = (KEPT_BODY_BYTES_MAX / piece.len()) as u64;
    for keeps_body in [true, false] {
        let (mut exchange, mut buffer, mut told) = (Exchange::default(), ReadBuffer::new(), Vec::new());
        let get = request(&Parts { keeps_body, body_bytes_max: u64::MAX, ..GET });
        let total = count * piece.len() as u64;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n");
        assert!(ask(&mut exchange, &get, 1));
        read(&mut exchange, &mut buffer, head.as_bytes(), &mut told).unwrap();
        let room = exchange.store.capacity();
        assert_eq!(room, if keeps_body { EARLY_ROOM_BYTES_MAX } else { 0 });
        for _ in 0..count {
            let bytes = exchange.store.len();
            assert!(exchange.store.capacity() <= room.max(2 * bytes), "the buffer grows with what comes");
            read(&mut exchange, &mut buffer, &piece, &mut told).unwrap();
        }
        assert_eq!(exchange.store.capacity(), 0, "the buffer is given back");
        let Some(Told::Answer { body, body_bytes, .. }) = told.last() else { panic!("{told:?}") };
        assert_eq!((body.len() as u64, *body_bytes), (if keeps_body { total } else { 0 }, total));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", KEPT_BODY_BYTES_MAX + 1);
        assert!(ask(&mut exchange, &get, 2));
        let received = read(&mut exchange, &mut buffer, head.as_bytes(), &mut told);
        assert_eq!(received, if keeps_body { Err(Fault::BodyTooLarge) } else { Ok(()) });
    }
}

/// No cap is applied to these lengths before the arithmetic.
#[test]
fn the_longest_length_that_can_be_said_is_waited_for_and_never_overflows() {
    for (framing, body) in [
        ("Content-Length: 18446744073709551615", "ab"),
        ("Transfer-Encoding: chunked", "ffffffffffffffff\r\nab"),
        ("Transfer-Encoding: chunked", "1\r\na\r\nffffffffffffffff\r\nb"),
    ] {
        let get = request(&Parts { keeps_body: false, body_bytes_max: u64::MAX, ..GET });
        let answer = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n{body}");
        let (told, end) = outcome(&get, &[answer.as_bytes(), b"more", b"and more"]);
        assert_eq!(end, Ok(End::CutOff), "{answer:?}: {told:?}");
    }
}

#[test]
fn a_quiet_connection_is_small() {
    assert!(size_of::<Exchange>() <= 112, "{} bytes", size_of::<Exchange>());
    let with_socket = size_of::<crate::Http1>();
    assert!(with_socket <= 128, "{with_socket} bytes");
}

/// Connections on which a server stalls before the last bytes of each body, with the fault that some of them get.
fn stalled(parts: &Parts<'_>, framing: Framing, count: usize) -> (Vec<Exchange>, Vec<Fault>) {
    let get = request(parts);
    let body_bytes = parts.body_bytes_max.min(KEPT_BODY_BYTES_MAX as u64) as usize;
    let piece = vec![b'x'; 60_000];
    let (mut exchanges, mut faults) = (Vec::new(), Vec::new());
    let (mut buffer, mut told) = (ReadBuffer::new(), Vec::new());
    for _ in 0..count {
        let mut exchange = Exchange::default();
        assert!(ask(&mut exchange, &get, 1));
        let head = match framing {
            Framing::Sized => format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n"),
            Framing::Chunked => {
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body_bytes:x}\r\n")
            }
            Framing::UntilEnd => "HTTP/1.0 200 OK\r\n\r\n".to_owned(),
        };
        let reads = (body_bytes - 1) / piece.len();
        let mut outcome = read(&mut exchange, &mut buffer, head.as_bytes(), &mut told);
        for _ in 0..reads {
            outcome = outcome.and_then(|()| read(&mut exchange, &mut buffer, &piece, &mut told));
        }
        match outcome {
            Ok(()) => exchanges.push(exchange),
            // The worker drops its connection.
            Err(fault) => faults.push(fault),
        }
    }
    (exchanges, faults)
}

#[derive(Clone, Copy)]
enum Framing {
    Sized,
    Chunked,
    UntilEnd,
}

fn held_bytes(exchanges: &[Exchange]) -> usize {
    exchanges.iter().map(|exchange| exchange.store.len()).sum()
}

#[test]
fn bodies_that_stall_before_their_last_bytes_share_a_limit() {
    for framing in [Framing::Sized, Framing::Chunked, Framing::UntilEnd] {
        let get = Parts { body_bytes_max: u64::MAX, ..GET };
        let (exchanges, faults) = stalled(&get, framing, 64);
        let most = UNFINISHED_BYTES_MAX + 64 * FREE_BYTES;
        assert!(held_bytes(&exchanges) <= most, "{} bytes are held", held_bytes(&exchanges));
        assert_eq!((exchanges.len(), faults.len()), (4, 60), "as many as the limit has room for");
        assert!(faults.iter().all(|fault| *fault == Fault::TooManyUnfinished), "{faults:?}");
        drop(exchanges);
        assert_eq!(unfinished::reserved_bytes(), 0);
        assert_eq!(stalled(&get, framing, 4).1, [], "what was held can be taken again");
        let unkept = Parts { keeps_body: false, ..get };
        let (exchanges, faults) = stalled(&unkept, framing, 64);
        assert_eq!(
            (held_bytes(&exchanges), faults),
            (0, Vec::new()),
            "a body that is not kept takes nothing"
        );
    }
}

#[test]
fn bodies_within_a_length_that_the_plan_says_are_not_counted() {
    let get = Parts { body_bytes_max: 1_000_000, ..GET };
    let (exchanges, faults) = stalled(&get, Framing::Sized, 40);
    assert_eq!((exchanges.len(), faults), (40, Vec::new()));
    assert_eq!(unfinished::reserved_bytes(), 0);
}

#[test]
fn a_body_that_is_finished_is_not_counted() {
    let (mut exchange, mut buffer, mut told) = (Exchange::default(), ReadBuffer::new(), Vec::new());
    let get = request(&Parts { body_bytes_max: u64::MAX, ..GET });
    let body = vec![b'x'; 50_000];
    for tag in 0..2000 {
        assert!(ask(&mut exchange, &get, tag));
        read(&mut exchange, &mut buffer, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", &mut told)
            .unwrap();
        read(&mut exchange, &mut buffer, &body, &mut told).unwrap();
        read(&mut exchange, &mut buffer, &body, &mut told).unwrap();
        assert!(matches!(told.last(), Some(Told::Answer { body_bytes: 100_000, .. })));
        told.clear();
        assert_eq!(unfinished::reserved_bytes(), 0);
    }
}

/// A large answer leaves its room in the buffer, and the next one, which may be small and stall, gathers in it.
#[test]
fn the_room_of_finished_bodies_does_not_stay_with_unfinished_ones() {
    let (mut buffer, mut told) = (ReadBuffer::new(), Vec::new());
    let get = request(&Parts { body_bytes_max: u64::MAX, ..GET });
    let (mut large, mut small) = (Exchange::default(), Vec::new());
    let piece = vec![b'x'; 50_000];
    for _ in 0..40 {
        assert!(ask(&mut large, &get, 1));
        read(&mut large, &mut buffer, b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n", &mut told)
            .unwrap();
        for _ in 0..60 {
            read(&mut large, &mut buffer, &piece, &mut told).unwrap();
        }
        assert!(matches!(told.last(), Some(Told::Answer { body_bytes: 3_000_000, .. })));
        told.clear();
        let mut one = Exchange::default();
        assert!(ask(&mut one, &get, 2));
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na";
        if read(&mut one, &mut buffer, head, &mut told).is_ok() {
            small.push(one);
        }
    }
    let rooms: usize = small.iter().map(|one| one.store.capacity()).sum();
    assert!(rooms <= UNFINISHED_BYTES_MAX + 40 * FREE_BYTES, "{rooms} bytes are held");
}
