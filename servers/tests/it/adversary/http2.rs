//! Frames that break HTTP/2 (RFC 9113): each ends its connection, with a GOAWAY that says why.

use super::{Case, Evil};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const PROTOCOL: u32 = 1;
const FLOW_CONTROL: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE: u32 = 6;
const COMPRESSION: u32 = 9;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[])
}

/// Name, bytes behind the preface and the settings, and the codes of which one is right.
fn table() -> Vec<(&'static str, Vec<u8>, &'static [u32])> {
    // `:method POST`, `:scheme http`, `:path /`: all from the static table.
    let head = &[0x83, 0x86, 0x84];
    vec![
        ("a frame of 16 MB", vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], &[FRAME_SIZE]),
        ("data on stream 0", frame(0, 0, 0, b"a"), &[PROTOCOL]),
        ("data on a stream that has not begun", frame(0, 0, 1, b"a"), &[PROTOCOL, STREAM_CLOSED]),
        ("a head on stream 0", frame(1, 4, 0, head), &[PROTOCOL]),
        ("a head on a stream of the server", frame(1, 4, 2, head), &[PROTOCOL]),
        ("a head that no table explains", frame(1, 4, 1, &[0xff; 20]), &[COMPRESSION]),
        ("a head with more padding than bytes", frame(1, 4 | 8, 1, &[200, 0x83]), &[PROTOCOL]),
        ("a priority of 4 bytes", frame(2, 0, 1, &[0; 4]), &[FRAME_SIZE, PROTOCOL]),
        ("a reset of stream 0", frame(3, 0, 0, &[0; 4]), &[PROTOCOL]),
        ("a reset of a stream that has not begun", frame(3, 0, 1, &[0; 4]), &[PROTOCOL]),
        ("a reset of 5 bytes", frame(3, 0, 1, &[0; 5]), &[FRAME_SIZE]),
        ("settings of 5 bytes", frame(4, 0, 0, &[0; 5]), &[FRAME_SIZE]),
        ("settings on stream 1", frame(4, 0, 1, &[]), &[PROTOCOL]),
        ("an acknowledgement with settings", frame(4, 1, 0, &[0; 6]), &[FRAME_SIZE]),
        (
            "a window beyond 2^31 in settings",
            frame(4, 0, 0, &[0, 4, 255, 255, 255, 255]),
            &[FLOW_CONTROL, PROTOCOL],
        ),
        ("a largest frame of 1 byte", frame(4, 0, 0, &[0, 5, 0, 0, 0, 1]), &[PROTOCOL]),
        ("a promise of a client", frame(5, 4, 1, &[0, 0, 0, 2, 0x82]), &[PROTOCOL]),
        ("a ping of 7 bytes", frame(6, 0, 0, &[0; 7]), &[FRAME_SIZE]),
        ("a ping on stream 1", frame(6, 0, 1, &[0; 8]), &[PROTOCOL]),
        ("a window that grows by nothing", frame(8, 0, 0, &[0; 4]), &[PROTOCOL]),
        ("a window that grows beyond 2^31", frame(8, 0, 0, &[0x7f, 255, 255, 255]), &[FLOW_CONTROL]),
        ("a continuation of nothing", frame(9, 4, 1, head), &[PROTOCOL]),
        (
            "another frame within a head",
            [frame(1, 0, 1, head), frame(6, 0, 0, &[0; 8])].concat(),
            &[PROTOCOL],
        ),
    ]
}

/// The code of the GOAWAY among the frames.
fn goaway(mut heard: &[u8]) -> Option<u32> {
    while heard.len() >= 9 {
        let length = u32::from_be_bytes([0, heard[0], heard[1], heard[2]]) as usize;
        let payload = heard.get(9..9 + length)?;
        if heard[3] == 7 {
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
        heard = &heard[9 + length..];
    }
    None
}

pub fn cases() -> Vec<Case> {
    let violation = |(name, bytes, codes): (&'static str, Vec<u8>, &'static [u32])| {
        Case::new(name, move |address| {
            let mut evil = Evil::connect(address);
            evil.send(&[PREFACE, &settings(), &bytes].concat());
            let code = goaway(&evil.read_out());
            // The h2 library reports some wrong sizes and heads as a protocol error; they end the connection.
            let right = |code: u32| code == PROTOCOL || codes.contains(&code);
            assert!(code.is_some_and(right), "{code:?} instead of {codes:?}");
        })
    };
    let mut cases: Vec<Case> = table().into_iter().map(violation).collect();
    let flood = |name, bytes: Vec<u8>| {
        Case::new(name, move |address| {
            let mut evil = Evil::with_little_room(address);
            evil.send(&[PREFACE, &settings()].concat());
            let many = bytes.repeat(64 * 1024 / bytes.len());
            (0..100).for_each(|_| evil.send(&many));
            evil.reset();
        })
    };
    cases.push(flood("a flood of pings over HTTP/2", frame(6, 0, 0, &[0; 8])));
    cases.push(flood("a flood of settings", settings()));
    cases.push(flood("a flood of empty data", frame(0, 0, 1, &[])));
    cases.push(Case::new("streams that are reset at once", |address| {
        let mut evil = Evil::connect(address);
        evil.send(&[PREFACE, &settings()].concat());
        for stream in (1..20_000).step_by(2) {
            evil.send(
                &[frame(1, 4, stream, &[0x83, 0x86, 0x84]), frame(3, 0, stream, &[0, 0, 0, 8])].concat(),
            );
        }
        evil.reset();
    }));
    cases.push(Case::new("a head of continuations without end", |address| {
        let mut evil = Evil::connect(address);
        evil.send(&[PREFACE, &settings(), &frame(1, 0, 1, &[0x83])].concat());
        let part = frame(9, 0, 1, &[&[0x40, 1, b'a', 0x7f, 0x81, 0x3f][..], &[b'b'; 8000]].concat());
        (0..2000).for_each(|_| evil.send(&part));
        evil.reset();
    }));
    cases
}
