//! `stepladder serve`: a reference server by itself.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use servers::{ServeError, arena, null};

/// Which server.
#[derive(Debug, Subcommand)]
pub enum Server {
    /// Two-player shooter over WebSocket, one 60 Hz tick loop per game
    Arena(ArenaArgs),
    /// WebSocket echo: what the instrument is calibrated with
    Null(NullArgs),
}

/// Options of the arena.
#[derive(Debug, Args)]
pub struct ArenaArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42069", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads that play [default: one per core, more where sockets need further descriptor tables]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Ticks per second and game
    #[arg(long, default_value_t = 60, value_name = "HZ")]
    tick_rate: u32,
    /// steady: absolute schedule, missed ticks are skipped and counted. catch-up: the original's, 1 ms timers and
    /// bursts of catch-up ticks
    #[arg(long, value_enum, default_value_t = TickerName::Steady)]
    ticker: TickerName,
    /// Write each second's ticks to this file as JSON lines
    #[arg(long, value_name = "FILE")]
    tick_log: Option<PathBuf>,
    /// Write at the end of a tick log that exists
    #[arg(long)]
    append: bool,
    /// Units per second
    #[arg(long, default_value_t = 500, value_name = "UNITS")]
    bullet_speed: u32,
    /// A player fires at most once in this time
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = duration)]
    fire_interval: Duration,
    /// Send a snapshot to every player at every tick (a client may ask for its own with ?snapshots=1)
    #[arg(long)]
    snapshots: bool,
    /// Sockets at once; more are refused with status 503
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    max_connections: usize,
    /// New connections per second from one address [default: no limit]
    #[arg(long, value_name = "N")]
    per_address_rate: Option<u32>,
}

/// Options of the null server.
#[derive(Debug, Args)]
pub struct NullArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42060", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The arena's two loops.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TickerName {
    /// absolute schedule; missed ticks are skipped and counted
    Steady,
    /// the original's
    CatchUp,
}

/// Serves until SIGTERM or Ctrl-C.
pub fn run(server: Server) -> Result<(), ServeError> {
    match server {
        Server::Arena(args) => arena::run(args.options(), |address| announce("arena", address)),
        Server::Null(args) => {
            let options = null::Options { listen: args.listen, threads: args.threads, ..Default::default() };
            null::run(options, |address| announce("null", address))
        }
    }
}

/// The first line of a server's output: people read it, and a climb takes the address from it.
fn announce(name: &str, address: SocketAddr) {
    let mut out = std::io::stdout();
    // A reader that is gone does not keep the server from serving.
    let _ = writeln!(out, "{name} listening on ws://{address}").and_then(|()| out.flush());
}

impl ArenaArgs {
    fn options(self) -> arena::Options {
        arena::Options {
            listen: self.listen,
            threads: self.threads,
            tick_rate: self.tick_rate,
            ticker: match self.ticker {
                TickerName::Steady => arena::Ticker::Steady,
                TickerName::CatchUp => arena::Ticker::CatchUp,
            },
            tick_log: self.tick_log,
            append: self.append,
            bullet_speed: self.bullet_speed,
            fire_interval: self.fire_interval,
            snapshots: self.snapshots,
            max_connections: self.max_connections,
            connections_per_address_per_s: self.per_address_rate,
            ..Default::default()
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    plan::units::duration_ns(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}
