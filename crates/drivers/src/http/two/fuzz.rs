//! For fuzzing: HTTP/2 without a socket.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::line::Turns as _;
use super::pieces::Pieces;
use super::request::Request;
use super::talk::Talk;
use crate::http::fetch::{Origin, Piece};
use crate::http::message::{Parts, Received};
use crate::read_buffer::ReadBuffer;

/// A response, or what went wrong: tag, status, body, status of gRPC.
pub type Told = Result<(u32, u16, Vec<u8>, Option<u8>), String>;

/// A client that sends `requests` requests as soon as it may, receives these pieces and then the end of the stream.
/// Returns what was reported for the answers, and the bytes that it wrote.
pub fn talk(
    parts: &Parts<'_>,
    requests: u32,
    pieces: &[&[u8]],
    buffer: &mut ReadBuffer,
) -> (Vec<Told>, usize) {
    // Its first bytes need no answer, so that it is ready at once.
    let Poll::Ready(Ok(mut talk)) =
        pin!(Talk::begin(Origin::default())).poll(&mut Context::from_waker(Waker::noop()))
    else {
        return (Vec::new(), 0);
    };
    let request = Rc::new(Request::new(parts));
    let (mut told, mut asked, mut written) = (Vec::new(), 0, 0);
    for piece in pieces {
        talk.channel().pipe().borrow_mut().came(piece);
        talk.turn();
        while asked < requests && talk.ask(&request, asked) {
            asked += 1;
        }
        let unsent = talk.channel().pipe().borrow().unsent().len();
        talk.channel().pipe().borrow_mut().wrote(unsent);
        written += unsent;
        hear(&mut talk, buffer, &mut told);
    }
    talk.channel().pipe().borrow_mut().end();
    talk.turn();
    hear(&mut talk, buffer, &mut told);
    (told, written)
}

fn hear(talk: &mut Talk, buffer: &mut ReadBuffer, told: &mut Vec<Told>) {
    loop {
        match talk.next(buffer) {
            Ok(None) => return,
            Ok(Some(Received::Answer(answer))) => {
                told.push(Ok((answer.tag, answer.status, answer.body.to_vec(), answer.grpc)));
            }
            Ok(Some(_)) => {}
            Err(fault) => told.push(Err(format!("{fault:?}"))),
        }
    }
}

/// A client whose answers are passed on in pieces. It sends `requests` requests as soon as it may, gives up the first
/// if `cancels`, receives these reads and then the end of the stream. Returns what was reported: tag, kind and bytes,
/// the fault without a tag.
pub fn pieces(
    parts: &Parts<'_>,
    requests: u32,
    cancels: bool,
    reads: &[&[u8]],
    buffer: &mut ReadBuffer,
) -> Vec<(Option<u32>, &'static str, Vec<u8>)> {
    let Poll::Ready(Ok(mut pieces)) =
        pin!(Pieces::begin(Origin::default())).poll(&mut Context::from_waker(Waker::noop()))
    else {
        return Vec::new();
    };
    let request = Request::new(parts);
    let (mut told, mut asked) = (Vec::new(), 0);
    for read in reads {
        pieces.channel().pipe().borrow_mut().came(read);
        pieces.turn();
        while asked < requests && pieces.ask(&request, asked) {
            asked += 1;
        }
        let unsent = pieces.channel().pipe().borrow().unsent().len();
        pieces.channel().pipe().borrow_mut().wrote(unsent);
        hear_pieces(&mut pieces, buffer, &mut told);
        if cancels && pieces.cancel(0) {
            told.push((Some(0), "given up", Vec::new()));
        }
    }
    pieces.channel().pipe().borrow_mut().end();
    pieces.turn();
    hear_pieces(&mut pieces, buffer, &mut told);
    told
}

fn hear_pieces(
    pieces: &mut Pieces,
    buffer: &mut ReadBuffer,
    told: &mut Vec<(Option<u32>, &'static str, Vec<u8>)>,
) {
    loop {
        told.push(match pieces.next(buffer) {
            Ok(None) => return,
            Ok(Some(Piece::Head(head))) => {
                let lines: Vec<_> =
                    head.headers.iter().map(|(name, value)| [name, b": ", value].concat()).collect();
                (Some(head.tag), "head", [head.status.to_string().into_bytes(), lines.concat()].concat())
            }
            Ok(Some(Piece::Part { tag, bytes })) => (Some(tag), "part", bytes.to_vec()),
            Ok(Some(Piece::End { tag, .. })) => (Some(tag), "end", Vec::new()),
            Ok(Some(Piece::Failed { tag, words, .. })) => (Some(tag), "failed", words.to_vec()),
            Ok(Some(Piece::PutOff { tag })) => (Some(tag), "put off", Vec::new()),
            Ok(Some(Piece::Leaving)) => (None, "leaving", Vec::new()),
            Err(fault) => {
                told.push((None, "fault", format!("{fault:?}").into_bytes()));
                return;
            }
        });
    }
}
