//! Frames that break RFC 6455, each answered with the matching close code.

use std::io::Write;

use super::{Case, Evil};
use crate::client::{Client, Frame, frame};

fn table() -> Vec<(&'static str, Vec<u8>, u16)> {
    let masked = |first: u8, second: &[u8]| [&[first][..], second, &[0; 4]].concat();
    let pair = |one: Vec<u8>, two: Vec<u8>| [one, two].concat();
    let close = |code: u16| frame(0x88, &code.to_be_bytes());
    vec![
        ("a frame without a mask", vec![0x81, 1, b'a'], 1002),
        ("the first reserved bit", frame(0xc1, b"a"), 1002),
        ("the second reserved bit", frame(0xa1, b"a"), 1002),
        ("the third reserved bit", frame(0x91, b"a"), 1002),
        ("opcode 3", frame(0x83, b"a"), 1002),
        ("opcode 7", frame(0x87, b"a"), 1002),
        ("opcode 11", frame(0x8b, b"a"), 1002),
        ("opcode 15", frame(0x8f, b"a"), 1002),
        ("a ping in fragments", frame(0x09, b"a"), 1002),
        ("a close in fragments", frame(0x08, &1000u16.to_be_bytes()), 1002),
        ("a ping of 126 bytes", frame(0x89, &[0; 126]), 1002),
        ("a pong of 126 bytes", frame(0x8a, &[0; 126]), 1002),
        ("a close of 126 bytes", frame(0x88, &[3; 126]), 1002),
        ("a close of one byte", frame(0x88, &[3]), 1002),
        ("close code 0", close(0), 1002),
        ("close code 999", close(999), 1002),
        ("close code 1004", close(1004), 1002),
        ("close code 1005", close(1005), 1002),
        ("close code 1006", close(1006), 1002),
        ("close code 1015", close(1015), 1002),
        ("close code 2999", close(2999), 1002),
        ("close code 5000", close(5000), 1002),
        ("a close whose reason is no text", frame(0x88, b"\x03\xe8\xff\xfe"), 1007),
        ("the end of a message that has not begun", frame(0x80, b"a"), 1002),
        ("the middle of a message that has not begun", frame(0x00, b"a"), 1002),
        ("a text within a message", pair(frame(0x01, b"a"), frame(0x81, b"b")), 1002),
        ("a binary within a message", pair(frame(0x02, b"a"), frame(0x82, b"b")), 1002),
        ("a text that is none", frame(0x81, &[0xff]), 1007),
        ("a text with an overlong form", frame(0x81, &[0xc0, 0xaf]), 1007),
        ("a text with half a surrogate", frame(0x81, &[0xed, 0xa0, 0x80]), 1007),
        ("a text beyond the last code point", frame(0x81, &[0xf4, 0x90, 0x80, 0x80]), 1007),
        ("a text that ends within a character", frame(0x81, &[b'a', 0xe2, 0x82]), 1007),
        ("a text in fragments that is none", pair(frame(0x01, &[0xe2]), frame(0x80, b"a")), 1007),
        ("a short length in 16 bits", masked(0x82, &[0xfe, 0, 0]), 1002),
        ("a short length in 64 bits", masked(0x82, &[0xff, 0, 0, 0, 0, 0, 0, 0, 0]), 1002),
        ("a length with its highest bit", masked(0x82, &[0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]), 1002),
        ("a frame of 2^63 - 1 bytes", masked(0x82, &[0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255]), 1009),
        ("a frame of 1 TB", masked(0x82, &[0xff, 0, 0, 1, 0, 0, 0, 0, 0]), 1009),
        ("a first fragment of 1 TB", masked(0x02, &[0xff, 0, 0, 1, 0, 0, 0, 0, 0]), 1009),
    ]
}

/// The close code, whatever else comes before it.
fn closed_with(client: &mut Client) -> Option<u16> {
    loop {
        match client.hear() {
            Frame::Close(code) => return code,
            Frame::End => panic!("the stream ended without a close"),
            _ => {}
        }
    }
}

pub fn cases(path: &'static str) -> Vec<Case> {
    let violation = |(name, bytes, code): (&'static str, Vec<u8>, u16)| {
        Case::new(name, move |address| {
            // At once, and split after each byte.
            for pieces in [bytes.len(), 1] {
                let mut client = Client::open(address, path);
                for piece in bytes.chunks(pieces) {
                    let _ = client.stream.write_all(piece);
                }
                assert_eq!(closed_with(&mut client), Some(code));
            }
        })
    };
    let mut cases: Vec<Case> = table().into_iter().map(violation).collect();
    cases.push(Case::new("a message of fragments without end", move |address| {
        let mut client = Client::open(address, path);
        let _ = client.stream.write_all(&frame(0x02, &[0; 1000]));
        let fragment = frame(0x00, &[0; 10_000]).repeat(20);
        for _ in 0..400 {
            if client.stream.write_all(&fragment).is_err() {
                // The close may be lost in the reset caused by unread data.
                return;
            }
        }
        assert_eq!(closed_with(&mut client), Some(1009));
    }));
    cases.push(Case::new("a hundred thousand empty fragments", move |address| {
        let mut evil = Evil::from(Client::open(address, path).stream);
        evil.send(&frame(0x02, b""));
        evil.send(&frame(0x00, b"").repeat(100_000));
    }));
    for (name, first) in [("a flood of pings", 0x89), ("a flood of pongs", 0x8a)] {
        cases.push(Case::new(name, move |address| {
            let mut evil = Evil::from(Client::open(address, path).stream);
            // Nothing is read: the server may stop reading or close, and must not keep the answers.
            (0..50).for_each(|_| evil.send(&frame(first, &[7; 125]).repeat(1000)));
            evil.reset();
        }));
    }
    for (name, bytes) in [
        ("an upgrade without a key", "Sec-WebSocket-Version: 13\r\n"),
        ("an upgrade with a short key", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"),
        (
            "an upgrade of another version",
            "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        ),
    ] {
        cases.push(Case::new(name, move |address| {
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{bytes}\r\n"
            );
            let mut evil = Evil::connect(address);
            evil.send(head.as_bytes());
            let status = evil.status();
            assert!(matches!(status, 400 | 426), "{status}");
        }));
    }
    cases.push(Case::new("frames in the body of an upgrade", move |address| {
        let request = crate::client::request(path);
        let hidden = frame(0x89, b"hidden");
        let fields = format!("Content-Length: {}\r\n\r\n", hidden.len());
        let request = request.strip_suffix("\r\n").unwrap().to_owned() + &fields;
        let mut evil = Evil::connect(address);
        evil.send(&[request.as_bytes(), &hidden].concat());
        let heard = evil.read_for_a_while();
        assert!(!heard.windows(6).any(|bytes| bytes == b"hidden"), "the body was taken for a frame");
    }));
    cases
}

/// Upgrades that do not end are cut.
pub fn slow(path: &'static str) -> Vec<Case> {
    vec![Case::new("an upgrade that does not end", move |address| {
        let mut evil = Evil::connect(address);
        evil.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n").as_bytes());
        evil.is_cut_while_it_sends(b"A: b\r\n");
    })]
}
