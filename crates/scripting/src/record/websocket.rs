//! WebSocket messages between client and server: read and re-sent by a library, so that whole messages are recorded.
//! Compression is not offered to the server, so that the recording is readable.

use futures_util::{SinkExt as _, StreamExt as _};
use recording::{Side, What};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_websockets::{ClientBuilder, Limits, Message, ServerBuilder};

use super::recorder::Recorder;
use super::upstream::Stream;

/// Passes WebSocket messages on, after both handshakes.
pub(super) async fn messages(
    client: BufReader<TcpStream>,
    server: BufReader<Box<dyn Stream>>,
    recorder: &Recorder,
    number: usize,
) -> anyhow::Result<()> {
    let mut client = ServerBuilder::new().limits(Limits::unlimited()).serve(client);
    let mut server = ClientBuilder::new().limits(Limits::unlimited()).take_over(server);
    loop {
        let (side, message) = tokio::select! {
            message = client.next() => (Side::Client, message),
            message = server.next() => (Side::Server, message),
        };
        let message = match message {
            Some(Ok(message)) => message,
            // Ended without a closing handshake, as with most clients.
            _ => {
                recorder.note(number, What::Closed(side));
                let gone = Message::close(None, "");
                let _ = if side == Side::Client { server.send(gone).await } else { client.send(gone).await };
                return Ok(());
            }
        };
        // Pings are answered here, on both sides.
        if message.is_ping() || message.is_pong() {
            continue;
        }
        let passed_on = match message.as_close() {
            Some((code, reason)) => {
                recorder.note(number, What::Closed(side));
                Message::close(Some(code).filter(|code| !code.is_reserved()), reason)
            }
            None => {
                recorder.message(number, side, message.as_payload(), message.is_text());
                message
            }
        };
        let is_end = passed_on.is_close();
        let sent =
            if side == Side::Client { server.send(passed_on).await } else { client.send(passed_on).await };
        if is_end || sent.is_err() {
            return Ok(());
        }
    }
}
