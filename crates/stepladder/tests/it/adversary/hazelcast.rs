//! Hazelcast (Open Binary Client Protocol 2): operations on a map of one member.

use std::io;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load = Load::new(
    "Hazelcast",
    "hazelcast://127.0.0.1:PORT --rate 200 --op 1:1 --keys uniform:10 --value 8 --objective errors==0",
);

const STOPPED: &str = "stopped replying|never answered";
const BROKEN: &str = "broken protocol";

const UNFRAGMENTED: u16 = 0xc000;
const FINAL: u16 = 0x2000;
const BEGIN: u16 = 0x1000;
const END: u16 = 0x0800;
const NULL: u16 = 0x0400;
const EVENT: u16 = 0x0200;

const AUTHENTICATION: i32 = 0x00_0100;
const CLUSTER_VIEW: i32 = 0x00_0300;
const MEMBERS: i32 = 0x00_0302;
const PARTITIONS: i32 = 0x00_0303;
const SET: i32 = 0x01_0f00;
const GET: i32 = 0x01_0200;
const ERROR: i32 = 0;
/// As many as a cluster has unless configured otherwise.
const PARTITION_COUNT: i32 = 271;

/// A frame: its length with the header, its flags, its content; little-endian.
fn frame(flags: u16, content: &[u8]) -> Vec<u8> {
    [&(6 + content.len() as u32).to_le_bytes()[..], &flags.to_le_bytes(), content].concat()
}

/// A message: what its first frame carries after type and correlation, then frames.
fn message(kind: i32, correlation: i64, flags: u16, fixed: &[u8], frames: &[(u16, &[u8])]) -> Vec<u8> {
    let first = [&kind.to_le_bytes()[..], &correlation.to_le_bytes(), fixed].concat();
    let last = |at| if at == frames.len() { FINAL } else { 0 };
    let mut bytes = frame(UNFRAGMENTED | flags | last(0), &first);
    for (at, (flags, content)) in frames.iter().enumerate() {
        bytes.extend(frame(flags | last(at + 1), content));
    }
    bytes
}

fn uuid(least: u64) -> Vec<u8> {
    [&[0][..], &0_u64.to_le_bytes(), &least.to_le_bytes()].concat()
}

fn authenticated(correlation: i64, status: u8, partitions: i32) -> Vec<u8> {
    let fixed = [&[0, status][..], &uuid(7), &[1], &partitions.to_le_bytes(), &uuid(8), &[0, 9, 9]].concat();
    message(
        AUTHENTICATION + 1,
        correlation,
        0,
        &fixed,
        &[(NULL, &[]), (0, b"5.5.0"), (BEGIN, &[]), (END, &[])],
    )
}

/// A list with one member.
fn members(correlation: i64, host: &str, port: u16) -> Vec<u8> {
    let version = [&(-1_i32).to_le_bytes()[..], &1_i32.to_le_bytes()].concat();
    let info = [&uuid(7)[..], &[0]].concat();
    let port = u32::from(port).to_le_bytes();
    let frames: [(u16, &[u8]); 16] = [
        (BEGIN, &[]),
        (BEGIN, &[]),
        (0, &info),
        (BEGIN, &[]),
        (0, &port),
        (0, host.as_bytes()),
        (END, &[]),
        (BEGIN, &[]),
        (END, &[]),
        (BEGIN, &[]),
        (0, &[5, 5, 0]),
        (END, &[]),
        (BEGIN, &[]),
        (END, &[]),
        (END, &[]),
        (END, &[]),
    ];
    message(MEMBERS, correlation, EVENT, &version, &frames)
}

/// Which partitions a member owns.
fn partitions(correlation: i64, member: u64, owned: impl Iterator<Item = i32>) -> Vec<u8> {
    let version = [&(-1_i32).to_le_bytes()[..], &1_i32.to_le_bytes()].concat();
    let owned: Vec<u8> = owned.flat_map(i32::to_le_bytes).collect();
    let frames: [(u16, &[u8]); 4] = [(BEGIN, &[]), (0, &owned), (END, &[]), (0, &uuid(member))];
    message(PARTITIONS, correlation, EVENT, &version, &frames)
}

fn answer(kind: i32, correlation: i64, frames: &[(u16, &[u8])]) -> Vec<u8> {
    message(kind + 1, correlation, 0, &[0], frames)
}

/// A member's error: its number in the protocol, its class, its words.
fn error(correlation: i64, code: i32, class: &str) -> Vec<u8> {
    let code = code.to_le_bytes();
    let frames: [(u16, &[u8]); 9] = [
        (BEGIN, &[]),
        (BEGIN, &[]),
        (0, &code),
        (0, class.as_bytes()),
        (0, b"no"),
        (BEGIN, &[]),
        (END, &[]),
        (END, &[]),
        (END, &[]),
    ];
    message(ERROR, correlation, 0, &[0], &frames)
}

struct Request {
    kind: i32,
    correlation: i64,
    /// the contents of the frames after the first
    frames: Vec<Vec<u8>>,
}

fn request(peer: &mut Peer) -> io::Result<Request> {
    let (mut first, mut frames) = (None, Vec::new());
    loop {
        let length = u32::from_le_bytes(peer.bytes()?) as usize;
        let flags = u16::from_le_bytes(peer.bytes()?);
        let content = peer.take(length.saturating_sub(6))?;
        match first {
            None => first = Some(content),
            Some(_) => frames.push(content),
        }
        if flags & FINAL != 0 {
            break;
        }
    }
    let first = first.unwrap_or_default();
    let (kind, correlation) =
        (first.first_chunk().copied(), first.get(4..12).and_then(|bytes| bytes.try_into().ok()));
    let (Some(kind), Some(correlation)) = (kind, correlation) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok(Request { kind: i32::from_le_bytes(kind), correlation: i64::from_le_bytes(correlation), frames })
}

/// What a member says to a request.
fn honest(peer: &Peer, asked: &Request) -> Vec<u8> {
    let mut values = peer.shared.values.lock().unwrap_or_else(PoisonError::into_inner);
    let value_of = |values: &std::collections::BTreeMap<Vec<u8>, Vec<u8>>| {
        asked.frames.get(1).and_then(|key| values.get(key)).cloned()
    };
    match asked.kind {
        AUTHENTICATION => authenticated(asked.correlation, 0, PARTITION_COUNT),
        CLUSTER_VIEW => [
            answer(CLUSTER_VIEW, asked.correlation, &[]),
            members(asked.correlation, "127.0.0.1", peer.port()),
            partitions(asked.correlation, 7, 0..PARTITION_COUNT),
        ]
        .concat(),
        GET => match value_of(&values) {
            Some(value) => answer(GET, asked.correlation, &[(0, &value)]),
            None => answer(GET, asked.correlation, &[(NULL, &[])]),
        },
        SET => {
            values.insert(asked.frames[1].clone(), asked.frames[2].clone());
            answer(SET, asked.correlation, &[])
        }
        kind => answer(kind, asked.correlation, &[]),
    }
}

/// A member that says to requests of this kind what `says` makes of them and of their number.
fn member(
    kind: i32,
    says: impl Fn(&Peer, &Request, usize) -> Vec<u8>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.bytes::<3>()?;
        let mut number = 0;
        loop {
            let asked = request(peer)?;
            let bytes = if asked.kind == kind {
                number += 1;
                says(peer, &asked, number - 1)
            } else {
                honest(peer, &asked)
            };
            peer.say(bytes)?;
        }
    }
}

fn gets(says: impl Fn(&Peer, &Request, usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    member(GET, says)
}

/// A member that tells this of its cluster, behind an answer without a word.
fn views(says: impl Fn(&Peer, i64) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    member(CLUSTER_VIEW, move |peer, asked, _| {
        [answer(CLUSTER_VIEW, asked.correlation, &[]), says(peer, asked.correlation)].concat()
    })
}

/// Names itself as the only member, and gives these partitions to that one.
fn owns<O: Iterator<Item = i32>>(member: u64, owned: impl Fn() -> O) -> impl Fn(&mut Peer) -> io::Result<()> {
    views(move |peer, to| [members(to, "127.0.0.1", peer.port()), partitions(to, member, owned())].concat())
}

/// A member until the first request of this kind; then it does this.
fn at(
    kind: i32,
    does: impl Fn(&mut Peer, &Request) -> io::Result<()>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.bytes::<3>()?;
        loop {
            let asked = request(peer)?;
            if asked.kind == kind {
                return does(peer, &asked);
            }
            let right = honest(peer, &asked);
            peer.say(right)?;
        }
    }
}

fn floods(kind: i32, of: impl Fn(&Request) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    at(kind, move |peer, asked| peer.flood(of(asked)))
}

fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    at(GET, move |peer, _| peer.say_last(&bytes))
}

/// Answers a get with the first frame of a message of this kind, and then with this one without end.
fn begins(kind: i32, more: Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    at(GET, move |peer, asked| {
        let first = [&kind.to_le_bytes()[..], &asked.correlation.to_le_bytes(), &[0]].concat();
        peer.say(frame(UNFRAGMENTED, &first))?;
        peer.flood(&more)
    })
}

fn opening() -> Vec<Row> {
    const NOT_ONE: &str = "is not a Hazelcast server";
    let authenticates =
        |says: fn(i64) -> Vec<u8>| member(AUTHENTICATION, move |_, asked, _| says(asked.correlation));
    vec![
        long("accepts and says nothing", Unmeasured, "within 5 s", Peer::hold),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        row("resets at once", Unmeasured, "127.0.0.1", Peer::reset),
        row("speaks HTTP", Unmeasured, NOT_ONE, |peer| peer.say_last("HTTP/1.1 400 Bad Request\r\n\r\n")),
        row(
            "refuses the credentials",
            Unmeasured,
            "refused the credentials",
            authenticates(|to| authenticated(to, 1, 271)),
        ),
        row(
            "speaks another version of serialisation",
            Unmeasured,
            "serialisation version",
            authenticates(|to| authenticated(to, 2, 271)),
        ),
        row(
            "refuses for a reason that there is not",
            Unmeasured,
            "does not know (77)",
            authenticates(|to| authenticated(to, 77, 271)),
        ),
        row(
            "says that it has no partitions",
            Unmeasured,
            NOT_ONE,
            authenticates(|to| authenticated(to, 0, 0)),
        ),
        row(
            "says that it has -1 partitions",
            Unmeasured,
            NOT_ONE,
            authenticates(|to| authenticated(to, 0, -1)),
        ),
        row(
            "says that it has 2^31 - 1 partitions",
            Unmeasured,
            NOT_ONE,
            authenticates(|to| authenticated(to, 0, i32::MAX)),
        ),
        long(
            "answers the authentication of another",
            Unmeasured,
            "is not a Hazelcast server",
            authenticates(|to| authenticated(to + 1000, 0, 271)),
        ),
        row(
            "answers the authentication without a word in it",
            Unmeasured,
            NOT_ONE,
            authenticates(|to| message(AUTHENTICATION + 1, to, 0, &[0], &[])),
        ),
        row("sends a frame of 5 bytes at once", Unmeasured, NOT_ONE, |peer| {
            peer.say_last([5, 0, 0, 0, 0, 0xc0])
        }),
        row("sends a frame of 2^31 - 1 bytes at once", Unmeasured, NOT_ONE, |peer| {
            peer.say([0xff, 0xff, 0xff, 0x7f, 0, 0xc0])?;
            peer.flood("x")
        }),
        long(
            "names another address as its own, and answers here",
            Passes,
            "",
            views(|_, to| {
                [members(to, "10.255.255.1", 5701), partitions(to, 7, 0..PARTITION_COUNT)].concat()
            }),
        ),
        long(
            "names a metadata service's address as its own, and answers here",
            Passes,
            "",
            views(|_, to| members(to, "169.254.169.254", 80)),
        ),
        long("names no member", Unmeasured, "does not tell its members", views(|_, _| Vec::new())),
        row(
            "gives all partitions to a member that there is not",
            Passes,
            "",
            owns(99, || 0..PARTITION_COUNT),
        ),
        row(
            "gives partitions that there are not, as it may: they are not asked for",
            Passes,
            "",
            owns(7, || [-1, i32::MAX, i32::MIN, 271].into_iter().chain(0..PARTITION_COUNT)),
        ),
    ]
}

fn messages() -> Vec<Row> {
    vec![
        long("sends a frame of 5 bytes", Fails, BROKEN, says([5, 0, 0, 0, 0, 0xc0])),
        long("sends a frame of -1 bytes", Fails, BROKEN, says([0xff; 6])),
        long(
            "sends a frame of 2^31 - 1 bytes",
            Fails,
            BROKEN,
            at(GET, |peer, _| {
                peer.say([0xff, 0xff, 0xff, 0x7f, 0, 0xc0])?;
                peer.flood("x")
            }),
        ),
        long("stops within a frame", Fails, STOPPED, says([100, 0, 0, 0, 0, 0xc0, 1, 2])),
        long("stops within a message", Fails, STOPPED, says(frame(UNFRAGMENTED, &[0; 13]))),
        long(
            "sends frames of a message without end",
            Fails,
            STOPPED,
            begins(GET + 1, frame(0, &[b'x'; 1000])),
        ),
        long("sends empty frames of a message without end", Fails, STOPPED, begins(GET + 1, frame(0, &[]))),
        long(
            "sends a message without type and correlation",
            Fails,
            BROKEN,
            says(frame(UNFRAGMENTED | FINAL, b"x")),
        ),
        long("sends a fragment of nothing", Fails, STOPPED, says(frame(0, &[0; 13]))),
        long(
            "answers with lists that do not nest",
            Fails,
            BROKEN,
            gets(|_, asked, _| message(ERROR, asked.correlation, 0, &[0], &[(END, &[]), (BEGIN, &[])])),
        ),
        long(
            "answers with lists in each other without end",
            Fails,
            STOPPED,
            begins(ERROR, frame(BEGIN, &[])),
        ),
        long(
            "sends its members without end",
            Fails,
            STOPPED,
            floods(CLUSTER_VIEW, |asked| members(asked.correlation, "127.0.0.1", 1)),
        ),
        long(
            "sends its partitions without end",
            Unmeasured,
            "does not tell its members",
            floods(CLUSTER_VIEW, |asked| partitions(asked.correlation, 7, 0..PARTITION_COUNT)),
        ),
        long(
            "sends lists of 10,000 partitions without end",
            Fails,
            STOPPED,
            floods(GET, |asked| partitions(asked.correlation, 7, 0..10_000)),
        ),
        long(
            "sends events of no listener without end",
            Fails,
            STOPPED,
            floods(GET, |_| members(0x7777, "127.0.0.1", 1)),
        ),
        long(
            "answers requests that nobody made without end",
            Fails,
            BROKEN,
            floods(GET, |_| answer(GET, 0x7777, &[(NULL, &[])])),
        ),
        long(
            "answers the same request without end",
            Fails,
            BROKEN,
            floods(GET, |asked| answer(GET, asked.correlation, &[(NULL, &[])])),
        ),
    ]
}

fn answering() -> Vec<Row> {
    vec![
        row("answers, as it should", Passes, "", gets(|peer, asked, _| honest(peer, asked))),
        long("answers nothing to gets", Fails, STOPPED, gets(|_, _, _| Vec::new())),
        long(
            "answers five gets and then nothing",
            Fails,
            STOPPED,
            gets(|peer, asked, number| if number < 5 { honest(peer, asked) } else { Vec::new() }),
        ),
        long(
            "finds nothing",
            Fails,
            "value not found",
            gets(|_, asked, _| answer(GET, asked.correlation, &[(NULL, &[])])),
        ),
        row(
            "finds another value",
            Fails,
            "wrong value",
            gets(|_, asked, _| {
                // A string of 3 bytes as members store it: hash, type, length.
                let value =
                    [&[0, 0, 0, 0][..], &(-11_i32).to_be_bytes(), &3_u32.to_be_bytes(), b"abc"].concat();
                answer(GET, asked.correlation, &[(0, &value)])
            }),
        ),
        long(
            "finds a value that is no text",
            Fails,
            "reply of another kind",
            gets(|_, asked, _| answer(GET, asked.correlation, &[(0, &[0xff; 20])])),
        ),
        row(
            "finds a value of 3 bytes",
            Fails,
            "reply of another kind",
            gets(|_, asked, _| answer(GET, asked.correlation, &[(0, b"abc")])),
        ),
        long(
            "answers gets without a value",
            Fails,
            BROKEN,
            gets(|_, asked, _| answer(GET, asked.correlation, &[])),
        ),
        long("answers gets as sets", Fails, BROKEN, gets(|_, asked, _| answer(SET, asked.correlation, &[]))),
        long("answers twice", Fails, BROKEN, gets(|peer, asked, _| honest(peer, asked).repeat(2))),
        long(
            "answers one request of ten twice",
            Fails,
            BROKEN,
            gets(|peer, asked, number| honest(peer, asked).repeat(if number % 10 == 3 { 2 } else { 1 })),
        ),
        long(
            "answers requests that nobody made",
            Fails,
            BROKEN,
            gets(|_, asked, _| answer(GET, asked.correlation.wrapping_add(1 << 20), &[(NULL, &[])])),
        ),
        long(
            "refuses gets for good",
            Fails,
            "operation refused",
            gets(|_, asked, _| error(asked.correlation, 1, "java.lang.X")),
        ),
        long(
            "asks to try again without end",
            Fails,
            STOPPED,
            gets(|_, asked, _| error(asked.correlation, 53, "com.hazelcast.Wrong")),
        ),
        row(
            "does not know what came of gets",
            Fails,
            "operation refused",
            gets(|_, asked, _| error(asked.correlation, 80, "com.hazelcast.Unknown")),
        ),
        long(
            "keeps the first value and acknowledges all",
            Fails,
            "stale value",
            member(SET, |peer, asked, _| {
                let has_one = peer
                    .shared
                    .values
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .contains_key(&asked.frames[1]);
                if has_one { answer(SET, asked.correlation, &[]) } else { honest(peer, asked) }
            }),
        ),
        long(
            "answers after 1.5 s, beyond the patience",
            Fails,
            STOPPED,
            at(GET, |peer, asked| {
                thread::sleep(Duration::from_millis(1500));
                let right = honest(peer, asked);
                peer.say_last(right)
            }),
        ),
        long("closes at a get", Fails, "connection lost", at(GET, |_, _| Ok(()))),
        long("resets at a get", Fails, "connection reset", at(GET, |peer, _| peer.reset())),
        long("acknowledges nothing", Fails, "value not found", member(SET, |_, _, _| Vec::new())),
    ]
}

#[test]
fn hostile_hazelcast_members_do_not_pass() {
    check(&LOAD, &[opening(), messages(), answering()].into_iter().flatten().collect::<Vec<_>>());
}
