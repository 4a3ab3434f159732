//! A member played by the test: its messages are assembled here, time is a number.

use std::io::IoSlice;

use super::*;
use crate::wire::frame::{self, BEGIN, END, EVENT, FINAL, Frame, Frames, NULL, UNFRAGMENTED};
use crate::wire::{Data, Limits, Uuid};

const S: u64 = 1_000_000_000;

fn credentials() -> Credentials {
    Credentials {
        cluster_name: "dev".to_owned(),
        username: None,
        password: Some("secret".to_owned()),
        client_uuid: Uuid::from_halves(1, 2),
        client_name: "test".to_owned(),
    }
}

fn new(limits: Limits) -> Session<u32> {
    Session::new(Settings { limits, ..Settings::default() }, &credentials(), 0)
}

/// Everything that waits in the send buffer, which is emptied.
fn take_unsent(session: &mut Session<u32>) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); 64];
    let filled = session.send_buffer().slices(&mut slices);
    let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
    session.sent(bytes.len());
    bytes
}

/// Type and correlation of each message in what was sent.
fn sent(session: &mut Session<u32>) -> Vec<(i32, i64)> {
    let bytes = take_unsent(session);
    let frames = Frames::new(bytes.strip_prefix(b"CP2").unwrap_or(&bytes));
    let firsts = frames.filter(|frame| frame.is(UNFRAGMENTED));
    firsts
        .map(|first| (i32::from_le_bytes(first.content[..4].try_into().unwrap()), correlation_of(&first)))
        .collect()
}

fn correlation_of(first: &Frame<'_>) -> i64 {
    i64::from_le_bytes(first.content[4..12].try_into().unwrap())
}

/// A message: what its first frame carries after type and correlation, then frames.
fn message(
    message_type: i32,
    correlation: i64,
    flags: u16,
    fixed: &[u8],
    frames: &[(u16, &[u8])],
) -> Vec<u8> {
    let first = [&message_type.to_le_bytes()[..], &correlation.to_le_bytes(), fixed].concat();
    let mut bytes = Vec::new();
    let last = |at| if at == frames.len() { FINAL } else { 0 };
    frame::put(&mut bytes, UNFRAGMENTED | flags | last(0), &first);
    for (at, (flags, content)) in frames.iter().enumerate() {
        frame::put(&mut bytes, flags | last(at + 1), content);
    }
    bytes
}

fn receive(session: &mut Session<u32>, bytes: &[u8], now_ns: u64) {
    session.room()[..bytes.len()].copy_from_slice(bytes);
    session.filled(bytes.len(), now_ns);
}

fn uuid_bytes(least: u64) -> Vec<u8> {
    [&[0][..], &0u64.to_le_bytes(), &least.to_le_bytes()].concat()
}

fn authentication(correlation: i64, status: u8) -> Vec<u8> {
    let fixed =
        [&[0, status][..], &uuid_bytes(7), &[1], &271i32.to_le_bytes(), &uuid_bytes(8), &[0, 9, 9]].concat();
    message(0x000101, correlation, 0, &fixed, &[(NULL, &[]), (0, b"5.5.0"), (BEGIN, &[]), (END, &[])])
}

fn ready(limits: Limits) -> Session<u32> {
    let mut session = new(limits);
    let asked = sent(&mut session);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].0, 0x000100);
    receive(&mut session, &authentication(asked[0].1, 0), 0);
    let Ok(Some(Event::Authenticated(who))) = session.next_event() else { panic!("not let in") };
    assert_eq!((who.partition_count, who.server_version.as_str()), (271, "5.5.0"));
    assert_eq!((who.member, who.cluster), (Uuid::from_halves(0, 7), Uuid::from_halves(0, 8)));
    assert!(session.next_event().unwrap().is_none());
    session
}

fn get(key: &str) -> Request {
    Request::Get { map: "map".into(), key: Key::of(key) }
}

fn set(value_bytes: usize) -> Request {
    let value = Data::of(&vec![7u8; value_bytes]);
    Request::Set { map: "map".into(), key: Key::of("k0"), value, ttl_ms: -1 }
}

/// The bytes that a Hazelcast 5.5 member takes for a get, field by field as in the protocol's document.
#[test]
fn a_get_is_laid_out_as_the_document_says() {
    let mut session = ready(Limits::default());
    session.send(&get("k0"), 1, 0, S).unwrap();
    let correlation = 1i64 << 32;
    let mut expected = Vec::new();
    let fixed = [&130i32.to_le_bytes()[..], &1i64.to_le_bytes()].concat();
    expected.extend(message(0x010200, correlation, 0, &fixed, &[(0, b"map"), (0, Key::of("k0").bytes())]));
    assert_eq!(take_unsent(&mut session), expected);
}

#[test]
fn nothing_is_sent_before_the_member_has_let_us_in() {
    let mut session = new(Limits::default());
    assert_eq!(session.send(&get("k0"), 5, 0, S), Err((5, Refused::NotReady)));
    let bytes = take_unsent(&mut session);
    assert!(bytes.starts_with(b"CP2"));
    let strings: Vec<&[u8]> = Frames::new(&bytes[3..]).skip(1).map(|frame| frame.content).collect();
    assert_eq!(strings[..3], [&b"dev"[..], b"", b"secret"]);
    assert_eq!(session.wake_ns(), 5 * S);
    assert_eq!(session.tick(5 * S - 1, |_| ()), Ok(()));
    assert_eq!(session.tick(5 * S, |_| ()), Err(SessionError::AuthenticationTimeout));
}

#[test]
fn each_way_of_being_refused_is_told_apart() {
    for (status, expected) in [
        (1, Rejected::Credentials),
        (2, Rejected::SerializationVersion),
        (3, Rejected::NotAllowed),
        (9, Rejected::Other(9)),
    ] {
        let mut session = new(Limits::default());
        let correlation = sent(&mut session)[0].1;
        receive(&mut session, &authentication(correlation, status), 0);
        assert_eq!(session.next_event().err(), Some(SessionError::Rejected(expected)));
    }
}

#[test]
fn answers_in_any_order_reach_the_operations_they_belong_to() {
    let mut session = ready(Limits::default());
    for token in 0..100 {
        session.send(&get("k0"), token, 0, S).unwrap();
    }
    let mut asked = sent(&mut session);
    assert_eq!(asked.len(), 100);
    asked.reverse();
    let mut answered = Vec::new();
    for (at, (_, correlation)) in asked.into_iter().enumerate() {
        let value = Data::of(&(99 - at as i64));
        receive(&mut session, &message(0x010201, correlation, 0, &[0], &[(0, value.bytes())]), 0);
        let Ok(Some(Event::Answered { token, answer: Ok(answer) })) = session.next_event() else {
            panic!("no answer")
        };
        assert_eq!(answer.read::<i64>().unwrap(), Some(i64::from(token)));
        answered.push(token);
    }
    answered.reverse();
    assert_eq!(answered, (0..100).collect::<Vec<u32>>());
    assert_eq!(session.in_flight(), 0);
}

#[test]
fn errors_keep_the_members_code_class_and_words() {
    let mut session = ready(Limits::default());
    session.send(&set(3), 1, 0, S).unwrap();
    let correlation = sent(&mut session)[0].1;
    let code = 39i32.to_le_bytes();
    let frames: [(u16, &[u8]); 9] = [
        (BEGIN, &[]),
        (BEGIN, &[]),
        (0, &code),
        (0, b"com.hazelcast.PartitionMigratingException"),
        (0, b"moving"),
        (BEGIN, &[]),
        (END, &[]),
        (END, &[]),
        (END, &[]),
    ];
    receive(&mut session, &message(0, correlation, 0, &[0], &frames), 0);
    let Ok(Some(Event::Answered { token: 1, answer: Err(error) })) = session.next_event() else {
        panic!("no error")
    };
    assert_eq!(error.to_string(), "com.hazelcast.PartitionMigratingException (code 39): moving");
}

#[test]
fn an_operation_that_times_out_leaves_once_and_its_late_answer_is_only_counted() {
    let mut session = ready(Limits::default());
    session.send(&get("k0"), 1, 0, S).unwrap();
    let correlation = sent(&mut session)[0].1;
    session.send(&get("k0"), 2, S / 2, 2 * S).unwrap();
    assert_eq!(session.wake_ns(), S);
    let mut ended = Vec::new();
    session.tick(S, |end| ended.push((end.token, end.is_sent))).unwrap();
    assert_eq!(ended, [(1, true)]);
    receive(&mut session, &message(0x010201, correlation, 0, &[0], &[(NULL, &[])]), S);
    assert!(session.next_event().unwrap().is_none());
    assert_eq!((session.late_answers(), session.in_flight()), (1, 1));
    session.end(|end| ended.push((end.token, end.is_sent)));
    assert_eq!(ended, [(1, true), (2, false)], "what the kernel never took was not carried out");
}

#[test]
fn a_second_answer_breaks_the_protocol_where_none_can_be_late() {
    let mut session = ready(Limits::default());
    session.settings.skips_unasked = false;
    session.send(&get("k0"), 1, 0, u64::MAX).unwrap();
    let correlation = sent(&mut session)[0].1;
    let answer = message(0x010201, correlation, 0, &[0], &[(NULL, &[])]);
    receive(&mut session, &answer.repeat(2), S);
    assert!(matches!(session.next_event(), Ok(Some(Event::Answered { token: 1, .. }))));
    assert!(matches!(session.next_event(), Err(SessionError::Broken(Broken::Malformed(_)))));
}

#[test]
fn an_operation_counts_as_sent_when_its_last_byte_is() {
    for (left, expected) in [(1, false), (0, true)] {
        let mut session = ready(Limits::default());
        session.send(&set(100_000), 1, 0, S).unwrap();
        session.sent(session.send_buffer().unsent_bytes() - left);
        let mut ended = Vec::new();
        session.end(|end| ended.push(end.is_sent));
        assert_eq!(ended, [expected]);
    }
}

#[test]
fn a_silent_connection_is_pinged_and_a_silent_member_is_given_up() {
    let mut session = ready(Limits::default());
    assert_eq!(session.wake_ns(), 5 * S);
    session.tick(5 * S, |_| ()).unwrap();
    let pings = sent(&mut session);
    assert_eq!(pings.len(), 1);
    assert_eq!(pings[0].0, 0x000b00);
    receive(&mut session, &message(0x000b01, pings[0].1, 0, &[0], &[]), 6 * S);
    assert!(session.next_event().unwrap().is_none());
    for at in 7..66 {
        session.tick(at * S, |_| ()).unwrap();
    }
    assert_eq!(session.tick(66 * S, |_| ()), Err(SessionError::Silent(60_000)));
}

#[test]
fn limits_refuse_before_anything_is_sent() {
    let limits = Limits { request_bytes: 1000, in_flight: 2, unsent_bytes: 2000, ..Limits::default() };
    let mut session = ready(limits);
    assert!(matches!(
        session.send(&set(1000), 1, 0, S),
        Err((1, Refused::TooLarge { limit_bytes: 1000, .. }))
    ));
    let keys = vec![Key::of("k0"), Key::of("k1")];
    assert!(matches!(
        session.send(&Request::GetAll { map: "map".into(), keys }, 2, 0, S),
        Err((2, Refused::Partitions))
    ));
    let none = Request::PutAll { map: "map".into(), entries: vec![] };
    assert!(matches!(session.send(&none, 3, 0, S), Err((3, Refused::Partitions))));
    assert!(session.send_buffer().is_empty());
    session.send(&set(3), 4, 0, S).unwrap();
    session.send(&set(3), 5, 0, S).unwrap();
    assert_eq!(session.send(&set(3), 6, 0, S), Err((6, Refused::TooManyInFlight(2))));
}

#[test]
fn an_answer_beyond_the_limit_ends_only_its_own_operation() {
    let mut session = ready(Limits { message_bytes: 50_000, ..Limits::default() });
    session.send(&get("large"), 1, 0, S).unwrap();
    session.send(&get("small"), 2, 0, S).unwrap();
    let asked = sent(&mut session);
    let large = message(0x010201, asked[0].1, 0, &[0], &[(0, &[1; 60_000])]);
    for piece in large.chunks(10_000) {
        assert!(session.next_event().unwrap().is_none());
        receive(&mut session, piece, 0);
    }
    let Ok(Some(Event::TooLarge { token: 1, bytes })) = session.next_event() else { panic!("not skipped") };
    assert!(bytes > 60_000);
    receive(&mut session, &message(0x010201, asked[1].1, 0, &[0], &[(NULL, &[])]), 0);
    let Ok(Some(Event::Answered { token: 2, answer: Ok(Answer::Value(None)) })) = session.next_event() else {
        panic!("no answer")
    };
}

/// An answer that cannot be read ends the connection, and its operation with it, once.
#[test]
fn an_operation_with_a_malformed_answer_is_not_lost() {
    for bad in [
        message(0x010101, 1 << 32, 0, &[0], &[(0, &[1; 9])]),
        message(0x010201, 1 << 32, 0, &[0], &[]),
        message(0, 1 << 32, 0, &[0], &[(0, b"no list")]),
    ] {
        let mut session = ready(Limits::default());
        session.send(&get("k0"), 1, 0, S).unwrap();
        take_unsent(&mut session);
        receive(&mut session, &bad, 0);
        assert!(matches!(session.next_event(), Err(SessionError::Broken(_))));
        let mut ended = Vec::new();
        session.end(|end| ended.push((end.token, end.is_sent)));
        assert_eq!(ended, [(1, true)]);
    }
}

#[test]
fn the_cluster_view_is_read_with_whatever_newer_members_add() {
    let mut session = ready(Limits::default());
    session.watch_cluster(0);
    session.watch_cluster(0);
    let asked = sent(&mut session);
    assert_eq!(asked.len(), 1, "one listener is enough");
    let correlation = asked[0].1;
    let event = |kind, frames: &[(u16, &[u8])]| {
        let fixed = [&(-1i32).to_le_bytes()[..], &3i32.to_le_bytes()].concat();
        message(kind, correlation, EVENT, &fixed, frames)
    };
    let (a, b, port) =
        ([&uuid_bytes(1)[..], &[0]].concat(), [&uuid_bytes(2)[..], &[1]].concat(), 5701i32.to_le_bytes());
    let member = |fixed: &'static [u8]| -> Vec<(u16, &'static [u8])> {
        let port: &'static [u8] = &[0x45, 0x16, 0, 0];
        vec![
            (BEGIN, &[]),
            (0, fixed),
            (BEGIN, &[]),
            (0, port),
            (0, b"127.0.0.1"),
            (END, &[]),
            (BEGIN, &[]),
            (0, b"attribute"),
            (0, b"value"),
            (END, &[]),
            (0, b"something new"),
            (END, &[]),
        ]
    };
    assert_eq!(port, [0x45, 0x16, 0, 0]);
    let (a, b): (&'static [u8], &'static [u8]) = (a.leak(), b.leak());
    let frames = [vec![(BEGIN, &[][..])], member(a), member(b), vec![(END, &[][..])]].concat();
    receive(&mut session, &event(0x000302, &frames), 0);
    let Ok(Some(Event::Members(view))) = session.next_event() else { panic!("no members") };
    assert_eq!(view.version, 3);
    assert_eq!(
        view.members
            .iter()
            .map(|member| (member.host.as_str(), member.port, member.is_lite))
            .collect::<Vec<_>>(),
        [("127.0.0.1", 5701, false), ("127.0.0.1", 5701, true)]
    );
    let numbers = |list: &[i32]| list.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let (of_a, of_b, owners) = (numbers(&[0, 2]), numbers(&[1]), [uuid_bytes(1), uuid_bytes(2)].concat());
    let frames: [(u16, &[u8]); 5] = [(BEGIN, &[]), (0, &of_a), (0, &of_b), (END, &[]), (0, &owners)];
    receive(&mut session, &event(0x000303, &frames), 0);
    let Ok(Some(Event::Partitions(view))) = session.next_event() else { panic!("no partitions") };
    assert_eq!(view.partitions, [(Uuid::from_halves(0, 1), vec![0, 2]), (Uuid::from_halves(0, 2), vec![1])]);
    // An event type that this client does not know yet.
    receive(&mut session, &event(0x000305, &[]), 0);
    assert!(session.next_event().unwrap().is_none());
}

proptest::proptest! {
    /// Whatever a member sends after its authentication: no panic, and each operation leaves exactly once.
    #[test]
    fn arbitrary_messages_lose_and_double_no_operation(
        messages in proptest::collection::vec(
            (0..6usize, 0..12u64, proptest::collection::vec((0..8u16, 0..30usize, 0..4u8), 0..12)),
            0..30,
        ),
    ) {
        let mut session = ready(Limits::default());
        session.watch_cluster(0);
        for token in 0..10u32 {
            session.send(&if token % 2 == 0 { get("k") } else { set(3) }, token, 0, S).unwrap();
        }
        take_unsent(&mut session);
        let mut left = Vec::new();
        'stream: for (kind, place, frames) in messages {
            let kind = [0x010201, 0x010f01, 0, 0x000302, 0x000303, 0x000301][kind];
            let correlation = ((place + 1) << 32 | place) as i64;
            let flags = if matches!(kind, 0x000302 | 0x000303) { EVENT } else { 0 };
            let frames: Vec<(u16, Vec<u8>)> = frames
                .into_iter()
                .map(|(flags, size, byte)| ([0, 0, 0, BEGIN, END, NULL, BEGIN, END][flags as usize], vec![byte; size]))
                .collect();
            let frames: Vec<(u16, &[u8])> = frames.iter().map(|(flags, content)| (*flags, &content[..])).collect();
            receive(&mut session, &message(kind, correlation, flags, &[0; 8], &frames), 0);
            loop {
                match session.next_event() {
                    Ok(None) => break,
                    Ok(Some(Event::Answered { token, .. } | Event::TooLarge { token, .. })) => left.push(token),
                    Ok(Some(_)) => {}
                    Err(_) => break 'stream,
                }
            }
        }
        session.end(|end| left.push(end.token));
        left.sort_unstable();
        proptest::prop_assert_eq!(left, (0..10).collect::<Vec<u32>>());
    }
}
