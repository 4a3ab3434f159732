//! HTTP/2: many concurrent requests on a connection, in clear text by prior knowledge or over TLS by ALPN.
//!
//! Answers come in any order and carry the tags of their requests. Not the hot path: the `h2` crate implements the
//! protocol, and allocates for each request. A stream that the server resets ends the connection for its bots, with the
//! protocol's error as the reason. A GOAWAY without an error is reported, and so is each request that it leaves
//! unprocessed.
//! Not here: pushes (refused in our settings), priorities, trailers (read and dropped).

pub mod request;

mod channel;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod line;
mod pieces;
mod pipe;
mod talk;

use std::rc::Rc;

use crate::http::message::{Http, Media, Parts};
use line::Line;
use pieces::Pieces;
use request::Request;
use talk::Talk;

/// A request, put together; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Request>);

/// One open connection, whose answers are passed on whole.
pub type Http2 = Line<Talk>;

/// One open connection, whose answers are passed on as they arrive.
pub type Fetch2 = Line<Pieces>;

impl Http for Http2 {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> Prepared {
        Prepared(Rc::new(Request::new(parts)))
    }

    fn media(&self) -> Option<Media> {
        self.talk.media()
    }

    fn is_idempotent(prepared: &Prepared) -> bool {
        prepared.0.is_idempotent
    }
}
