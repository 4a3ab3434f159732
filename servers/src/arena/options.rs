//! What a user can choose about the arena, and the ranges.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::fault::Fault;
use crate::ticks::schedule::Ticker;
use crate::{ServeError, Shutdown};

/// How an arena runs. The defaults are the published game on loopback.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, which `on_listening` is told.
    pub listen: SocketAddr,
    /// Threads that play; None: one per core. More are kept in reserve when `max_connections` sockets do not
    /// fit into the descriptor tables of these.
    pub threads: Option<usize>,
    /// Ticks per second and game, 1 to 1000.
    pub tick_rate: u32,
    /// Which loop the games get.
    pub ticker: Ticker,
    /// Where each second's ticks are written, as JSON lines. An existing file is refused.
    pub tick_log: Option<PathBuf>,
    /// Write at the end of an existing tick log, which mixes the results of both runs.
    pub append: bool,
    /// Units per second, 1 to 100,000.
    pub bullet_speed: u32,
    /// A player fires at most once in this time; earlier fires are dropped.
    pub fire_interval: Duration,
    /// Send a snapshot to every player at every tick. Without it, who puts `?snapshots=1` on the URL gets them.
    pub snapshots: bool,
    /// Sockets at once; whoever comes on top of that is refused with status 503.
    pub max_connections: usize,
    /// New connections per second from one address, with one second's worth of burst; None: no limit.
    pub connections_per_address_per_s: Option<u32>,
    /// Whether loopback addresses are limited too.
    pub limit_loopback: bool,
    /// How long a client may take from connecting to the end of its request.
    pub handshake_timeout: Duration,
    /// How long a client may take to close after its stop.
    pub close_timeout: Duration,
    /// What becomes of a waiting player who has gone.
    pub pairing: Pairing,
    /// Faults to plant, for testing instruments.
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    pub shutdown: Option<Shutdown>,
}

/// What becomes of a waiting player who has gone. In both cases sockets are paired in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// It is forgotten, and the next two to arrive play each other.
    #[default]
    Strict,
    /// It is not, as in the published original: the next to arrive plays against a dead socket, which never fires. The
    /// game ends when the living player's bullets hit.
    Forgetful,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 42_069)),
            threads: None,
            tick_rate: 60,
            ticker: Ticker::Steady,
            tick_log: None,
            append: false,
            bullet_speed: 500,
            fire_interval: Duration::from_millis(100),
            snapshots: false,
            max_connections: 50_000,
            connections_per_address_per_s: None,
            limit_loopback: false,
            handshake_timeout: Duration::from_secs(5),
            close_timeout: Duration::from_secs(5),
            pairing: Pairing::Strict,
            faults: Vec::new(),
            shutdown: None,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), ServeError> {
        let refuse = |option, value: String, range| Err(ServeError::Option { option, value, range });
        if !(1..=1000).contains(&self.tick_rate) {
            return refuse("tick-rate", self.tick_rate.to_string(), "1 to 1000 ticks per second");
        }
        if !(1..=100_000).contains(&self.bullet_speed) {
            return refuse("bullet-speed", self.bullet_speed.to_string(), "1 to 100000 units per second");
        }
        if self.fire_interval > Duration::from_secs(3600) {
            return refuse("fire-interval", format!("{:?}", self.fire_interval), "at most an hour");
        }
        if self.threads.is_some_and(|threads| !(1..=256).contains(&threads)) {
            return refuse("threads", self.threads.unwrap_or(0).to_string(), "1 to 256");
        }
        if !(2..=10_000_000).contains(&self.max_connections) {
            return refuse("max-connections", self.max_connections.to_string(), "2 to 10000000");
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
    }
}
