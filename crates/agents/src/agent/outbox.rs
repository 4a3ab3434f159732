//! What an agent measured, on its way to the broker: numbered, in order, each message until the broker has confirmed it.
//!
//! A message that was stored and whose confirmation was lost is sent again under the same id; the broker drops it, or the
//! coordinator does by its number. Memory is all that bounds what waits while the broker is away.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use console::say;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use crate::link::Link;
use crate::messages::{Up, What, pack, up_of};

const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// What a message carries besides its payload.
const HEADERS: usize = 1_024;

/// Starts it for one session; it ends when the sender is gone and everything has left.
pub(super) fn start(link: Link, session: String, number: usize) -> UnboundedSender<(u32, What)> {
    let (sender, waiting) = unbounded_channel();
    tokio::spawn(run(link, session, number, waiting));
    sender
}

async fn run(link: Link, session: String, number: usize, mut waiting: UnboundedReceiver<(u32, What)>) {
    let subject = up_of(&session, number);
    let mut seq = 0;
    while let Some((trial, what)) = waiting.recv().await {
        let mut bytes = pack(&Up { seq, trial, what });
        let most = link.client.server_info().max_payload;
        if bytes.len() + HEADERS > most {
            let why = format!(
                "a second of {} bytes is more than the broker takes (max_payload {most}); raise it, or name fewer operations",
                bytes.len()
            );
            bytes = pack(&Up { seq, trial, what: What::Lost(why) });
        }
        let id = format!("{session}.{number}.{seq}");
        let mut is_first = true;
        while !put(&link, &subject, &id, &bytes).await {
            if std::mem::take(&mut is_first) {
                say::err_line!(
                    "stepladder: the broker does not confirm what was measured; it is sent again until it does"
                );
            }
            sleep(AGAIN_AFTER).await;
        }
        seq += 1;
    }
}

/// True once the broker has it.
async fn put(link: &Link, subject: &str, id: &str, bytes: &[u8]) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, id);
    let confirmed = async {
        let sent = link
            .stream
            .publish_with_headers(subject.to_owned(), headers, bytes.to_vec().into())
            .await
            .ok()?;
        sent.await.ok()
    };
    timeout(CONFIRMED_WITHIN, confirmed).await.ok().flatten().is_some()
}
