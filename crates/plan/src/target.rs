//! The subject's address, and whether it may be loaded.
//!
//! Parsing is pure; names are resolved by the caller, once, and each resolved address goes through `may_load`.
//! A load generator can be abused: loopback and private ranges are free, anything else must have been named by the
//! user, and a cloud's metadata service is never a target, in whatever form its address is written.
//! A user name or password in a URL is refused and never repeated, because plans are stored and printed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::credentials::{CredentialForm, Credentials};
use crate::mistakes::instead;
use crate::scheme::{Paths, Scheme, Transport};
use crate::vocabulary;

/// An address as its author wrote it; names are resolved once, in the control plane, and pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// protocol
    pub scheme: Scheme,
    /// name or literal address, without brackets
    pub host: String,
    /// TCP port
    pub port: u16,
    /// further nodes of the same service, to which bots go in turn
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<HostPort>,
    /// path and query as written, beginning with `/`; `percent::encoded` gives what is sent
    pub path: String,
    /// certificate authority to trust besides the usual ones (PEM file)
    pub ca: Option<PathBuf>,
    /// accept any certificate
    pub insecure: bool,
    /// what clients show it so that it lets them in; named, and never the secret itself
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// hosts besides this machine and its own to which it may redirect the handshake of a WebSocket, with their addresses;
    /// looked up when a run begins
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects_to: Vec<(String, IpAddr)>,
}

/// Where one more node of a service listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    /// name or literal address, without brackets
    pub host: String,
    /// TCP port
    pub port: u16,
}

/// Why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// no `://`
    #[error("\"{}\" is not a URL: it does not say {}", .0, as_prefixes(Scheme::NAMES.iter().copied()))]
    NoScheme(String),
    /// an unknown scheme
    #[error("unknown scheme \"{scheme}\"; known: {}", vocabulary::listed(Scheme::NAMES))]
    UnknownScheme {
        /// as written
        scheme: String,
        /// the scheme it is nearest to
        nearest: Option<&'static str>,
    },
    /// `ws://:80`
    #[error("the URL names no host")]
    NoHost,
    /// characters that no name has; international names belong in their xn-- form
    #[error("\"{0}\" is not a host name or address")]
    BadHost(String),
    /// IPv6 without brackets
    #[error("\"{0}\" looks like an IPv6 address without brackets; write [{0}]:PORT")]
    NoBrackets(String),
    /// `grpc://a,b`
    #[error("{}:// takes one address, and no list of nodes", .0.name())]
    OneAddress(Scheme),
    /// `tcp://a,a`
    #[error("the URL names {0} twice; each node once")]
    Twice(String),
    /// not in 1..=65535
    #[error("\"{0}\" is not a port; ports are between 1 and 65535")]
    BadPort(String),
    /// the text is not repeated here: it holds a secret
    #[error("the URL holds a user name or password; plans are stored and printed{}", without_credentials(*scheme, bare))]
    Credentials {
        /// of the URL, where it has a known one
        scheme: Option<Scheme>,
        /// host and port where they are surely no part of the secret
        bare: Option<String>,
    },
    /// `#…` is never sent to a server
    #[error("the URL ends in a fragment (#…), which no server ever sees; leave it out")]
    Fragment,
    /// lines have no paths
    #[error("{}:// takes no path; leave \"{path}\" out (--room names a room)", scheme.name())]
    NoPath {
        /// of the URL
        scheme: Scheme,
        /// as written
        path: String,
    },
    /// a database that has no number
    #[error("\"{0}\" is no database; redis:// takes its number: redis://HOST:PORT/0")]
    NoDatabase(String),
    /// a map that has no name, or more behind it
    #[error(
        "\"{0}\" is no map; hazelcast:// takes its name, and the cluster's where it is not dev: hazelcast://HOST:PORT/MAP?cluster=NAME"
    )]
    NoMap(String),
    /// a blank where none can be, or what no text of a URL holds
    #[error("the URL holds a blank or a control character; write it as %20 or the like")]
    BadCharacter,
}

impl TargetError {
    /// Credentials in a text about which nothing else is known.
    pub(crate) const CREDENTIALS: TargetError = TargetError::Credentials { scheme: None, bare: None };
}

/// How to give what a URL may not hold.
fn without_credentials(scheme: Option<Scheme>, bare: &Option<String>) -> String {
    let Some(scheme) = scheme else { return ", so leave it out".to_owned() };
    let url = bare.as_ref().map_or_else(
        || "write the URL without it".to_owned(),
        |bare| format!("write {}://{bare}", scheme.name()),
    );
    match scheme.protocol().credentials {
        CredentialForm::None => format!(": {url}; {}", instead(scheme)),
        form => format!(": {url} and give it with {}", form.options()),
    }
}

impl Target {
    /// A server at a known address, path `/`: what a built-in server becomes once its port is known.
    pub fn at(scheme: Scheme, address: SocketAddr) -> Target {
        Target {
            scheme,
            host: address.ip().to_string(),
            port: address.port(),
            others: Vec::new(),
            path: "/".into(),
            ca: None,
            insecure: false,
            credentials: None,
            redirects_to: Vec::new(),
        }
    }

    /// The host as an address, when it is written as one; nothing needs to be resolved then.
    pub fn literal_address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// `host:port` for a Host header, IPv6 in brackets, the scheme's own port left out.
    pub fn authority(&self) -> String {
        let host = self.bracketed_host();
        if self.port == self.scheme.protocol().default_port { host } else { format!("{host}:{}", self.port) }
    }

    fn bracketed_host(&self) -> String {
        bracketed(&self.host)
    }

    /// Each node by itself, in the order of the URL: one, unless it names several.
    pub fn nodes(&self) -> impl Iterator<Item = Target> {
        let alone = Target { others: Vec::new(), ..self.clone() };
        let of_other =
            |HostPort { host, port }: &HostPort| Target { host: host.clone(), port: *port, ..alone.clone() };
        let others: Vec<Target> = self.others.iter().map(of_other).collect();
        std::iter::once(alone).chain(others)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name(), self.bracketed_host(), self.port)?;
        for HostPort { host, port } in &self.others {
            write!(f, ",{}:{port}", bracketed(host))?;
        }
        if self.path == "/" { Ok(()) } else { f.write_str(&self.path) }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            // `user:password@host` without a scheme is still a secret.
            return Err(if text.contains('@') {
                TargetError::CREDENTIALS
            } else {
                TargetError::NoScheme(text.into())
            });
        };
        let scheme = scheme.to_ascii_lowercase();
        let Some(scheme) = Scheme::named(&scheme) else {
            let nearest = vocabulary::nearest(&scheme, Scheme::NAMES.iter().copied());
            return Err(TargetError::UnknownScheme { scheme, nearest });
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if let Some((_, bare)) = authority.rsplit_once('@') {
            // A password with a slash in it ends the authority early; then nothing of the URL is repeated.
            let is_whole = !path.contains('@')
                && !bare.contains(',')
                && host_and_port(bare, scheme.protocol().default_port).is_ok();
            let bare = is_whole.then(|| bare.to_ascii_lowercase());
            return Err(TargetError::Credentials { scheme: Some(scheme), bare });
        }
        Target::without_credentials(scheme, rest, authority, path).map_err(|wrong| match wrong {
            // An unparsable part before a later @ may belong to a password.
            TargetError::BadCharacter | TargetError::Fragment => wrong,
            _ if path.contains('@') => TargetError::Credentials { scheme: Some(scheme), bare: None },
            wrong => wrong,
        })
    }
}

impl Target {
    fn without_credentials(
        scheme: Scheme,
        rest: &str,
        authority: &str,
        path: &str,
    ) -> Result<Target, TargetError> {
        // A path or query is percent-encoded when sent; for other protocols it is a literal name.
        let takes_blanks = scheme.transport().paths() == Paths::Any;
        let is_bad = |c: char| c.is_control() || (c.is_whitespace() && !takes_blanks);
        if rest.contains(is_bad) || authority.contains(char::is_whitespace) {
            return Err(TargetError::BadCharacter);
        }
        match scheme.transport().paths() {
            _ if matches!(path, "" | "/") => {}
            Paths::None => return Err(TargetError::NoPath { scheme, path: path.to_owned() }),
            Paths::Database if !is_database(path) => return Err(TargetError::NoDatabase(path.to_owned())),
            Paths::Map if !is_map(path) => return Err(TargetError::NoMap(path.to_owned())),
            Paths::Any | Paths::Database | Paths::Map => {}
        }
        if path.contains('#') {
            return Err(TargetError::Fragment);
        }
        let mut nodes = Vec::new();
        for place in authority.split(',') {
            let (host, port) = host_and_port(place, scheme.protocol().default_port)?;
            let node = HostPort { host, port };
            if nodes.contains(&node) {
                return Err(TargetError::Twice(place.to_owned()));
            }
            nodes.push(node);
        }
        if nodes.len() > 1 && scheme.transport() != Transport::Tcp && scheme != Scheme::Http {
            return Err(TargetError::OneAddress(scheme));
        }
        let HostPort { host, port } = nodes.remove(0);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Target {
            scheme,
            host,
            port,
            others: nodes,
            path,
            ca: None,
            insecure: false,
            credentials: None,
            redirects_to: Vec::new(),
        })
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// `/3`
fn is_database(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|number| {
        number.bytes().all(|byte| byte.is_ascii_digit()) && number.parse::<u32>().is_ok()
    })
}

/// `/prices`, `/prices?cluster=north`
fn is_map(path: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '?', '#', '&', '=']);
    path.strip_prefix('/').is_some_and(|rest| match rest.split_once("?cluster=") {
        Some((map, cluster)) => (map.is_empty() || is_name(map)) && is_name(cluster),
        None => is_name(rest),
    })
}

fn host_and_port(authority: &str, default_port: u16) -> Result<(String, u16), TargetError> {
    let parse_port = |text: &str| match text.parse::<u16>() {
        Ok(port) if port > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(port),
        _ => Err(TargetError::BadPort(text.into())),
    };
    if let Some(rest) = authority.strip_prefix('[') {
        let (inside, port) = rest.split_once(']').ok_or_else(|| TargetError::BadHost(authority.into()))?;
        let address: Ipv6Addr = inside.parse().map_err(|_| TargetError::BadHost(inside.into()))?;
        return match port.strip_prefix(':') {
            Some(port) => Ok((address.to_string(), parse_port(port)?)),
            None if port.is_empty() => Ok((address.to_string(), default_port)),
            None => Err(TargetError::BadPort(port.into())),
        };
    }
    if authority.parse::<Ipv6Addr>().is_ok() {
        return Err(TargetError::NoBrackets(authority.into()));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, parse_port(port)?),
        None => (authority, default_port),
    };
    if host.is_empty() {
        return Err(TargetError::NoHost);
    }
    let is_name = host.len() <= 253
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        && !host.starts_with(['.', '-'])
        && !host.contains("..");
    if is_name { Ok((host.to_ascii_lowercase(), port)) } else { Err(TargetError::BadHost(host.into())) }
}

/// `tcp://, irc://, nats:// or mqtt://`
pub(crate) fn as_prefixes<'a>(schemes: impl IntoIterator<Item = &'a str>) -> String {
    let prefixes: Vec<String> = schemes.into_iter().map(|scheme| format!("{scheme}://")).collect();
    vocabulary::listed_or(&prefixes.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Why an address is not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetRefused {
    /// a public address that nobody vouched for
    #[error(
        "{} is outside loopback and private ranges; a load test of a server that is not yours is an attack: if it is yours, \
         say --i-may-load {host}",
        shown(host, address)
    )]
    NotNamed {
        /// as written
        host: String,
        /// what it resolved to
        address: IpAddr,
    },
    /// it hands out credentials and belongs to the cloud, not to its user
    #[error("{} is a cloud's metadata service; it is never loaded", shown(host, address))]
    Metadata {
        /// as written
        host: String,
        /// what it resolved to
        address: IpAddr,
    },
    /// autoconfigured neighbours on the same wire
    #[error("{} is a link-local address; give the server an address of its own", shown(host, address))]
    LinkLocal {
        /// as written
        host: String,
        /// what it resolved to
        address: IpAddr,
    },
    /// nobody but a scenario or a stored run named it
    #[error(
        "{} is not this machine, and a file alone may not choose it; if it is yours to load, say --i-may-load {host}",
        shown(host, address)
    )]
    OnlyAFileNamesIt {
        /// as written
        host: String,
        /// what it resolved to
        address: IpAddr,
    },
    /// any, broadcast, multicast
    #[error("{} is no single server; one on this machine is at 127.0.0.1", shown(host, address))]
    NotAServer {
        /// as written
        host: String,
        /// what it resolved to
        address: IpAddr,
    },
}

/// `game.example (93.184.216.34)`, or the address alone when that is how it was written.
fn shown(host: &str, address: &IpAddr) -> String {
    if host.parse() == Ok(*address) { host.to_owned() } else { format!("{host} ({address})") }
}

/// Whether the server at `address`, written as `host`, may be put under load.
///
/// `allowed` are the hosts named by `--i-may-load`; they open public addresses, but neither metadata services nor
/// link-local neighbours. Call it for every address a name resolves to, and again after a redirect.
pub fn may_load(address: IpAddr, host: &str, allowed: &[String]) -> Result<(), TargetRefused> {
    let host = host.to_owned();
    let inside = carried_v4(address);
    let is_service = inside.is_some_and(|v4| METADATA_V4.contains(&v4)) || METADATA_V6.contains(&address);
    let is_named = METADATA_NAMES.iter().any(|name| names_same_host(name, &host));
    if is_service || is_named {
        return Err(TargetRefused::Metadata { host, address });
    }
    // For the kernel only the mapped form is the same machine; other forms that contain an IPv4 address are routed
    // elsewhere.
    let address = address.to_canonical();
    let is_link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if is_link_local || inside.is_some_and(|v4| v4.is_link_local()) {
        return Err(TargetRefused::LinkLocal { host, address });
    }
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0);
    if address.is_unspecified() || address.is_multicast() || is_broadcast {
        return Err(TargetRefused::NotAServer { host, address });
    }
    let is_ours = match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    };
    if is_ours || allowed.iter().any(|named| names_same_host(named, &host)) {
        return Ok(());
    }
    Err(TargetRefused::NotNamed { host, address })
}

/// Cloud services that give credentials or secrets to any client inside: AWS, Google, Azure, Oracle and others share
/// the first; then AWS's for containers and for pods, Azure's host, Alibaba's, Oracle's older one.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// The same over IPv6, in ranges that are otherwise private: AWS's for machines and for pods, Google's.
const METADATA_V6: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];
/// Google's by name, whatever it resolves to.
const METADATA_NAMES: [&str; 2] = ["metadata.google.internal", "metadata.goog"];

/// The IPv4 address that an address is or carries: mapped, translated, compatible, NAT64 (the well-known prefix, and the one for
/// local use), 6to4.
fn carried_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let v6 = match address {
        IpAddr::V4(v4) => return Some(v4),
        IpAddr::V6(v6) => v6,
    };
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low] => Some(joined(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

/// Names compare without case and final dot, addresses by value and with or without brackets.
pub(crate) fn names_same_host(named: &str, host: &str) -> bool {
    let plain = |text: &str| {
        text.trim().trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
    };
    let (named, host) = (plain(named), plain(host));
    match (named.parse::<IpAddr>(), host.parse::<IpAddr>()) {
        (Ok(named), Ok(host)) => named.to_canonical() == host.to_canonical(),
        _ => named == host,
    }
}

#[cfg(test)]
mod tests;
