//! Reference servers: systems under test that a climb can start, and that stand on their own as well.
//!
//! Each server is a folder with `Options`, which are its command line, and `run`; a run ends by SIGTERM, SIGINT or a
//! `Shutdown` handle. What all have in common is one skeleton: `thread` and `control`.
//! Invariant: nothing here comes from `crates/`. The frame codec and the sleeper exist twice on
//! purpose, because a server that shared a bug with its judge would always be found innocent.
//! The library never prints; what it has to say goes through return values and the tick log. One exception: a process
//! that ends by a planted fault (`fault`) says so on stderr.

pub mod arena;
pub mod chat;
pub mod fault;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub use ::leaderboard;
pub mod leaderboard_service;
pub mod null;
pub mod oracle;
pub mod poll_loop;
pub mod redis;

mod address_limit;
mod cli;
mod clock;
mod control;
mod deadlines;
mod epoll;
mod http;
mod listener;
mod memory_return;
mod protobuf;
mod serve_error;
mod shutdown;
mod slab;
mod sleeper;
mod stream;
mod thread;
mod thread_table;
#[cfg(not(feature = "truth"))]
mod ticks;
#[cfg(feature = "truth")]
pub mod ticks;
mod wakeup;
mod websocket;

pub use serve_error::ServeError;
pub use shutdown::Shutdown;
