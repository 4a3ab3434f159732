//! `stepladder serve` standalone, seen over a plain socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::place::{Place, parse};

/// A WebSocket by hand: the handshake of RFC 6455 with the RFC's own key.
fn player(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the request");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(
        answer.starts_with("HTTP/1.1 101") && answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        "{answer}"
    );
    stream
}

/// The next frame of a server: opcode and payload.
fn frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a frame");
    let length = match head[1] {
        126 => {
            let mut long = [0; 2];
            stream.read_exact(&mut long).expect("its length");
            usize::from(u16::from_be_bytes(long))
        }
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).expect("its payload");
    (head[0] & 0x0f, payload)
}

#[test]
fn a_server_that_is_told_to_end_stops_its_games_closes_with_1001_flushes_its_log_and_exits_0() {
    let place = Place::new();
    let (server, url) = place.serve("arena --tick-log game.log");
    let address = url.trim_start_matches("ws://").trim_end_matches('/');
    let mut players = [player(address), player(address)];
    let mut waiting = player(address);
    for player in &mut players {
        assert_eq!(frame(player), (1, br#"{"type":"start"}"#.to_vec()));
    }
    std::thread::sleep(Duration::from_millis(300));
    server.signal(libc::SIGTERM);
    for player in &mut players {
        let (opcode, text) = frame(player);
        assert_eq!(opcode, 1);
        assert_eq!(parse(&String::from_utf8_lossy(&text))["type"], "stop");
    }
    for player in players.iter_mut().chain([&mut waiting]) {
        let (opcode, payload) = frame(player);
        assert_eq!((opcode, payload.first_chunk()), (8, Some(&1001u16.to_be_bytes())));
    }
    drop((players, waiting));
    let ran = server.finish();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:#?}");
    let log = &parse(&place.run(["ticks", "game.log", "--json", "-"]).out)["files"][0];
    assert_eq!(log["malformed"], 0, "the last line is whole");
    assert!(log["on_time"].as_u64().zip(log["due"].as_u64()).is_some_and(|(_, due)| due > 5), "{log:#}");
}

#[test]
fn the_null_server_ends_when_told_to() {
    let place = Place::new();
    let mut server = place.start(["serve", "null", "--listen", "127.0.0.1:0"]);
    server.wait_for_out("null listening on ws://127.0.0.1:");
    server.signal(libc::SIGTERM);
    let ran = server.finish();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

/// Lines up to the end of the stream.
fn lines_to_the_end(stream: &mut TcpStream) -> Vec<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the end of the stream");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_chat_that_is_told_to_end_says_so_to_its_clients_tells_its_books_and_exits_0() {
    let place = Place::new();
    let mut server = place.start(["serve", "chat", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let listening = server.wait_for_out("listening on");
    let first = listening.lines().next().unwrap_or_default();
    let address = first.strip_prefix("chat listening on tcp://").expect("the address, in the first line");
    server.wait_for_out("metrics at http://127.0.0.1:");
    server.wait_for_out("window: auto, ");
    let mut clients = [0, 1].map(|_| {
        let stream = TcpStream::connect(address).expect("the chat listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream
    });
    for client in &mut clients {
        let mut byte = [0];
        while byte != *b"\n" {
            client.read_exact(&mut byte).expect("a welcome");
        }
    }
    clients[0].write_all(b"hello\n/quit\n").expect("a line");
    assert_eq!(lines_to_the_end(&mut clients[0]), ["* bye owed 0 delivered 0 dropped 0 waiting 0"]);
    server.signal(libc::SIGTERM);
    assert_eq!(lines_to_the_end(&mut clients[1]), ["hello", "* the server is going away"]);
    let ran = server.finish();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:#?}");
    assert!(ran.out.ends_with("books: owed 1 delivered 1 dropped 0 in flight 0 residual 0\n"), "{ran:#?}");
}
