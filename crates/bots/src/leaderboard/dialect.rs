//! Requests and responses of a leaderboard, over HTTP as JSON or as messages of its protobuf schema.

mod json;
mod messages;

use std::sync::Arc;

use drivers::messages::Envelope;

use super::reply::{Page, Row, Standing};
use super::signing::{Claim, Signature, SignedChange};

pub use json::Json;
pub use messages::{Messages, Over};

/// Neighbours on each side that a read of a member's surroundings asks for.
const NEIGHBOURS: usize = 5;
/// No response that is right has more rows: those of the largest bulk.
pub(super) const ROWS_MOST: usize = 10_000;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// adds points to a member
    Update(String, i64),
    /// the same for several
    Bulk(Vec<(String, i64)>),
    /// the first members, up to this many
    Top(usize),
    /// a member's rank
    Rank(String),
    /// a member with its neighbours
    Around(String),
    /// scores and ranks of these at one moment
    Standings(Vec<String>),
    /// the member with this rank
    At(u64),
}

/// A request as it is sent.
#[derive(Debug, PartialEq)]
pub struct Written {
    pub method: &'static str,
    pub path: String,
    pub body: Vec<u8>,
    /// what is signed of it, where it is a change
    pub claim: Claim,
}

impl Written {
    /// For an HTTP request, all of which is signed.
    fn over_http(method: &'static str, path: String, body: Vec<u8>) -> Self {
        let claim = Claim { method, target: path.clone(), from: 0 };
        Written { method, path, body, claim }
    }
}

/// How messages are encoded.
pub enum Dialect {
    Json(Json),
    Messages(Box<Messages>),
}

impl Dialect {
    /// Over WebSocket or gRPC.
    pub fn of_messages(messages: Messages) -> Self {
        Dialect::Messages(Box::new(messages))
    }

    /// Where requests and replies over WebSocket have their numbers.
    pub fn envelope(&self) -> Option<Arc<Envelope>> {
        match self {
            Dialect::Json(_) => None,
            Dialect::Messages(messages) => messages.envelope(),
        }
    }

    /// The request as it is sent.
    pub fn write(&self, ask: &Ask) -> Written {
        match self {
            Dialect::Json(json) => json.write(ask),
            Dialect::Messages(messages) => messages.write(ask),
        }
    }

    /// Signs a change.
    pub fn attach(&self, signature: &Signature, change: &mut SignedChange) {
        change.is_signed = true;
        match self {
            Dialect::Messages(messages) if messages.carries_signatures() => {
                messages.put_signature(&mut change.body, signature);
            }
            Dialect::Json(_) | Dialect::Messages(_) => change.headers.extend(signature.headers()),
        }
    }

    /// What an update or a read of a rank is answered with. Errors: in words.
    pub fn standing<'a>(&self, body: &'a [u8]) -> Result<Standing<'a>, String> {
        match self {
            Dialect::Json(_) => json::standing(body),
            Dialect::Messages(messages) => messages.standing(body),
        }
    }

    /// What a bulk is answered with, over all its parts.
    pub fn bulk<'a>(&self, body: &'a [u8]) -> Result<Vec<Standing<'a>>, String> {
        match self {
            Dialect::Json(_) => json::bulk(body),
            Dialect::Messages(messages) => messages.bulk(body),
        }
    }

    /// Why a bulk was refused, where its response says so itself and not by its status: code and text.
    pub fn refusal_of_bulk(&self, body: &[u8]) -> Option<(u16, String)> {
        match self {
            Dialect::Json(_) => None,
            Dialect::Messages(messages) => messages.refusal_of_bulk(body),
        }
    }

    /// Neighbouring ranks.
    pub fn page<'a>(&self, body: &'a [u8]) -> Result<Page<'a>, String> {
        match self {
            Dialect::Json(_) => json::page(body),
            Dialect::Messages(messages) => messages.page(body),
        }
    }

    /// In the order asked; `None`: not there.
    pub fn standings<'a>(&self, body: &'a [u8]) -> Result<Vec<Option<Standing<'a>>>, String> {
        match self {
            Dialect::Json(_) => json::standings(body),
            Dialect::Messages(messages) => messages.standings(body),
        }
    }

    /// A response for people.
    pub fn shown(&self, body: &[u8]) -> String {
        match self {
            Dialect::Json(_) => crate::disconnects::shown(body),
            Dialect::Messages(messages) => messages.shown(body),
        }
    }
}

impl<'a> Page<'a> {
    fn of(rows: Vec<Row<'a>>) -> Self {
        Page { rows }
    }
}
