//! Where agents are met, and how many make the load (the crate `agents`).

use std::path::PathBuf;

use clap::Args;

/// Where the broker is.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkArgs {
    /// The NATS server that coordinator and agents meet at, with JetStream: nats://HOST:4222, tls://HOST; ${NAME} in it is filled in
    /// from the environment
    #[arg(long, value_name = "URL", help_heading = "Agents")]
    pub nats: Option<String>,
    /// File of credentials (JWT and NKey), as nsc writes it
    #[arg(long, value_name = "FILE", help_heading = "Agents")]
    pub nats_creds: Option<PathBuf>,
    /// File with the seed of an NKey
    #[arg(long, value_name = "FILE", help_heading = "Agents", conflicts_with = "nats_creds")]
    pub nats_nkey: Option<PathBuf>,
    /// Certificate authority that signed the broker's certificate (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Agents")]
    pub nats_ca: Option<PathBuf>,
}

/// Agents that make the load of a climb.
#[derive(Clone, Debug, Default, Args)]
pub struct AgentsArgs {
    /// where they are met
    #[command(flatten)]
    pub link: LinkArgs,
    /// Number of agents that make the load; they wait at that server (stepladder agent)
    #[arg(long, value_name = "N", help_heading = "Agents", requires = "nats")]
    pub agents: Option<usize>,
    /// How long to wait for them
    #[arg(long, value_name = "S", help_heading = "Agents", default_value_t = 60)]
    pub agents_within: u64,
}
