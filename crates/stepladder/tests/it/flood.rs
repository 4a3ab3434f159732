//! Servers that make the instrument answer and read none of it: its memory stays what it was, and the rung is judged.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::place::Place;

/// What the program may take in all: the figure.
const MEMORY_KB_MAX: u64 = 64 << 10;
/// No flood goes on for longer.
const FLOOD: Duration = Duration::from_secs(6);

/// Serves each connection by `greet` and then floods it with `flood`, without reading any more.
fn flooding(greet: fn(&mut TcpStream) -> std::io::Result<()>, flood: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let flood = flood.clone();
            thread::spawn(move || {
                let begin = Instant::now();
                let _ = greet(&mut stream);
                let _ = stream.set_write_timeout(Some(FLOOD));
                while begin.elapsed() < FLOOD && stream.write_all(&flood).is_ok() {}
            });
        }
    });
    port
}

/// Reads until a text has come, and returns all of it.
fn read_until(stream: &mut TcpStream, end: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut heard, mut byte) = (Vec::new(), [0]);
    while !heard.ends_with(end) {
        stream.read_exact(&mut byte)?;
        heard.push(byte[0]);
    }
    Ok(heard)
}

fn accept_websocket(stream: &mut TcpStream) -> std::io::Result<()> {
    let request = String::from_utf8_lossy(&read_until(stream, b"\r\n\r\n")?).into_owned();
    let is_key = |name: &str| name.eq_ignore_ascii_case("sec-websocket-key");
    let mut headers = request.lines().filter_map(|line| line.split_once(": "));
    let key = headers.find(|(name, _)| is_key(name)).map_or("", |(_, value)| value);
    // Source: RFC 6455, section 4.2.2.
    let digest = sha1_smol::Sha1::from(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")).digest().bytes();
    let accept = STANDARD.encode(digest);
    write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

/// A frame of HTTP/2 on the connection as a whole: length, type, flags, stream, payload.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(payload);
    bytes
}

const SETTINGS: u8 = 4;
const PING: u8 = 6;

fn greet_over_http_2(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, &[]))
}

fn greet_with_nats(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"INFO {\"headers\":true}\r\n")?;
    read_until(stream, b"PING\r\n")?;
    stream.write_all(b"PONG\r\n")
}

/// Climbs it for some seconds. Returns the most memory that the program took, kB, and how it ended.
fn climb(words: &[&str]) -> (u64, i32) {
    let place = Place::new();
    let words =
        [words, &["--no-calibration", "--hold", "2s", "--settle", "200ms", "--workers", "1"]].concat();
    let running = place.start([&["climb"], &words[..]].concat());
    let status = format!("/proc/{}/status", running.pid());
    let watching = thread::spawn(move || {
        let mut most = 0;
        // A process that has ended tells no more of its memory.
        while let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let Some(kb) = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()) else {
                break;
            };
            most = most.max(kb);
            thread::sleep(Duration::from_millis(20));
        }
        most
    });
    let ran = running.finish();
    assert!((0..=2).contains(&ran.code) && !ran.err.contains("panicked"), "{ran:#?}");
    (watching.join().expect("it only reads"), ran.code)
}

#[track_caller]
fn check(port: u16, scheme: &str, options: &[&str]) {
    let url = format!("{scheme}://127.0.0.1:{port}");
    let (most_kb, code) = climb(&[&[url.as_str(), "--rungs", "4"], options].concat());
    assert!(most_kb > 1_000 && most_kb <= MEMORY_KB_MAX, "{most_kb} kB against {scheme} {options:?}");
    assert_ne!(code, 0, "nobody is served by {scheme} {options:?}");
}

#[test]
fn a_flood_of_websocket_pings_takes_no_memory() {
    check(flooding(accept_websocket, b"\x89\x00".repeat(32 << 10)), "ws", &["--bots", "echo"]);
}

#[test]
fn a_flood_of_pings_or_settings_over_http_2_takes_no_memory() {
    for flood in [frame(PING, &[7; 8]).repeat(4 << 10), frame(SETTINGS, &[]).repeat(8 << 10)] {
        let port = flooding(greet_over_http_2, flood);
        let url = format!("http://127.0.0.1:{port}/");
        let (most_kb, code) = climb(&[&url, "--http", "2", "--requesters", "4"]);
        assert!(most_kb > 1_000 && most_kb <= MEMORY_KB_MAX, "{most_kb} kB");
        assert_ne!(code, 0);
    }
}

#[test]
fn a_flood_of_nats_pings_takes_no_memory() {
    check(flooding(greet_with_nats, b"PING\r\n".repeat(16 << 10)), "nats", &[]);
}
