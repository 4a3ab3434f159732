//! RFC 6455 as a table of cases, each for both sides: the client of the drivers hears the frames of a server, and the
//! receiver of the servers the same frames of a client, masked. Whole, byte by byte, and cut in the middle.
//!
//! It covers what the Autobahn suite's groups 1 to 7 do (framing, pings, reserved bits, opcodes, fragmentation, UTF-8, closing) and
//! limits (9). Not here: compression (12, 13), which neither side negotiates.

use drivers::ReadBuffer;
use drivers::websocket::codec::{Codec, MESSAGE_BYTES_MAX, Received};
use drivers::{Broken, Closed};
use servers::fuzz::{Said, websocket};

/// How a frame's length is written.
#[derive(Clone, Copy, PartialEq)]
enum Length {
    Shortest,
    /// in 16 bits
    Medium,
    /// in 64 bits
    Long,
    /// this number in 64 bits, whatever follows
    Claimed(u64),
}

#[derive(Clone)]
struct Frame {
    /// final, reserved bits and opcode
    first: u8,
    payload: Vec<u8>,
    length: Length,
    /// masked where it must not be, or not masked where it must
    has_wrong_mask: bool,
}

fn frame(first: u8, payload: impl AsRef<[u8]>) -> Frame {
    Frame { first, payload: payload.as_ref().to_vec(), length: Length::Shortest, has_wrong_mask: false }
}

impl Frame {
    fn with(self, length: Length) -> Frame {
        Frame { length, ..self }
    }

    fn wire(&self, of_client: bool) -> Vec<u8> {
        const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
        let is_masked = of_client != self.has_wrong_mask;
        let bit = if is_masked { 0x80 } else { 0 };
        let count = self.payload.len();
        let mut out = vec![self.first];
        match self.length {
            Length::Claimed(count) => {
                out.push(bit | 127);
                out.extend(count.to_be_bytes());
            }
            Length::Shortest if count < 126 => out.push(bit | count as u8),
            Length::Shortest | Length::Medium if count <= 0xffff => {
                out.push(bit | 126);
                out.extend((count as u16).to_be_bytes());
            }
            _ => {
                out.push(bit | 127);
                out.extend((count as u64).to_be_bytes());
            }
        }
        if is_masked {
            out.extend(MASK);
            out.extend(self.payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        } else {
            out.extend(&self.payload);
        }
        out
    }
}

/// What is heard, but for pings and pongs, and how the connection is then.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// a close frame with this code
    Close(Option<u16>),
    /// and what it is refused for; the code that a server answers with
    Refused(u16),
}
use Heard::{Binary, Close, Refused, Text};

const PROTOCOL: u16 = 1002;
const UTF8: u16 = 1007;
const TOO_BIG: u16 = 1009;

/// What the client hears, and the payloads of the pongs that it answers with.
fn by_the_client(pieces: &[&[u8]]) -> (Vec<Heard>, Vec<Vec<u8>>) {
    let (mut codec, mut buffer, mut heard) = (Codec::default(), ReadBuffer::new(), Vec::new());
    'reads: for piece in pieces {
        // A read brings as much as there is room for.
        for part in piece.chunks(8192) {
            codec.lay(&mut buffer)[..part.len()].copy_from_slice(part);
            codec.came(part.len(), &mut buffer);
            while let Some(next) = codec.next(&mut buffer) {
                heard.push(match next {
                    Ok(Received::Text(text)) => Text(text.to_vec()),
                    Ok(Received::Binary(bytes)) => Binary(bytes.to_vec()),
                    Err(Broken::NotUtf8) => Refused(UTF8),
                    Err(Broken::TooLarge(_)) => Refused(TOO_BIG),
                    Err(_) => Refused(PROTOCOL),
                });
                if matches!(heard.last(), Some(Refused(_))) {
                    break 'reads;
                }
            }
            if let Some(Closed::ByPeer(goodbye)) = codec.ended() {
                // 1005 stands for a close without a code and is never sent.
                heard.push(Close(goodbye.map(|goodbye| goodbye.code).filter(|code| *code != 1005)));
                break 'reads;
            }
        }
    }
    (heard, pongs(codec.unsent()))
}

/// Payloads of the pongs among the frames that a client wrote; close frames must be whole and masked.
fn pongs(mut wire: &[u8]) -> Vec<Vec<u8>> {
    let mut pongs = Vec::new();
    while let [first, second, rest @ ..] = wire {
        let count = usize::from(second & 0x7f);
        assert!(count <= 125 && second & 0x80 != 0 && matches!(first, 0x8a | 0x88), "{wire:02x?}");
        let (mask, rest) = rest.split_at(4);
        if *first == 0x8a {
            pongs.push(
                rest[..count].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect(),
            );
        }
        wire = &rest[count..];
    }
    pongs
}

fn by_the_server(pieces: &[&[u8]]) -> (Vec<Heard>, Vec<Vec<u8>>) {
    let (said, code) = websocket(pieces, MESSAGE_BYTES_MAX);
    let (mut heard, mut pings) = (Vec::new(), Vec::new());
    for one in said {
        match one {
            Said::Text(text) => heard.push(Text(text)),
            Said::Binary(bytes) => heard.push(Binary(bytes)),
            Said::Ping(bytes) => pings.push(bytes),
            Said::Pong => {}
            Said::Close(code) => heard.push(Close(code)),
        }
    }
    heard.extend(code.map(Refused));
    (heard, pings)
}

/// Both sides hear `expected`, and `pings` of them are answered, however the frames come.
#[track_caller]
fn check(name: &str, frames: &[Frame], expected: &[Heard], pings: &[&[u8]]) {
    for of_client in [false, true] {
        let wire: Vec<u8> = frames.iter().flat_map(|frame| frame.wire(of_client)).collect();
        let side = if of_client { "server" } else { "client" };
        let halves = wire.split_at(wire.len() / 2);
        let mut ways: Vec<Vec<&[u8]>> = vec![vec![&wire], vec![halves.0, halves.1]];
        // A read for every byte of a large message takes minutes and shows no more.
        if wire.len() < 2000 {
            ways.push(wire.chunks(1).collect());
        }
        for pieces in ways {
            let (heard, answered) = if of_client { by_the_server(&pieces) } else { by_the_client(&pieces) };
            assert!(heard == expected, "{name}, {side}, {} reads: {heard:.300?}", pieces.len());
            assert!(answered == pings, "{name}, {side}, {} reads: pongs {answered:?}", pieces.len());
        }
    }
}

/// Cases that are refused.
#[track_caller]
fn refuse(name: &str, frames: &[Frame], code: u16) {
    check(name, frames, &[Refused(code)], &[]);
}

#[test]
fn framing_every_length_is_heard() {
    for count in [0, 1, 125, 126, 127, 128, 255, 256, 65_534, 65_535, 65_536] {
        let bytes = vec![b'*'; count];
        check(&format!("text of {count}"), &[frame(0x81, &bytes)], &[Text(bytes.clone())], &[]);
        check(&format!("binary of {count}"), &[frame(0x82, &bytes)], &[Binary(bytes)], &[]);
    }
}

#[test]
fn framing_lengths_and_masks_that_are_wrong_are_refused() {
    refuse("125 in 16 bits", &[frame(0x82, [0; 125]).with(Length::Medium)], PROTOCOL);
    refuse("0 in 16 bits", &[frame(0x82, []).with(Length::Medium)], PROTOCOL);
    refuse("125 in 64 bits", &[frame(0x82, [0; 125]).with(Length::Long)], PROTOCOL);
    refuse("65535 in 64 bits", &[frame(0x82, vec![0; 65_535]).with(Length::Long)], PROTOCOL);
    refuse("the wrong mask", &[Frame { has_wrong_mask: true, ..frame(0x81, "a") }], PROTOCOL);
    refuse("more than a message may have", &[frame(0x82, []).with(Length::Claimed(65_537))], TOO_BIG);
    refuse("2^63 - 1", &[frame(0x82, []).with(Length::Claimed(u64::MAX >> 1))], TOO_BIG);
}

#[test]
fn the_highest_bit_of_a_length_is_refused_by_both_sides() {
    let claimed = frame(0x82, []).with(Length::Claimed(1 << 63));
    for heard in [by_the_client(&[&claimed.wire(false)]).0, by_the_server(&[&claimed.wire(true)]).0] {
        assert!(matches!(heard[..], [Refused(_)]), "{heard:?}");
    }
}

#[test]
fn pings_are_answered_with_what_they_carry_and_pongs_are_not() {
    check("an empty ping", &[frame(0x89, [])], &[], &[b""]);
    check("a ping with text", &[frame(0x89, "Hello")], &[], &[b"Hello"]);
    check("a ping with no text", &[frame(0x89, [0, 0xff, 0xfe])], &[], &[&[0, 0xff, 0xfe]]);
    check("a ping of 125", &[frame(0x89, [0xfe; 125])], &[], &[&[0xfe; 125]]);
    refuse("a ping of 126", &[frame(0x89, [0xfe; 126])], PROTOCOL);
    refuse("a ping of 125 in 16 bits", &[frame(0x89, [0xfe; 125]).with(Length::Medium)], PROTOCOL);
    check("an unasked pong", &[frame(0x8a, [])], &[], &[]);
    check(
        "an unasked pong that says something, then a ping",
        &[frame(0x8a, "x"), frame(0x89, "y")],
        &[],
        &[b"y"],
    );
    refuse("a pong of 126", &[frame(0x8a, [0; 126])], PROTOCOL);
    let ten: Vec<Frame> = (0..10u8).map(|at| frame(0x89, [at])).collect();
    let payloads: Vec<Vec<u8>> = (0..10u8).map(|at| vec![at]).collect();
    check("ten pings", &ten, &[], &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn reserved_bits_and_opcodes_are_refused_after_what_came_before_was_heard() {
    for bits in 1..8u8 {
        refuse(&format!("reserved bits {bits}"), &[frame(0x81 | bits << 4, "a")], PROTOCOL);
        refuse(&format!("reserved bits {bits} on a ping"), &[frame(0x89 | bits << 4, "a")], PROTOCOL);
        refuse(&format!("reserved bits {bits} on a close"), &[frame(0x88 | bits << 4, [])], PROTOCOL);
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        for payload in ["", "Hello"] {
            let frames = [frame(0x81, "before"), frame(0x80 | opcode, payload), frame(0x89, "after")];
            check(&format!("opcode {opcode}"), &frames, &[Text(b"before".into()), Refused(PROTOCOL)], &[]);
        }
    }
}

#[test]
fn fragments_are_joined_and_control_frames_may_come_between_them() {
    let parts = |first: u8, ping: bool| {
        let mut frames = vec![frame(first, "one ")];
        frames.extend(ping.then(|| frame(0x89, "ping")));
        frames.extend([frame(0x00, "two "), frame(0x00, ""), frame(0x80, "three")]);
        frames
    };
    check("a text in four", &parts(0x01, false), &[Text(b"one two three".into())], &[]);
    check("a binary in four", &parts(0x02, false), &[Binary(b"one two three".into())], &[]);
    check("a text in four and a ping", &parts(0x01, true), &[Text(b"one two three".into())], &[b"ping"]);
    check("empty fragments", &[frame(0x01, ""), frame(0x00, ""), frame(0x80, "")], &[Text(vec![])], &[]);
    let close_between = [frame(0x01, "one"), frame(0x88, [3, 0xe8]), frame(0x80, "two")];
    check("a close between fragments", &close_between, &[Close(Some(1000))], &[]);
    let twice = [parts(0x01, true), parts(0x02, true)].concat();
    let both = [Text(b"one two three".into()), Binary(b"one two three".into())];
    check("two messages in fragments", &twice, &both, &[b"ping", b"ping"]);
    let pieces: Vec<Frame> = (0..256)
        .map(|at| {
            frame(
                if at == 0 {
                    0x02
                } else if at == 255 {
                    0x80
                } else {
                    0
                },
                [7; 256],
            )
        })
        .collect();
    check("a largest message in 256 fragments", &pieces, &[Binary(vec![7; 65_536])], &[]);
}

#[test]
fn fragments_that_do_not_fit_together_are_refused() {
    refuse("a ping in fragments", &[frame(0x09, "a"), frame(0x80, "b")], PROTOCOL);
    refuse("a pong in fragments", &[frame(0x0a, "a"), frame(0x80, "b")], PROTOCOL);
    refuse("a close in fragments", &[frame(0x08, [3, 0xe8])], PROTOCOL);
    refuse("an end without a beginning", &[frame(0x80, "a")], PROTOCOL);
    refuse("a middle without a beginning", &[frame(0x00, "a")], PROTOCOL);
    refuse("a text within a text", &[frame(0x01, "a"), frame(0x81, "b")], PROTOCOL);
    refuse("a binary within a text", &[frame(0x01, "a"), frame(0x82, "b")], PROTOCOL);
    refuse("a beginning within a text", &[frame(0x01, "a"), frame(0x01, "b")], PROTOCOL);
    let after = [frame(0x01, "a"), frame(0x80, "b"), frame(0x80, "c")];
    check("an end after the end", &after, &[Text(b"ab".into()), Refused(PROTOCOL)], &[]);
    refuse("more than a message may have", &[frame(0x02, vec![0; 65_536]), frame(0x80, "a")], TOO_BIG);
    refuse(
        "fragments that wrap",
        &[frame(0x02, "a"), frame(0x80, []).with(Length::Claimed(u64::MAX >> 1))],
        TOO_BIG,
    );
}

#[test]
fn text_is_utf_8_wherever_it_is_cut() {
    for text in [
        "",
        "Hello-\u{b5}@\u{df}\u{f6}\u{e4}",
        "\u{3ba}\u{1f79}\u{3c3}\u{3bc}\u{3b5}",
        "\0",
        "\u{7f}\u{80}\u{7ff}\u{800}",
        "\u{ffff}\u{10000}\u{10ffff}",
        "\u{d7ff}\u{e000}\u{fffd}\u{feff}",
    ] {
        check(text, &[frame(0x81, text)], &[Text(text.into())], &[]);
        let mut each: Vec<Frame> = text.bytes().map(|byte| frame(0x00, [byte])).collect();
        each.insert(0, frame(0x01, ""));
        each.push(frame(0x80, ""));
        check(&format!("{text} in fragments of a byte"), &each, &[Text(text.into())], &[]);
    }
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let invalid: [&[u8]; 20] = [
        b"\x80",
        b"\xbf",
        b"\x80\xbf",
        b"\xc0\x20",
        b"\xc0\xaf",
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xe0\x9f\xbf",
        b"\xf0\x80\x80\xaf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfc\x84\x80\x80\x80\x80",
        b"\xfe",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80ed",
    ];
    for bytes in invalid {
        refuse(&format!("{bytes:02x?}"), &[frame(0x81, bytes)], UTF8);
        let parts = [frame(0x01, "a"), frame(0x00, bytes), frame(0x80, "b")];
        refuse(&format!("{bytes:02x?} in fragments"), &parts, UTF8);
        check(&format!("{bytes:02x?} as binary"), &[frame(0x82, bytes)], &[Binary(bytes.into())], &[]);
    }
    for cut in [&b"\xc2"[..], b"\xe2\x82", b"\xf0\x9f\x98"] {
        refuse(&format!("it ends within a character: {cut:02x?}"), &[frame(0x81, cut)], UTF8);
        refuse("and in fragments", &[frame(0x01, cut), frame(0x80, "")], UTF8);
    }
}

/// Fail fast: with the fragment that has the fault, not with the message's end, which need not come.
#[test]
fn a_fragment_that_no_other_can_mend_is_refused_at_once() {
    for fault in [&b"\xff"[..], b"\xed\xa0", b"\xf4\x90", b"\xc3\x28"] {
        refuse(&format!("{fault:02x?} to begin with"), &[frame(0x01, fault)], UTF8);
        refuse(
            &format!("{fault:02x?} in the middle"),
            &[frame(0x01, "ab\u{20ac}"), frame(0x00, fault)],
            UTF8,
        );
        let split = [frame(0x01, [&b"a"[..], &fault[..1]].concat()), frame(0x00, &fault[1..])];
        let expected: &[Heard] = &[Refused(UTF8)];
        check(&format!("{fault:02x?} between two"), &split, expected, &[]);
    }
    check("half a character", &[frame(0x01, "a"), frame(0x00, b"\xf0\x9f")], &[], &[]);
}

#[test]
fn closing_ends_what_is_heard_and_says_its_code() {
    let close = |code: u16, reason: &[u8]| frame(0x88, [&code.to_be_bytes(), reason].concat());
    check("an empty close", &[frame(0x88, [])], &[Close(None)], &[]);
    check(
        "nothing is heard behind it",
        &[close(1000, b""), frame(0x81, "a"), frame(0x89, "b")],
        &[Close(Some(1000))],
        &[],
    );
    check("a reason", &[close(1000, b"Hello")], &[Close(Some(1000))], &[]);
    check("the longest reason", &[close(1000, &[b'*'; 123])], &[Close(Some(1000))], &[]);
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        check(&format!("code {code}"), &[close(code, b"")], &[Close(Some(code))], &[]);
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        refuse(&format!("code {code}"), &[close(code, b"")], PROTOCOL);
        refuse(&format!("code {code} with a reason"), &[close(code, b"x")], PROTOCOL);
    }
    refuse("half a code", &[frame(0x88, [3])], PROTOCOL);
    refuse("a reason that is too long", &[close(1000, &[b'*'; 124])], PROTOCOL);
    refuse("a reason that is no text", &[close(1000, b"\xce\xba\xed\xa0\x80")], UTF8);
}
