//! The servers over real sockets, byte by byte. Every server has its own free port and is shut down by its handle.

#![allow(clippy::unwrap_used)]

mod adversary;
mod arena;
mod arena_nodes;
mod chat;
mod chat_bad_input;
mod chat_client;
mod chat_memory;
mod chat_nodes;
mod client;
mod faults;
mod http_client;
mod http_null;
mod leaderboard;
mod leaderboard_actor;
mod leaderboard_allocations;
mod leaderboard_client;
mod leaderboard_fake_store;
mod leaderboard_faults;
mod leaderboard_grpc;
mod leaderboard_kill;
mod leaderboard_limits;
mod leaderboard_log;
mod leaderboard_seasons;
mod leaderboard_signed;
mod leaderboard_store;
mod leaderboard_websocket;
mod limited;
mod nats_server;
mod null;
mod oracle;
mod poll_loop;
mod redis;
mod redis_server;

use servers::leaderboard::bench::CountingAllocator;

/// It counts in the process of one test, see `leaderboard_allocations`.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
