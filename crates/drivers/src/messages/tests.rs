//! Against a server that answers from a script, over a real socket.

use std::future::poll_fn;

use futures_util::{SinkExt, StreamExt};
use proptest::prelude::*;
use tokio::net::TcpListener;
use tokio_websockets::{Message as Theirs, ServerBuilder};

use super::*;
use crate::testing::block_on;

/// Requests and replies have their numbers in field 1, replies their errors in field 2.
fn envelope() -> Envelope {
    let path = |number| Path { numbers: vec![number], encoding: Encoding::Varint };
    Envelope { id: Some(Ids { request: path(1), reply: path(1) }), error: Some(path(2)) }
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Answer(u32, u16),
    Unpaired,
    Broken(Broken),
}

fn told(received: Result<Received<'_>, Broken>) -> Told {
    match received {
        Ok(Received::Answer(answer)) => Told::Answer(answer.tag, answer.status),
        Ok(Received::Unpaired { .. }) => Told::Unpaired,
        Ok(Received::Began { .. } | Received::Leaving | Received::PutOff { .. }) => {
            panic!("nothing is said of replies that begin")
        }
        Err(broken) => Told::Broken(broken),
    }
}

/// Sends requests with these tags; the server answers all of them with `replies`, given the frames that it received.
fn talk(
    envelope: Envelope,
    tags: &[u32],
    replies: impl FnOnce(Vec<Vec<u8>>) -> Vec<Theirs> + 'static,
) -> Vec<Told> {
    let count = tags.len();
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = listener.local_addr().unwrap();
        let to = Address::plain(socket);
        let server = tokio::task::spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (_, mut server) = ServerBuilder::new().accept(stream).await.unwrap();
            let mut heard = Vec::new();
            while heard.len() < count {
                heard.push(server.next().await.unwrap().unwrap().as_payload().to_vec());
            }
            for reply in replies(heard) {
                server.feed(reply).await.unwrap();
            }
            server.close().await.unwrap();
        });
        let mut driver = Messages::open(Messages::begin_connect(&to, None).unwrap(), &to).await.unwrap();
        let parts = Parts {
            method: "",
            authority: "",
            body: &[0x5a, 1, b'x'],
            keeps_body: true,
            body_bytes_max: 0,
            envelope: Some(&Arc::new(envelope)),
            ..Parts::get("")
        };
        let prepared = Messages::prepare(&parts);
        for tag in tags {
            driver.send(Outgoing { prepared: &prepared, tag: *tag }).unwrap();
        }
        poll_fn(|cx| driver.poll_flush(cx)).await.unwrap();
        let (mut buffer, mut all) = (ReadBuffer::new(), Vec::new());
        'reads: while poll_fn(|cx| driver.poll_read(cx, &mut buffer)).await.is_ok() {
            while let Some(received) = driver.next(&mut buffer) {
                all.push(told(received));
                if matches!(all.last(), Some(Told::Broken(_))) {
                    break 'reads;
                }
            }
        }
        drop(driver);
        let _ = server.await;
        all
    })
}

fn replies(messages: &[&[u8]]) -> impl FnOnce(Vec<Vec<u8>>) -> Vec<Theirs> + 'static {
    let messages: Vec<Theirs> = messages.iter().map(|message| Theirs::binary(message.to_vec())).collect();
    |_| messages
}

#[test]
fn replies_in_any_order_are_matched_by_their_numbers_and_have_their_statuses() {
    let told = talk(envelope(), &[0, 1, 500], |heard| {
        // A request is its message and its number, which is one more than its tag.
        assert_eq!(heard[0], [0x5a, 1, b'x', 8, 1]);
        assert_eq!(heard[2], [0x5a, 1, b'x', 8, 0xf5, 3]);
        replies(&[&[8, 0xf5, 3], &[8, 1, 16, 0x94, 3], &[0x7a, 1, 9, 8, 2]])(heard)
    });
    assert_eq!(told, [Told::Answer(500, 200), Told::Answer(0, 404), Told::Answer(1, 200)]);
}

#[test]
fn a_reply_without_a_number_or_with_an_impossible_one_is_to_no_request() {
    let beyond = &[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let told = talk(envelope(), &[7], replies(&[&[], &[8, 0], beyond, &[8, 8]]));
    assert_eq!(told, [Told::Unpaired, Told::Unpaired, Told::Unpaired, Told::Answer(7, 200)]);
}

#[test]
fn without_numbers_replies_come_in_the_order_of_the_requests() {
    let envelope = Envelope { id: None, error: None };
    let told = talk(envelope, &[3, 9], |heard| {
        assert_eq!(heard[0], heard[1]);
        replies(&[&[], &[8, 1], &[]])(heard)
    });
    assert_eq!(told, [Told::Answer(3, 200), Told::Answer(9, 200), Told::Unpaired]);
}

#[test]
fn what_is_no_message_breaks_the_connection() {
    let malformed = Told::Broken(Broken::Http(Fault::Message));
    for message in
        [&[8][..], &[8, 1, 16], &[8, 1, 0x12, 9, 1], &[0x0a, 1, 1], &[0x0b; 300], &[8, 1, 0x15, 1, 2, 3, 4]]
    {
        let told = talk(envelope(), &[0], replies(&[message]));
        assert_eq!(told, [Told::Broken(Broken::Http(Fault::Message))], "{message:02x?}");
        assert_eq!(told[0], malformed);
    }
    let told = talk(envelope(), &[0], |_| vec![Theirs::text("{}")]);
    assert!(matches!(told[..], [Told::Broken(Broken::Protocol(_))]), "{told:?}");
    let told = talk(envelope(), &[0], |_| vec![Theirs::binary(vec![0; 70_000])]);
    assert!(matches!(told[..], [Told::Broken(Broken::TooLarge(_))]), "{told:?}");
}

proptest! {
    #[test]
    fn any_reply_is_an_answer_or_unpaired_or_a_fault(bytes: Vec<u8>, has_ids: bool) {
        let envelope = Envelope { id: envelope().id.filter(|_| has_ids), error: envelope().error };
        let mut in_order = VecDeque::from([1]);
        let _ = told(pair(&envelope, &mut in_order, &bytes));
    }
}
