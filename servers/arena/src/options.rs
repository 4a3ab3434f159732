//! The arena's options, and their ranges.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use servers_shared::cli::{self, check, time};
use servers_shared::fault::{self, Fault, Server};
use servers_shared::nats::{self, NatsAddress};
use servers_shared::ticks::schedule::Ticker;
use servers_shared::{ServeError, Shutdown};

use crate::nodes::state::is_address;

/// How an arena runs. The defaults are the published game on loopback.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42069", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Threads that play [default: one per core, more where sockets need further descriptor tables]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Ticks per second and game, 1 to 1000
    #[arg(long, default_value_t = 60, value_name = "HZ")]
    pub tick_rate: u32,
    /// steady: absolute schedule, missed ticks are skipped and counted. catch-up: the original's, 1 ms timers and
    /// bursts of catch-up ticks
    #[arg(long, value_enum, default_value_t = Ticker::Steady)]
    pub ticker: Ticker,
    /// Write each second's ticks to this file as JSON lines; it must not exist
    #[arg(long, value_name = "FILE")]
    pub tick_log: Option<PathBuf>,
    /// Write at the end of a tick log that exists, which mixes the results of both runs
    #[arg(long)]
    pub append: bool,
    /// Units per second, 1 to 100000
    #[arg(long, default_value_t = 500, value_name = "UNITS")]
    pub bullet_speed: u32,
    /// A player fires at most once in this time; earlier fires are dropped
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = time)]
    pub fire_interval: Duration,
    /// Send a snapshot to every player at every tick (a client may ask for its own with ?snapshots=1)
    #[arg(long)]
    pub snapshots: bool,
    /// Sockets at once; more are refused with status 503
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    pub max_connections: usize,
    /// New connections per second from one address, with one second's worth of burst [default: no limit]
    #[arg(long = "per-address-rate", value_name = "N")]
    pub connections_per_address_per_s: Option<u32>,
    /// Whether loopback addresses are limited too.
    #[arg(skip)]
    pub limit_loopback: bool,
    /// How long a client may take from connecting to the end of its request.
    #[arg(skip = Duration::from_secs(5))]
    pub handshake_timeout: Duration,
    /// How long a client may take to close after its stop.
    #[arg(skip = Duration::from_secs(5))]
    pub close_timeout: Duration,
    /// What becomes of a waiting player who has gone
    #[arg(long, value_enum, default_value_t = Pairing::Strict)]
    pub pairing: Pairing,
    /// Be a node of the lobbies on this NATS server (serve arena-lobby), such as nats://USER:PASSWORD@HOST:4222; players then
    /// need a ticket of a lobby
    #[arg(long, value_name = "URL")]
    pub nats: Option<NatsAddress>,
    /// With --nats: a file whose first line is USER:PASSWORD or TOKEN, so that neither is on the command line
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_login: Option<PathBuf>,
    /// What this node is called, 1 to 32 letters, digits, _, - and . [default: at random]
    #[arg(long, value_name = "NAME", requires = "nats")]
    pub node: Option<String>,
    /// Where players find this node, which lobbies tell them [default: the address to listen on]
    #[arg(long, value_name = "HOST:PORT", requires = "nats")]
    pub advertise: Option<String>,
    /// Faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Arena))]
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

/// What becomes of a waiting player who has gone. In both cases sockets are paired in order of arrival, and a game
/// against a dead socket ends when the living player's bullets hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Pairing {
    /// it is forgotten, and the next two to arrive play each other
    #[default]
    Strict,
    /// as in the published original, the next to arrive plays against it, although it is dead and never fires
    Forgetful,
}

impl Default for Options {
    fn default() -> Options {
        cli::defaults()
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), ServeError> {
        check("tick-rate", self.tick_rate, 1..=1000, "1 to 1000 ticks per second")?;
        check("bullet-speed", self.bullet_speed, 1..=100_000, "1 to 100000 units per second")?;
        check("fire-interval", self.fire_interval, ..=Duration::from_secs(3600), "at most an hour")?;
        check("threads", self.threads.unwrap_or(1), 1..=256, "1 to 256")?;
        check("max-connections", self.max_connections, 2..=10_000_000, "2 to 10000000")?;
        let name = self.node.as_deref().unwrap_or("_");
        if !nats::is_node_name(name) {
            let (value, range) = (name.escape_debug().to_string(), "1 to 32 letters, digits, _, - and .");
            return Err(ServeError::Option { option: "node", value, range });
        }
        let advertised = self.advertise.as_deref();
        if self.nats.is_some() && !advertised.map_or(!self.listen.ip().is_unspecified(), is_address) {
            let value = advertised.unwrap_or("(none)").escape_debug().to_string();
            let range =
                "HOST:PORT where players find this node; it is needed where --listen is no single address";
            return Err(ServeError::Option { option: "advertise", value, range });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused_with_their_name_and_range() {
        assert!(Options::default().check().is_ok());
        let error = Options { tick_rate: 0, ..Options::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "--tick-rate 0 is out of range: 1 to 1000 ticks per second");
        let node = Options { nats: Some("nats://localhost".parse().unwrap()), ..Options::default() };
        assert!(node.check().is_ok());
        let refused = |options: Options, begins: &str| {
            let error = options.check().unwrap_err().to_string();
            assert!(error.starts_with(begins), "{error}");
        };
        refused(
            Options { node: Some("a b".into()), ..node.clone() },
            "--node a b is out of range: 1 to 32 letters",
        );
        let anywhere = Options { listen: ([0, 0, 0, 0], 42069).into(), ..node };
        refused(
            anywhere.clone(),
            "--advertise (none) is out of range: HOST:PORT where players find this node",
        );
        refused(Options { advertise: Some("a/b:1".into()), ..anywhere }, "--advertise a/b:1 is out of range");
    }
}
