//! What bots and other clients read of servers, beyond the drivers.

use std::cell::RefCell;

use bots::chat::dialect::{Dialect, Who, Word};
use bots::chat::{irc::Irc, lines::Lines, mqtt::Mqtt, nats::Nats, payload};
use drivers::ReadBuffer;
use drivers::http::{Parts, two};
use drivers::messages::{Encoding, Envelope, Ids, Path};
use drivers::tcp::{Frames, Front, LengthPrefixed, Packets, framing::Framing};
use hazelcast::wire::{
    Credentials, Data, Event, Key, Limits, Object, PartitionTable, Request, Session, Settings, Uuid, data,
};

use crate::split::same_however_split;

thread_local! {
    static BUFFER: RefCell<ReadBuffer> = RefCell::new(ReadBuffer::new());
}

/// What a framing finds, by how many bytes of a message have come when it is asked.
fn messages<F: Framing>(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let (mut held, mut told) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            match F::front(&held) {
                Front::Incomplete => break,
                Front::TooLarge => return (told, true),
                Front::Whole { header_bytes, payload_bytes } => {
                    let end = header_bytes + payload_bytes;
                    assert!(end > 0 && end <= held.len());
                    told.extend_from_slice(&held[header_bytes..end]);
                    held.drain(..end);
                }
            }
        }
    }
    (told, false)
}

/// Those of scripts.
const FRAMES: [Frames; 8] = [
    Frames::Lines,
    Frames::U8,
    Frames::U16Be,
    Frames::U16Le,
    Frames::U32Be,
    Frames::U32Le,
    Frames::Until(0xff),
    Frames::Raw,
];

/// The messages of a script's connection, whether the stream broke, and what is left. What is heard is written as it came.
fn frames_heard(frames: Frames, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool, Vec<u8>) {
    let (mut held, mut told) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            match frames.front(&held) {
                Front::Incomplete => break,
                Front::TooLarge => return (told, true, Vec::new()),
                Front::Whole { header_bytes, payload_bytes } => {
                    let frame: Vec<u8> = held.drain(..header_bytes + payload_bytes).collect();
                    assert!(!frame.is_empty(), "a frame of nothing");
                    let message = frames.heard(&frame[header_bytes..]).to_vec();
                    let mut again = Vec::new();
                    assert!(frames.write(&mut again, &message), "what was heard can be sent");
                    assert!(frames == Frames::Lines || again == frame, "and is the same frame");
                    told.push(message);
                }
            }
        }
    }
    // Without frames there are no messages, only bytes.
    let told = if frames == Frames::Raw { vec![told.concat()] } else { told };
    (told, false, held)
}

/// Lines, lengths and MQTT packets: the same bytes are heard however they are split. Blocks differ, what is in them does not.
pub(super) fn framings(input: &[u8]) {
    same_however_split(input, messages::<drivers::tcp::Lines>);
    same_however_split(input, messages::<LengthPrefixed<1>>);
    same_however_split(input, messages::<LengthPrefixed<2>>);
    same_however_split(input, messages::<LengthPrefixed<4>>);
    same_however_split(input, messages::<Packets>);
    for frames in FRAMES {
        same_however_split(input, |pieces| frames_heard(frames, pieces));
    }
    let payload = &input[..input.len().min(255)];
    let mut wire = Vec::new();
    LengthPrefixed::<1>::write(&mut wire, payload);
    assert_eq!(
        LengthPrefixed::<1>::front(&wire),
        Front::Whole { header_bytes: 1, payload_bytes: payload.len() }
    );
}

pub(super) fn framing_seeds() -> Vec<Vec<u8>> {
    vec![
        b"one\r\ntwo\nthree".to_vec(),
        b"\0\0\0\x03abc\0\x02ab\x01a".to_vec(),
        b"\x30\x05\0\x01ahi\xd0\0\x30\x80\x01".to_vec(),
    ]
}

/// A block of a chat's server, in every dialect.
pub(super) fn chat_client(input: &[u8]) {
    dialect::<Lines>(input);
    dialect::<Irc>(input);
    dialect::<Nats>(input);
    dialect::<Mqtt>(input);
    if let Some(stamp) = payload::read(input) {
        // A text whose stamp is read is one that is written.
        let mut text = Vec::new();
        payload::write(&mut text, stamp, input.len());
        assert_eq!(text, input);
    }
}

fn dialect<D: Dialect>(mut block: &[u8]) {
    let who = Who { number: 7, room: "room", login: None };
    let mut of_connection = D::OfConnection::default();
    while let Some((line, rest)) = D::split(block) {
        assert!(rest.len() < block.len() && line.len() <= block.len(), "a split that goes on for ever");
        for is_member in [false, true] {
            if let Word::Answer(answer) = D::received(line, who, is_member, &mut of_connection) {
                assert!(answer.len() <= line.len() + 64, "a line that makes us say more than it says");
            }
        }
        assert!(D::text(line, who.room).len() <= line.len());
        block = rest;
    }
}

pub(super) fn chat_seeds() -> Vec<Vec<u8>> {
    let mut text = Vec::new();
    payload::write(&mut text, payload::Stamp { sender: 3, seq: 9, planned_ns: 1_000_000 }, 40);
    let irc = [
        b":b3!u@h PRIVMSG #room :".as_slice(),
        &text,
        b"\r\nPING :x\r\n:s 001 b7 :Welcome\r\n:s 366 b7 #room :End\r\n",
    ]
    .concat();
    let nats =
        [b"INFO {}\r\nMSG room 1 40\r\n".as_slice(), &text, b"\r\nPING\r\nPONG\r\n-ERR 'x'\r\n"].concat();
    let lines =
        [b"* joined room\nb3: ".as_slice(), &text, b"\n* you missed 3 lines\n* books 1 2 3\n"].concat();
    let mut mqtt = vec![0x20, 2, 0, 0, 0x90, 3, 0, 1, 0, 0xd0, 0, 0x30, 46, 0, 4];
    mqtt.extend_from_slice(b"room");
    mqtt.extend_from_slice(&text);
    vec![text, irc, nats, lines, mqtt]
}

/// A message of an arena's server, and replies of a leaderboard in every dialect.
pub(super) fn game_replies(input: &[u8]) {
    let read = bots::fuzz::arena_message::read(input);
    if let (Some(bots::fuzz::arena_message::Message::Tick { number, stamp_us }), Ok(value)) =
        (read, serde_json::from_slice::<serde_json::Value>(input))
    {
        // The shortcut for ticks reads what JSON reads, where it is JSON. Of keys that come twice JSON takes the last.
        let is_plain = value
            .as_object()
            .is_some_and(|object| object.len() == input.iter().filter(|byte| **byte == b':').count());
        if is_plain {
            assert_eq!((value["n"].as_u64(), value["t"].as_u64()), (Some(number), Some(stamp_us)));
        }
    }
    let _ = bots::fuzz::leaderboard_reply(input);
}

pub(super) fn game_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"type":"tick","n":12,"t":345678,"players":[{"x":-4}]}"#.to_vec(),
        br#"{"type":"stop","lastFire":0,"bulletCount":3,"won":true,"x":-400,"direction":1,"id":7}"#.to_vec(),
        br#"{"member":"ann","score":"5","rank":1}"#.to_vec(),
        br#"{"total":1,"items":[{"member":"ann","score":5,"rank":1}]}"#.to_vec(),
        b"\x08\x01\x1a\x04\x08\x0a\x18\x01".to_vec(),
    ]
}

/// Answers of a server over HTTP/2, with HPACK and trailers: the same answers and the same fault however they are split. The first
/// byte chooses what is asked.
pub(super) fn http2_client(input: &[u8]) {
    let Some((&first, stream)) = input.split_first() else { return };
    let headers = [
        ("te".to_owned(), "trailers".to_owned()),
        ("content-type".to_owned(), "application/grpc".to_owned()),
    ];
    let parts = Parts {
        method: "POST",
        authority: "a",
        headers: if first & 1 == 0 { &[] } else { &headers },
        body: b"\0\0\0\0\0",
        keeps_body: first & 2 == 0,
        body_bytes_max: 1 << 20,
        ..Parts::get("/s/Method")
    };
    // Byte by byte is as slow as HTTP/2 is: whole and in two pieces.
    BUFFER.with_borrow_mut(|buffer| {
        let (whole, _) = two::fuzz::talk(&parts, 2, &[&stream[..0], stream], buffer);
        let (one, other) = stream.split_at(stream.len() / 2);
        let (split, _) = two::fuzz::talk(&parts, 2, &[one, other], buffer);
        let answers = |told: &[two::fuzz::Told]| told.iter().filter_map(|told| told.clone().ok()).count();
        // A request is put once the settings have come, so that an answer before them has none.
        assert!(answers(&whole) <= 2 && answers(&split) <= 2, "an answer that was not asked for");
    });
}

/// The same where answers are passed on in pieces: of each request one head, its body and one end, and nothing behind it.
pub(super) fn http2_pieces(input: &[u8]) {
    let Some((&first, stream)) = input.split_first() else { return };
    let parts = Parts { authority: "a", body: if first & 1 == 0 { b"" } else { b"body" }, ..Parts::get("/") };
    let cut = stream.len() / 2;
    let reads: [&[&[u8]]; 2] = [&[&[], stream], &[&stream[..cut], &stream[cut..]]];
    BUFFER.with_borrow_mut(|buffer| {
        for reads in reads {
            let told = two::fuzz::pieces(&parts, 2, first & 2 != 0, reads, buffer);
            for tag in [0, 1] {
                let of: Vec<&str> = told.iter().filter(|one| one.0 == Some(tag)).map(|one| one.1).collect();
                let ends = of.iter().position(|kind| !matches!(*kind, "head" | "part"));
                assert!(ends.is_none_or(|at| at + 1 == of.len()), "behind its end: {of:?}");
                assert!(of.iter().skip(1).all(|kind| *kind != "head"), "two heads: {of:?}");
                assert!(!matches!(of.first(), Some(&"part" | &"end")), "without a head: {of:?}");
            }
            assert!(
                told.iter().all(|one| one.0.is_none_or(|tag| tag < 2)),
                "an answer that was not asked for"
            );
            assert!(told.iter().all(|one| one.1 != "part" || !one.2.is_empty()), "an empty part");
        }
    });
}

fn h2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

pub(super) fn http2_seeds() -> Vec<Vec<u8>> {
    // SETTINGS with MAX_CONCURRENT_STREAMS, then `:status 200`, data, and trailers of gRPC.
    let settings = h2_frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]);
    let trailers = [&[0, 11][..], b"grpc-status", &[1], b"0"].concat();
    vec![
        [&[0][..], &settings, &h2_frame(1, 4, 1, &[0x88]), &h2_frame(0, 1, 1, b"hello")].concat(),
        [
            &[1][..],
            &settings,
            &h2_frame(1, 4, 1, &[0x88]),
            &h2_frame(0, 0, 1, b"\0\0\0\0\0"),
            &h2_frame(1, 5, 1, &trailers),
        ]
        .concat(),
        [
            &[0][..],
            &settings,
            &h2_frame(6, 0, 0, b"12345678"),
            &h2_frame(3, 0, 1, &[0, 0, 0, 7]),
            &h2_frame(7, 0, 0, &[0; 8]),
        ]
        .concat(),
    ]
}

/// Where a message carries its number and its error, by paths into schemas of users; the first byte chooses them.
pub(super) fn protobuf_envelope(input: &[u8]) {
    const ENCODINGS: [Encoding; 9] = [
        Encoding::Varint,
        Encoding::Zigzag,
        Encoding::Fixed64,
        Encoding::Fixed32,
        Encoding::Sfixed32,
        Encoding::Double,
        Encoding::Float,
        Encoding::Bytes,
        Encoding::Message,
    ];
    let Some((&first, message)) = input.split_first() else { return };
    let encoding = ENCODINGS[usize::from(first) % ENCODINGS.len()];
    let numbers: &[u32] = [&[1][..], &[2, 1], &[3, 200, 1]][usize::from(first) / 16 % 3];
    let path = Path { numbers: numbers.to_vec(), encoding };
    let ids = Ids { request: path.clone(), reply: path.clone() };
    let envelope = Envelope { id: Some(ids), error: Some(path) };
    let _ = (envelope.status_of(message), envelope.id_of(message));
    let carries_numbers = matches!(
        encoding,
        Encoding::Varint | Encoding::Zigzag | Encoding::Fixed64 | Encoding::Fixed32 | Encoding::Bytes
    );
    if carries_numbers && envelope.id_of(message).is_ok() {
        let mut with = message.to_vec();
        envelope.put_id(&mut with, 77);
        assert_eq!(envelope.id_of(&with), Ok(Some(77)), "a number behind a message that is one");
    }
}

pub(super) fn envelope_seeds() -> Vec<Vec<u8>> {
    vec![
        b"\0\x08\x05\x7a\x01\x00".to_vec(),
        b"\x17\x12\x03\x0a\x017".to_vec(),
        b"\x20\x1a\x06\xc2\x0c\x03\x08\x96\x01\x0b\x0c".to_vec(),
    ]
}

/// Whatever a Hazelcast member sends, in pieces or at once: the same events and the same end, in bounded memory; and the cluster's
/// view is one that a table takes.
pub(super) fn hazelcast_session(input: &[u8]) {
    same_however_split(input, |pieces| {
        let limits = Limits { message_bytes: 4096, ..Limits::default() };
        let credentials = Credentials {
            cluster_name: "dev".to_owned(),
            username: None,
            password: None,
            client_uuid: Uuid::from_halves(1, 2),
            client_name: "fuzz".to_owned(),
        };
        let mut session: Session<u32> =
            Session::new(Settings { limits, ..Settings::default() }, &credentials, 0);
        let mut told = Vec::new();
        let mut table = PartitionTable::new(271);
        feed(&mut session, hazelcast_welcome(), &mut told, &mut table);
        session.watch_cluster(0);
        for (token, request) in requests().iter().enumerate() {
            let _ = session.send(request, token as u32, 0, u64::MAX);
        }
        for piece in pieces {
            if !feed(&mut session, piece, &mut told, &mut table) {
                break;
            }
        }
        let mut ended = 0;
        session.end(|_| ended += 1);
        (told, ended)
    });
}

fn requests() -> Vec<Request> {
    let key = Key::of("k");
    vec![
        Request::Get { map: "map".into(), key: key.clone() },
        Request::ContainsKey { map: "map".into(), key: key.clone() },
        Request::Size { map: "map".into() },
        Request::GetAll { map: "map".into(), keys: vec![key] },
        Request::Clear { map: "map".into() },
    ]
}

/// False: the connection is over.
fn feed(
    session: &mut Session<u32>,
    mut bytes: &[u8],
    told: &mut Vec<String>,
    table: &mut PartitionTable,
) -> bool {
    while !bytes.is_empty() {
        let room = session.room();
        let count = room.len().min(bytes.len());
        assert!(count > 0, "no room to read on");
        room[..count].copy_from_slice(&bytes[..count]);
        session.filled(count, 0);
        bytes = &bytes[count..];
        loop {
            match session.next_event() {
                Ok(None) => break,
                Ok(Some(event)) => {
                    if let Event::Partitions(view) = &event {
                        table.take(view, true);
                        assert!(table.owners().len() <= 271);
                    }
                    told.push(format!("{event:?}"));
                }
                Err(error) => {
                    told.push(format!("{error:?}"));
                    return false;
                }
            }
        }
    }
    true
}

/// A member's answer to the authentication, which is the first request.
fn hazelcast_welcome() -> &'static [u8] {
    static WELCOME: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let uuid = |least: u64| [&[0][..], &0u64.to_le_bytes(), &least.to_le_bytes()].concat();
        let fixed = [&[0, 0][..], &uuid(7), &[1], &271i32.to_le_bytes(), &uuid(8), &[0, 9, 9]].concat();
        member_message(0x000101, 0, &fixed, &[(NULL, b""), (0, b"5.5.0"), (BEGIN, b""), (END, b"")])
    });
    &WELCOME
}

const NULL: u16 = hazelcast::wire::frame::NULL;
const BEGIN: u16 = hazelcast::wire::frame::BEGIN;
const END: u16 = hazelcast::wire::frame::END;

/// A message of a member: what its first frame carries behind type and correlation, then frames.
fn member_message(kind: i32, correlation: i64, fixed: &[u8], frames: &[(u16, &[u8])]) -> Vec<u8> {
    use hazelcast::wire::frame::{FINAL, UNFRAGMENTED, put};
    let first = [&kind.to_le_bytes()[..], &correlation.to_le_bytes(), fixed].concat();
    let last = |at: usize| if at == frames.len() { FINAL } else { 0 };
    let mut bytes = Vec::new();
    put(&mut bytes, UNFRAGMENTED | last(0), &first);
    for (at, (flags, content)) in frames.iter().enumerate() {
        put(&mut bytes, flags | last(at + 1), content);
    }
    bytes
}

pub(super) fn hazelcast_seeds() -> Vec<Vec<u8>> {
    let value = Data::of("value");
    // The first request after authentication and listener has number 2 of its slot; others are tried by mutations.
    let answer = |kind: i32, slot: i64| member_message(kind, slot << 32 | slot, &[0], &[(0, value.bytes())]);
    let count = member_message(0x012a01, 4 << 32, &[0, 5, 0, 0, 0], &[]);
    let error = member_message(
        0,
        2 << 32,
        &[0],
        &[
            (BEGIN, b""),
            (BEGIN, b""),
            (0, b"\x01\0\0\0"),
            (0, b"java.lang.X"),
            (NULL, b""),
            (BEGIN, b""),
            (END, b""),
            (END, b""),
            (END, b""),
        ],
    );
    vec![
        answer(0x010201, 0),
        answer(0x010201, 2),
        [answer(0x010201, 3), count].concat(),
        error,
        hazelcast_welcome().to_vec(),
    ]
}

/// Serialised values of a grid: what is read is written as it was, and read alike again.
pub(super) fn hazelcast_data(input: &[u8]) {
    let _ = data::text(input);
    if let Ok(object) = data::read::<Object>(input) {
        let again = Data::of(&object);
        let second: Object = again.read().expect("what was written is read");
        assert_eq!(Data::of(&second).bytes(), again.bytes());
        // All but the partition hash in front is as it came, unless the type has several forms of a value.
        assert_eq!(again.bytes().len(), input.len());
    }
}

pub(super) fn data_seeds() -> Vec<Vec<u8>> {
    let bytes = |data: Data| data.bytes().to_vec();
    vec![
        bytes(Data::of("text \u{20ac}")),
        bytes(Data::of(&7i32)),
        bytes(Data::of(&-7i64)),
        bytes(Data::of(&true)),
        bytes(Data::of(&1.5f64)),
        bytes(Data::of(&vec![1u8, 2, 3])),
        bytes(Data::of(&vec![1i64, 2])),
        bytes(Data::of(&())),
    ]
}

/// Seconds and parts of a ledger that an agent hands over.
pub(super) fn agents_measured(input: &[u8]) {
    agents::fuzz::measured(input);
}

pub(super) fn measured_seeds() -> Vec<Vec<u8>> {
    agents::fuzz::examples()
}
