//! The cost of a WebSocket message through the `Any` driver, compared to the plain one.
//!
//! `valgrind --tool=callgrind target/release/examples/any bare|any [rounds]`, after
//! `cargo build --release -p stepladder-drivers --example any`
//! In each round 100 texts of 32 bytes go out with one write and 100 come back. The server is another process, so that
//! only the client's instructions are counted. The difference of two round counts gives the cost of a message without
//! startup.
//! Prints ns per message (one sent and one received).

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use base64::Engine as _;
use drivers::any::{self, Any};
use drivers::websocket::{self, Message, WebSocket};
use drivers::{Address, Driver, ReadBuffer};

const BATCH: usize = 100;
const TEXT: &[u8; 32] = b"{\"type\":\"move\",\"x\":1234,\"y\":567}";
/// Of a masked frame and of one that is not.
const MASKED_BYTES: usize = 6 + TEXT.len();

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rounds = words.get(1).map_or(2000, |word| word.parse().expect("a number of rounds"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let (ns, name) = match words.first().map(String::as_str) {
        Some("serve") => return serve(),
        Some("any") => (runtime.block_on(play::<Any>(rounds)), "any"),
        _ => (runtime.block_on(play::<WebSocket>(rounds)), "bare"),
    };
    println!("{name}: {:.1} ns per message", ns as f64 / (rounds * BATCH) as f64);
}

/// A driver over which texts go.
trait Texts: Driver {
    fn text(text: &[u8]) -> Self::Send<'_>;
    fn is_text(received: &Self::Received<'_>) -> bool;
}

impl Texts for WebSocket {
    fn text(text: &[u8]) -> Message<'_> {
        Message::Text(text)
    }

    fn is_text(received: &websocket::Received<'_>) -> bool {
        matches!(received, websocket::Received::Text(text) if text.len() == TEXT.len())
    }
}

impl Texts for Any {
    fn text(text: &[u8]) -> any::Send<'_> {
        any::Send::Text(text)
    }

    fn is_text(received: &any::Received<'_>) -> bool {
        matches!(received, any::Received::Text(text) if text.len() == TEXT.len())
    }
}

async fn play<D: Texts>(rounds: usize) -> u64 {
    let mut server = std::process::Command::new(std::env::current_exe().expect("a path"))
        .arg("serve")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a server");
    let mut said = Vec::new();
    server.stdout.take().expect("its words").read_to_end(&mut said).expect("its words");
    let socket: SocketAddr = String::from_utf8_lossy(&said).trim().parse().expect("an address");
    let to = Address { reply_bytes_max: 0, ..Address::plain(socket) };
    let mut driver =
        D::open(D::begin_connect(&to, None).expect("a socket"), &to).await.expect("a connection");
    let (mut buffer, began) = (ReadBuffer::new(), Instant::now());
    for _ in 0..rounds {
        for _ in 0..BATCH {
            driver.send(D::text(TEXT)).expect("room");
        }
        poll_fn(|cx| driver.poll_flush(cx)).await.expect("a server that reads");
        let mut heard = 0;
        while heard < BATCH {
            poll_fn(|cx| driver.poll_read(cx, &mut buffer)).await.expect("a server that answers");
            while let Some(received) = driver.next(&mut buffer) {
                heard += usize::from(D::is_text(&received.expect("a frame")));
            }
        }
    }
    let ns = began.elapsed().as_nanos() as u64;
    drop(driver);
    server.wait().expect("its end");
    ns
}

/// Says where it listens, and answers each batch of one client with another.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    // The end of its words tells the client that they are whole.
    // SAFETY: nothing is written to it from here on.
    unsafe { libc::close(1) };
    let (mut stream, _) = listener.accept().expect("a client");
    handshake(&mut stream);
    let mut frames = Vec::new();
    for _ in 0..BATCH {
        frames.extend([0x81, TEXT.len() as u8]);
        frames.extend_from_slice(TEXT);
    }
    let mut batch = vec![0; BATCH * MASKED_BYTES];
    while stream.read_exact(&mut batch).is_ok() && stream.write_all(&frames).is_ok() {}
}

fn handshake(stream: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a request");
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let key = request
        .lines()
        .find_map(|line| {
            line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
        })
        .map_or("", |(_, key)| key);
    let sum = sha1_smol::Sha1::from(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")).digest().bytes();
    let accept = base64::engine::general_purpose::STANDARD.encode(sum);
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).expect("a client");
}
