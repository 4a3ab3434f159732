//! Many requests and their whole answers on one connection: its state between reads. No socket, no clock.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use h2::RecvStream;
use h2::client::ResponseFuture;

use super::Prepared;
use super::channel::{Channel, is_goodbye};
use super::line::Turns;
use super::request::Request;
use crate::grpc::status;
use crate::http::fault::Fault;
use crate::http::fetch::Origin;
use crate::http::message::{Answer, Media, Outgoing, Received};
use crate::read_buffer::ReadBuffer;
use crate::unfinished::Reservation;

/// Messages up to this length get their memory as they come.
const MESSAGE_BYTES_SMALL: usize = 16 * 1024;

/// Where a connection is in its talk with the server.
pub struct Talk {
    channel: Channel,
    asked: Vec<Asked>,
    told: VecDeque<Told>,
    /// of the last head
    media: Option<Media>,
}

/// An open request.
struct Asked {
    tag: u32,
    request: Rc<Request>,
    stage: Stage,
    status: u16,
    /// once its head has come
    media: Option<Media>,
    /// the location, followed by the received part of a body that is kept
    store: Vec<u8>,
    /// for `store`
    reserved: Reservation,
    location_bytes: usize,
    body_bytes: u64,
    has_begun: bool,
    /// it was asked by gRPC, and the answer says that it is of gRPC
    is_grpc: bool,
    grpc: Option<u8>,
}

enum Stage {
    Head(ResponseFuture),
    Body(RecvStream),
    /// after the body, for gRPC
    Trailers(RecvStream),
    /// nothing of it is to come: it is whole, put off, or ends with the connection
    Over,
}

/// What is known and not yet reported.
enum Told {
    Leaving,
    PutOff { tag: u32 },
    Began { tag: u32 },
    Answer(Asked),
}

/// How far an answer is.
enum Progress {
    Waits,
    Whole,
    /// the server's GOAWAY says that it was not processed
    Rejected {
        is_fault: bool,
    },
    Failed(Fault, String),
}

impl Talk {
    /// Takes a request. False: too many are open, or the connection takes no more.
    pub fn ask(&mut self, request: &Rc<Request>, tag: u32) -> bool {
        let Some(answer) = self.channel.send(request, self.asked.len()) else { return false };
        self.asked.push(Asked {
            tag,
            request: request.clone(),
            stage: Stage::Head(answer),
            status: 0,
            media: None,
            store: Vec::new(),
            reserved: Reservation::default(),
            location_bytes: 0,
            body_bytes: 0,
            has_begun: false,
            is_grpc: false,
            grpc: None,
        });
        self.turn();
        true
    }

    /// What the body is of the last answer whose head has come.
    pub fn media(&self) -> Option<Media> {
        self.media
    }
}

impl Asked {
    fn poll(&mut self, cx: &mut Context<'_>) -> Progress {
        loop {
            match &mut self.stage {
                Stage::Over => return Progress::Waits,
                Stage::Head(answer) => match Pin::new(answer).poll(cx) {
                    Poll::Pending => return Progress::Waits,
                    Poll::Ready(Err(error)) if error.is_go_away() => {
                        return Progress::Rejected { is_fault: !is_goodbye(&error) };
                    }
                    Poll::Ready(Err(error)) => return Progress::Failed(Fault::Two, error.to_string()),
                    Poll::Ready(Ok(answer)) => {
                        if !self.begin(answer) {
                            let words = "a redirect to what is no text".to_owned();
                            return Progress::Failed(Fault::Header, words);
                        }
                    }
                },
                Stage::Trailers(body) => match body.poll_trailers(cx) {
                    Poll::Pending => return Progress::Waits,
                    Poll::Ready(Ok(trailers)) => {
                        self.learn_status(trailers.as_ref());
                        let has_status = trailers.is_some_and(|fields| fields.contains_key("grpc-status"));
                        if !has_status && self.grpc == Some(0) {
                            // A head is not the end: success is known only after the message.
                            self.grpc = None;
                        }
                        return Progress::Whole;
                    }
                    Poll::Ready(Err(error)) => return Progress::Failed(Fault::Two, error.to_string()),
                },
                Stage::Body(body) => match body.poll_data(cx) {
                    Poll::Pending => return Progress::Waits,
                    Poll::Ready(None) if self.request.is_grpc => {
                        match std::mem::replace(&mut self.stage, Stage::Over) {
                            Stage::Body(body) => self.stage = Stage::Trailers(body),
                            other => self.stage = other,
                        }
                    }
                    Poll::Ready(None) => return Progress::Whole,
                    Poll::Ready(Some(Err(error))) => return Progress::Failed(Fault::Two, error.to_string()),
                    Poll::Ready(Some(Ok(data))) => {
                        // If it fails, the stream has ended and the next poll reports how.
                        let _ = body.flow_control().release_capacity(data.len());
                        self.body_bytes += data.len() as u64;
                        if self.body_bytes > self.request.body_cap {
                            let words = format!("a body of more than {} bytes", self.request.body_cap);
                            return Progress::Failed(Fault::BodyTooLarge, words);
                        }
                        if self.request.keeps_body {
                            self.store.extend_from_slice(&data);
                            if let Err(words) = self.make_room() {
                                return Progress::Failed(Fault::BodyTooLarge, words);
                            }
                            // Reserved memory counts, up to what the longest body needs.
                            let body_cap = usize::try_from(self.request.body_cap).unwrap_or(usize::MAX);
                            let bytes = self.store.capacity().min(body_cap);
                            let free_bytes = self.request.free_bytes;
                            if let Err(exhausted) = self.reserved.grow_to(bytes, free_bytes) {
                                return Progress::Failed(exhausted.into(), String::new());
                            }
                        }
                    }
                },
            }
        }
    }

    /// Memory for all of a message of gRPC as soon as its length is known, which grows no more. Errors: it says that it is
    /// longer than may come.
    fn make_room(&mut self) -> Result<(), String> {
        if !self.request.is_grpc || self.store.capacity() > MESSAGE_BYTES_SMALL {
            return Ok(());
        }
        let kept = &self.store[self.location_bytes..];
        let (kept_bytes, Some(bytes)) = (kept.len(), status::message_bytes(kept)) else { return Ok(()) };
        if bytes > self.request.body_cap {
            return Err(format!("a message of {bytes} bytes, more than {}", self.request.body_cap));
        }
        if bytes as usize > MESSAGE_BYTES_SMALL {
            self.store.reserve_exact((bytes as usize).saturating_sub(kept_bytes));
        }
        Ok(())
    }

    /// False: it redirects to what is no text.
    fn begin(&mut self, answer: http::Response<RecvStream>) -> bool {
        let (head, body) = answer.into_parts();
        self.status = head.status.as_u16();
        if let Some(location) = head.headers.get("location").filter(|_| head.status.is_redirection()) {
            if std::str::from_utf8(location.as_bytes()).is_err() {
                return false;
            }
            self.store.extend_from_slice(location.as_bytes());
            self.location_bytes = self.store.len();
        }
        let content_type = head.headers.get("content-type").map(|value| value.as_bytes());
        self.media = Some(Media::of(content_type));
        self.is_grpc = self.request.is_grpc && content_type.is_some_and(status::is_content_type);
        // An answer without messages has its status here.
        self.learn_status(Some(&head.headers));
        self.stage = Stage::Body(body);
        true
    }

    /// A status other than 0 has its text in place of a body.
    fn learn_status(&mut self, fields: Option<&http::HeaderMap>) {
        // Without gRPC's content-type, a field named `grpc-status` means nothing.
        if !self.is_grpc {
            return;
        }
        let Some(code) = fields.and_then(|fields| status::code(fields, self.grpc)) else { return };
        self.grpc = Some(code);
        if code != 0 {
            self.store.truncate(self.location_bytes);
            let text = fields.and_then(|fields| fields.get("grpc-message"));
            self.store.extend(text.map(|text| status::message_text(text.as_bytes())).unwrap_or_default());
        }
    }
}

impl Turns for Talk {
    type Send<'a> = Outgoing<'a, Prepared>;
    type Received<'d> = Received<'d>;

    const REQUESTS_MAX: Option<usize> = None;

    fn new(channel: Channel, _: Origin) -> Self {
        Talk { channel, asked: Vec::new(), told: VecDeque::new(), media: None }
    }

    fn send(&mut self, what: Outgoing<'_, Prepared>) -> bool {
        self.ask(&what.prepared.0, what.tag)
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Received<'d>>, Fault> {
        match self.told.pop_front() {
            None => self.channel.take_fault(buffer).map(|()| None),
            Some(Told::Leaving) => Ok(Some(Received::Leaving)),
            Some(Told::PutOff { tag }) => Ok(Some(Received::PutOff { tag })),
            Some(Told::Began { tag }) => Ok(Some(Received::Began { tag })),
            Some(Told::Answer(asked)) => {
                buffer.joined = asked.store;
                let (location, body) = buffer.joined.split_at(asked.location_bytes);
                Ok(Some(Received::Answer(Answer {
                    tag: asked.tag,
                    status: asked.status,
                    body,
                    body_bytes: asked.body_bytes,
                    location: std::str::from_utf8(location).ok().filter(|location| !location.is_empty()),
                    closes: self.channel.closes_politely(),
                    grpc: asked.grpc,
                })))
            }
        }
    }

    fn channel(&self) -> &Channel {
        &self.channel
    }

    fn channel_mut(&mut self) -> &mut Channel {
        &mut self.channel
    }

    fn gather(&mut self) {
        let waker = self.channel.waker();
        let mut cx = Context::from_waker(&waker);
        if self.channel.hears_goodbye(&mut cx) {
            self.told.push_back(Told::Leaving);
        }
        let mut index = 0;
        while let Some(asked) = self.asked.get_mut(index) {
            let progress = asked.poll(&mut cx);
            self.media = asked.media.or(self.media);
            match progress {
                Progress::Waits => {
                    if !asked.has_begun && matches!(asked.stage, Stage::Body(_) | Stage::Trailers(_)) {
                        asked.has_begun = true;
                        self.told.push_back(Told::Began { tag: asked.tag });
                    }
                    index += 1;
                }
                Progress::Whole => {
                    // Dropped here, since the server may have to be told.
                    asked.stage = Stage::Over;
                    self.told.push_back(Told::Answer(self.asked.remove(index)));
                }
                // For a GOAWAY with an error, `finish` reports why.
                Progress::Rejected { is_fault: true } => {
                    asked.stage = Stage::Over;
                    index += 1;
                }
                Progress::Rejected { is_fault: false } => {
                    self.told.push_back(Told::PutOff { tag: asked.tag });
                    self.asked.remove(index);
                }
                // If the whole connection ended, `finish` reports why.
                Progress::Failed(..) if self.channel.has_ended() => index += 1,
                Progress::Failed(fault, words) => {
                    self.asked.remove(index);
                    self.channel.fail(fault, words);
                }
            }
        }
    }

    fn forget(&mut self) -> bool {
        let has_begun = |asked: &Asked| matches!(asked.stage, Stage::Body(_) | Stage::Trailers(_));
        self.asked.drain(..).any(|asked| has_begun(&asked))
    }

    fn has_told(&self) -> bool {
        !self.told.is_empty()
    }
}

#[cfg(test)]
mod tests;
