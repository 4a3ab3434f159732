//! Protobuf messages over WebSocket: one binary frame each, requests and replies of any schema.
//!
//! Many requests are open at once. A reply is matched by the number that both carry, or by the order of the requests if
//! the protocol has none (`Envelope`). To callers it looks like HTTP: a status and a body.
//! Not here: names and types (the caller compiles a schema to an `Envelope`), streams of replies to one request.

pub(crate) mod envelope;
pub mod wire;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::address::Address;
use crate::driver::{Broken, Driver, OpenError, Refused};
use crate::http::fault::Fault;
use crate::http::message::{Answer, Http, Outgoing, Parts, Received};
use crate::read_buffer::ReadBuffer;
use crate::websocket::{self, Connecting, Message, WebSocket};
pub use envelope::{Encoding, Envelope, Found, Ids, Path};

/// A request, encoded except for its number; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Encoded>);

#[derive(Debug)]
struct Encoded {
    message: Vec<u8>,
    envelope: Arc<Envelope>,
}

/// One open connection.
pub struct Messages {
    socket: WebSocket,
    /// of the first request; the protocol of a connection does not change
    envelope: Option<Arc<Envelope>>,
    /// the open requests, where replies come in their order
    in_order: VecDeque<u32>,
    message: Vec<u8>,
}

impl Http for Messages {
    type Prepared = Prepared;

    /// A WebSocket stays until one side says otherwise.
    const REOPENS: bool = false;

    fn is_idempotent(_: &Prepared) -> bool {
        false
    }

    /// Of the parts only the body counts, which is the message, and the envelope, which has to be there.
    fn prepare(parts: &Parts<'_>) -> Prepared {
        let none = || Arc::new(Envelope { id: None, error: None });
        let envelope = parts.envelope.cloned().unwrap_or_else(none);
        Prepared(Rc::new(Encoded { message: parts.body.to_vec(), envelope }))
    }
}

impl Driver for Messages {
    type Connecting = Connecting;
    type Send<'a> = Outgoing<'a, Prepared>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Connecting, OpenError> {
        WebSocket::begin_connect(to, from)
    }

    async fn open(begin_connect: Connecting, to: &Address) -> Result<Self, OpenError> {
        let socket = WebSocket::open(begin_connect, to).await?;
        Ok(Messages { socket, envelope: None, in_order: VecDeque::new(), message: Vec::new() })
    }

    fn send(&mut self, what: Outgoing<'_, Prepared>) -> Result<(), Refused> {
        let Encoded { message, envelope } = &*what.prepared.0;
        self.message.clear();
        self.message.extend_from_slice(message);
        envelope.put_id(&mut self.message, id_of(what.tag));
        self.socket.send(Message::Binary(&self.message))?;
        if envelope.id.is_none() {
            self.in_order.push_back(what.tag);
        }
        if self.envelope.is_none() {
            self.envelope = Some(envelope.clone());
        }
        Ok(())
    }

    forward!(socket);

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        let message = match self.socket.next(buffer)? {
            Ok(websocket::Received::Binary(message)) => message,
            Ok(websocket::Received::Text(_)) => {
                return Some(Err(Broken::Protocol("a text message, where messages are binary")));
            }
            Err(broken) => return Some(Err(broken)),
        };
        Some(match &self.envelope {
            None => Ok(Received::Unpaired { body: message }),
            Some(envelope) => pair(envelope, &mut self.in_order, message),
        })
    }
}

/// What a reply is to. Whether that request is open is up to those who asked.
fn pair<'d>(
    envelope: &Envelope,
    in_order: &mut VecDeque<u32>,
    message: &'d [u8],
) -> Result<Received<'d>, Broken> {
    let malformed = |_| Broken::Http(Fault::Message);
    let tag = match envelope.id {
        Some(_) => envelope.id_of(message).map_err(malformed)?.and_then(tag_of),
        None => in_order.pop_front(),
    };
    let status = envelope.status_of(message).map_err(malformed)?;
    let Some(tag) = tag else { return Ok(Received::Unpaired { body: message }) };
    Ok(Received::Answer(Answer {
        tag,
        status,
        body: message,
        body_bytes: message.len() as u64,
        location: None,
        closes: false,
        grpc: None,
    }))
}

/// Not 0, which looks like no number at all.
fn id_of(tag: u32) -> u64 {
    u64::from(tag) + 1
}

fn tag_of(id: u64) -> Option<u32> {
    u32::try_from(id.checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests;
