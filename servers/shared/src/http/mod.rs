//! HTTP/1.1 (RFC 9112), server side, as pure functions from bytes to bytes.
//!
//! No sockets, no clock, no allocation except in the caller's buffer. Written only for these servers: the instrument
//! has its own parser for answers, since a server must not share a bug with its judge.

pub mod request;
pub mod response;

#[cfg(any(test, feature = "fuzz"))]
pub mod naive;
