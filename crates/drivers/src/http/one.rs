//! HTTP/1.1: one request at a time on a connection.
//!
//! The hot path of every request workload. A request is encoded once and shared by all connections, an answer is
//! decoded in place in the buffer: nothing is allocated or copied in between, as long as an answer arrives with one
//! read. The body of one that arrives in pieces is only counted, or gathered in a buffer of the connection if something
//! reads it; an idle connection owns no buffer at all.
//! Strict where leniency would hide a server's fault: see `head` and `chunks`, pure and beside this file.
//! Not here: pipelining, redirects, content codings, upgrades.

pub mod chunks;
pub mod connection;
pub mod exchange;
pub mod head;
pub mod pieces;
pub mod request;

use std::rc::Rc;

use crate::http::message::{Http, Media, Parts};
use connection::Connection;
use exchange::Exchange;
use pieces::Pieces;
use request::Request;

/// A request, encoded; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Request>);

/// One open connection, whose answers are passed on whole.
pub type Http1 = Connection<Exchange>;

/// One open connection, whose answers are passed on as they arrive.
pub type Fetch1 = Connection<Pieces>;

impl Http for Http1 {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> Prepared {
        Prepared(Rc::new(Request::new(parts)))
    }

    fn media(&self) -> Option<Media> {
        self.state.media()
    }

    fn is_idempotent(prepared: &Prepared) -> bool {
        prepared.0.is_idempotent
    }
}
