//! The lobby's options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use servers_shared::Shutdown;
use servers_shared::nats::NatsAddress;

/// How a lobby runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on for players; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42068", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// The NATS server that the nodes share (serve arena --nats), such as nats://USER:PASSWORD@HOST:4222
    #[arg(long, value_name = "URL")]
    pub nats: NatsAddress,
    /// A file whose first line is USER:PASSWORD or TOKEN, so that neither is on the command line
    #[arg(long, value_name = "FILE")]
    pub nats_login: Option<PathBuf>,
    /// Write each second's ticks of all nodes to this file as JSON lines; it must not exist
    #[arg(long, value_name = "FILE")]
    pub tick_log: Option<PathBuf>,
    /// Write at the end of a tick log that exists, which mixes the results of both runs
    #[arg(long)]
    pub append: bool,
    /// How long a player may take from connecting to the end of the request, and to close after the answer.
    #[arg(skip = Duration::from_secs(5))]
    pub handshake_timeout: Duration,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

impl Options {
    /// A lobby on a free loopback port.
    pub fn new(nats: NatsAddress) -> Options {
        Options {
            listen: ([127, 0, 0, 1], 0).into(),
            nats,
            nats_login: None,
            tick_log: None,
            append: false,
            handshake_timeout: Duration::from_secs(5),
            shutdown: None,
        }
    }
}
