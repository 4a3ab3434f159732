use std::future::poll_fn;
use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::*;
use crate::any::Protocol;
use crate::network::Path;
use crate::testing::{block_on, timed};

fn address(socket: SocketAddr) -> Address {
    Address { path: String::new(), reply_bytes_max: 0, speaks: Protocol::Udp, ..Address::plain(socket) }
}

async fn open(to: SocketAddr) -> Udp {
    let to = address(to);
    Udp::open(Udp::begin_connect(&to, None).unwrap(), &to).await.unwrap()
}

/// A server's socket, and a connection to it from which it received something.
async fn pair() -> (UdpSocket, SocketAddr, Udp) {
    let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut near = open(far.local_addr().unwrap()).await;
    say(&mut near, b"hello").await.unwrap();
    let (count, from) = far.recv_from(&mut [0; 10]).await.unwrap();
    assert_eq!(count, 5);
    (far, from, near)
}

async fn say(near: &mut Udp, what: &[u8]) -> io::Result<()> {
    near.send(what).unwrap();
    poll_fn(|cx| near.poll_flush(cx)).await
}

/// What the next read brings.
async fn heard(near: &mut Udp, buffer: &mut ReadBuffer) -> Result<Vec<Vec<u8>>, Closed> {
    let count = poll_fn(|cx| near.poll_read(cx, buffer)).await?;
    let mut messages = Vec::new();
    while let Some(message) = near.next(buffer) {
        messages.push(message.unwrap().to_vec());
    }
    assert_eq!(count, messages.iter().map(|message| message.len() + HEADER_BYTES).sum::<usize>());
    Ok(messages)
}

#[test]
fn a_datagram_is_a_message_in_both_directions_however_long_it_is() {
    block_on(async {
        let (far, from, mut near) = pair().await;
        let (mut buffer, mut room) = (ReadBuffer::new(), vec![0; ROOM_BYTES]);
        for bytes in [0, 1, 1_472, 9_000, DATAGRAM_BYTES_MAX] {
            let message: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            near.send(&message).unwrap();
            assert_eq!(near.unsent_bytes(), HEADER_BYTES + bytes, "an empty one waits too");
            poll_fn(|cx| near.poll_flush(cx)).await.unwrap();
            assert_eq!(near.unsent_bytes(), 0);
            let count = far.recv(&mut room).await.unwrap();
            assert_eq!(room[..count], message);
            far.send_to(&message, from).await.unwrap();
            assert_eq!(heard(&mut near, &mut buffer).await.unwrap(), [message]);
        }
        assert_eq!(near.send(&vec![0; DATAGRAM_BYTES_MAX + 1]), Err(Refused(DATAGRAM_BYTES_MAX)));
    });
}

#[test]
fn one_read_brings_many_datagrams_whole_and_in_order() {
    block_on(async {
        let (far, from, mut near) = pair().await;
        let mut buffer = ReadBuffer::new();
        for _ in 0..3 {
            let sent: Vec<Vec<u8>> = (0..50u8).map(|n| vec![n; usize::from(n)]).collect();
            for message in &sent {
                far.send_to(message, from).await.unwrap();
            }
            assert_eq!(heard(&mut near, &mut buffer).await.unwrap(), sent);
        }
        // Two of them leave no room for a third, which waits for the next read and is not truncated.
        for _ in 0..3 {
            far.send_to(&[7; 40_000], from).await.unwrap();
        }
        let mut counts = Vec::new();
        while counts.iter().sum::<usize>() < 3 {
            let messages = heard(&mut near, &mut buffer).await.unwrap();
            assert!(messages.iter().all(|message| message.len() == 40_000));
            counts.push(messages.len());
        }
        assert_eq!(counts, [2, 1]);
    });
}

#[test]
fn a_connection_that_reads_slowly_takes_whole_datagrams() {
    block_on(async {
        let (far, from, mut near) = pair().await;
        let mut buffer = ReadBuffer::new();
        for _ in 0..4 {
            far.send_to(&[7; 1000], from).await.unwrap();
        }
        for (limit, expected) in [(1, 1), (1009, 2), (usize::MAX, 1)] {
            buffer.set_limit(limit);
            assert_eq!(heard(&mut near, &mut buffer).await.unwrap().len(), expected, "limit {limit}");
        }
    });
}

/// Whatever comes, a read is bounded by the buffer; what is not read in time is dropped by the kernel.
#[test]
fn a_flood_of_datagrams_takes_no_memory() {
    block_on(async {
        let (far, from, mut near) = pair().await;
        let (mut buffer, mut count) = (ReadBuffer::new(), 0);
        for _ in 0..200 {
            for _ in 0..500 {
                let _ = far.try_send_to(&[7; 64], from);
            }
            count += heard(&mut near, &mut buffer).await.unwrap().len();
            assert_eq!((near.unsent.capacity() < 100, buffer.joined.capacity()), (true, 0));
        }
        assert!(count > 10_000, "{count}");
    });
}

#[test]
fn where_nothing_listens_the_first_refusal_ends_the_connection() {
    block_on(async {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = far.local_addr().unwrap();
        drop(far);
        // The error is read, or found when the next datagram is sent.
        let (mut reads, mut sends) = (open(to).await, open(to).await);
        say(&mut reads, b"a").await.unwrap();
        let why = heard(&mut reads, &mut ReadBuffer::new()).await.unwrap_err();
        assert!(
            matches!(&why, Closed::Failed(error) if error.to_string() == "nothing listens on that UDP port")
        );
        say(&mut sends, b"a").await.unwrap();
        let error = say(&mut sends, b"b").await.unwrap_err();
        assert_eq!(error.to_string(), "nothing listens on that UDP port");
    });
}

#[test]
fn a_server_that_has_spoken_is_forgiven_one_refusal() {
    block_on(async {
        let (far, from, mut near) = pair().await;
        let to = far.local_addr().unwrap();
        let mut buffer = ReadBuffer::new();
        far.send_to(b"welcome", from).await.unwrap();
        assert_eq!(heard(&mut near, &mut buffer).await.unwrap(), [b"welcome"]);
        drop(far);
        say(&mut near, b"lost").await.unwrap();
        let far = UdpSocket::bind(to).await.unwrap();
        // The first one's refusal is reported here, and this one is sent anyway.
        say(&mut near, b"again").await.unwrap();
        let mut room = [0; 10];
        let count = far.recv(&mut room).await.unwrap();
        assert_eq!(&room[..count], b"again");
        drop(far);
        say(&mut near, b"lost too").await.unwrap();
        let why = heard(&mut near, &mut buffer).await.unwrap_err();
        assert!(matches!(why, Closed::Failed(_)), "nothing came in between: {why:?}");
    });
}

#[test]
fn a_connection_ends_when_we_say_so_and_all_is_sent() {
    block_on(async {
        let (far, _, mut near) = pair().await;
        let mut buffer = ReadBuffer::new();
        near.send(b"goodbye").unwrap();
        near.close();
        assert_eq!(near.send(b"more"), Err(Refused(UNSENT_BYTES_MAX)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(near.poll_read(&mut cx, &mut buffer).is_pending(), "a datagram is not sent yet");
        poll_fn(|cx| near.poll_flush(cx)).await.unwrap();
        assert!(near.reader.is_none(), "the task that reads was woken");
        assert!(matches!(heard(&mut near, &mut buffer).await, Err(Closed::ByPeer(None))));
        assert_eq!(far.recv(&mut [0; 10]).await.unwrap(), 7);
    });
}

/// A connection behind a network, and the server's socket.
async fn behind(path: Path) -> (UdpSocket, Udp) {
    let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = Address { network: Some(path), ..address(far.local_addr().unwrap()) };
    let near = Udp::open(Udp::begin_connect(&to, None).unwrap(), &to).await.unwrap();
    (far, near)
}

#[test]
fn a_datagram_behind_a_network_takes_the_round_trip_and_keeps_its_place() {
    timed(async {
        let path = Path { latency_ns: 60_000_000, jitter_ns: 10_000_000, ..Path::default() };
        let (far, mut near) = behind(path).await;
        let echo = tokio::spawn(async move {
            let mut room = [0; 100];
            for _ in 0..20 {
                let (count, from) = far.recv_from(&mut room).await.unwrap();
                far.send_to(&room[..count], from).await.unwrap();
            }
        });
        let begin = std::time::Instant::now();
        for number in 0..20 {
            say(&mut near, &[number]).await.unwrap();
        }
        assert_eq!(near.unsent_bytes(), 0, "they are taken at once");
        assert!(begin.elapsed().as_millis() < 25, "{:?}", begin.elapsed());
        let (mut buffer, mut all) = (ReadBuffer::new(), Vec::new());
        while all.len() < 20 {
            all.extend(heard(&mut near, &mut buffer).await.unwrap());
            assert!(begin.elapsed().as_millis() >= 60, "{:?}", begin.elapsed());
        }
        assert_eq!(all.concat(), (0..20).collect::<Vec<u8>>());
        echo.await.unwrap();
    });
}

#[test]
fn what_is_lost_over_udp_never_comes_and_what_is_under_way_leaves_before_the_end() {
    timed(async {
        let path = Path { latency_ns: 40_000_000, loss: 0.4, ..Path::default() };
        let (far, mut near) = behind(path).await;
        for number in 0..100 {
            say(&mut near, &[number]).await.unwrap();
        }
        near.close();
        poll_fn(|cx| near.poll_flush(cx)).await.unwrap();
        let mut buffer = ReadBuffer::new();
        assert!(matches!(heard(&mut near, &mut buffer).await, Err(Closed::ByPeer(None))));
        far.readable().await.unwrap();
        let (mut count, mut room) = (0, [0; 10]);
        while far.try_recv(&mut room).is_ok() {
            count += 1;
        }
        // 60 of 100, give or take four standard deviations.
        assert!((40..=80).contains(&count), "{count}");
    });
}
