//! One call: its messages in, its answers and its status out.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};

use super::super::calls::Caller;
use super::super::messages::{self, ERROR_FIELD, Operation, Signature};
use super::super::problem::Problem;
use super::super::signing::{self, IDEMPOTENCY_FIELD, KEY_FIELD};
use super::super::tally::Channel;
use super::super::thread::KEPT_BYTES;
use super::Portion;
use crate::protobuf::put_message;
use servers_shared::clock;
use servers_shared::fault::ThreadFaults;

/// Names of the calls, by their operations' places in `messages::OPERATIONS`.
const METHODS: [&str; messages::OPERATIONS.len()] =
    ["Update", "Get", "Ranks", "Top", "Range", "Around", "Bulk"];
const BULK: usize = 6;

const SERVICE: &str = "/stepladder.leaderboard.v1.Leaderboard/";
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Before each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// What a call ends with, where all is not well.
#[derive(Debug)]
struct Refusal {
    code: Code,
    text: String,
}

/// The statuses that are used here. Source: grpc.io, "Status codes".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    InvalidArgument = 3,
    NotFound = 5,
    ResourceExhausted = 8,
    Aborted = 10,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Refusal {
    fn new(code: Code, text: impl Into<String>) -> Refusal {
        Refusal { code, text: text.into() }
    }

    fn put(&self, fields: &mut HeaderMap) {
        fields.insert(STATUS, HeaderValue::from(self.code as u16));
        if let Ok(text) = HeaderValue::try_from(escaped(&self.text)) {
            fields.insert(MESSAGE, text);
        }
    }
}

impl From<&Problem> for Refusal {
    fn from(problem: &Problem) -> Refusal {
        let code = match problem.status {
            401 => Code::Unauthenticated,
            404 => Code::NotFound,
            409 => Code::Aborted,
            // "perhaps the entire file system is out of space", as the specification has it for 507.
            429 | 507 => Code::ResourceExhausted,
            501 => Code::Unimplemented,
            503 => Code::Unavailable,
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, problem.detail())
    }
}

/// A text in the form of `grpc-message`: percent-encoded where it is not printable ASCII.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// A call that is not over.
pub(super) struct Call {
    operation: usize,
    metadata: Metadata,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    /// Once the first answer was given.
    answers: Option<SendStream<Bytes>>,
    /// What has come of the next message.
    store: BytesMut,
    /// Messages that were executed.
    count: usize,
    /// Answers that the client has left no room for yet.
    outbox: Bytes,
    has_ended: bool,
    /// Since when what is missing now has been missing, monotonic ns.
    since_ns: u64,
}

/// What a call is kept waiting by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The rest of a message, or the first one.
    Message,
    /// Room for an answer.
    Room,
}

/// The fields that a call's signature is made of. The others are not kept: a stream may stay open for long.
struct Metadata {
    key: Option<HeaderValue>,
    nonce: Option<HeaderValue>,
    expires: Option<HeaderValue>,
    signature: Option<HeaderValue>,
    idempotency_key: Option<HeaderValue>,
}

impl Metadata {
    fn of(fields: &mut HeaderMap) -> Metadata {
        // Copied: the data is in a buffer that all fields of the head share.
        let mut take =
            |name| fields.remove(name).and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok());
        Metadata {
            key: take(KEY_FIELD),
            nonce: take(signing::NONCE_FIELD),
            expires: take(signing::EXPIRES_FIELD),
            signature: take(signing::SIGNATURE_FIELD),
            idempotency_key: take(IDEMPOTENCY_FIELD),
        }
    }
}

/// The bytes of a field, or none.
fn text_of(field: Option<&HeaderValue>) -> &[u8] {
    field.map(HeaderValue::as_bytes).unwrap_or_default()
}

impl Call {
    /// None: it was refused at once.
    pub(super) fn begin(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Option<Call> {
        let (mut head, body) = request.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        if head.method != Method::POST || !content_type.starts_with(GRPC.as_bytes()) {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            // If it fails the stream is gone, and nobody waits for the answer.
            let _ = respond.send_response(response, true);
            return None;
        }
        let name = head.uri.path().strip_prefix(SERVICE);
        let Some(operation) = name.and_then(|name| METHODS.iter().position(|method| *method == name)) else {
            let text = format!("there is no call {}", head.uri.path());
            refuse(&mut respond, &Refusal::new(Code::Unimplemented, text));
            return None;
        };
        let (store, outbox) = (BytesMut::new(), Bytes::new());
        let (answers, count, has_ended) = (None, 0, false);
        let metadata = Metadata::of(&mut head.headers);
        let since_ns = clock::now_ns();
        Some(Call { operation, metadata, body, respond, answers, store, count, outbox, has_ended, since_ns })
    }

    /// Carries out what is whole and answers it, counting. False when the call is over.
    pub(super) fn goes_on(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller,
        faults: &mut ThreadFaults,
        portion: &mut Portion,
    ) -> bool {
        match self.advance(cx, caller, faults, portion) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(refusal)) => {
                if let Some(refusal) = refusal {
                    self.end(&refusal);
                }
                false
            }
        }
    }

    /// Ready when the call is over: successful, or refused, or (None) its stream is gone.
    fn advance(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller,
        faults: &mut ThreadFaults,
        portion: &mut Portion,
    ) -> Poll<Result<(), Option<Refusal>>> {
        loop {
            let waiting = self.outbox.len();
            let sent = self.send_outbox(cx);
            portion.held_bytes -= waiting - self.outbox.len();
            match sent {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(Gone)) => {
                    portion.held_bytes -= self.outbox.len();
                    return Poll::Ready(Err(None));
                }
                Poll::Ready(Ok(())) if waiting > 0 => self.since_ns = portion.now_ns(),
                Poll::Ready(Ok(())) => {}
            }
            if self.operation == BULK || self.has_ended {
                if !portion.has_room() && self.has_message() {
                    // The client is not the one that has to act.
                    self.since_ns = portion.now_ns();
                    portion.keeps_waiting = true;
                    return Poll::Pending;
                }
                match self.take_message(caller.message_bytes_max()) {
                    Err(refusal) => return Poll::Ready(Err(Some(refusal))),
                    Ok(Some(_)) if self.operation != BULK && !self.store.is_empty() => {
                        let refusal = Refusal::new(Code::InvalidArgument, "the call takes one message");
                        return Poll::Ready(Err(Some(refusal)));
                    }
                    Ok(Some(message)) => {
                        portion.answered += 1;
                        if let Err(refusal) = self.carry_out(&message, caller, faults) {
                            return Poll::Ready(Err(Some(refusal)));
                        }
                        self.since_ns = portion.now_ns();
                        portion.count_bytes(self.outbox.len());
                        continue;
                    }
                    Ok(None) if self.has_ended => return Poll::Ready(self.finish()),
                    Ok(None) => {}
                }
            }
            match self.body.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.has_ended = true,
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(None)),
                Poll::Ready(Some(Ok(data))) => {
                    // If it fails the stream has ended, which the next poll reports.
                    let _ = self.body.flow_control().release_capacity(data.len());
                    if self.store.len() > PREFIX_BYTES + caller.message_bytes_max() {
                        return Poll::Ready(Err(Some(too_long(caller.message_bytes_max()))));
                    }
                    let others_bytes = portion.unfinished_bytes;
                    let bytes_max = caller.unfinished_bytes_max();
                    // A single message may have any length.
                    if others_bytes > 0 && others_bytes + self.store.len() + data.len() > bytes_max {
                        return Poll::Ready(Err(Some(too_many_unfinished(bytes_max))));
                    }
                    if self.store.is_empty() && self.count > 0 {
                        self.since_ns = portion.now_ns();
                    }
                    self.store.extend_from_slice(&data);
                }
            }
        }
    }

    /// The next message is complete, whatever is wrong with it.
    fn has_message(&self) -> bool {
        let length = |[_, a, b, c, d]: [u8; PREFIX_BYTES]| u32::from_be_bytes([a, b, c, d]) as usize;
        let prefix = self.store.first_chunk::<PREFIX_BYTES>();
        prefix.is_some_and(|prefix| self.store.len() - PREFIX_BYTES >= length(*prefix))
    }

    /// The next whole message. Errors: it is compressed or too long, which its first bytes tell.
    fn take_message(&mut self, bytes_max: usize) -> Result<Option<Bytes>, Refusal> {
        let [compressed, a, b, c, d] = *match self.store.first_chunk::<PREFIX_BYTES>() {
            Some(prefix) => prefix,
            None => return Ok(None),
        };
        if compressed != 0 {
            return Err(Refusal::new(Code::Unimplemented, "messages are not compressed here"));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > bytes_max {
            return Err(too_long(bytes_max));
        }
        if self.store.len() - PREFIX_BYTES < length {
            return Ok(None);
        }
        self.store.advance(PREFIX_BYTES);
        let message = self.store.split_to(length).freeze();
        // The remainder would keep a long message's memory for as long as the stream is idle.
        if length > KEPT_BYTES {
            self.store = BytesMut::from(&self.store[..]);
        }
        Ok(Some(message))
    }

    /// Memory of what has come of the next message.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.store.capacity()
    }

    fn carry_out(
        &mut self,
        message: &Bytes,
        caller: &Caller,
        faults: &mut ThreadFaults,
    ) -> Result<(), Refusal> {
        self.count += 1;
        let mut answer = vec![0; PREFIX_BYTES];
        let done = self.call(message, caller, faults, &mut answer);
        match done {
            Ok(()) => {}
            // The stream continues: its other bulks have their own answers.
            Err(problem) if self.operation == BULK && !matches!(problem.status, 401 | 501) => {
                put_message(&mut answer, ERROR_FIELD, |out| problem.put_message(out));
            }
            Err(problem) => return Err(Refusal::from(&problem)),
        }
        // An answer is far smaller than 4 GiB.
        let length = (answer.len() - PREFIX_BYTES) as u32;
        answer[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
        self.outbox = Bytes::from(answer);
        Ok(())
    }

    fn call(
        &self,
        message: &[u8],
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let operation = Operation::read(self.operation, message).inspect_err(|_| {
            caller.count_malformed(Channel::Grpc);
        })?;
        let metadata = &self.metadata;
        let signature = match &metadata.key {
            None => None,
            Some(_) if self.count > 1 => {
                return Err(Problem::new(401, "a signature is for one message; make a call for each"));
            }
            Some(key) => {
                let signature = signing::bytes_of_hex(text_of(metadata.signature.as_ref()));
                Some((key.as_bytes(), signature.unwrap_or_default()))
            }
        };
        let expires =
            std::str::from_utf8(text_of(metadata.expires.as_ref())).ok().and_then(|text| text.parse().ok());
        let request = messages::Request {
            id: 0,
            operation,
            operation_bytes: message,
            operation_parts: 1,
            idempotency_key: text_of(metadata.idempotency_key.as_ref()),
            signature: signature.as_ref().map(|(key, bytes)| Signature {
                key,
                nonce: text_of(metadata.nonce.as_ref()),
                expires_s: expires.unwrap_or(0),
                signature: bytes,
            }),
        };
        caller.call(Channel::Grpc, &request, faults, out)
    }

    /// Sends what waits, as far as the client has room.
    fn send_outbox(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        if self.outbox.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if self.answers.is_none() {
            let mut response = Response::new(());
            response.headers_mut().insert(CONTENT_TYPE, GRPC);
            self.answers = Some(self.respond.send_response(response, false).map_err(|_| Gone)?);
        }
        let Some(answers) = &mut self.answers else { return Poll::Ready(Err(Gone)) };
        while !self.outbox.is_empty() {
            answers.reserve_capacity(self.outbox.len());
            let room = answers.capacity().min(self.outbox.len());
            if room > 0 {
                answers.send_data(self.outbox.split_to(room), false).map_err(|_| Gone)?;
                continue;
            }
            match answers.poll_capacity(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(Gone)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The client has said all, and everything was answered.
    fn finish(&mut self) -> Result<(), Option<Refusal>> {
        if !self.store.is_empty() {
            return Err(Some(Refusal::new(Code::InvalidArgument, "the last message is cut off")));
        }
        if self.operation != BULK && self.count == 0 {
            return Err(Some(Refusal::new(Code::InvalidArgument, "the call has no message")));
        }
        let mut fields = HeaderMap::new();
        fields.insert(STATUS, HeaderValue::from(0));
        match &mut self.answers {
            Some(answers) => drop(answers.send_trailers(fields)),
            // A stream without bulks.
            None => {
                let mut response = Response::new(());
                *response.headers_mut() = fields;
                response.headers_mut().insert(CONTENT_TYPE, GRPC);
                // If it fails the stream is gone.
                let _ = self.respond.send_response(response, true);
            }
        }
        Ok(())
    }

    fn end(&mut self, refusal: &Refusal) {
        match &mut self.answers {
            None => refuse(&mut self.respond, refusal),
            Some(answers) => {
                let mut fields = HeaderMap::new();
                refusal.put(&mut fields);
                // If it fails the stream is gone.
                let _ = answers.send_trailers(fields);
            }
        }
        // A client that is still sending is told to stop when the stream is dropped.
    }

    /// What its client has to do, and since when. None while nothing is missing, and between the bulks of a stream.
    pub(super) fn missing(&self) -> Option<(Missing, u64)> {
        let missing = if !self.outbox.is_empty() {
            Missing::Room
        } else if self.has_ended || (self.operation == BULK && self.count > 0 && self.store.is_empty()) {
            return None;
        } else {
            Missing::Message
        };
        Some((missing, self.since_ns))
    }

    /// The server goes down before the call is whole.
    pub(super) fn refuse_late(mut self) {
        self.end(&Refusal::new(Code::Unavailable, "the server goes down"));
    }
}

/// The stream is over, in whichever way.
struct Gone;

fn refuse(respond: &mut SendResponse<Bytes>, refusal: &Refusal) {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    refusal.put(response.headers_mut());
    // If it fails the stream is gone.
    let _ = respond.send_response(response, true);
}

fn too_long(bytes_max: usize) -> Refusal {
    Refusal::new(Code::ResourceExhausted, format!("a message has at most {bytes_max} bytes (--body-max)"))
}

fn too_many_unfinished(bytes_max: usize) -> Refusal {
    let text = format!(
        "messages of one connection that are not whole take at most {bytes_max} bytes together \
         (a sixteenth of --total-unfinished)"
    );
    Refusal::new(Code::ResourceExhausted, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_statuses_are_escaped_as_the_specification_says() {
        assert_eq!(escaped("no \"ä\" at 5 %\n"), "no \"%C3%A4\" at 5 %25%0A");
    }

    #[test]
    fn a_full_disk_and_a_store_have_statuses_of_their_own() {
        for (problem, code) in [
            (Problem::no_room(true), Code::ResourceExhausted),
            (Problem::no_room(false), Code::Unavailable),
            (Problem::not_with_a_store(), Code::Unimplemented),
        ] {
            assert_eq!(Refusal::from(&problem).code, code, "{problem:?}");
        }
    }

    #[test]
    fn the_calls_are_those_of_the_schema() {
        let mut compiler = protox::Compiler::new([concat!(env!("CARGO_MANIFEST_DIR"), "/proto")]).unwrap();
        compiler.open_file("leaderboard.proto").unwrap();
        let pool = compiler.descriptor_pool();
        let service = pool.services().next().unwrap();
        assert_eq!(format!("/{}/", service.full_name()), SERVICE);
        let calls: Vec<(String, bool)> = service
            .methods()
            .map(|method| (method.name().to_owned(), method.is_client_streaming()))
            .collect();
        let expected = METHODS.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at == BULK));
        assert_eq!(calls, expected.collect::<Vec<_>>());
    }
}
