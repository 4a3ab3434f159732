//! The key-value store: strings with times to live in memory, over Redis's protocol (RESP 2 and 3).
//!
//! It answers what drivers, redis-cli and redis-benchmark send, with the texts of Redis 7. One thread holds all keys,
//! so that no operation locks; commands are executed in the order in which they came on their connection, pipelined or
//! not, and all answers to one read are sent with one write.
//! Nothing is kept on disk. `--memory` bounds what keys, values and connections take; what would exceed it is refused
//! as Redis does with `noeviction`. Back-pressure instead of a limit on answers: for a client that does not read them,
//! no command is executed, and at most 1 MB is read, to find half a command that stays incomplete.

mod about;
mod client;
mod commands;
mod keyspace;
mod planted;
mod reply;
mod request;
mod thread;

use std::net::SocketAddr;
use std::time::Duration;

use servers_shared::cli::{self, check};
use servers_shared::control::Listening;
use servers_shared::fault::{self, Fault, Server};
use servers_shared::listener::Readiness;
use servers_shared::{ServeError, Shutdown};

/// How a key-value store runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42063", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Memory that keys, values and connections may take; beyond it commands that would take more are refused
    #[arg(long = "memory", default_value = "1GB", value_name = "SIZE", value_parser = cli::size)]
    pub memory_bytes: u64,
    /// Connections at once; one on top of that gets an error and is closed
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_connections: usize,
    /// How long a client may take from the first byte of a command to its last, also while it does not read its replies;
    /// then it is disconnected. Between commands it may be silent without limit
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = cli::time)]
    pub command_timeout: Duration,
    /// Faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Redis))]
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

impl Default for Options {
    fn default() -> Options {
        cli::defaults()
    }
}

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then what has come is carried out and answered, and connections
/// close.
///
/// `on_listening` is told the address once connections are taken.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    check("memory", options.memory_bytes, 1_000_000.., "1MB or more")?;
    check("max-connections", options.max_connections, 1..=1_000_000, "1 to 1000000")?;
    let least = Duration::from_millis(1);
    check("command-timeout", options.command_timeout, least.., "1ms to 24h")?;
    let planted = (Server::Redis, &options.faults[..]);
    let listening = Listening::on(options.listen, Readiness::Connected, planted, &options.shutdown)?;
    let address = listening.address;
    let mut crew = listening.crew()?;
    let common = crew.common.clone();
    crew.spawn("redis".to_owned(), move || thread::run(&options, address.port(), &common))?;
    on_listening(address);
    crew.serve()
}
