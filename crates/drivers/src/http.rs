//! HTTP: what 1.1 and 2 have in common for those who ask.
//!
//! A request is prepared once, in the form that its version sends (`Http::prepare`), and sent as often as wanted; the
//! answer comes with the tag of its request. A body is kept only where something reads it, else it is counted.
//! Not here: redirects, checks, pools. A connection that an answer closes says so with the answer.

pub(crate) mod fault;
pub mod fetch;
mod harmless;
pub(crate) mod message;
pub mod one;
pub mod two;

pub use fault::Fault;
pub use fetch::{Fetch, Head, Headers, Piece};
pub use message::{Answer, HEAD_BYTES_MAX, Http, KEPT_BODY_BYTES_MAX, Media, Outgoing, Parts, Received};
pub use one::Http1;
pub use one::fetch::Fetch1;
pub use two::Http2;
pub use two::fetch::Fetch2;

#[cfg(test)]
pub(crate) mod tests;
