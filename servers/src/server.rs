//! The servers by their command-line names.

use clap::Subcommand;

use crate::{arena, arena_lobby, chat, leaderboard_service, limited, null, oracle, poll_loop, redis};

/// Which server.
#[derive(Debug, Subcommand)]
pub enum Server {
    /// Two-player shooter over WebSocket, one 60 Hz tick loop per game
    Arena(arena::Options),
    /// Sends players of the arena to the nodes of it that share a NATS server
    ArenaLobby(arena_lobby::Options),
    /// Chat over plain TCP: every line goes to every other client of the room
    Chat(chat::Options),
    /// HTTP services answered from a 30 Hz simulation loop, ten per tick
    PollLoop(poll_loop::Options),
    /// Leaderboards over HTTP and JSON: exact scores and ranks, single updates and bulks
    Leaderboard(leaderboard_service::Options),
    /// Keys and values in memory over Redis's protocol: the data grid of `climb grid`
    Redis(redis::Options),
    /// Echo over WebSocket or lines, or the shortest answer over HTTP: what the instrument is calibrated with
    Null(null::Options),
    /// HTTP server, a thread per connection, in which a limit can be planted: what causes are held to
    Limited(limited::Options),
    /// HTTP server that follows a known law, with planted stalls and faults: what instruments are held to
    Oracle(oracle::Options),
}
