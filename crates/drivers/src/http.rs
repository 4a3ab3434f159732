//! HTTP: what 1.1 and 2 have in common for their callers.
//!
//! A request is prepared once, in its version's wire format (`Http::prepare`), and sent any number of times; the answer
//! carries the tag of its request. A body is kept only if something reads it, otherwise it is counted.
//! Not here: redirects, checks, pools. If an answer closes its connection, the answer says so.

pub(crate) mod fault;
pub mod fetch;
mod harmless;
pub(crate) mod message;
pub mod one;
pub mod two;

pub use fault::Fault;
pub use fetch::{Fetch, Head, Headers, Piece};
pub use message::{Answer, HEAD_BYTES_MAX, Http, KEPT_BODY_BYTES_MAX, Media, Outgoing, Parts, Received};
pub use one::{Fetch1, Http1};
pub use two::{Fetch2, Http2};

#[cfg(test)]
pub(crate) mod tests;
