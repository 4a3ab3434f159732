use std::future::poll_fn;

use proptest::prelude::*;
use tokio::net::TcpListener;

use super::*;
use crate::address::Address;
use crate::driver::ANSWER_BYTES_MAX;
use crate::read_buffer::READ_BUFFER_BYTES;
use crate::testing::{block_on, connected, split};
use crate::unfinished::{FREE_BYTES, UNFINISHED_BYTES_MAX, reserved_bytes};

/// A server's frame: never masked.
fn server_frame(out: &mut Vec<u8>, is_final: bool, opcode: u8, payload: &[u8]) {
    out.push(if is_final { 0x80 } else { 0 } | opcode);
    match payload.len() {
        length @ 0..=125 => out.push(length as u8),
        length @ 126..=0xFFFF => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// Feeds `bytes` in reads that end at `cuts` and returns what was received.
async fn heard_in_pieces(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Vec<u8>>, Broken> {
    let (mut far, mut socket) = pair().await;
    let (mut buffer, mut received) = (ReadBuffer::new(), Vec::new());
    for piece in split(bytes, cuts) {
        far.write_all(piece).await.unwrap();
        let mut wanted = piece.len();
        while wanted > 0 && socket.codec.ended().is_none() {
            wanted -= poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
            while let Some(message) = socket.next(&mut buffer) {
                match message? {
                    Received::Text(bytes) | Received::Binary(bytes) => received.push(bytes.to_vec()),
                }
            }
        }
    }
    Ok(received)
}

async fn pair() -> (TcpStream, WebSocket) {
    let (far, near) = connected().await;
    (far, WebSocket { stream: Stream::Plain(near), codec: Codec::new(Vec::new()), redirects: 0 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn messages_are_the_same_however_their_bytes_are_split(
        messages in proptest::collection::vec(("[a-zäß☃]{0,200}", 1usize..4), 1..12),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        for (text, pieces) in &messages {
            let size = text.len().div_ceil(*pieces).max(1);
            let chunks: Vec<&[u8]> = if text.is_empty() { vec![&[]] } else { text.as_bytes().chunks(size).collect() };
            for (index, chunk) in chunks.iter().enumerate() {
                let is_last = index + 1 == chunks.len();
                server_frame(&mut bytes, is_last, if index == 0 { 1 } else { 0 }, chunk);
                server_frame(&mut bytes, true, 9, b"are you there");
            }
        }
        let received = block_on(heard_in_pieces(&bytes, &cuts)).unwrap();
        let expected: Vec<Vec<u8>> = messages.iter().map(|(text, _)| text.clone().into_bytes()).collect();
        prop_assert_eq!(received, expected);
    }

    #[test]
    fn any_bytes_are_heard_or_refused_but_never_panic(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
        let _ = block_on(heard_in_pieces(&bytes, &[7, 50]));
    }
}

#[test]
fn what_the_protocol_forbids_is_refused() {
    let check = |bytes: &[u8], expected: Broken| {
        assert_eq!(block_on(heard_in_pieces(bytes, &[])), Err(expected));
    };
    let framed = |is_final, opcode, payload: &[u8]| {
        let mut bytes = Vec::new();
        server_frame(&mut bytes, is_final, opcode, payload);
        bytes
    };
    check(&[0x81, 0x81, 0, 0, 0, 0, b'a'], Broken::Protocol("a server's frame is masked"));
    check(&[0xC1, 0x00], Broken::Protocol("a reserved bit is set"));
    check(&[0x83, 0x00], Broken::Protocol("unknown opcode"));
    check(&[0x81, 126, 0, 5], Broken::Protocol("a length in more bytes than it needs"));
    check(&framed(true, 0, b"x"), Broken::Protocol("a further piece of no message"));
    check(&framed(false, 9, b"x"), Broken::Protocol("a control frame in pieces or of more than 125 bytes"));
    check(&framed(true, 8, &[3]), Broken::Protocol("a close frame with half a code"));
    check(&framed(true, 1, &[0xFF, 0xFE]), Broken::NotUtf8);
    check(&framed(true, 2, &vec![0; MESSAGE_BYTES_MAX + 1]), Broken::TooLarge(MESSAGE_BYTES_MAX));
    let nested = [framed(false, 1, b"a"), framed(true, 1, b"b")].concat();
    check(&nested, Broken::Protocol("a new message inside another"));
}

/// Ten bytes that once overflowed a sum of lengths, and others of their kind.
#[test]
fn no_length_on_the_wire_overflows() {
    let check = |bytes: &[u8]| {
        let received = block_on(heard_in_pieces(bytes, &[]));
        assert_eq!(received, Err(Broken::TooLarge(MESSAGE_BYTES_MAX)), "{bytes:?}");
    };
    let huge = [0xFF; 8];
    for second in [0x80, 0x00] {
        check(&[&[0x01, 0x01, b'a', second, 127][..], &huge].concat());
    }
    for first in [0x81, 0x82, 0x01] {
        check(&[&[first, 127][..], &huge].concat());
    }
    let mut piecewise = Vec::new();
    server_frame(&mut piecewise, false, 1, &vec![b'a'; MESSAGE_BYTES_MAX]);
    piecewise.extend_from_slice(&[0x80, 0x01]);
    check(&piecewise);
}

#[test]
fn a_goodbye_is_answered_and_its_code_is_told() {
    block_on(async {
        let (mut far, mut socket) = pair().await;
        far.write_all(&[0x88, 2, 0x03, 0xE9]).await.unwrap();
        let mut buffer = ReadBuffer::new();
        poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
        assert!(socket.next(&mut buffer).is_none());
        poll_fn(|cx| socket.poll_flush(cx)).await.unwrap();
        let mut answer = [0u8; 8];
        far.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..2], [0x88, 0x82]);
        let end = poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await;
        assert!(matches!(&end, Err(Closed::ByPeer(Some(goodbye))) if goodbye.code == 1001), "{end:?}");
    });
}

/// The other implementation reads what ours writes, and ours reads what it writes.
#[test]
fn an_independent_server_understands_every_message() {
    use futures_util::{SinkExt, StreamExt};
    use tokio_websockets::ServerBuilder;
    let texts: Vec<String> = (0..40).map(|n| "ä☃z".repeat(n * n)).collect();
    let local = tokio::task::LocalSet::new();
    block_on(local.run_until(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Address { path: "/any?path=1".to_owned(), ..Address::plain(listener.local_addr().unwrap()) };
        let server = tokio::task::spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (_, mut server) = ServerBuilder::new().accept(stream).await.unwrap();
            loop {
                match server.next().await {
                    Some(Ok(message)) if message.is_text() || message.is_binary() => {
                        server.send(message).await.unwrap();
                    }
                    Some(Ok(_)) => {}
                    _ => return,
                }
            }
        });
        let begin_connect = WebSocket::begin_connect(&to, Some("127.0.0.77".parse().unwrap())).unwrap();
        let mut socket = WebSocket::open(begin_connect, &to).await.unwrap();
        let mut buffer = ReadBuffer::new();
        for text in &texts {
            socket.send(Message::Text(text.as_bytes())).unwrap();
            poll_fn(|cx| socket.poll_flush(cx)).await.unwrap();
            loop {
                poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
                if let Some(received) = socket.next(&mut buffer) {
                    assert_eq!(received, Ok(Received::Text(text.as_bytes())));
                    break;
                }
            }
        }
        socket.close();
        poll_fn(|cx| socket.poll_flush(cx)).await.unwrap();
        server.await.unwrap();
    }));
}

#[test]
fn a_server_that_closes_at_once_is_told_from_one_that_refuses() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = listener.local_addr().unwrap();
        let to = Address::plain(socket);
        let begin_connect = WebSocket::begin_connect(&to, None).unwrap();
        let (far, _) = listener.accept().await.unwrap();
        drop(far);
        let error = WebSocket::open(begin_connect, &to).await.err().unwrap();
        assert!(matches!(error, OpenError::ClosedEarly), "{error}");
        drop(listener);
        let error = match WebSocket::begin_connect(&to, None) {
            Err(error) => error,
            Ok(begin_connect) => WebSocket::open(begin_connect, &to).await.err().unwrap(),
        };
        assert!(matches!(error, OpenError::Refused), "{error}");
    });
}

/// A server may greet in the same packet that answers the handshake; nothing else may ever come.
#[test]
fn what_comes_with_the_answer_is_heard_without_another_read() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = listener.local_addr().unwrap();
        let to = Address::plain(socket);
        let mut begin_connect = WebSocket::begin_connect(&to, None).unwrap();
        begin_connect.key = "dGhlIHNhbXBsZSBub25jZQ==".to_owned();
        let (mut far, _) = listener.accept().await.unwrap();
        let mut answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
            .to_vec();
        server_frame(&mut answer, true, 1, b"hello");
        far.write_all(&answer).await.unwrap();
        let mut socket = WebSocket::open(begin_connect, &to).await.unwrap();
        let mut buffer = ReadBuffer::new();
        poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
        assert_eq!(socket.next(&mut buffer), Some(Ok(Received::Text(b"hello"))));
    });
}

use crate::address::AUTHORITY;

/// A TLS echo server with a certificate for `localhost` by the test authority.
async fn tls_echo(listener: TcpListener) {
    use futures_util::{SinkExt, StreamExt};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let file = |name: &str| format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(file("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(std::sync::Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![certificate], key)
    .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        let (_, mut server) = tokio_websockets::ServerBuilder::new().accept(stream).await.unwrap();
        while let Some(Ok(message)) = server.next().await {
            if message.is_text() && server.send(message).await.is_err() {
                break;
            }
        }
    }
}

async fn over_tls(socket: std::net::SocketAddr, tls: crate::TlsSettings) -> Result<Vec<u8>, OpenError> {
    let to = Address { tls: Some(tls), ..Address::plain(socket) };
    let mut socket = WebSocket::open(WebSocket::begin_connect(&to, None)?, &to).await?;
    socket.send(Message::Text(b"over TLS")).unwrap();
    poll_fn(|cx| socket.poll_flush(cx)).await.unwrap();
    let mut buffer = ReadBuffer::new();
    loop {
        poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
        if let Some(Ok(Received::Text(text))) = socket.next(&mut buffer) {
            return Ok(text.to_vec());
        }
    }
}

#[test]
fn a_server_behind_tls_is_spoken_to_when_its_certificate_is_trusted() {
    use crate::TlsSettings;
    let local = tokio::task::LocalSet::new();
    block_on(local.run_until(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = listener.local_addr().unwrap();
        tokio::task::spawn_local(tls_echo(listener));
        let with_ca = TlsSettings::new("localhost", Some(AUTHORITY), false).unwrap();
        assert_eq!(over_tls(socket, with_ca).await.unwrap(), b"over TLS");
        let insecure = TlsSettings::new("another.name", None, true).unwrap();
        assert_eq!(over_tls(socket, insecure).await.unwrap(), b"over TLS");
        let untrusting = TlsSettings::new("localhost", None, false).unwrap();
        let error = over_tls(socket, untrusting).await.unwrap_err();
        assert!(matches!(error, OpenError::Tls(_)), "{error}");
        let wrong_name = TlsSettings::new("other.example", Some(AUTHORITY), false).unwrap();
        assert!(matches!(over_tls(socket, wrong_name).await, Err(OpenError::Tls(_))));
    }));
}

#[test]
fn a_file_without_a_certificate_is_refused_with_its_path() {
    let manifest = crate::Authority { name: "Cargo.toml", pem: include_bytes!("../../Cargo.toml") };
    let error = crate::TlsSettings::new("localhost", Some(manifest), false).unwrap_err();
    assert!(error.to_string().starts_with("Cargo.toml: no certificate in it (no section"), "{error}");
}

#[test]
fn a_server_that_floods_with_pings_and_reads_no_pong_is_left() {
    block_on(async {
        let (far, mut socket) = pair().await;
        let (reads_nothing, mut far) = far.into_split();
        let mut flood = Vec::new();
        (0..4000).for_each(|_| server_frame(&mut flood, true, 9, b""));
        let flooding = async move {
            while far.write_all(&flood).await.is_ok() {}
            std::future::pending::<()>().await;
        };
        let listening = async {
            let (mut buffer, mut most) = (ReadBuffer::new(), 0);
            loop {
                let read = poll_fn(|cx| {
                    let _ = socket.poll_flush(cx);
                    socket.poll_read(cx, &mut buffer)
                });
                match read.await {
                    Err(why) => return (why, most),
                    Ok(_) => assert!(socket.next(&mut buffer).is_none(), "pings are not heard"),
                }
                most = most.max(socket.unsent_bytes());
                assert!(most < 1 << 20, "{most} bytes wait to be sent, and it goes on");
            }
        };
        let (why, most) = tokio::select! {
            ended = listening => ended,
            () = flooding => unreachable!("the flood does not end"),
        };
        assert!(matches!(why, Closed::Broken(Broken::UnreadAnswers)), "{why:?}");
        // A ping takes 2 bytes and its pong 6.
        assert!(most <= ANSWER_BYTES_MAX + 3 * READ_BUFFER_BYTES, "{most}");
        drop(reads_nothing);
    });
}

/// A server may be slow to read and still ask whether we are there.
#[test]
fn a_ping_beside_a_backlog_of_our_own_is_no_flood() {
    block_on(async {
        let (mut far, mut socket) = pair().await;
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while socket.send(Message::Binary(&[0; 60_000])).is_ok() || socket.poll_flush(&mut cx).is_ready() {}
        let mut ping = Vec::new();
        server_frame(&mut ping, true, 9, b"are you there");
        let mut buffer = ReadBuffer::new();
        for _ in 0..100 {
            far.write_all(&ping).await.unwrap();
            poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
            assert!(socket.next(&mut buffer).is_none());
        }
        assert!(socket.unsent_bytes() > 0, "the backlog is there throughout");
    });
}

/// Frames of 60 kB that lack their last bytes, whole or in pieces, on as many connections as it takes.
#[test]
fn messages_that_stall_before_their_last_bytes_share_a_limit() {
    let mut whole = Vec::new();
    server_frame(&mut whole, true, 2, &vec![0; 60_000]);
    whole.truncate(whole.len() - 1);
    let mut first = Vec::new();
    server_frame(&mut first, false, 2, &vec![0; 30_000]);
    let mut second = Vec::new();
    server_frame(&mut second, false, 0, &vec![0; 30_000]);
    let pieces = [first, second].concat();
    for bytes in [whole, pieces] {
        let (mut codecs, mut broken, mut buffer) = (Vec::new(), Vec::new(), ReadBuffer::new());
        for _ in 0..1000 {
            let mut codec = Codec::default();
            codec.lay(&mut buffer)[..bytes.len()].copy_from_slice(&bytes);
            codec.came(bytes.len(), &mut buffer);
            match codec.next(&mut buffer) {
                None => codecs.push(codec),
                Some(received) => broken.push(received.unwrap_err()),
            }
        }
        let held_bytes = 60_000 * codecs.len();
        assert!(held_bytes <= UNFINISHED_BYTES_MAX + 1000 * FREE_BYTES, "{held_bytes} bytes are held");
        assert!(codecs.len() > 300, "{} are within the limit", codecs.len());
        assert!(broken.iter().all(|why| *why == Broken::TooManyUnfinished), "{broken:?}");
        drop(codecs);
        assert_eq!(reserved_bytes(), 0);
    }
}

/// What is received from these bytes, read in parts of `step`, by an owner that accepts a mebibyte.
fn gathered(wire: &[u8], step: usize) -> Result<Vec<usize>, Broken> {
    let (mut codec, mut buffer) = (Codec::new(Vec::new()).taking(1 << 20), ReadBuffer::new());
    let mut heard = Vec::new();
    for part in wire.chunks(step) {
        codec.lay(&mut buffer)[..part.len()].copy_from_slice(part);
        codec.came(part.len(), &mut buffer);
        while let Some(message) = codec.next(&mut buffer) {
            let (Received::Text(bytes) | Received::Binary(bytes)) = message?;
            heard.push(bytes.len());
        }
    }
    Ok(heard)
}

fn large_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, 127][..], &(payload.len() as u64).to_be_bytes(), payload].concat()
}

#[test]
fn a_message_larger_than_a_read_is_gathered_where_its_owner_takes_it() {
    let text = "é".repeat(150_000);
    let small = [0x82, 1, 7];
    let whole = [&large_frame(0x81, text.as_bytes())[..], &small].concat();
    let in_pieces = [
        &large_frame(0x01, &text.as_bytes()[..100_001]),
        &[0x89, 0][..],
        &large_frame(0x80, &text.as_bytes()[100_001..]),
        &small,
    ]
    .concat();
    let mut wrong = whole.clone();
    wrong[200_000] = 0xff;
    for step in [1_000, 65_536, 100_000] {
        for wire in [&whole, &in_pieces] {
            assert_eq!(gathered(wire, step), Ok(vec![300_000, 1]), "{step}");
        }
        assert_eq!(gathered(&wrong, step), Err(Broken::NotUtf8));
        let inside = [&large_frame(0x01, &[b'a'; 70_000])[..], &large_frame(0x81, &[b'b'; 70_000])].concat();
        assert!(matches!(gathered(&inside, step), Err(Broken::Protocol(_))));
        assert_eq!(
            gathered(&large_frame(0x82, &vec![0; (1 << 20) + 1]), step),
            Err(Broken::TooLarge(1 << 20))
        );
        let summed =
            [&large_frame(0x02, &vec![0; 1 << 19])[..], &large_frame(0x80, &vec![0; (1 << 19) + 1])].concat();
        assert_eq!(gathered(&summed, step), Err(Broken::TooLarge(1 << 20)));
    }
}

/// A server that answers each request in turn with one of these, `101` standing for a handshake that it takes; returns the heads
/// of the requests.
async fn answering(listener: TcpListener, answers: Vec<String>) -> Vec<String> {
    let mut heads = Vec::new();
    let mut open = Vec::new();
    for answer in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut head).await.unwrap() > 0);
        }
        let head = String::from_utf8(head).unwrap();
        let answer = if answer == "101" {
            let key = head.split_once("Sec-WebSocket-Key: ").unwrap().1.split_once("\r\n").unwrap().0;
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {}\r\n\r\n",
                handshake::accept_for(key)
            )
        } else {
            format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {answer}\r\nContent-Length: 0\r\n\r\n")
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
        heads.push(head);
        open.push(stream);
    }
    heads
}

#[test]
fn a_handshake_follows_three_redirects_and_says_why_it_follows_no_more() {
    let check = |answers: &[&str], expected: Result<u8, &str>, last_request: &str| {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let socket = listener.local_addr().unwrap();
            let headers = vec![("Cookie".to_owned(), "a=b".to_owned())];
            let upgrade = crate::address::Upgrade { headers, ..Default::default() };
            let to = Address { path: "/first".to_owned(), upgrade, ..Address::plain(socket) };
            let answers = answers.iter().map(|answer| answer.replace("HERE", &socket.to_string())).collect();
            let opens = async {
                let begun = WebSocket::begin_connect(&to, Some("127.0.0.77".parse().unwrap()))?;
                WebSocket::open(begun, &to).await.map(|socket| socket.redirects())
            };
            let (opened, heads) = tokio::join!(opens, answering(listener, answers));
            match (opened, expected) {
                (Ok(redirects), Ok(expected)) => assert_eq!(redirects, expected),
                (Err(refused), Err(words)) => {
                    assert_eq!(refused.cause_index(), 10);
                    assert!(refused.to_string().contains(words), "{refused}");
                }
                (opened, _) => panic!("{answers:?}: {opened:?}", answers = heads),
            }
            let last = heads.last().unwrap();
            assert!(last.starts_with(last_request) && last.contains("Cookie: a=b"), "{last}");
        });
    };
    check(&["101"], Ok(0), "GET /first HTTP/1.1");
    check(&["/again?a=1", "101"], Ok(1), "GET /again?a=1 HTTP/1.1");
    check(&["/1", "ws://HERE/2", "http://HERE/3", "101"], Ok(3), "GET /3 HTTP/1.1");
    check(
        &["/1", "/2", "/3", "/4"],
        Err("redirected to \"/4\" (status 307) after 3 redirects"),
        "GET /3 HTTP/1.1",
    );
    check(&["ws://192.0.2.1/"], Err("say --i-may-load 192.0.2.1"), "GET /first HTTP/1.1");
}
