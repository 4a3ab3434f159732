//! HTTP/1.1 (RFC 9112), server side, as pure functions from bytes to bytes.
//!
//! No sockets, no clock, no allocation but in the caller's buffer. Written for these servers and nobody else: the
//! instrument reads answers with a parser of its own, since a server must not share a bug with its judge.

pub mod request;
pub mod response;

#[cfg(any(test, feature = "fuzz"))]
pub mod naive;
