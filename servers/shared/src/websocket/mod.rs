//! WebSocket (RFC 6455), server side, as pure functions from bytes to bytes.
//!
//! No sockets, no clock, no compression. Everything is bounded by the caller: the request's length, and the
//! length of a message, in one frame or in fragments.

pub mod frame;
pub mod handshake;
pub mod receiver;

pub use frame::{Opcode, close_code};
pub use receiver::{Heard, Receiver};

#[cfg(test)]
mod differential;
