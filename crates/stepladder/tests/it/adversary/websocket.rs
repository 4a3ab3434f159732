//! WebSocket (RFC 6455): echo clients, which expect their own text back.

use std::io;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::peer::Peer;
use super::{ENDS_FIRST, Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load = Load::new("WebSocket", "ws://127.0.0.1:PORT --bots echo --rungs 4");

pub(super) const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
pub(super) const PING: u8 = 0x89;

/// The answer to a handshake, with these lines besides the right `Sec-WebSocket-Accept`.
fn accepted(request: &str, status: &str, lines: &str) -> String {
    let is_key = |name: &str| name.eq_ignore_ascii_case("sec-websocket-key");
    let mut headers = request.lines().filter_map(|line| line.split_once(": "));
    let key = headers.find(|(name, _)| is_key(name)).map_or("", |(_, value)| value);
    // Source: RFC 6455, section 4.2.2.
    let digest = sha1_smol::Sha1::from(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")).digest().bytes();
    format!("{status}\r\n{lines}Sec-WebSocket-Accept: {}\r\n\r\n", STANDARD.encode(digest))
}

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols";
const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n";

pub(super) fn open(peer: &mut Peer) -> io::Result<()> {
    let request = peer.head()?;
    accept(peer, &request)
}

/// Answers a handshake that was read.
pub(super) fn accept(peer: &mut Peer, request: &str) -> io::Result<()> {
    peer.say(accepted(request, SWITCHING, UPGRADE))
}

/// A frame as a server sends it: its first byte, its shortest length, its payload.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(length as u8),
        length @ 126..65_536 => {
            bytes.push(126);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// The next message of the client; a close is answered.
pub(super) fn message(peer: &mut Peer) -> io::Result<Vec<u8>> {
    loop {
        let [first, length] = peer.bytes()?;
        let length = match length & 0x7f {
            126 => usize::from(u16::from_be_bytes(peer.bytes()?)),
            127 => u64::from_be_bytes(peer.bytes()?) as usize,
            short => usize::from(short),
        };
        let mask: [u8; 4] = peer.bytes()?;
        let mut payload = peer.take(length)?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        match first & 0xf {
            0x8 => {
                peer.say(frame(CLOSE, &payload))?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            0x9 => peer.say(frame(0x8a, &payload))?,
            0xa => {}
            _ => return Ok(payload),
        }
    }
}

/// Answers the handshake with this status and these lines, and is an echo server to those who accept them.
fn shakes_hands(status: &'static str, lines: &'static str) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        let request = peer.head()?;
        peer.say(accepted(&request, status, lines))?;
        echo(peer, |payload, _| frame(TEXT, payload))
    }
}

/// Says this instead of an answer to the handshake.
fn answers(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.head()?;
        peer.say_last(&bytes)
    }
}

pub(super) fn echo(peer: &mut Peer, answer: impl Fn(&[u8], usize) -> Vec<u8>) -> io::Result<()> {
    for number in 0.. {
        let payload = message(peer)?;
        peer.say(answer(&payload, number))?;
    }
    Ok(())
}

/// Answers each message by what `answer` makes of it and its number.
fn echoes(answer: impl Fn(&[u8], usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        open(peer)?;
        echo(peer, &answer)
    }
}

/// Hears a message and then does this.
fn then(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        open(peer)?;
        message(peer)?;
        does(peer)
    }
}

/// Hears a message, says this, and then nothing.
pub(super) fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    then(move |peer| peer.say_last(&bytes))
}

/// Hears a message and then says this again and again.
fn floods(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    then(move |peer| peer.flood(&bytes))
}

fn handshakes() -> Vec<Row> {
    const NOT_ONE: &str = "is not a WebSocket server";
    vec![
        long(
            "accepts and says nothing",
            Unmeasured,
            "did not answer the WebSocket handshake within 5 s",
            Peer::hold,
        ),
        row("closes at once", Unmeasured, "closes connections during the WebSocket handshake", |_| Ok(())),
        long("resets at once", Unmeasured, "during the WebSocket handshake", Peer::reset),
        long("closes when it has been asked", Unmeasured, "during the WebSocket handshake", |peer| {
            peer.head().map(|_| ())
        }),
        row("speaks first, of something else", Unmeasured, NOT_ONE, |peer| {
            peer.say_last("SSH-2.0-OpenSSH_9.2\r\n")
        }),
        row("answers garbage", Unmeasured, NOT_ONE, answers([0xff; 100])),
        long("answers one byte in 100 ms", Unmeasured, "within 5 s", |peer| {
            let request = peer.head()?;
            let head = accepted(&request, SWITCHING, UPGRADE);
            peer.say_slowly(head, Duration::from_millis(100))
        }),
        long(
            "answers half a head",
            Unmeasured,
            "within 5 s",
            answers("HTTP/1.1 101 Switching Protocols\r\nUpg"),
        ),
        row("answers an endless header line", Unmeasured, NOT_ONE, |peer| {
            peer.head()?;
            peer.say("HTTP/1.1 101 Switching Protocols\r\nX: ")?;
            peer.flood("a")
        }),
        row("answers endless headers", Unmeasured, NOT_ONE, |peer| {
            peer.head()?;
            peer.say("HTTP/1.1 101 Switching Protocols\r\n")?;
            peer.flood("X-Header: value\r\n")
        }),
        row("answers an endless status line", Unmeasured, NOT_ONE, |peer| {
            peer.head()?;
            peer.say("HTTP/1.1 101 ")?;
            peer.flood("a")
        }),
        row(
            "answers 200",
            Unmeasured,
            "it answered 200 OK",
            answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ),
        row(
            "answers 401 and says why",
            Unmeasured,
            "asks for credentials: it answered 401 Unauthorized, \"no token\"; give them with --header",
            answers("HTTP/1.1 401 Unauthorized\r\nContent-Length: 8\r\n\r\nno token"),
        ),
        row(
            "answers 404 and says why",
            Unmeasured,
            "404 Not Found, \"no such game\"; check its port and path",
            answers("HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nno such game"),
        ),
        row("wants a header and a subprotocol, and gets them", Passes, "", |peer| {
            let request = peer.head()?;
            if !(request.contains("Origin: http://game\n")
                && request.contains("Sec-WebSocket-Protocol: v2, v1\n"))
            {
                return peer.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            }
            peer.say(accepted(&request, SWITCHING, &format!("{UPGRADE}Sec-WebSocket-Protocol: v1\r\n")))?;
            echo(peer, |payload, _| frame(TEXT, payload))
        })
        .with(&["--header", "Origin: http://game", "--subprotocol", "v2", "--subprotocol", "v1"]),
        row("closes with 4001 and a reason", Unmeasured, "code 4001: \"login first\"", |peer| {
            open(peer)?;
            peer.say_last(frame(CLOSE, b"\x0f\xa1login first"))
        }),
        row(
            "says why it closes before it closes",
            Unmeasured,
            r#"\"error\":\"login first\""#,
            then(|peer| {
                peer.say(frame(TEXT, br#"{"error":"login first"}"#))?;
                peer.say_last(frame(CLOSE, b"\x03\xf0"))
            }),
        ),
        row("lets one client in and closes further ones with 4002", Fails, "closed by the server", |peer| {
            open(peer)?;
            if !peer.is_probe() {
                return peer.say_last(frame(CLOSE, b"\x0f\xa2full"));
            }
            echo(peer, |payload, _| frame(TEXT, payload))
        }),
        row("answers the handshake after 300 ms, as it may", Passes, "", |peer| {
            let request = peer.head()?;
            thread::sleep(Duration::from_millis(300));
            accept(peer, &request)?;
            echo(peer, |payload, _| frame(TEXT, payload))
        }),
        row("is busy with something else for 1.5 s at first, as it may", Passes, "", |peer| {
            let request = peer.head()?;
            if peer.is_probe() {
                thread::sleep(Duration::from_millis(1500));
            }
            accept(peer, &request)?;
            echo(peer, |payload, _| frame(TEXT, payload))
        }),
        row("answers 503", Unmeasured, "503", answers("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")),
        row(
            "redirects to a cloud's metadata service",
            Unmeasured,
            "302",
            answers(
                "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n",
            ),
        ),
        row(
            "switches without Upgrade",
            Unmeasured,
            "Upgrade",
            shakes_hands(SWITCHING, "Connection: Upgrade\r\n"),
        ),
        row(
            "switches without Connection",
            Unmeasured,
            "Connection",
            shakes_hands(SWITCHING, "Upgrade: websocket\r\n"),
        ),
        row(
            "switches to another protocol",
            Unmeasured,
            "Upgrade",
            shakes_hands(SWITCHING, "Upgrade: h2c\r\nConnection: Upgrade\r\n"),
        ),
        row(
            "switches with an extension that was not offered",
            Unmeasured,
            "extension",
            shakes_hands(
                SWITCHING,
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Extensions: permessage-deflate\r\n",
            ),
        ),
        row(
            "switches with a subprotocol that was not offered",
            Unmeasured,
            "subprotocol",
            shakes_hands(
                SWITCHING,
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: chat\r\n",
            ),
        ),
        row(
            "switches in HTTP/1.0",
            Unmeasured,
            "in HTTP/1.0",
            shakes_hands("HTTP/1.0 101 Switching Protocols", UPGRADE),
        ),
        row("switches without Sec-WebSocket-Accept", Unmeasured, NOT_ONE, |peer| {
            peer.head()?;
            peer.say_last(format!("{SWITCHING}\r\n{UPGRADE}\r\n"))
        }),
        row("switches with another key's Sec-WebSocket-Accept", Unmeasured, "Sec-WebSocket-Accept", |peer| {
            peer.head()?;
            peer.say_last(accepted("Sec-WebSocket-Key: other\n", SWITCHING, UPGRADE))
        }),
        long("lets in the first connection only", Fails, "connections open", |peer| {
            if !peer.is_probe() {
                return Ok(());
            }
            open(peer)?;
            echo(peer, |payload, _| frame(TEXT, payload))
        }),
    ]
}

/// Faults after a correct handshake, once a message was received.
fn frames() -> Vec<Row> {
    const BROKEN: &str = "broken protocol";
    vec![
        long("sends a masked frame", Fails, BROKEN, says([0x81, 0x81, 1, 2, 3, 4, b'x' ^ 1])),
        long("sets a reserved bit", Fails, BROKEN, says(frame(0xc1, b"x"))),
        long("sends the reserved opcode 3", Fails, BROKEN, says(frame(0x83, b"x"))),
        long("sends the reserved opcode 11", Fails, BROKEN, says(frame(0x8b, b"x"))),
        row("sends a ping of 126 bytes", Fails, BROKEN, says(frame(PING, &[b'x'; 126]))),
        long("sends a ping in two fragments", Fails, BROKEN, says([0x09, 1, b'x', 0x80, 1, b'x'])),
        long("continues a message that has not begun", Fails, BROKEN, says(frame(0x80, b"x"))),
        long("begins a message within another", Fails, BROKEN, says([0x01, 1, b'x', 0x01, 1, b'x'])),
        long("sends text that is not UTF-8", Fails, BROKEN, says(frame(TEXT, b"\xff\xfe"))),
        long("cuts a character at the end of a text", Fails, BROKEN, says(frame(TEXT, b"\xe2\x82"))),
        long("closes with code 1005", Fails, BROKEN, says(frame(CLOSE, &1005_u16.to_be_bytes()))),
        long("closes with code 1006", Fails, BROKEN, says(frame(CLOSE, &1006_u16.to_be_bytes()))),
        long("closes with code 999", Fails, BROKEN, says(frame(CLOSE, &999_u16.to_be_bytes()))),
        long("closes with half a code", Fails, BROKEN, says(frame(CLOSE, b"\x03"))),
        long("closes with a reason that is not UTF-8", Fails, BROKEN, says(frame(CLOSE, b"\x03\xe8\xff"))),
        row(
            "closes with 1001, going away",
            Unmeasured,
            "code 1001 (going away): \"bye\"",
            says(frame(CLOSE, b"\x03\xe9bye")),
        ),
        long("announces 2^63 bytes", Fails, BROKEN, says([0x81, 127, 0x80, 0, 0, 0, 0, 0, 0, 0])),
        long("announces 2^62 bytes", Fails, BROKEN, says([0x81, 127, 0x40, 0, 0, 0, 0, 0, 0, 0])),
        long(
            "announces 1 GiB and sends it",
            Fails,
            BROKEN,
            then(|peer| {
                peer.say([0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0])?;
                peer.flood("x")
            }),
        ),
        long("announces 1 byte in 8", Fails, BROKEN, says([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 1, b'x'])),
        long("stops within a frame", Fails, "stopped replying", says([0x81, 5, b'x'])),
        long("stops within a message", Fails, "stopped replying", says([0x01, 1, b'x'])),
        row(
            "sends fragments without end",
            Fails,
            BROKEN,
            then(|peer| {
                peer.say([0x01, 1, b'x'])?;
                peer.flood([&[0x00, 126, 0x40, 0][..], &[b'x'; 0x4000]].concat())
            }),
        ),
        row(
            "sends empty fragments without end",
            Fails,
            "stopped replying",
            then(|peer| {
                peer.say([0x01, 0])?;
                peer.flood([0x00, 0])
            }),
        ),
        row(
            "sends pings without end",
            Fails,
            "it asks for answers, such as pongs, and does not read them",
            floods(frame(PING, b"")),
        ),
        row(
            "sends pings of 125 bytes without end",
            Fails,
            "does not read them",
            floods(frame(PING, &[b'x'; 125])),
        ),
        long("sends pongs without end", Fails, "stopped replying", floods(frame(0x8a, b""))),
        long(
            "sends texts that nobody asked for without end",
            Fails,
            "wrong answer",
            floods(frame(TEXT, b"news")),
        ),
    ]
}

/// Echo servers that keep to the protocol.
fn texts() -> Vec<Row> {
    let text = |payload: &[u8]| frame(TEXT, payload);
    vec![
        row("echoes, as it should", Passes, "", echoes(move |payload, _| text(payload))),
        row(
            "echoes with a ping before each, as it may",
            Passes,
            "",
            echoes(move |payload, _| [frame(PING, b"are you there"), text(payload)].concat()),
        ),
        row(
            "echoes with an unasked pong before each, as it may",
            Passes,
            "",
            echoes(move |payload, _| [frame(0x8a, b"here I am"), text(payload)].concat()),
        ),
        row(
            "echoes in fragments of one byte, as it may",
            Passes,
            "",
            echoes(|payload, _| {
                let mut bytes = vec![0x01, 0];
                payload.iter().for_each(|byte| bytes.extend([0x00, 1, *byte]));
                bytes.extend([0x80, 0]);
                bytes
            }),
        ),
        long("answers nothing", Fails, "stopped replying", then(Peer::hold)),
        long(
            "echoes ten messages and then nothing",
            Fails,
            "never answered",
            echoes(move |payload, number| if number < 10 { text(payload) } else { Vec::new() }),
        ),
        long(
            "echoes every second message",
            Fails,
            "wrong answer|never answered",
            echoes(move |payload, number| if number % 2 == 0 { text(payload) } else { Vec::new() }),
        ),
        row("answers another text", Fails, "wrong answer", echoes(move |_, _| text(b"something else"))),
        long(
            "answers one text of five wrongly",
            Fails,
            "wrong answer",
            echoes(move |payload, number| if number % 5 == 3 { text(b"x") } else { text(payload) }),
        ),
        long(
            "answers the text without its last byte",
            Fails,
            "wrong answer",
            echoes(move |payload, _| text(&payload[1..])),
        ),
        long("answers an empty text", Fails, "wrong answer", echoes(move |_, _| text(b""))),
        long(
            "echoes twice",
            Fails,
            "wrong answer",
            echoes(move |payload, _| [text(payload), text(payload)].concat()),
        ),
        long("echoes before the message comes", Fails, "wrong answer", |peer| {
            open(peer)?;
            let payload = message(peer)?;
            peer.say(frame(TEXT, &payload))?;
            loop {
                peer.say(frame(TEXT, &payload))?;
                message(peer)?;
            }
        }),
        long("echoes after 1.5 s, beyond the patience", Fails, "never answered", |peer| {
            open(peer)?;
            loop {
                let payload = message(peer)?;
                thread::sleep(Duration::from_millis(1500));
                peer.say(frame(TEXT, &payload))?;
            }
        }),
        long(
            "echoes after 300 ms with a patience of 100 ms, and none may be late",
            Fails,
            "late was",
            |peer| {
                open(peer)?;
                loop {
                    let payload = message(peer)?;
                    thread::sleep(Duration::from_millis(300));
                    peer.say(frame(TEXT, &payload))?;
                }
            },
        )
        .with(&["--patience", "100ms", "--objective", "late == 0"]),
        long("closes after the handshake", Unmeasured, ENDS_FIRST, open),
        long("closes when a message comes", Unmeasured, ENDS_FIRST, then(|_| Ok(()))),
        long("resets when a message comes", Unmeasured, ENDS_FIRST, then(Peer::reset)),
        long("ends its side when a message comes", Unmeasured, ENDS_FIRST, then(Peer::half_close)),
        long("resets after five messages", Fails, "connection reset", |peer| {
            open(peer)?;
            for _ in 0..5 {
                let payload = message(peer)?;
                peer.say(frame(TEXT, &payload))?;
            }
            peer.reset()
        }),
        long("serves half of the connections", Fails, "never answered", |peer| {
            open(peer)?;
            if peer.number % 2 == 0 {
                return peer.hold();
            }
            echo(peer, |payload, _| frame(TEXT, payload))
        }),
    ]
}

#[test]
fn hostile_websocket_servers_do_not_pass() {
    check(&LOAD, &[handshakes(), frames(), texts()].into_iter().flatten().collect::<Vec<_>>());
}
