//! For fuzzing: HTTP/2 without a socket.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::line::Turns as _;
use super::request::Request;
use super::talk::Talk;
use crate::http::{Parts, Received};
use crate::read_buffer::ReadBuffer;

/// A response, or what went wrong: tag, status, body, status of gRPC.
pub type Told = Result<(u32, u16, Vec<u8>, Option<u8>), String>;

/// A client that asks `requests` times as soon as it may, hears these pieces and then the end of the stream.
/// Returns what was told of the answers, and the bytes that it wrote.
pub fn talk(
    parts: &Parts<'_>,
    requests: u32,
    pieces: &[&[u8]],
    buffer: &mut ReadBuffer,
) -> (Vec<Told>, usize) {
    // Its first bytes need no answer, so that it is ready at once.
    let Poll::Ready(Ok(mut talk)) = pin!(Talk::begin()).poll(&mut Context::from_waker(Waker::noop())) else {
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
