//! Protocols: the `Driver` trait and one file per protocol, its codec a pure file beside it.
//!
//! A driver owns one connection, encodes into its own buffer, decodes from a buffer shared by all connections of a
//! worker, and never waits. It knows nothing of bots, plans, phases or measurements.

#[macro_use]
mod driver;

mod address;
pub mod any;
mod connect;
pub mod grid;
pub mod grpc;
pub mod hazelcast;
pub mod http;
pub mod messages;
pub mod network;
mod nowhere;
mod protocol;
mod read_buffer;
pub mod redis;
pub mod tcp;
pub mod udp;
pub mod websocket;

mod shown;
mod shutdown;
mod stream;
#[cfg(test)]
mod testing;
mod unfinished;

pub use address::{Address, Authority, Login, TlsSettings, Upgrade};
pub use any::Any;
pub use driver::{Broken, Closed, Driver, Goodbye, OpenError, Refused};
pub use grid::Grid;
pub use grpc::Grpc;
pub use hazelcast::Hazelcast;
pub use http::{Http1, Http2};
pub use messages::Messages;
pub use nowhere::Nowhere;
pub use protocol::{HttpVersion, Protocol};
pub use read_buffer::ReadBuffer;
pub use redis::Redis;
pub use shown::shown;
pub use tcp::Tcp;
pub use udp::Udp;
pub use unfinished::{Exhausted, FREE_BYTES, Reservation, UNFINISHED_BYTES_MAX};
pub use websocket::WebSocket;
