//! Our codec against tokio-websockets, in both directions, over memory.

use futures_util::{SinkExt, StreamExt};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_websockets::{ClientBuilder, Message};

use super::{Heard, Opcode, Receiver, frame};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[derive(Clone, Debug)]
enum Said {
    Text(String),
    Binary(Vec<u8>),
}

fn any_said() -> impl Strategy<Value = Said> {
    prop_oneof![
        "\\PC{0,300}".prop_map(Said::Text),
        prop::collection::vec(any::<u8>(), 0..70_000).prop_map(Said::Binary),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_their_client_sends_is_what_we_hear(
        messages in prop::collection::vec(any_said(), 0..5), step in 1usize..5000,
    ) {
        let mut bytes = block_on(async {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            let mut client = ClientBuilder::new().take_over(theirs);
            for said in &messages {
                let message = match said {
                    Said::Text(text) => Message::text(text.clone()),
                    Said::Binary(bytes) => Message::binary(bytes.clone()),
                };
                client.feed(message).await.unwrap();
            }
            client.flush().await.unwrap();
            drop(client);
            let mut bytes = Vec::new();
            let mut ours = ours;
            ours.read_to_end(&mut bytes).await.unwrap();
            bytes
        });
        let mut receiver = Receiver::default();
        let mut expected = messages.into_iter();
        for part in bytes.chunks_mut(step) {
            receiver.feed(part, 1 << 17, |heard| {
                match (heard, expected.next().unwrap()) {
                    (Heard::Text(text), Said::Text(expected)) => assert_eq!(text, expected.as_bytes()),
                    (Heard::Binary(bytes), Said::Binary(expected)) => assert_eq!(bytes, expected),
                    (heard, expected) => panic!("{heard:?} instead of {expected:?}"),
                }
                true
            }).unwrap();
        }
        prop_assert!(expected.next().is_none());
    }

    #[test]
    fn what_we_send_is_what_their_client_hears(messages in prop::collection::vec(any_said(), 0..5)) {
        let mut bytes = Vec::new();
        for said in &messages {
            match said {
                Said::Text(text) => frame::put(&mut bytes, Opcode::Text, text.as_bytes()),
                Said::Binary(payload) => frame::put(&mut bytes, Opcode::Binary, payload),
            }
        }
        frame::put_close(&mut bytes, 1001);
        block_on(async {
            let (mut ours, theirs) = tokio::io::duplex(1 << 20);
            let mut client = ClientBuilder::new().take_over(theirs);
            ours.write_all(&bytes).await.unwrap();
            for said in messages {
                let message = client.next().await.unwrap().unwrap();
                match said {
                    Said::Text(text) => assert_eq!(message.as_text(), Some(text.as_str())),
                    Said::Binary(payload) => assert_eq!(&**message.as_payload(), &payload[..]),
                }
            }
            let close = client.next().await.unwrap().unwrap();
            assert_eq!(close.as_close().map(|(code, _)| u16::from(code)), Some(1001));
        });
    }
}
