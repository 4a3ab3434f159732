use std::future::poll_fn;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::testing::{block_on, connected, split};
use crate::unfinished::{UNFINISHED_BYTES_MAX, reserved_bytes};

const REPLY_BYTES_MAX: usize = 4 << 20;

async fn pair() -> (TcpStream, Redis) {
    pair_with(REPLY_BYTES_MAX).await
}

async fn pair_with(reply_bytes_max: usize) -> (TcpStream, Redis) {
    let (far, near) = connected().await;
    (far, Redis::over(Stream::Plain(near), reply_bytes_max))
}

fn send(redis: &mut Redis, tag: u32, kind: Kind) -> Result<(), Refused> {
    let (key, value) = (Redis::key("k0"), Redis::value("abc"));
    redis.send(Operation { tag, kind, key: &key, value: &value, ttl_ms: None })
}

/// What was received, in words, and what broke the protocol.
type Told = (Vec<(u32, String)>, Option<Broken>);

/// Gives `bytes` to a connection with these operations in flight, in reads that end at `cuts`.
async fn told(kinds: &[Kind], bytes: &[u8], cuts: &[usize]) -> Told {
    let (mut far, mut redis) = pair().await;
    for (tag, kind) in kinds.iter().enumerate() {
        send(&mut redis, tag as u32, *kind).unwrap();
    }
    poll_fn(|cx| redis.poll_flush(cx)).await.unwrap();
    let (mut buffer, mut all) = (ReadBuffer::new(), Vec::new());
    for piece in split(bytes, cuts) {
        let mut wanted = piece.len();
        let write = far.write_all(piece);
        let read = async {
            while wanted > 0 {
                wanted -= poll_fn(|cx| redis.poll_read(cx, &mut buffer)).await.unwrap();
                while let Some(received) = redis.next(&mut buffer) {
                    match received {
                        Ok(Received { tag, reply }) => all.push((tag, words(reply))),
                        Err(broken) => return Some(broken),
                    }
                }
            }
            None
        };
        let (written, broken) = tokio::join!(write, read);
        written.unwrap();
        if broken.is_some() {
            return (all, broken);
        }
    }
    (all, None)
}

fn words(reply: Reply<'_>) -> String {
    match reply {
        Reply::Value(None) => "none".to_owned(),
        Reply::Value(Some(value)) => {
            format!("{} × {:?}", value.len(), value.first().map(|byte| *byte as char))
        }
        Reply::Done => "done".to_owned(),
        Reply::Refused(words) => format!("refused {}", String::from_utf8_lossy(words)),
        Reply::Strange => "strange".to_owned(),
        Reply::Again { .. } | Reply::Owners(_) => "what Redis never says".to_owned(),
    }
}

#[test]
fn commands_leave_in_one_write_and_exactly_as_they_should() {
    block_on(async {
        let (mut far, mut redis) = pair().await;
        for (tag, kind) in [(7, Kind::Get), (8, Kind::Set), (9, Kind::Delete)] {
            send(&mut redis, tag, kind).unwrap();
        }
        redis.close();
        assert!(send(&mut redis, 10, Kind::Get).is_err(), "behind a goodbye nothing is sent");
        poll_fn(|cx| redis.poll_flush(cx)).await.unwrap();
        assert_eq!(redis.unsent_bytes(), 0);
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.unwrap();
        let expected = "*2 $3 GET $2 k0 *3 $3 SET $2 k0 $3 abc *2 $3 DEL $2 k0 ".replace(' ', "\r\n");
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    });
}

#[test]
fn each_reply_belongs_to_the_oldest_operation_and_must_be_of_its_kind() {
    let check = |kind, bytes: &[u8], expected: &str| {
        let (all, broken) = block_on(told(&[kind], bytes, &[]));
        assert_eq!((all, broken), (vec![(0, expected.to_owned())], None));
    };
    check(Kind::Get, b"$3\r\nabc\r\n", "3 × Some('a')");
    check(Kind::Get, b"$-1\r\n", "none");
    check(Kind::Get, b"+OK\r\n", "strange");
    check(Kind::Set, b"+OK\r\n", "done");
    check(Kind::Set, b"+QUEUED\r\n", "strange");
    check(Kind::Set, b"$3\r\nabc\r\n", "strange");
    check(Kind::Delete, b":1\r\n", "done");
    check(Kind::Delete, b":2\r\n", "strange");
    check(Kind::Set, b"-OOM command not allowed\r\n", "refused OOM command not allowed");
    let (all, broken) = block_on(told(&[Kind::Get], b"$-1\r\n$-1\r\n", &[]));
    assert_eq!(all.len(), 1);
    assert_eq!(broken, Some(Broken::Protocol("a reply to nothing that was asked")));
    let (_, broken) = block_on(told(&[Kind::Get], b"$5\r\nabcdefgh\r\n", &[]));
    assert_eq!(broken, Some(Broken::Protocol("a string that is longer than it says")));
}

#[test]
fn a_value_larger_than_the_read_buffer_is_read_where_it_stays() {
    block_on(async {
        let value = vec![b'v'; 3 << 20];
        let bytes = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n:1\r\n"].concat();
        let (all, broken) = told(&[Kind::Get, Kind::Delete], &bytes, &[5, 100, 70_000, 2_000_000]).await;
        assert_eq!(all, [(0, format!("{} × Some('v')", 3 << 20)), (1, "done".to_owned())]);
        assert_eq!(broken, None);
    });
}

/// What leaves is what Redis reads, whether values are copied or referred to, and as little is held as was copied.
#[test]
fn large_values_are_sent_without_being_held_and_expire_when_they_should() {
    block_on(async {
        for (length, held_bytes_max) in [(10, 1 << 16), (100 << 10, 1 << 16)] {
            let (mut far, mut redis) = pair().await;
            let text = "v".repeat(length);
            let (key, value) = (Redis::key("k7"), Redis::value(&text));
            let mut expected = Vec::new();
            for tag in 0..300 {
                let ttl_ms = (tag % 2 == 1).then_some(1500);
                redis.send(Operation { tag, kind: Kind::Set, key: &key, value: &value, ttl_ms }).unwrap();
                match ttl_ms {
                    None => resp::command(&mut expected, &[b"SET", b"k7", text.as_bytes()]),
                    Some(_) => {
                        resp::command(&mut expected, &[b"SET", b"k7", text.as_bytes(), b"PX", b"1500"]);
                    }
                }
            }
            assert_eq!(redis.unsent_bytes(), expected.len());
            assert!(redis.unsent.held_bytes() < held_bytes_max, "{}", redis.unsent.held_bytes());
            let mut heard = vec![0; expected.len()];
            let (flushed, read) =
                tokio::join!(poll_fn(|cx| redis.poll_flush(cx)), far.read_exact(&mut heard));
            flushed.unwrap();
            read.unwrap();
            assert!(heard == expected, "what left is not what was to leave");
            assert_eq!(redis.unsent_bytes(), 0);
        }
    });
}

#[test]
fn a_reply_cannot_come_before_its_command_has_left() {
    block_on(async {
        let (mut far, mut redis) = pair().await;
        let mut buffer = ReadBuffer::new();
        send(&mut redis, 0, Kind::Get).unwrap();
        poll_fn(|cx| redis.poll_flush(cx)).await.unwrap();
        far.write_all(b"$-1\r\n$-1\r\n").await.unwrap();
        poll_fn(|cx| redis.poll_read(cx, &mut buffer)).await.unwrap();
        assert_eq!(redis.next(&mut buffer), Some(Ok(Received { tag: 0, reply: Reply::Value(None) })));
        send(&mut redis, 1, Kind::Get).unwrap();
        let broken = redis.next(&mut buffer);
        assert_eq!(broken, Some(Err(Broken::Protocol("a reply to nothing that was asked"))));
    });
}

#[test]
fn a_reply_longer_than_any_that_is_waited_for_ends_the_connection_before_memory_is_taken_for_it() {
    let longest = REPLY_BYTES_MAX - b"$4194304\r\n\r\n".len();
    for (length, expected) in [(longest, None), (longest + 1, Some(Broken::TooLarge(REPLY_BYTES_MAX)))] {
        let (broken, taken) = block_on(async {
            let (mut far, mut redis) = pair().await;
            send(&mut redis, 0, Kind::Get).unwrap();
            poll_fn(|cx| redis.poll_flush(cx)).await.unwrap();
            far.write_all(format!("${length}\r\nabc").as_bytes()).await.unwrap();
            let mut buffer = ReadBuffer::new();
            assert!(poll_fn(|cx| redis.poll_read(cx, &mut buffer)).await.is_ok());
            let broken = redis.next(&mut buffer).and_then(Result::err);
            (broken, redis.large.capacity() + redis.carried.capacity())
        });
        assert_eq!((&broken, taken > 1000), (&expected, expected.is_none()), "{length} bytes, {taken} taken");
    }
}

/// Such a value leaves a read buffer that is full, or nearly so, with little of it missing.
#[test]
fn a_value_a_little_larger_than_the_read_buffer_is_heard() {
    for length in (READ_BUFFER_BYTES - 40..READ_BUFFER_BYTES + 40).chain([READ_BUFFER_BYTES + 8_000]) {
        let mut bytes = Vec::new();
        resp::put_bulk(&mut bytes, &vec![b'x'; length]);
        let (all, broken) = block_on(told(&[Kind::Get], &bytes, &[READ_BUFFER_BYTES - 1]));
        assert_eq!((all, broken), (vec![(0, format!("{length} × Some('x')"))], None));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn replies_are_heard_alike_however_they_are_cut(
        lengths in vec(prop_oneof![4 => 0usize..40, 1 => 10_000usize..200_000], 1..8),
        cuts in vec(any::<usize>(), 0..6),
    ) {
        let mut bytes = Vec::new();
        lengths.iter().for_each(|length| resp::put_bulk(&mut bytes, &vec![b'x'; *length]));
        let kinds = vec![Kind::Get; lengths.len()];
        let (all, broken) = block_on(told(&kinds, &bytes, &cuts));
        prop_assert_eq!(broken, None);
        let expected: Vec<(u32, String)> = lengths.iter().enumerate().map(|(tag, &length)| {
            (tag as u32, words(Reply::Value(Some(&vec![b'x'; length]))))
        }).collect();
        prop_assert_eq!(all, expected);
    }

    #[test]
    fn whatever_a_server_says_nothing_panics_and_no_operation_is_answered_twice(
        text in "([$:+-][0-9a-z]{0,3}\r\n){0,6}", cuts in vec(any::<usize>(), 0..3),
    ) {
        let (all, _) = block_on(told(&[Kind::Get; 3], text.as_bytes(), &cuts));
        prop_assert!(all.iter().map(|(tag, _)| *tag).eq(0..all.len() as u32));
    }
}

#[test]
fn a_connection_opens_on_its_database_and_what_is_not_redis_is_named() {
    let opens = |path: &str, says: &'static [u8]| {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let socket = listener.local_addr().unwrap();
            let to =
                Address { path: path.to_owned(), reply_bytes_max: REPLY_BYTES_MAX, ..Address::plain(socket) };
            let begin_connect = Redis::begin_connect(&to, Some("127.0.0.77".parse().unwrap())).unwrap();
            let server = async {
                let (mut far, from) = listener.accept().await.unwrap();
                assert_eq!(from.ip().to_string(), "127.0.0.1", "protected mode lets in no other");
                let mut heard = [0; 100];
                let count = far.read(&mut heard).await.unwrap();
                far.write_all(says).await.unwrap();
                String::from_utf8_lossy(&heard[..count]).into_owned()
            };
            let (opened, heard) = tokio::join!(Redis::open(begin_connect, &to), server);
            (opened.err().map(|error| error.to_string()), heard)
        })
    };
    assert_eq!(opens("/", b"+OK\r\n"), (None, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n".to_owned()));
    assert_eq!(opens("/12", b"+OK\r\n"), (None, "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n".to_owned()));
    let check = |says: &'static [u8], expected: &str| {
        let why = opens("/", says).0.unwrap();
        assert!(why.contains(expected), "{why}");
    };
    check(b"HTTP/1.1 400 Bad Request\r\n", "not a Redis server: it answered SELECT with \"HTTP/1.1 400");
    check(b"-NOAUTH Authentication required.\r\n", "it answered NOAUTH Authentication required.");
    check(b"+OK\r\n+OK\r\n", "not a Redis server");
    check(b"", "closed by the server");
}

#[test]
fn a_password_is_shown_before_the_database_is_selected_and_a_refusal_is_told_in_the_servers_words() {
    let opens = |user: Option<&str>, answers: &'static [&'static [u8]]| {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let login = Login { user: user.map(str::to_owned), password: "open sesame".to_owned() };
            assert!(!format!("{login:?}").contains("sesame"));
            let to = Address {
                login: Some(login),
                reply_bytes_max: REPLY_BYTES_MAX,
                ..Address::plain(listener.local_addr().unwrap())
            };
            let begin_connect = Redis::begin_connect(&to, None).unwrap();
            let server = async {
                let (mut far, _) = listener.accept().await.unwrap();
                let (mut all, mut heard) = (String::new(), [0; 100]);
                for answer in answers {
                    let count = far.read(&mut heard).await.unwrap();
                    all += &String::from_utf8_lossy(&heard[..count]);
                    far.write_all(answer).await.unwrap();
                }
                all
            };
            let (opened, heard) = tokio::join!(Redis::open(begin_connect, &to), server);
            (opened.err().map(|error| error.to_string()), heard)
        })
    };
    let select = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
    let of_server = format!("*2\r\n$4\r\nAUTH\r\n$11\r\nopen sesame\r\n{select}");
    assert_eq!(opens(None, &[b"+OK\r\n", b"+OK\r\n"]), (None, of_server));
    let of_user = format!("*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$11\r\nopen sesame\r\n{select}");
    assert_eq!(opens(Some("bob"), &[b"+OK\r\n", b"+OK\r\n"]), (None, of_user));
    let (why, heard) = opens(None, &[b"-WRONGPASS invalid username-password pair\r\n"]);
    assert!(why.unwrap().contains("it answered WRONGPASS invalid username-password pair"));
    assert!(!heard.contains("SELECT"), "{heard}");
    let (why, _) = opens(None, &[b"hello\r\n"]);
    assert!(why.unwrap().contains("not a Redis server: it answered AUTH with \"hello"));
}

/// Of a plan whose values are 100 bytes long, a server that stalls within replies of 1 MB.
#[test]
fn large_replies_that_stall_share_a_limit_and_leave_no_room_behind() {
    const REPLY_BYTES: usize = 1_000_000;
    block_on(async {
        let (mut connections, mut broken, mut held_bytes) = (Vec::new(), Vec::new(), 0);
        let mut buffer = ReadBuffer::new();
        for _ in 0..30 {
            let (mut far, mut redis) = pair_with(UNPLANNED_BYTES + 100).await;
            send(&mut redis, 1, Kind::Get).unwrap();
            poll_fn(|cx| redis.poll_flush(cx)).await.unwrap();
            far.write_all(format!("${REPLY_BYTES}\r\nabc").as_bytes()).await.unwrap();
            poll_fn(|cx| redis.poll_read(cx, &mut buffer)).await.unwrap();
            match redis.next(&mut buffer) {
                None => {
                    held_bytes += redis.large.capacity();
                    connections.push((far, redis));
                }
                Some(Err(why)) => broken.push(why),
                Some(Ok(received)) => panic!("{received:?}"),
            }
        }
        assert!(held_bytes <= UNFINISHED_BYTES_MAX + 30 * FREE_BYTES, "{held_bytes} bytes are held");
        assert_eq!((connections.len(), broken.len()), (16, 14));
        assert!(broken.iter().all(|why| *why == Broken::TooManyUnfinished), "{broken:?}");
        // The rest of them.
        for (far, redis) in &mut connections {
            let rest = [&[b'x'; REPLY_BYTES - 3][..], b"\r\n"].concat();
            let read = async {
                loop {
                    poll_fn(|cx| redis.poll_read(cx, &mut buffer)).await.unwrap();
                    if let Some(received) = redis.next(&mut buffer) {
                        return received.map(|received| words(received.reply));
                    }
                }
            };
            let (written, received) = tokio::join!(far.write_all(&rest), read);
            written.unwrap();
            assert_eq!(received, Ok("1000000 × Some('a')".to_owned()));
        }
        assert_eq!(reserved_bytes(), 0);
        let rooms: usize = connections.iter().map(|(_, redis)| redis.large.capacity()).sum();
        assert_eq!(rooms, 0, "no connection keeps the room of a reply that was heard");
    });
}

#[test]
fn the_values_of_a_plan_are_not_counted() {
    block_on(async {
        let (mut far, mut redis) = pair_with(UNPLANNED_BYTES + (16 << 20)).await;
        send(&mut redis, 1, Kind::Get).unwrap();
        poll_fn(|cx| redis.poll_flush(cx)).await.unwrap();
        far.write_all(format!("${}\r\nabc", 16 << 20).as_bytes()).await.unwrap();
        let mut buffer = ReadBuffer::new();
        poll_fn(|cx| redis.poll_read(cx, &mut buffer)).await.unwrap();
        assert!(redis.next(&mut buffer).is_none());
        assert!(redis.large.len() > 16 << 20);
        assert!(reserved_bytes() < 100, "{} bytes are reserved", reserved_bytes());
    });
}
