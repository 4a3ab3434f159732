//! Many requests on one connection and their answers in pieces: its state between reads. No socket, no clock.
//!
//! Separate from `talk`, which gathers whole answers. An answer that the server resets fails alone, and the others go
//! on.
//! A piece is reported before the next read, and the server may send more at once: so no more of all bodies together is
//! kept than one read brought.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::response;

use super::channel::Channel;
use super::line::Turns;
use super::request::Request;
use crate::http::fault::Fault;
use crate::http::fetch::{Fetch, Head, Headers, INTERIM_MAX, Origin, Piece};
use crate::read_buffer::ReadBuffer;

/// Where a connection is in its talk with the server.
pub struct Pieces {
    channel: Channel,
    origin: Origin,
    asked: Vec<Asked>,
    told: VecDeque<Told>,
}

/// An open request.
struct Asked {
    tag: u32,
    stage: Stage,
    /// interim heads before the one that is awaited
    interim_count: u8,
}

enum Stage {
    Head(ResponseFuture),
    Body(RecvStream),
}

/// What is known and not yet reported.
enum Told {
    Head { tag: u32, head: Box<response::Parts> },
    Part { tag: u32, bytes: Bytes },
    End { tag: u32 },
    Failed { tag: u32, fault: Fault, words: String },
    Leaving,
    PutOff { tag: u32 },
}

/// How far an answer is.
enum Progress {
    Waits,
    Whole,
    /// the server says that it did not look at it
    PutOff,
    Failed(Fault, String),
}

impl Pieces {
    /// Takes a request. False: too many are open, or the connection takes no more.
    pub fn ask(&mut self, request: &Request, tag: u32) -> bool {
        let Some(answer) = self.channel.send(request, self.asked.len()) else { return false };
        self.asked.push(Asked { tag, stage: Stage::Head(answer), interim_count: 0 });
        self.turn();
        true
    }

    /// Gives up an open request and tells the server. It gets no more events. False: it is not open.
    pub fn cancel(&mut self, tag: u32) -> bool {
        let open_count = self.asked.len();
        self.asked.retain(|asked| asked.tag != tag);
        self.told.retain(|told| told.tag() != Some(tag));
        let is_open = self.asked.len() < open_count;
        if is_open {
            self.turn();
        }
        is_open
    }
}

impl Turns for Pieces {
    type Send<'a> = Fetch<'a>;
    type Received<'d> = Piece<'d>;

    /// As browsers have it.
    const REQUESTS_MAX: Option<usize> = Some(256);

    fn new(channel: Channel, origin: Origin) -> Self {
        Pieces { channel, origin, asked: Vec::new(), told: VecDeque::new() }
    }

    fn send(&mut self, what: Fetch<'_>) -> bool {
        let request = Request::new(&what.parts(&self.origin));
        self.ask(&request, what.tag)
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Piece<'d>>, Fault> {
        let Some(told) = self.told.pop_front() else {
            return self.channel.take_fault(buffer).map(|()| None);
        };
        let said = &mut buffer.joined;
        said.clear();
        Ok(Some(match told {
            Told::Leaving => Piece::Leaving,
            Told::PutOff { tag } => Piece::PutOff { tag },
            Told::End { tag } => Piece::End { tag, closes: self.channel.closes_politely() },
            Told::Part { tag, bytes } => {
                said.extend_from_slice(&bytes);
                Piece::Part { tag, bytes: said }
            }
            Told::Failed { tag, fault, words } => {
                said.extend_from_slice(words.as_bytes());
                Piece::Failed { tag, fault, words: said }
            }
            Told::Head { tag, head } => {
                for (name, value) in &head.headers {
                    for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                        said.extend_from_slice(part);
                    }
                }
                let (status, headers) = (head.status.as_u16(), Headers::of(said));
                Piece::Head(Head { tag, status, reason: b"", headers })
            }
        }))
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
        let (told, is_cast_out, has_ended) =
            (&mut self.told, self.channel.is_cast_out(), self.channel.has_ended());
        self.asked.retain_mut(|asked| {
            let tag = asked.tag;
            match asked.poll(&mut cx, told) {
                Progress::Waits => return true,
                Progress::Whole => told.push_back(Told::End { tag }),
                // If the connection ends with an error, `finish` reports it.
                Progress::PutOff if is_cast_out => return true,
                Progress::PutOff => told.push_back(Told::PutOff { tag }),
                Progress::Failed(..) if has_ended => return true,
                Progress::Failed(fault, words) => told.push_back(Told::Failed { tag, fault, words }),
            }
            false
        });
    }

    fn forget(&mut self) -> bool {
        self.asked.drain(..).any(|asked| matches!(asked.stage, Stage::Body(_)))
    }

    fn has_told(&self) -> bool {
        !self.told.is_empty()
    }
}

impl Told {
    fn tag(&self) -> Option<u32> {
        match self {
            Told::Leaving => None,
            Told::Head { tag, .. }
            | Told::Part { tag, .. }
            | Told::End { tag }
            | Told::Failed { tag, .. }
            | Told::PutOff { tag } => Some(*tag),
        }
    }
}

impl Asked {
    /// Tells what has come of the answer.
    fn poll(&mut self, cx: &mut Context<'_>, told: &mut VecDeque<Told>) -> Progress {
        let tag = self.tag;
        loop {
            match &mut self.stage {
                Stage::Head(answer) => {
                    while let Poll::Ready(Some(Ok(_))) = answer.poll_informational(cx) {
                        // Each is small, but a server may send them for ever.
                        self.interim_count += 1;
                        if self.interim_count > INTERIM_MAX {
                            let words = format!("more than {INTERIM_MAX} interim heads");
                            return Progress::Failed(Fault::HeadTooLarge, words);
                        }
                    }
                    match Pin::new(answer).poll(cx) {
                        Poll::Pending => return Progress::Waits,
                        Poll::Ready(Err(error)) => return failed(&error),
                        Poll::Ready(Ok(answer)) => {
                            let (head, body) = answer.into_parts();
                            told.push_back(Told::Head { tag, head: Box::new(head) });
                            self.stage = Stage::Body(body);
                        }
                    }
                }
                Stage::Body(body) => match body.poll_data(cx) {
                    Poll::Pending => return Progress::Waits,
                    Poll::Ready(None) => return Progress::Whole,
                    Poll::Ready(Some(Err(error))) => {
                        return Progress::Failed(Fault::Two, error.to_string());
                    }
                    Poll::Ready(Some(Ok(bytes))) => {
                        // If it fails, the stream has ended and the next poll reports how.
                        let _ = body.flow_control().release_capacity(bytes.len());
                        if !bytes.is_empty() {
                            told.push_back(Told::Part { tag, bytes });
                        }
                    }
                },
            }
        }
    }
}

/// What an answer whose head never came has ended with. Source: RFC 9113, section 8.7.
fn failed(error: &h2::Error) -> Progress {
    let is_refused = error.is_reset() && error.is_remote() && error.reason() == Some(Reason::REFUSED_STREAM);
    if error.is_go_away() || is_refused {
        Progress::PutOff
    } else {
        Progress::Failed(Fault::Two, error.to_string())
    }
}

#[cfg(test)]
mod tests;
