//! What agents measured, in the order in which the broker has it.

use anyhow::anyhow;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use futures_util::StreamExt as _;

use crate::link::Link;
use crate::messages::{Up, unpack};

/// Takes each message below `subject` after the one that has the number `at_broker` there, which moves on. Errors: the broker does not
/// answer; may be called again.
pub(super) async fn follow(
    link: &Link,
    subject: String,
    at_broker: &mut u64,
    take: &mut (impl FnMut(usize, anyhow::Result<Up>) + Send),
) -> anyhow::Result<()> {
    let config = OrderedConfig {
        filter_subject: subject,
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *at_broker + 1 },
        ..Default::default()
    };
    let stream = link.measured().await?;
    let consumer = stream.create_consumer(config).await.map_err(|error| anyhow!("{error}"))?;
    let mut messages = consumer.messages().await.map_err(|error| anyhow!("{error}"))?;
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| anyhow!("what agents measured cannot be read ({error})"))?;
        if let Ok(info) = message.info() {
            *at_broker = (*at_broker).max(info.stream_sequence);
        }
        if let Some(number) = super::number_of(&message) {
            take(number, unpack(&message.payload));
        }
    }
    Ok(())
}
