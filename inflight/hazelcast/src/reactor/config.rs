//! How a client finds its cluster, and its limits.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use super::cluster::Backoff;
use super::outcome::ConnectError;
use crate::wire::{Credentials, Limits, Settings, Uuid};

/// A member's port unless it is configured otherwise.
const DEFAULT_PORT: u16 = 5701;

/// How a client finds its cluster, and its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Members to begin with, `HOST` or `HOST:PORT`; the others are learned from them. Names are resolved once, and again
    /// when a member of the cluster calls itself by a name.
    pub addresses: Vec<String>,
    /// Whether a member that the cluster names may be connected to, by its address; those of `addresses` always may. The
    /// partitions of others are reached through the members that are connected. Default: all may.
    pub may_connect: fn(IpAddr) -> bool,
    /// Default: no TLS.
    pub tls: Option<Tls>,
    /// The cluster's name. Default: "dev", as the members'.
    pub cluster_name: String,
    /// Only where the members ask for one.
    pub username: Option<String>,
    /// Only where the members ask for one.
    pub password: Option<String>,
    /// What members call this client in their logs.
    pub client_name: String,
    /// How long opening and authenticating a connection may take, and how long `connect` tries. Default: 5 s.
    pub connect_timeout: Duration,
    /// How long an operation may take, waiting for a connection and all attempts included. Default: 120 s, as in the
    /// official clients.
    pub invocation_timeout: Duration,
    /// A connection that was silent for so long is sent a ping. Default: 5 s.
    pub heartbeat_interval: Duration,
    /// A member that has been silent for this long counts as gone. Default: 60 s.
    pub heartbeat_timeout: Duration,
    /// The pause before a member is connected to again: doubled with each failure, from the first to the second, less up
    /// to half of it at random. Default: 100 ms to 5 s.
    pub reconnect_pause: (Duration, Duration),
    /// When answers come only one by one though many operations are in flight, each turn waits once for more, for this
    /// share of the time that an operation takes, in [0, 1), and at most 250 µs. It saves CPU time on both sides. 0: never.
    /// Default: 0.25.
    pub gather_share: f64,
    /// The most that each connection holds.
    pub limits: Limits,
}

/// How connections are encrypted. Each member's certificate must name the host by which it is connected to: as given in
/// `Config::addresses`, or as the member reports it.
#[derive(Clone, Debug)]
pub struct Tls {
    /// trust, versions, ciphers
    pub config: Arc<rustls::ClientConfig>,
    /// what the certificates of `Config::addresses` must carry instead, where these were looked up before
    pub host: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            addresses: vec![format!("127.0.0.1:{DEFAULT_PORT}")],
            may_connect: |_| true,
            tls: None,
            cluster_name: "dev".to_owned(),
            username: None,
            password: None,
            client_name: "hazelcast-rust".to_owned(),
            connect_timeout: Duration::from_secs(5),
            invocation_timeout: Duration::from_secs(120),
            heartbeat_interval: Duration::from_secs(5),
            heartbeat_timeout: Duration::from_secs(60),
            reconnect_pause: (Duration::from_millis(100), Duration::from_secs(5)),
            gather_share: 0.25,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// The defaults, with one address.
    pub fn at(address: impl Into<String>) -> Self {
        Config { addresses: vec![address.into()], ..Config::default() }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            limits: self.limits,
            authentication_timeout_ns: nanos(self.connect_timeout),
            heartbeat_interval_ns: nanos(self.heartbeat_interval),
            heartbeat_timeout_ns: nanos(self.heartbeat_timeout),
            // Operations have deadlines.
            skips_unasked: true,
        }
    }

    pub(super) fn credentials(&self, client_uuid: Uuid) -> Credentials {
        Credentials {
            cluster_name: self.cluster_name.clone(),
            username: self.username.clone(),
            password: self.password.clone(),
            client_uuid,
            client_name: self.client_name.clone(),
        }
    }

    pub(super) fn backoff(&self) -> Backoff {
        Backoff { least_ns: nanos(self.reconnect_pause.0), most_ns: nanos(self.reconnect_pause.1) }
    }

    /// All addresses, in their order, each with its host as it was given.
    pub(super) fn resolve(&self) -> Result<Vec<(SocketAddr, String)>, ConnectError> {
        let mut resolved = Vec::new();
        for address in &self.addresses {
            let why = |why: String| ConnectError::Address { address: address.clone(), why };
            let (host, port) = host_and_port(address).map_err(|text| why(text.to_owned()))?;
            let found = (host, port).to_socket_addrs().map_err(|error| why(error.to_string()))?;
            found.for_each(|address| {
                if !resolved.iter().any(|(known, _)| *known == address) {
                    resolved.push((address, host.to_owned()));
                }
            });
        }
        if resolved.is_empty() {
            let why = "there is none".to_owned();
            return Err(ConnectError::Address { address: self.addresses.join(","), why });
        }
        Ok(resolved)
    }
}

/// `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`.
fn host_and_port(address: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = match address.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, ""))) => (host, None),
        // Without a separating colon it is not a port.
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':').unwrap_or_default())),
        Some(None) => return Err("its bracket is not closed"),
        None => match address.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            // More than one colon: an IPv6 address without a port.
            _ => (address, None),
        },
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    match port {
        None => Ok((host, DEFAULT_PORT)),
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => Ok((host, port)),
            _ => Err("its port is no number from 1 to 65535"),
        },
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let check = |address, expected| assert_eq!(host_and_port(address).ok(), expected, "{address}");
        check("localhost", Some(("localhost", 5701)));
        check("10.0.0.1:5702", Some(("10.0.0.1", 5702)));
        check("[::1]:5703", Some(("::1", 5703)));
        check("[::1]", Some(("::1", 5701)));
        check("::1", Some(("::1", 5701)));
        for wrong in ["", ":5701", "h:0", "h:65536", "h:x", "[::1", "[::1]5701"] {
            check(wrong, None);
        }
    }

    #[test]
    fn an_address_that_is_none_is_named_with_what_was_expected() {
        let error = Config::at("member:none").resolve().expect_err("no port");
        assert_eq!(
            error.to_string(),
            "address \"member:none\": its port is no number from 1 to 65535; expected HOST or HOST:PORT, such as \
             127.0.0.1:5701"
        );
    }
}
