//! Each protocol over loopback, through the one driver, against servers of a few lines.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use http::header::SEC_WEBSOCKET_PROTOCOL;

use super::*;
use crate::TlsSettings;
use crate::address::AUTHORITY;
use crate::http::Fault;
use crate::http::tests::server::{self, Over, Server, acceptor};
use crate::unfinished::reserved_bytes;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(Duration::from_secs(20), future).await.expect("it goes on within 20 s")
    })
}

fn address(socket: SocketAddr, speaks: Protocol, tls: Option<TlsSettings>) -> Address {
    Address { tls, speaks, ..Address::plain(socket) }
}

fn trusting() -> TlsSettings {
    TlsSettings::new("localhost", Some(AUTHORITY), false).unwrap()
}

fn get(tag: u32, path: &str) -> Fetch<'_> {
    Fetch { tag, method: "GET", path, headers: &[], body: b"", keep_alive: true }
}

/// A connection with its own buffer.
struct Client {
    driver: Any,
    buffer: ReadBuffer,
}

/// What was received, in our own memory.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Text(String),
    Binary(Vec<u8>),
    Head(u32, u16, Vec<(String, String)>),
    Part(u32, Vec<u8>),
    End(u32, bool),
    Other(String),
}

impl Client {
    async fn open(to: &Address) -> Result<Self, OpenError> {
        let driver = Any::open(Any::begin_connect(to, None)?, to).await?;
        Ok(Client { driver, buffer: ReadBuffer::new() })
    }

    async fn say(&mut self, what: Send<'_>) {
        self.driver.send(what).unwrap();
        poll_fn(|cx| self.driver.poll_flush(cx)).await.unwrap();
    }

    /// What the next read brings.
    async fn hear(&mut self) -> Result<Vec<Told>, Closed> {
        poll_fn(|cx| self.driver.poll_read(cx, &mut self.buffer)).await?;
        let mut told = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        while let Some(received) = self.driver.next(&mut self.buffer) {
            told.push(match received.map_err(Closed::Broken)? {
                Received::Text(bytes) => Told::Text(text(bytes)),
                Received::Binary(bytes) => Told::Binary(bytes.to_vec()),
                Received::Http(Piece::Head(head)) => {
                    let lines = head.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
                    Told::Head(head.tag, head.status, lines)
                }
                Received::Http(Piece::Part { tag, bytes }) => Told::Part(tag, bytes.to_vec()),
                Received::Http(Piece::End { tag, closes }) => Told::End(tag, closes),
                Received::Http(other) => Told::Other(format!("{other:?}")),
            });
        }
        poll_fn(|cx| self.driver.poll_flush(cx)).await.map_err(Closed::Failed)?;
        Ok(told)
    }

    async fn hear_one(&mut self) -> Told {
        loop {
            let mut told = self.hear().await.unwrap();
            if let Some(one) = told.pop() {
                assert!(told.is_empty(), "{told:?}");
                return one;
            }
        }
    }

    /// Reads until the connection ends, and returns why it did and what was received before.
    async fn end(&mut self) -> (Vec<Told>, Closed) {
        let mut all = Vec::new();
        loop {
            match self.hear().await {
                Ok(told) => all.extend(told),
                Err(why) => return (all, why),
            }
        }
    }

    /// Status and body of the answer to `fetch`.
    async fn fetch(&mut self, fetch: Fetch<'_>) -> Result<(u16, Vec<u8>), Closed> {
        self.say(Send::Request(fetch)).await;
        let (mut status, mut body) = (0, Vec::new());
        loop {
            for told in self.hear().await? {
                match told {
                    Told::Head(tag, was, _) if tag == fetch.tag => status = was,
                    Told::Part(tag, bytes) if tag == fetch.tag => body.extend(bytes),
                    Told::End(tag, false) if tag == fetch.tag => return Ok((status, body)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// A connection whose server is the test.
async fn pair(speaks: Protocol) -> (TcpStream, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = address(listener.local_addr().unwrap(), speaks, None);
    let client = Client::open(&to).await.unwrap();
    (listener.accept().await.unwrap().0, client)
}

#[test]
fn a_websocket_says_what_the_bare_driver_says() {
    use futures_util::{SinkExt, StreamExt};
    block_on(async {
        for tls in [None, Some(trusting())] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let is_tls = tls.is_some();
            let mut to = address(listener.local_addr().unwrap(), Protocol::WebSocket, tls.clone());
            to.upgrade.subprotocols = vec!["v1".to_owned(), "v2".to_owned()];
            tokio::task::spawn_local(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let stream: Box<dyn server::Both> = match tls {
                    Some(_) => Box::new(acceptor(Over::One).accept(stream).await.unwrap()),
                    None => Box::new(stream),
                };
                let chosen = http::HeaderValue::from_static("v2");
                let server = tokio_websockets::ServerBuilder::new()
                    .add_header(SEC_WEBSOCKET_PROTOCOL, chosen)
                    .unwrap();
                let (_, mut far) = server.accept(stream).await.unwrap();
                while let Some(Ok(message)) = far.next().await {
                    if message.is_text() || message.is_binary() {
                        far.send(message).await.unwrap();
                    }
                }
            });
            let mut client = Client::open(&to).await.unwrap();
            assert_eq!(client.driver.subprotocol(), "v2");
            assert_eq!(client.driver.tls_ns().is_some(), is_tls);
            client.say(Send::Text("ä".as_bytes())).await;
            assert_eq!(client.hear_one().await, Told::Text("ä".to_owned()));
            client.say(Send::Binary(b"\xff")).await;
            assert_eq!(client.hear_one().await, Told::Binary(vec![0xff]));
            assert_eq!(client.driver.send(Send::Request(get(1, "/"))), Err(Refused(0)));
            client.driver.close();
            poll_fn(|cx| client.driver.poll_flush(cx)).await.unwrap();
            let (_, why) = client.end().await;
            assert!(matches!(&why, Closed::ByPeer(Some(goodbye)) if goodbye.code == 1000), "{why:?}");
        }
    });
}

#[test]
fn frames_go_over_tcp_and_tls_as_the_address_says() {
    block_on(async {
        let binary = |bytes: &[u8]| Told::Binary(bytes.to_vec());
        let rows: [(&str, &[u8], &[u8], Told); 11] = [
            ("lines", b"hi", b"hi\n", Told::Text("hi".to_owned())),
            ("lines", b"hi\r\n", b"hi\r\n", Told::Text("hi".to_owned())),
            ("lines", b"\xff", b"\xff\n", binary(b"\xff")),
            ("u8", b"hi", b"\x02hi", binary(b"hi")),
            ("u16be", b"hi", b"\0\x02hi", binary(b"hi")),
            ("u16le", b"hi", b"\x02\0hi", binary(b"hi")),
            ("u32be", b"hi", b"\0\0\0\x02hi", binary(b"hi")),
            ("u32le", b"", b"\0\0\0\0", binary(b"")),
            ("until 0xff", b"hi\r", b"hi\r\xff", Told::Text("hi\r".to_owned())),
            ("until 0x00", b"\xfe\0", b"\xfe\0", binary(b"\xfe")),
            ("raw", b"hi", b"hi", binary(b"hi")),
        ];
        for tls in [None, Some(trusting())] {
            for (name, sent, wire, expected) in &rows {
                let speaks = Protocol::Tcp(Frames::named(name).unwrap());
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let to = address(listener.local_addr().unwrap(), speaks, tls.clone());
                let far = async {
                    let (stream, _) = listener.accept().await.unwrap();
                    let far: Box<dyn server::Both> = match &tls {
                        Some(_) => Box::new(acceptor(Over::One).accept(stream).await.unwrap()),
                        None => Box::new(stream),
                    };
                    far
                };
                let (mut far, client) = tokio::join!(far, Client::open(&to));
                let mut client = client.unwrap();
                assert_eq!(client.driver.tls_ns().is_some(), tls.is_some());
                client.say(Send::Binary(sent)).await;
                let mut came = vec![0; wire.len()];
                far.read_exact(&mut came).await.unwrap();
                assert_eq!(&came, wire, "{name}");
                far.write_all(wire).await.unwrap();
                far.flush().await.unwrap();
                assert_eq!(&client.hear_one().await, expected, "{name}");
                client.driver.close();
                poll_fn(|cx| client.driver.poll_flush(cx)).await.unwrap();
                assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0, "{name}: our side ends first");
                assert!(client.driver.send(Send::Binary(b"x")).is_err());
                drop(far);
                let (_, why) = client.end().await;
                assert!(matches!(why, Closed::ByPeer(None)), "{name}: {why:?}");
            }
        }
    });
}

/// As long as one read brings, a byte more, and as long as may be: each whole, and what follows it too.
#[test]
fn a_message_of_many_reads_comes_whole_over_tcp() {
    for (name, end_bytes) in [("u32be", 0), ("u32le", 0), ("lines", 1), ("until 0xff", 1)] {
        block_on(async {
            let (mut far, mut client) = pair(Protocol::Tcp(Frames::named(name).unwrap())).await;
            let text = |bytes: usize| -> Vec<u8> { (0..bytes).map(|at| b'a' + (at % 26) as u8).collect() };
            let messages = [65_535, 65_536, 65_537, 300_000, 5, (1 << 20) - end_bytes, 0, 7].map(text);
            let mut wire = Vec::new();
            assert!(messages.iter().all(|message| Frames::named(name).unwrap().write(&mut wire, message)));
            tokio::task::spawn_local(async move {
                far.write_all(&wire).await.unwrap();
                std::future::pending::<()>().await;
            });
            let mut heard = Vec::new();
            while heard.len() < messages.len() {
                heard.extend(client.hear().await.unwrap().into_iter().map(|told| match told {
                    Told::Text(text) => text.into_bytes(),
                    Told::Binary(bytes) => bytes,
                    other => panic!("{other:?}"),
                }));
            }
            assert!(heard == messages, "{name}: {:?}", heard.iter().map(Vec::len).collect::<Vec<_>>());
            assert_eq!(reserved_bytes(), 0, "{name}");
        });
    }
}

#[test]
fn what_breaks_the_frames_ends_the_connection() {
    let rows: [(&str, Vec<u8>, Broken); 6] = [
        ("u32be", b"\0\x10\0\x01".to_vec(), Broken::TooLarge(1 << 20)),
        ("u32le", b"\xff\xff\xff\xff".to_vec(), Broken::TooLarge(1 << 20)),
        ("lines", vec![b'x'; (1 << 20) + 1], Broken::TooLarge(1 << 20)),
        ("lines", vec![b'x'; 100_000], Broken::Protocol("the connection ended inside a message")),
        ("u16be", b"\0\x05hi".to_vec(), Broken::Protocol("the connection ended inside a message")),
        ("lines", b"no end".to_vec(), Broken::Protocol("the connection ended inside a message")),
    ];
    for (name, bytes, expected) in rows {
        block_on(async {
            let (mut far, mut client) = pair(Protocol::Tcp(Frames::named(name).unwrap())).await;
            far.write_all(&bytes).await.unwrap();
            drop(far);
            let (told, why) = client.end().await;
            assert_eq!(told, [], "{name}");
            assert!(matches!(&why, Closed::Broken(broken) if *broken == expected), "{name}: {why:?}");
        });
    }
    block_on(async {
        let (_far, mut client) = pair(Protocol::Tcp(Frames::U8)).await;
        assert_eq!(client.driver.send(Send::Text(&[b'x'; 256])), Err(Refused(255)));
        assert_eq!(client.driver.unsent_bytes(), 0);
        assert_eq!(client.driver.send(Send::Request(get(1, "/"))), Err(Refused(0)));
    });
}

#[test]
fn datagrams_go_through_it() {
    block_on(async {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = address(far.local_addr().unwrap(), Protocol::Udp, None);
        let mut client = Client::open(&to).await.unwrap();
        client.say(Send::Text(b"hello")).await;
        let mut room = [0; 10];
        let (count, from) = far.recv_from(&mut room).await.unwrap();
        assert_eq!(&room[..count], b"hello");
        far.send_to(b"", from).await.unwrap();
        assert_eq!(client.hear_one().await, Told::Binary(Vec::new()));
        client.driver.close();
        let (_, why) = client.end().await;
        assert!(matches!(why, Closed::ByPeer(None)), "{why:?}");
    });
}

/// The protocol that the server chooses in the handshake decides, and one requested by name is spoken or refused.
#[test]
fn http_is_the_version_that_both_speak() {
    use HttpVersion::{Any as Either, One, Two};
    const OLD: (Over, bool) = (Over::One, true);
    const NEW: (Over, bool) = (Over::Either, true);
    const CLEAR: (Over, bool) = (Over::Either, false);
    let rows = [
        (Either, NEW, Some("HTTP/2.0")),
        (Either, OLD, Some("HTTP/1.1")),
        (Either, CLEAR, Some("HTTP/1.1")),
        (One, NEW, Some("HTTP/1.1")),
        (One, CLEAR, Some("HTTP/1.1")),
        (Two, NEW, Some("HTTP/2.0")),
        (Two, OLD, None),
        (Two, CLEAR, Some("HTTP/2.0")),
    ];
    for (version, (over, is_tls), expected) in rows {
        block_on(async {
            let server = Server::start(over, is_tls).await;
            let to = address(server.socket, Protocol::Http(version), is_tls.then(trusting));
            match (Client::open(&to).await, expected) {
                (Ok(mut client), Some(expected)) => {
                    let answer = client.fetch(get(7, "/version")).await.unwrap();
                    assert_eq!(answer, (200, expected.as_bytes().to_vec()));
                    assert_eq!(client.driver.tls_ns().is_some(), is_tls);
                    assert_eq!(client.driver.send(Send::Text(b"x")), Err(Refused(0)));
                }
                (Err(OpenError::WrongProtocol { .. }), None) => {}
                (other, _) => panic!("{version:?}: {:?}", other.err()),
            }
        });
    }
}

#[test]
fn an_independent_server_is_understood_in_both_versions() {
    let body: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    for version in [HttpVersion::One, HttpVersion::Two] {
        block_on(async {
            let server = Server::start(Over::Either, false).await;
            let mut client =
                Client::open(&address(server.socket, Protocol::Http(version), None)).await.unwrap();
            for (method, path, body) in [
                ("GET", "/200/0/0", &[][..]),
                ("GET", "/200/2000/0", &[]),
                ("GET", "/404/200000/7", &[]),
                ("HEAD", "/200/500/0", &[]),
                ("DELETE", "/204/0/0", &[]),
                ("POST", "/200/1000/3", b"abc"),
                ("POST", "/echo", &body),
            ] {
                let told = client.fetch(Fetch { method, body, ..get(7, path) }).await.unwrap();
                let (status, expected, _) = server::answer(method, path, body);
                assert!(told == (status, expected), "{version:?} {method} {path}: {}", told.0);
            }
        });
    }
}

#[test]
fn requests_of_http_2_are_open_at_once_and_one_may_be_given_up() {
    block_on(async {
        let server = Server::start(Over::Two, false).await;
        let to = address(server.socket, Protocol::Http(HttpVersion::Two), None);
        let mut client = Client::open(&to).await.unwrap();
        for tag in 0..20 {
            client.say(Send::Request(get(tag, "/200/5000/3"))).await;
        }
        client.say(Send::Cancel(4)).await;
        assert_eq!(client.driver.send(Send::Cancel(99)), Err(Refused(0)));
        let (mut ended, mut bytes) = (Vec::new(), 0);
        while ended.len() < 19 {
            for told in client.hear().await.unwrap() {
                match told {
                    Told::End(tag, false) => ended.push(tag),
                    Told::Part(_, part) => bytes += part.len(),
                    Told::Head(_, 200, _) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, (0..20).filter(|tag| *tag != 4).collect::<Vec<_>>());
        assert_eq!(bytes, 19 * 5000);
        let (mut far, mut one) = pair(Protocol::Http(HttpVersion::One)).await;
        one.say(Send::Request(get(1, "/"))).await;
        assert!(far.read(&mut [0; 100]).await.unwrap() > 0);
        assert_eq!(one.driver.send(Send::Cancel(1)), Err(Refused(0)), "only the end of the connection does");
    });
}

#[test]
fn a_head_has_all_its_lines_and_no_coding_was_asked_for() {
    block_on(async {
        let (mut far, mut client) = pair(Protocol::Http(HttpVersion::Any)).await;
        let headers = [("X-Token".to_owned(), "s3cret".to_owned())];
        client
            .say(Send::Request(Fetch { method: "POST", headers: &headers, body: b"{}", ..get(3, "/a?b=1") }))
            .await;
        let mut request = [0; 300];
        let count = far.read(&mut request).await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&request[..count]),
            "POST /a?b=1 HTTP/1.1\r\nHost: localhost\r\nX-Token: s3cret\r\nContent-Length: 2\r\n\r\n{}"
        );
        far.write_all(
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
              HTTP/1.1 201 Made it\r\nSet-Cookie: a=1\r\nset-cookie:  b=2 \r\nContent-Length: 2\r\n\r\nok",
        )
        .await
        .unwrap();
        let lines = [("Set-Cookie", "a=1"), ("set-cookie", "b=2"), ("Content-Length", "2")];
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let expected = [Told::Head(3, 201, lines), Told::Part(3, b"ok".to_vec()), Told::End(3, false)];
        assert_eq!(client.hear().await.unwrap(), expected);
        // Between two requests the server may close; that is not a truncation.
        drop(far);
        assert!(matches!(client.end().await, (_, Closed::ByPeer(None))));
        assert!(Protocol::Http(HttpVersion::One).reopens() && !Protocol::Udp.reopens());
    });
}

#[test]
fn what_breaks_an_answer_ends_the_connection_behind_what_came() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let rows = [
        ("a body cut off", format!("{ok}Content-Length: 5\r\n\r\nab"), "ab", Some(Fault::CutOff)),
        (
            "a broken chunk",
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz"),
            "ab",
            Some(Fault::Chunk),
        ),
        ("two answers", format!("{ok}Content-Length: 2\r\n\r\nab{ok}"), "ab", Some(Fault::Unasked)),
        ("a header bomb", format!("{ok}{}", "A: b\r\n".repeat(3000)), "", Some(Fault::HeadTooLarge)),
        ("interim heads", "HTTP/1.1 102 Wait\r\n\r\n".repeat(40), "", Some(Fault::HeadTooLarge)),
        ("an end that is the body's", format!("{ok}\r\nab"), "ab", None),
        ("no answer", String::new(), "", None),
    ];
    for (name, answer, body, fault) in rows {
        block_on(async {
            let (mut far, mut client) = pair(Protocol::Http(HttpVersion::One)).await;
            client.say(Send::Request(get(1, "/"))).await;
            assert!(far.read(&mut [0; 100]).await.unwrap() > 0);
            far.write_all(answer.as_bytes()).await.unwrap();
            drop(far);
            let mut came = Vec::new();
            let why = loop {
                if let Err(why) = poll_fn(|cx| client.driver.poll_read(cx, &mut client.buffer)).await {
                    break why;
                }
                let heard = loop {
                    match client.driver.next(&mut client.buffer) {
                        None => break Ok(()),
                        Some(Err(broken)) => break Err(broken),
                        Some(Ok(Received::Http(Piece::Part { bytes, .. }))) => came.extend_from_slice(bytes),
                        Some(Ok(_)) => {}
                    }
                };
                if let Err(broken) = heard {
                    break Closed::Broken(broken);
                }
            };
            assert_eq!(String::from_utf8_lossy(&came), body, "{name}");
            match (why, fault) {
                (Closed::ByPeer(None), None) => {}
                (Closed::Broken(Broken::Http(was)), Some(fault)) if was == fault => {}
                (why, _) => panic!("{name}: {why:?}"),
            }
        });
    }
}

/// Server-sent events: received as they come, for as long as it takes, in the memory of one read.
#[test]
fn an_endless_body_is_heard_as_it_comes() {
    block_on(async {
        let (mut far, mut client) = pair(Protocol::Http(HttpVersion::One)).await;
        client.say(Send::Request(get(1, "/events"))).await;
        assert!(far.read(&mut [0; 100]).await.unwrap() > 0);
        far.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await.unwrap();
        assert!(matches!(client.hear_one().await, Told::Head(1, 200, _)));
        for n in 0..100 {
            let event = format!("data: {n}\n\n");
            far.write_all(event.as_bytes()).await.unwrap();
            assert_eq!(client.hear_one().await, Told::Part(1, event.into_bytes()));
        }
        let flood = vec![b'x'; 1 << 20];
        let flooding = async {
            for _ in 0..64 {
                far.write_all(&flood).await.unwrap();
            }
        };
        let hearing = async {
            let mut bytes = 0;
            while bytes < 64 << 20 {
                for told in client.hear().await.unwrap() {
                    let Told::Part(1, part) = told else { panic!("{told:?}") };
                    bytes += part.len();
                }
                assert_eq!(crate::unfinished::reserved_bytes(), 0);
            }
        };
        tokio::join!(flooding, hearing);
    });
}

#[test]
fn a_certificate_that_is_not_trusted_ends_the_handshake_of_every_protocol() {
    block_on(async {
        let server = Server::start(Over::Either, true).await;
        let untrusting = TlsSettings::new("localhost", None, false).unwrap();
        for speaks in [
            Protocol::WebSocket,
            Protocol::Tcp(Frames::Lines),
            Protocol::Http(HttpVersion::Any),
            Protocol::Http(HttpVersion::One),
            Protocol::Http(HttpVersion::Two),
        ] {
            let opened = Client::open(&address(server.socket, speaks, Some(untrusting.clone()))).await;
            assert!(matches!(opened, Err(OpenError::Tls(_))), "{speaks:?}");
        }
    });
}

/// There may be many thousands of WebSockets; the other kinds of connection cost them next to nothing.
#[test]
fn a_websocket_takes_hardly_more_memory_than_the_bare_driver() {
    let (any, bare) = (size_of::<Any>(), size_of::<WebSocket>());
    assert!(any <= bare + 16, "{any} bytes instead of {bare}");
    println!(
        "Any {any}, WebSocket {bare}; boxed: Framed {}, Udp {}, Fetch1 {}, Fetch2 {}; Connecting {} beside {}",
        size_of::<Framed>(),
        size_of::<Udp>(),
        size_of::<Fetch1>(),
        size_of::<Fetch2>(),
        size_of::<Connecting>(),
        size_of::<websocket::Connecting>(),
    );
}
