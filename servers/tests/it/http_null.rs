//! The null server over real sockets, speaking HTTP.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use servers::null::{self, Options, Protocol};

use crate::client::Running;
use crate::http_client::{connect, get, status};

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        let protocol = Protocol::Http;
        null::run(
            Options { listen, protocol, shutdown: Some(shutdown), threads: Some(2), ..options },
            listening,
        )
    })
}

#[test]
fn requests_of_all_kinds_are_answered_one_after_the_other_on_one_connection() {
    let server = start(Options::default());
    let mut client = connect(server.address);
    for request in
        [get("/"), get("/x?y"), "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody".into()]
    {
        let answer = client.ask(&request);
        assert_eq!((answer.status, &answer.body[..]), (200, "ok"));
    }
    assert_eq!(client.ask(&get("/bytes/1048576")).body, "x".repeat(1_048_576));
    client.write(b"HEAD /bytes/10 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(client.answer_head().contains("Content-Length: 10\r\n"));
    assert_eq!(client.ask(&get("/bytes/1048577")).status, 400);
    assert_eq!(client.ask(&get("/")).body, "ok");
    server.end().unwrap();
}

#[test]
fn ten_thousand_pipelined_requests_are_all_answered_in_order() {
    let server = start(Options::default());
    let mut client = connect(server.address);
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let all: String = (0..10_000).map(|i| get(&format!("/bytes/{}", i % 300))).collect();
        all.as_bytes().chunks(1_000).for_each(|piece| writer.write_all(piece).unwrap());
    });
    for i in 0..10_000 {
        assert_eq!(client.answer().body.len(), i % 300);
    }
    writing.join().unwrap();
    server.end().unwrap();
}

#[test]
fn a_client_that_does_not_read_gets_all_it_asked_for_later() {
    let server = start(Options::default());
    let mut client = connect(server.address);
    client.write(get("/bytes/1000000").repeat(30).as_bytes());
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..30 {
        assert_eq!(client.answer().body.len(), 1_000_000);
    }
    assert_eq!(client.ask(&get("/")).body, "ok");
    server.end().unwrap();
}

#[test]
fn the_last_answer_is_whole_and_then_the_server_closes() {
    let server = start(Options::default());
    for request in [
        "GET /bytes/500000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /bytes/500000 HTTP/1.0\r\n\r\n",
    ] {
        let mut client = connect(server.address);
        let answer = client.ask(&(request.to_string() + &get("/ignored").repeat(2_000)));
        assert!(answer.head.contains("\r\nConnection: close\r\n"));
        assert_eq!(answer.body.len(), 500_000);
        assert!(client.is_at_the_end());
    }
    let mut half_closed = connect(server.address);
    half_closed.write(get("/bytes/300000").as_bytes());
    half_closed.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(half_closed.answer().body.len(), 300_000);
    assert!(half_closed.is_at_the_end());
    server.end().unwrap();
}

#[test]
fn what_is_no_request_is_answered_with_its_status_and_the_connection_ends() {
    let server = start(Options::default());
    for (bytes, expected) in [
        ("hello?\r\n".to_string(), 400),
        ("\x16\x03\x01\x02".to_string(), 400),
        ("GET / HTTP/2.0\r\n\r\n".to_string(), 505),
        (format!("GET / HTTP/1.1\r\nHost: {}", "x".repeat(16 * 1024)), 431),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n".to_string(), 413),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_string(), 411),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_string(), 400),
    ] {
        let mut client = connect(server.address);
        let answer = client.ask(&bytes);
        assert_eq!(answer.status, expected, "{bytes:?}");
        assert!(answer.head.contains("\r\nConnection: close\r\n"));
        assert!(client.is_at_the_end());
    }
    server.end().unwrap();
}

#[test]
fn a_request_that_drips_is_cut_and_silence_between_requests_is_not() {
    let handshake_timeout = Duration::from_millis(50);
    let server = start(Options { handshake_timeout, ..Options::default() });
    let mut patient = connect(server.address);
    let mut from_the_first = connect(server.address);
    from_the_first.write(b"GET / HT");
    let mut later = connect(server.address);
    assert_eq!(later.ask(&get("/")).body, "ok");
    later.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123");
    assert!(from_the_first.is_at_the_end());
    assert!(later.is_at_the_end());
    assert_eq!(patient.ask(&get("/")).body, "ok");
    std::thread::sleep(4 * handshake_timeout);
    assert_eq!(patient.ask(&get("/")).body, "ok");
    server.end().unwrap();
}

#[test]
fn requests_that_always_come_in_two_pieces_are_not_taken_for_one_that_drips() {
    let handshake_timeout = Duration::from_secs(1);
    let server = start(Options { handshake_timeout, ..Options::default() });
    let mut client = connect(server.address);
    let request = get("/");
    let began = Instant::now();
    client.write(&request.as_bytes()[..9]);
    while began.elapsed() < 5 * handshake_timeout / 2 {
        client.write((request[9..].to_string() + &request[..9]).as_bytes());
        assert_eq!(client.answer().body, "ok");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.end().unwrap();
}

#[test]
fn whoever_comes_on_top_of_the_limit_is_refused_with_503() {
    let server = start(Options { max_connections: 1, ..Options::default() });
    let mut first = connect(server.address);
    assert_eq!(first.ask(&get("/")).body, "ok");
    let mut second = connect(server.address);
    assert_eq!(status(&second.answer_head()), 503);
    assert!(second.is_at_the_end());
    assert_eq!(first.ask(&get("/")).body, "ok");
    server.end().unwrap();
}

#[test]
fn the_end_closes_idle_connections_and_does_not_take_long() {
    let server = start(Options::default());
    let mut idle = connect(server.address);
    assert_eq!(idle.ask(&get("/")).body, "ok");
    let mut stalled = connect(server.address);
    stalled.write(get("/bytes/1048576").repeat(20).as_bytes());
    let began = Instant::now();
    server.shutdown.trigger();
    assert!(idle.is_at_the_end());
    server.end().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    let mut rest = Vec::new();
    // However it ends: with what was in flight, or with a reset.
    let _ = stalled.stream.read_to_end(&mut rest);
}
