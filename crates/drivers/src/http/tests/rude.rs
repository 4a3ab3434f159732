//! Servers that send what no server should, byte by byte.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A connection whose server is the test.
async fn pair<D: Http>() -> (TcpStream, Client<D>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = address(listener.local_addr().unwrap(), None);
    let client = Client::<D>::open(&to).await.unwrap();
    (listener.accept().await.unwrap().0, client)
}

async fn asked() -> (TcpStream, Client<Http1>) {
    let (mut far, mut client) = pair::<Http1>().await;
    client.send(&Http1::prepare(&parts("GET", "/")), 5).await;
    let mut request = [0; 64];
    assert!(far.read(&mut request).await.unwrap() > 0);
    (far, client)
}

#[test]
fn an_answer_may_end_with_the_connection() {
    block_on(async {
        let (mut far, mut client) = asked().await;
        far.write_all(b"HTTP/1.0 302 Found\r\nLocation: /b\r\n\r\nhel").await.unwrap();
        far.write_all(b"lo").await.unwrap();
        drop(far);
        let mut began = Vec::new();
        let told = client.receive(&mut began).await.unwrap().remove(0);
        assert_eq!((told.status, told.body, told.closes, told.began), (302, b"hello".to_vec(), true, true));
        assert_eq!(told.location.as_deref(), Some("/b"));
        assert!(matches!(client.end().await, Closed::ByPeer(None)));
    });
}

#[test]
fn the_end_of_a_connection_is_told_by_what_was_under_way() {
    let check = |answer: &'static str, is_cut: bool| {
        block_on(async {
            let (mut far, mut client) = asked().await;
            far.write_all(answer.as_bytes()).await.unwrap();
            drop(far);
            let why = client.end().await;
            match is_cut {
                true => assert!(matches!(why, Closed::Broken(Broken::Http(Fault::CutOff))), "{why:?}"),
                false => assert!(matches!(why, Closed::ByPeer(None)), "{why:?}"),
            }
        });
    };
    check("", false);
    check("HTTP/1.1 100 Continue\r\n\r\n", false);
    check("HTTP/1.1 200", true);
    check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true);
}

#[test]
fn a_quiet_connection_may_be_ended_and_must_not_be_spoken_on() {
    block_on(async {
        let (far, mut client) = pair::<Http1>().await;
        drop(far);
        assert!(matches!(client.end().await, Closed::ByPeer(None)));
        let (mut far, mut client) = pair::<Http1>().await;
        far.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
        let why = client.end().await;
        assert!(matches!(why, Closed::Broken(Broken::Http(Fault::Unasked))), "{why:?}");
        assert!(client.buffer.rest().starts_with(b"HTTP/1.1 408"), "the words are there to be kept");
    });
}

/// It answers at the first bytes of a large request, and takes no more of it.
#[test]
fn an_early_answer_is_heard_although_the_request_was_not_taken() {
    block_on(async {
        let (mut far, mut client) = pair::<Http1>().await;
        let body = vec![b'x'; 32 << 20];
        let prepared = Http1::prepare(&Parts { body: &body, ..parts("POST", "/") });
        client.driver.send(Outgoing { prepared: &prepared, tag: 5 }).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(client.driver.poll_flush(&mut cx).is_pending(), "32 MiB fit no socket");
        far.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!").await.unwrap();
        let received_bytes = poll_fn(|cx| client.driver.poll_read(cx, &mut client.buffer)).await.unwrap();
        assert!(received_bytes > 0);
        let Some(Ok(Received::Answer(answer))) = client.driver.next(&mut client.buffer) else { panic!() };
        assert_eq!((answer.status, answer.body, answer.closes), (413, &b"no!"[..], true));
        drop(far);
        // Whatever the kernel does with the rest, the connection ends.
        while poll_fn(|cx| client.driver.poll_flush(cx)).await.is_ok() && client.driver.unsent_bytes() > 0 {}
        assert!(matches!(client.end().await, Closed::ByPeer(None) | Closed::Failed(_)));
    });
}

#[test]
fn a_goodbye_ends_our_side_first() {
    block_on(async {
        let (mut far, mut client) = asked().await;
        client.driver.close();
        poll_fn(|cx| client.driver.poll_flush(cx)).await.unwrap();
        assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(
            client.driver.send(Outgoing { prepared: &Http1::prepare(&parts("GET", "/")), tag: 6 }).is_err()
        );
        drop(far);
        assert!(matches!(client.end().await, Closed::ByPeer(None)));
    });
}

#[test]
fn a_server_of_another_protocol_is_told_by_its_first_words() {
    let check = |words: &'static [u8], expected: &str| {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = address(listener.local_addr().unwrap(), None);
            let server = async {
                let (mut far, _) = listener.accept().await.unwrap();
                far.read_exact(&mut [0; 24]).await.unwrap();
                far.write_all(words).await.unwrap();
                far
            };
            let (_far, opened) = tokio::join!(server, Client::<Http2>::open(&to));
            assert_eq!(opened.err().unwrap().to_string(), expected);
        });
    };
    check(
        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        "not a HTTP/2 server: it answers \"HTTP/1.1 400 Bad Request\"",
    );
    check(b"SSH-2.0-x\r\n", "not a HTTP/2 server: it answers \"SSH-2.0-x\"");
    check(&[0x15, 3, 1, 0, 2, 2, 80, 0, 0], "not a HTTP/2 server: it ends the connection over our settings");
}

/// Frames of HTTP/2 by hand: length, type, flags, stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const RESET: u8 = 3;
const GOAWAY: u8 = 7;
/// `:status: 200` in the static table.
const STATUS_200: &[u8] = &[0x88];

async fn two() -> (TcpStream, Client<Http2>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = address(listener.local_addr().unwrap(), None);
    let server = async {
        let (mut far, _) = listener.accept().await.unwrap();
        far.read_exact(&mut [0; 24]).await.unwrap();
        far.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        far
    };
    let (far, client) = tokio::join!(server, Client::<Http2>::open(&to));
    let mut client = client.unwrap();
    for tag in [5, 6] {
        client.send(&Http2::prepare(&parts("GET", "/")), tag).await;
    }
    (far, client)
}

/// Hears until an error or an end.
async fn told(client: &mut Client<Http2>) -> (Vec<u32>, Closed) {
    let (mut tags, mut began) = (Vec::new(), Vec::new());
    loop {
        match client.receive(&mut began).await {
            Ok(told) => tags.extend(told.iter().map(|told| told.tag)),
            Err(why) => return (tags, why),
        }
    }
}

#[test]
fn what_breaks_http_2_is_told_in_its_own_words() {
    let check = |frames: &[Vec<u8>], tags: &[u32], fault: Fault, words: &str| {
        block_on(async {
            let (mut far, mut client) = two().await;
            far.write_all(&frames.concat()).await.unwrap();
            let (received, why) = told(&mut client).await;
            assert_eq!(received, tags, "{words}");
            assert!(matches!(why, Closed::Broken(Broken::Http(was)) if was == fault), "{words}: {why:?}");
            assert_eq!(String::from_utf8_lossy(client.buffer.rest()), words);
        });
    };
    let answer = |stream| frame(HEADERS, 0x5, stream, STATUS_200);
    let reset = |stream, code: u32| frame(RESET, 0, stream, &code.to_be_bytes());
    check(
        &[answer(3), reset(1, 7)],
        &[6],
        Fault::Two,
        "stream error received: refused stream before processing any application logic",
    );
    check(&[reset(3, 2)], &[], Fault::Two, "stream error received: unexpected internal error encountered");
    check(
        &[frame(DATA, 0, 0, b"x")],
        &[],
        Fault::Two,
        "connection error detected: unspecific protocol error detected",
    );
    check(
        &[frame(HEADERS, 0x5, 1, &[0xFF; 9])],
        &[],
        Fault::Two,
        "connection error detected: unspecific protocol error detected",
    );
    let goodbye =
        |last: u32, code: u32| frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    check(
        &[goodbye(0, 11)],
        &[],
        Fault::Two,
        "connection error received: detected excessive load generating behavior",
    );
}

#[test]
fn a_server_that_says_goodbye_may_answer_what_it_has_taken() {
    block_on(async {
        let (mut far, mut client) = two().await;
        let goodbye = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
        far.write_all(&[goodbye, frame(HEADERS, 0x4, 1, STATUS_200)].concat()).await.unwrap();
        far.write_all(&frame(DATA, 1, 1, b"abc")).await.unwrap();
        let told = client.receive(&mut Vec::new()).await.unwrap();
        assert_eq!((told.len(), told[0].tag, &told[0].body[..], told[0].closes), (1, 5, &b"abc"[..], true));
        assert_eq!(client.put_off, [6], "the goodbye names the first request as the last that is answered");
        assert!(
            client.driver.send(Outgoing { prepared: &Http2::prepare(&parts("GET", "/")), tag: 7 }).is_err()
        );
        drop(far);
        assert!(matches!(client.end().await, Closed::ByPeer(None)));
    });
}

#[test]
fn an_end_inside_an_answer_of_http_2_is_a_cut() {
    block_on(async {
        let (mut far, mut client) = two().await;
        far.write_all(&frame(HEADERS, 0x4, 1, STATUS_200)).await.unwrap();
        far.shutdown().await.unwrap();
        let why = client.end().await;
        assert!(matches!(why, Closed::Broken(Broken::Http(Fault::CutOff))), "{why:?}");
        let (far, mut client) = two().await;
        drop(far);
        let why = client.end().await;
        // Unread data makes the kernel reset the connection.
        assert!(matches!(why, Closed::ByPeer(None) | Closed::Failed(_)), "{why:?}");
    });
}

/// Floods until the client ends the connection; returns why it did and the most that it kept unsent.
async fn flooded(flood: Vec<u8>) -> (Closed, usize) {
    let (far, mut client) = two().await;
    // It writes and never reads.
    let (reads_nothing, mut far) = far.into_split();
    let flooding = async move {
        while far.write_all(&flood).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let listening = async {
        let mut most = 0;
        loop {
            let read = poll_fn(|cx| {
                let _ = client.driver.poll_flush(cx);
                client.driver.poll_read(cx, &mut client.buffer)
            });
            match read.await {
                Err(why) => return (why, most),
                Ok(_) => while let Some(Ok(_)) = client.driver.next(&mut client.buffer) {},
            }
            most = most.max(client.driver.unsent_bytes());
            assert!(most < 1 << 20, "{most} bytes wait to be sent, and it goes on");
        }
    };
    let ended = tokio::select! {
        ended = listening => ended,
        () = flooding => unreachable!("the flood does not end"),
    };
    drop(reads_nothing);
    ended
}

#[test]
fn a_server_that_floods_with_pings_or_settings_and_reads_nothing_is_left() {
    const PING: u8 = 6;
    for flood in [frame(PING, 0, 0, &[7; 8]).repeat(2000), frame(SETTINGS, 0, 0, &[]).repeat(4000)] {
        let (why, most) = block_on(flooded(flood));
        assert!(matches!(why, Closed::Broken(Broken::UnreadAnswers)), "{why:?}");
        assert!(most <= ANSWER_BYTES_MAX + READ_BUFFER_BYTES, "{most}");
    }
}
