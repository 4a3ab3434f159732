use std::future::poll_fn;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::testing::{block_on, connected, split};
use crate::unfinished::{ROOM_BYTES_KEPT, Reservation, UNFINISHED_BYTES_MAX, reserved_bytes};

async fn pair<F>() -> (TcpStream, Tcp<F>) {
    let (far, near) = connected().await;
    (far, Tcp::new(Stream::Plain(near)))
}

async fn flush<F: Framing>(socket: &mut Tcp<F>) {
    poll_fn(|cx| socket.poll_flush(cx)).await.unwrap();
}

async fn read<F: Framing>(socket: &mut Tcp<F>, buffer: &mut ReadBuffer) -> Result<usize, Closed> {
    poll_fn(|cx| socket.poll_read(cx, buffer)).await
}

/// What was received, and what ended it.
type Told = (Vec<Vec<u8>>, Option<Broken>);

/// Feeds `bytes` in reads that end at `cuts`, none larger than `limit`, and returns what was received.
async fn received<F: Framing>(bytes: &[u8], cuts: &[usize], limit: usize) -> Told {
    let (mut far, mut socket) = pair::<F>().await;
    let (mut buffer, mut received) = (ReadBuffer::new(), Vec::new());
    buffer.set_limit(limit);
    for piece in split(bytes, cuts) {
        far.write_all(piece).await.unwrap();
        let mut wanted = piece.len();
        while wanted > 0 {
            let count = read(&mut socket, &mut buffer).await.unwrap();
            assert!(count <= limit, "{count} bytes in one read, {limit} allowed");
            wanted -= count;
            while let Some(message) = socket.next(&mut buffer) {
                match message {
                    Ok(message) => received.push(message.to_vec()),
                    Err(broken) => return (received, Some(broken)),
                }
            }
        }
    }
    (received, None)
}

fn too_large() -> Broken {
    Broken::TooLarge(MESSAGE_BYTES_MAX)
}

fn each_line((blocks, broken): Told) -> Told {
    (blocks.iter().flat_map(|block| lines(block)).map(<[u8]>::to_vec).collect(), broken)
}

/// One byte after the other.
fn naive_lines(bytes: &[u8]) -> Told {
    let (mut told, mut line) = (Vec::new(), Vec::new());
    for &byte in bytes {
        line.push(byte);
        if line.len() > MESSAGE_BYTES_MAX {
            return (told, Some(too_large()));
        }
        if byte == b'\n' {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            told.push(std::mem::take(&mut line));
        }
    }
    (told, None)
}

/// One byte after the other.
fn naive_frames(width: usize, bytes: &[u8]) -> Told {
    let (mut told, mut bytes) = (Vec::new(), bytes.iter().copied());
    loop {
        let mut length = 0;
        for _ in 0..width {
            let Some(byte) = bytes.next() else { return (told, None) };
            length = length * 256 + usize::from(byte);
        }
        if length > MESSAGE_BYTES_MAX {
            return (told, Some(too_large()));
        }
        let payload: Vec<u8> = bytes.by_ref().take(length).collect();
        if payload.len() < length {
            return (told, None);
        }
        told.push(payload);
    }
}

/// Short for the most part, and some at the cap: one byte less, as many, and more.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => vec(any::<u8>(), 0..200),
        3 => Just(b"\r".to_vec()),
        2 => (MESSAGE_BYTES_MAX - 3..MESSAGE_BYTES_MAX + 2).prop_map(|count| vec![b'x'; count]),
    ]
}

fn payload(bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        10 => vec(any::<u8>(), 0..200),
        1 => (bytes_max - 2..=bytes_max).prop_map(|count| vec![b'x'; count]),
    ]
}

fn written<F: Framing>(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    payloads.iter().for_each(|payload| F::write(&mut bytes, payload));
    bytes
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![Just(usize::MAX), 500usize..5_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn lines_are_the_same_however_their_bytes_are_split(
        some in vec(line(), 0..12), begun in vec(any::<u8>(), 0..20),
        cuts in vec(any::<usize>(), 0..12), limit in limit(),
    ) {
        let mut bytes: Vec<u8> = some.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        bytes.extend(begun);
        let told = each_line(block_on(received::<Lines>(&bytes, &cuts, limit)));
        prop_assert!(told == naive_lines(&bytes), "{} bytes at {cuts:?}", bytes.len());
    }

    #[test]
    fn frames_are_the_same_however_their_bytes_are_split(
        bytes_of_1 in vec(payload(255), 1..12), bytes_of_2 in vec(payload(65_535), 1..12),
        bytes_of_4 in vec(payload(MESSAGE_BYTES_MAX), 1..12), cuts in vec(any::<usize>(), 0..12), limit in limit(),
    ) {
        let told = |payloads: &[Vec<u8>]| (payloads.to_vec(), None);
        let bytes = written::<LengthPrefixed<1>>(&bytes_of_1);
        prop_assert_eq!(naive_frames(1, &bytes), told(&bytes_of_1));
        prop_assert!(block_on(received::<LengthPrefixed<1>>(&bytes, &cuts, limit)) == told(&bytes_of_1));
        let bytes = written::<LengthPrefixed<2>>(&bytes_of_2);
        prop_assert!(naive_frames(2, &bytes) == told(&bytes_of_2));
        prop_assert!(block_on(received::<LengthPrefixed<2>>(&bytes, &cuts, limit)) == told(&bytes_of_2));
        let bytes = written::<LengthPrefixed>(&bytes_of_4);
        prop_assert!(naive_frames(4, &bytes) == told(&bytes_of_4));
        prop_assert!(block_on(received::<LengthPrefixed>(&bytes, &cuts, limit)) == told(&bytes_of_4));
    }

    #[test]
    fn any_bytes_are_frames_a_part_of_one_or_refused(
        bytes in vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 1..300), cuts in vec(any::<usize>(), 0..12),
    ) {
        prop_assert_eq!(block_on(received::<LengthPrefixed<1>>(&bytes, &cuts, usize::MAX)), naive_frames(1, &bytes));
        prop_assert_eq!(block_on(received::<LengthPrefixed<2>>(&bytes, &cuts, usize::MAX)), naive_frames(2, &bytes));
        prop_assert_eq!(block_on(received::<LengthPrefixed<4>>(&bytes, &cuts, usize::MAX)), naive_frames(4, &bytes));
    }

    #[test]
    fn raw_bytes_are_heard_as_they_come(bytes in vec(any::<u8>(), 1..300), cuts in vec(any::<usize>(), 0..12)) {
        let (received, broken) = block_on(received::<Raw>(&bytes, &cuts, usize::MAX));
        prop_assert_eq!((received.concat(), broken), (bytes, None));
    }
}

#[test]
fn lines_before_one_beyond_the_cap_are_heard_and_it_is_refused_before_it_ends() {
    let check = |line_bytes: usize, expected: Option<Broken>| {
        let bytes = [b"first\n", vec![b'x'; line_bytes - 1].as_slice(), b"\nlast\n"].concat();
        let (told, broken) = each_line(block_on(received::<Lines>(&bytes, &[], usize::MAX)));
        assert_eq!((told[0].as_slice(), broken), (&b"first"[..], expected));
        assert_eq!(told.len(), if broken.is_some() { 1 } else { 3 });
    };
    check(MESSAGE_BYTES_MAX, None);
    check(MESSAGE_BYTES_MAX + 1, Some(too_large()));
    let endless = vec![b'x'; MESSAGE_BYTES_MAX + 1];
    assert_eq!(block_on(received::<Lines>(&endless, &[], 1000)), (vec![], Some(too_large())));
}

#[test]
fn a_frame_beyond_the_cap_is_refused_by_its_length_alone() {
    let beyond = (MESSAGE_BYTES_MAX as u32 + 1).to_be_bytes();
    let bytes = [&[0, 0, 0, 2, b'h', b'i'], beyond.as_slice()].concat();
    let told = (vec![b"hi".to_vec()], Some(too_large()));
    assert_eq!(block_on(received::<LengthPrefixed>(&bytes, &[], usize::MAX)), told);
}

#[test]
#[should_panic(expected = "a payload that its length cannot say")]
fn a_payload_is_never_sent_with_a_length_cut_off() {
    LengthPrefixed::<1>::write(&mut Vec::new(), &[0; 256]);
}

#[test]
fn all_whole_lines_of_a_read_are_one_block() {
    block_on(async {
        let (mut far, mut socket) = pair::<Lines>().await;
        let mut buffer = ReadBuffer::new();
        far.write_all(&[b"a line\n".repeat(1000).as_slice(), b"and a beg"].concat()).await.unwrap();
        assert_eq!(read(&mut socket, &mut buffer).await.unwrap(), 7009);
        let block = socket.next(&mut buffer).unwrap().unwrap();
        assert_eq!(lines(block).filter(|line| line == b"a line").count(), 1000);
        assert_eq!(socket.next(&mut buffer), None);
        far.write_all(b"in\r\n\n").await.unwrap();
        assert_eq!(read(&mut socket, &mut buffer).await.unwrap(), 5);
        let block = socket.next(&mut buffer).unwrap().unwrap();
        assert_eq!(lines(block).collect::<Vec<_>>(), [&b"and a begin"[..], b""]);
    });
}

/// Two connections take turns with one buffer; neither sees the other's rest.
#[test]
fn what_is_incomplete_stays_with_its_connection() {
    block_on(async {
        let (mut far_a, mut a) = pair::<Lines>().await;
        let (mut far_b, mut b) = pair::<Lines>().await;
        let mut buffer = ReadBuffer::new();
        let mut check = async |is_a: bool, piece: &str, expected: Option<&str>| {
            let (far, socket) = if is_a { (&mut far_a, &mut a) } else { (&mut far_b, &mut b) };
            far.write_all(piece.as_bytes()).await.unwrap();
            read(socket, &mut buffer).await.unwrap();
            assert_eq!(socket.next(&mut buffer), expected.map(|block| Ok(block.as_bytes())));
            assert!(expected.is_none() || socket.next(&mut buffer).is_none());
        };
        check(true, "this ", None).await;
        check(false, "that ", None).await;
        check(true, "one\nthis", Some("this one\n")).await;
        check(false, "one\n", Some("that one\n")).await;
        check(true, "\n", Some("this\n")).await;
    });
}

#[test]
fn many_messages_leave_in_one_write_and_exactly_as_they_should() {
    async fn sent<F: Framing>(messages: &[&[u8]]) -> Vec<u8> {
        let (mut far, mut socket) = pair::<F>().await;
        messages.iter().for_each(|message| socket.send(message).unwrap());
        flush(&mut socket).await;
        assert_eq!(socket.unsent_bytes(), 0);
        drop(socket);
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.unwrap();
        bytes
    }
    block_on(async {
        assert_eq!(sent::<Lines>(&[b"one\n", b"two\r\n", b"\xFF\0\n"]).await, b"one\ntwo\r\n\xFF\0\n");
        assert_eq!(sent::<Raw>(&[b"on", b"e"]).await, b"one");
        assert_eq!(sent::<LengthPrefixed<1>>(&[b"one", b""]).await, b"\x03one\0");
        assert_eq!(sent::<LengthPrefixed<2>>(&[&[7; 258]]).await, [&[1, 2], &[7u8; 258][..]].concat());
        assert_eq!(sent::<LengthPrefixed>(&[b"one", b"two"]).await, b"\0\0\0\x03one\0\0\0\x03two");
    });
}

#[test]
fn a_goodbye_ends_our_side_behind_the_last_message_and_the_servers_last_bytes_are_heard() {
    block_on(async {
        let (mut far, mut socket) = pair::<Lines>().await;
        let mut buffer = ReadBuffer::new();
        socket.send(b"/quit\n").unwrap();
        socket.close();
        assert!(socket.send(b"too late\n").is_err());
        flush(&mut socket).await;
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"/quit\n");
        far.write_all(b"bye\n").await.unwrap();
        read(&mut socket, &mut buffer).await.unwrap();
        assert_eq!(socket.next(&mut buffer), Some(Ok(&b"bye\n"[..])));
        drop(far);
        let end = read(&mut socket, &mut buffer).await;
        assert!(matches!(end, Err(Closed::ByPeer(None))), "{end:?}");
        // It is closed for good; closing it again is no error.
        socket.close();
        flush(&mut socket).await;
    });
}

#[test]
fn a_connection_that_nobody_reads_takes_so_much_and_no_more_and_its_goodbye_waits() {
    block_on(async {
        let (mut far, mut socket) = pair::<Lines>().await;
        let line = [vec![b'x'; 9_999].as_slice(), b"\n"].concat();
        let mut taken = 0;
        loop {
            let is_pending = poll_fn(|cx| Poll::Ready(socket.poll_flush(cx).is_pending())).await;
            let outcome = socket.send(&line);
            if is_pending && outcome.is_err() {
                break assert_eq!(outcome, Err(Refused(UNSENT_BYTES_MAX)));
            }
            taken += outcome.map_or(0, |()| line.len());
        }
        assert!(socket.unsent_bytes() <= UNSENT_BYTES_MAX + line.len());
        socket.close();
        let mut bytes = Vec::new();
        let (flushed, read) = tokio::join!(poll_fn(|cx| socket.poll_flush(cx)), far.read_to_end(&mut bytes));
        flushed.unwrap();
        assert_eq!(read.unwrap(), taken, "all that was taken arrives before the end");
    });
}

#[test]
fn a_large_message_leaves_no_large_buffer_behind() {
    block_on(async {
        let (mut far, mut socket) = pair::<LengthPrefixed>().await;
        let mut buffer = ReadBuffer::new();
        let mut bytes = Vec::new();
        LengthPrefixed::<4>::write(&mut bytes, &[b'x'; 50_000]);
        far.write_all(&bytes[..40_000]).await.unwrap();
        let mut come = 0;
        while come < 40_000 {
            come += read(&mut socket, &mut buffer).await.unwrap();
            assert_eq!(socket.next(&mut buffer), None);
        }
        assert!(socket.carried.capacity() >= 40_000);
        far.write_all(&bytes[40_000..]).await.unwrap();
        let mut heard_bytes = None;
        while heard_bytes.is_none() {
            read(&mut socket, &mut buffer).await.unwrap();
            while let Some(message) = socket.next(&mut buffer) {
                heard_bytes = Some(message.unwrap().len());
            }
        }
        assert_eq!(heard_bytes, Some(50_000));
        assert!(socket.carried.capacity() <= ROOM_BYTES_KEPT);
    });
}

fn address(listener: &TcpListener) -> Address {
    let socket = listener.local_addr().unwrap();
    Address::plain(socket)
}

#[test]
fn a_knock_from_a_chosen_address_opens_and_is_heard_from() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = address(&listener);
        let begin_connect = Tcp::<Lines>::begin_connect(&to, Some("127.0.0.77".parse().unwrap())).unwrap();
        let mut socket = Tcp::<Lines>::open(begin_connect, &to).await.unwrap();
        let (mut far, from) = listener.accept().await.unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.77");
        far.write_all(b"* welcome\n").await.unwrap();
        let mut buffer = ReadBuffer::new();
        read(&mut socket, &mut buffer).await.unwrap();
        assert_eq!(socket.next(&mut buffer), Some(Ok(&b"* welcome\n"[..])));
    });
}

#[test]
fn a_server_that_refuses_is_told_from_one_that_closes_and_one_that_resets() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = address(&listener);
        let mut buffer = ReadBuffer::new();
        let begin_connect = Tcp::<Lines>::begin_connect(&to, None).unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let mut socket = Tcp::<Lines>::open(begin_connect, &to).await.unwrap();
        drop(far);
        let end = read(&mut socket, &mut buffer).await;
        assert!(matches!(end, Err(Closed::ByPeer(None))), "{end:?}");

        let begin_connect = Tcp::<Lines>::begin_connect(&to, None).unwrap();
        let (far, _) = listener.accept().await.unwrap();
        far.set_zero_linger().unwrap();
        drop(far);
        let error = Tcp::<Lines>::open(begin_connect, &to).await.err().unwrap();
        assert!(matches!(error, OpenError::ClosedEarly), "{error}");

        drop(listener);
        let error = match Tcp::<Lines>::begin_connect(&to, None) {
            Err(error) => error,
            Ok(begin_connect) => Tcp::<Lines>::open(begin_connect, &to).await.err().unwrap(),
        };
        assert!(matches!(error, OpenError::Refused), "{error}");
    });
}

#[test]
fn lines_that_stall_before_their_end_share_a_limit() {
    block_on(async {
        // All but the room for one.
        let mut others = Reservation::default();
        others.grow_to(UNFINISHED_BYTES_MAX - 60_000, 0).unwrap();
        let mut buffer = ReadBuffer::new();
        let (mut first_far, mut first) = pair::<Lines>().await;
        let (mut second_far, mut second) = pair::<Lines>().await;
        first_far.write_all(&[b'x'; 50_000]).await.unwrap();
        second_far.write_all(&[b'x'; 50_000]).await.unwrap();
        let mut held_bytes = 0;
        while held_bytes < 50_000 {
            held_bytes += read(&mut first, &mut buffer).await.unwrap();
            assert_eq!(first.next(&mut buffer), None);
        }
        let mut held_bytes = 0;
        let broken = loop {
            held_bytes += read(&mut second, &mut buffer).await.unwrap();
            match second.next(&mut buffer) {
                None => assert!(held_bytes < 50_000, "all of it is held"),
                Some(received) => break received,
            }
        };
        assert_eq!(broken, Err(Broken::TooManyUnfinished));
        drop((second, others));
        first_far.write_all(b"\n").await.unwrap();
        read(&mut first, &mut buffer).await.unwrap();
        assert_eq!(first.next(&mut buffer).map(|line| line.unwrap().len()), Some(50_001));
        assert_eq!(first.next(&mut buffer), None);
        assert_eq!(reserved_bytes(), 0);
    });
}
