//! The servers over real sockets, byte by byte. Every server has a free port of its own and ends by its handle.

#![allow(clippy::unwrap_used)]

mod arena;
mod client;
mod null;
