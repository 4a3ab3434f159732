//! The null server over real sockets.

use std::time::{Duration, Instant};

use servers::null::{self, Options, Protocol};

use crate::client::{Client, Frame, Running, frame, request};

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        null::run(Options { listen, shutdown: Some(shutdown), threads: Some(2), ..options }, listening)
    })
}

#[test]
fn texts_and_binaries_come_back_as_they_were_sent() {
    let server = start(Options::default());
    let mut clients: Vec<Client> = (0..10).map(|_| Client::open(server.address, "/")).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        let text = format!("client {i} — ").repeat(i * 300);
        client.say(&text);
        client.write(&[frame(0x82, &[i as u8; 200]), frame(0x89, b"ping")].concat());
        assert_eq!(client.hear(), Frame::Text(text));
        assert_eq!(client.hear(), Frame::Binary(vec![i as u8; 200]));
        assert_eq!(client.hear(), Frame::Pong(b"ping".to_vec()));
    }
    drop(clients);
    server.end().unwrap();
}

#[test]
fn a_message_of_64_kib_is_echoed_and_a_longer_one_is_too_big() {
    let server = start(Options::default());
    let mut client = Client::open(server.address, "/");
    client.write(&frame(0x82, &[7; 65_536]));
    assert_eq!(client.hear(), Frame::Binary(vec![7; 65_536]));
    client.write(&frame(0x82, &[7; 65_537])[..14]);
    assert_eq!(client.hear(), Frame::Close(Some(1009)));
    assert_eq!(client.hear(), Frame::End);
    server.end().unwrap();
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_and_gets_everything_later() {
    let server = start(Options::default());
    let mut client = Client::open(server.address, "/");
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        use std::io::Write;
        (0..400u32).for_each(|i| writer.write_all(&frame(0x82, &i.to_be_bytes().repeat(8_000))).unwrap());
    });
    for i in 0..400u32 {
        assert_eq!(client.hear(), Frame::Binary(i.to_be_bytes().repeat(8_000)));
    }
    writing.join().unwrap();
    drop(client);
    server.end().unwrap();
}

#[test]
fn a_request_that_is_not_completed_in_time_is_cut_off() {
    let server = start(Options { handshake_timeout: Duration::from_millis(50), ..Options::default() });
    let mut client = Client::silent(server.address);
    client.write(&request("/").as_bytes()[..40]);
    assert_eq!(client.hear(), Frame::End);
    server.end().unwrap();
}

#[test]
fn a_message_that_is_not_completed_in_time_is_cut_off_and_a_silent_client_is_not() {
    let handshake_timeout = Duration::from_millis(50);
    let server = start(Options { handshake_timeout, ..Options::default() });
    let mut silent = Client::open(server.address, "/");
    let fragment = frame(0x01, b"of a message that has no end");
    for part in [&frame(0x82, &[7; 1000])[..900], &frame(0x82, &[7; 200])[..3], &fragment] {
        let mut client = Client::open(server.address, "/");
        client.write(&frame(0x81, b"whole"));
        assert_eq!(client.hear(), Frame::Text("whole".to_owned()));
        client.write(part);
        assert_eq!(client.hear(), Frame::End);
    }
    silent.say("still there");
    assert_eq!(silent.hear(), Frame::Text("still there".to_owned()));
    server.end().unwrap();
}

#[test]
fn whoever_comes_on_top_of_the_limit_is_refused() {
    let server = start(Options { max_connections: 1, ..Options::default() });
    let first = Client::open(server.address, "/");
    let mut second = Client::silent(server.address);
    second.write(request("/").as_bytes());
    assert!(second.read_until(b"\r\n\r\n").starts_with("HTTP/1.1 503 "));
    drop(first);
    server.end().unwrap();
}

#[test]
fn the_end_closes_1001_and_does_not_take_long() {
    let server = start(Options::default());
    let mut client = Client::open(server.address, "/");
    let began = Instant::now();
    server.shutdown.trigger();
    assert_eq!(client.hear(), Frame::Close(Some(1001)));
    drop(client);
    server.end().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn lines_come_back_as_soon_as_they_were_sent_and_silence_is_no_fault() {
    let handshake_timeout = Duration::from_millis(50);
    let server = start(Options { protocol: Protocol::Lines, handshake_timeout, ..Options::default() });
    let mut client = Client::silent(server.address);
    std::thread::sleep(3 * handshake_timeout);
    for line in ["hello\n", "\r\n", "two\nat once\n"] {
        client.write(line.as_bytes());
        assert_eq!(client.read_until(line.as_bytes()), line);
    }
    let began = Instant::now();
    server.shutdown.trigger();
    assert_eq!(client.hear(), Frame::End);
    drop(client);
    server.end().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}
