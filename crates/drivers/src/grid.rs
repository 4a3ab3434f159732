//! Keys and values over one connection that takes many operations at once: the requests to a driver of a data grid or
//! cache, and its replies.
//!
//! An operation carries a tag, and its reply carries the same one, whatever the protocol matches them by (their order,
//! or a number). A reply says of which kind it is; the caller checks whether it is the right one.

use std::net::SocketAddr;
use std::rc::Rc;

use crate::driver::Driver;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// reads a value
    Get,
    /// writes a value
    Set,
    /// removes a key
    Delete,
}

/// An operation as it is handed to a driver.
#[derive(Debug)]
pub struct Operation<'a, K, V> {
    /// comes back with the reply; of an operation that is not in flight already
    pub tag: u32,
    /// what it does
    pub kind: Kind,
    /// its key
    pub key: &'a K,
    /// what a set writes; others ignore it
    pub value: &'a V,
    /// what a set writes expires after so many ms; `None`: it stays
    pub ttl_ms: Option<u64>,
}

/// A reply and the operation that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// that of the operation
    pub tag: u32,
    /// what the server said
    pub reply: Reply<'a>,
}

/// What a server says to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// to a get: the value, if there is one
    Value(Option<&'a [u8]>),
    /// to a set or delete: it is done
    Done,
    /// to any: the server did not carry it out, and says why
    Refused(&'a [u8]),
    /// to any: not now, but another attempt can help
    Again {
        /// in the server's words
        words: &'a [u8],
        /// it may have been executed anyway, so that only an operation that changes nothing is safe to retry
        may_have_run: bool,
    },
    /// to any: a reply that this operation cannot have
    Strange,
    /// to none (the tag means nothing): which member owns each partition from now on, as far as it is known
    Owners(Rc<[Option<SocketAddr>]>),
}

/// A driver of a data grid or cache.
pub trait Grid:
    for<'a> Driver<Send<'a> = Operation<'a, Self::Key, Self::Value>, Received<'a> = Received<'a>>
{
    /// A key, encoded as far as it can be ahead of its use.
    type Key: 'static;
    /// A value, the same.
    type Value: 'static;

    /// Encodes a key.
    fn key(name: &str) -> Self::Key;

    /// Encodes a value, which is text.
    fn value(text: &str) -> Self::Value;

    /// The partition of a key, below `count`, where keys belong to members of a cluster.
    fn partition(_key: &Self::Key, _count: u32) -> u32 {
        0
    }
}
