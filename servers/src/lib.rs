//! Reference servers: systems under test that a climb can start, and that also run standalone.
//!
//! Each server is a crate in a folder beside this one, with `Options`, which are its command line, and `run`; a run
//! ends by SIGTERM, SIGINT or a `Shutdown` handle. This crate re-exports all of them; what they share is in `shared/`.
//! Its tests run every server over real sockets.

#[cfg(feature = "fuzz")]
pub mod fuzz;

mod server;

pub use arena_lobby;
pub use arena_server as arena;
pub use chat_server as chat;
pub use key_value as redis;
pub use leaderboard;
pub use leaderboard_service;
pub use limited_server as limited;
pub use null_server as null;
pub use oracle_server as oracle;
pub use poll_loop;
pub use server::Server;
#[cfg(feature = "truth")]
pub use servers_shared::ticks;
pub use servers_shared::{NO_QUOTA, ServeError, Shutdown, fault};
