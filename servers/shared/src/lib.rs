//! Shared by the reference servers: the skeleton of a thread and of its control (`thread`, `control`), sockets,
//! deadlines, HTTP/1.1, WebSocket, a loop's ticks, injected faults, and the errors of all servers.
//!
//! Invariant: nothing here comes from `crates/`. The frame codec and the sleeper exist twice on purpose, because a
//! server that shared a bug with its judge would always pass.
//! The library never prints; it reports through return values and the tick log. One exception: a process that ends by
//! an injected fault (`fault`) says so on stderr.

// Only for the servers beside this crate: an error without details means that the connection is broken.
#![allow(clippy::new_without_default, clippy::result_unit_err)]

pub mod address_limit;
pub mod cli;
pub mod clock;
pub mod control;
pub mod deadlines;
pub mod epoll;
pub mod fault;
pub mod host_port;
pub mod http;
pub mod listener;
pub mod memory_return;
pub mod nats;
pub mod shutdown;
pub mod slab;
pub mod sleeper;
pub mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod thread;
pub mod thread_table;
pub mod ticks;
pub mod wakeup;
pub mod websocket;

mod serve_error;

pub use serve_error::{NO_QUOTA, ServeError};
pub use shutdown::Shutdown;
