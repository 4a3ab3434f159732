//! Resolves a target's name to all its addresses, each of which must be one that may be loaded.
//!
//! A name is looked up once. Its addresses are tried in order, and the first that accepts is pinned for the run.
//! `localhost` is not looked up: it means this machine's loopback over IPv4 and IPv6, whatever a resolver says (RFC
//! 6761, section 6.3). A server may listen on only one of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use anyhow::{Context as _, bail};
use plan::{Target, Transport, may_load, may_load_for_file};

use crate::consent::Consent;

/// All addresses of a target, without repeats; never empty. Nothing is sent to them.
pub fn addresses_of(target: &Target) -> anyhow::Result<Vec<SocketAddr>> {
    let at = |ip: IpAddr| SocketAddr::new(ip, target.port);
    if is_localhost(&target.host) {
        return Ok(vec![at(Ipv4Addr::LOCALHOST.into()), at(Ipv6Addr::LOCALHOST.into())]);
    }
    let found = (target.host.as_str(), target.port)
        .to_socket_addrs()
        .with_context(|| format!("cannot look up `{}`; check the name", target.host))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        bail!("`{}` has no address; check the name", target.host);
    }
    Ok(addresses)
}

/// The same, if each of them may be loaded.
pub fn resolve(target: &Target, allowed: &[String], consent: &Consent) -> anyhow::Result<Vec<SocketAddr>> {
    let addresses = addresses_of(target)?;
    for address in &addresses {
        check_may_load(address.ip(), &target.host, allowed, consent)?;
    }
    Ok(addresses)
}

/// Errors: the server at `ip`, written as `host`, may not be loaded, or not because a file says so.
pub fn check_may_load(ip: IpAddr, host: &str, allowed: &[String], consent: &Consent) -> anyhow::Result<()> {
    may_load(ip, host, allowed)?;
    if let Consent::OfFile { hosts } = consent {
        may_load_for_file(ip, host, hosts)?;
    }
    Ok(())
}

/// The target with the hosts to which it may redirect WebSockets: those that the user named, as far as they have an address
/// that may be loaded.
pub fn with_redirects(target: &Target, allowed: &[String], consent: &Consent) -> Target {
    let named = match consent {
        Consent::Own => allowed,
        Consent::OfFile { hosts } => hosts,
    };
    let mut redirects_to = Vec::new();
    for host in named.iter().filter(|_| target.scheme.transport() == Transport::WebSocket) {
        let found = (host.as_str(), target.port).to_socket_addrs();
        let address = found.ok().and_then(|mut found| found.next()).map(|address| address.ip());
        redirects_to.extend(
            address
                .filter(|ip| check_may_load(*ip, host, allowed, consent).is_ok())
                .map(|ip| (host.clone(), ip)),
        );
    }
    Target { redirects_to, ..target.clone() }
}

/// Which address was taken, where others were tried before it; `None`: the first one was.
pub fn which_was_taken(target: &Target, addresses: &[SocketAddr], taken: SocketAddr) -> Option<String> {
    let at = addresses.iter().position(|address| *address == taken)?;
    let before: Vec<String> = addresses[..at].iter().map(SocketAddr::to_string).collect();
    if before.is_empty() {
        return None;
    }
    let verb = if before.len() == 1 { "does" } else { "do" };
    Some(format!(
        "{} is {taken} in this run: {} {verb} not accept connections",
        target.host,
        before.join(" and ")
    ))
}

fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        url.parse().unwrap()
    }

    #[test]
    fn localhost_is_both_loopbacks_and_a_literal_address_is_itself() {
        for (url, expected) in [
            ("ws://localhost:81", &["127.0.0.1:81", "[::1]:81"][..]),
            ("redis://LocalHost.:6379", &["127.0.0.1:6379", "[::1]:6379"]),
            ("http://app.localhost", &["127.0.0.1:80", "[::1]:80"]),
            ("tcp://127.0.0.2:9", &["127.0.0.2:9"]),
            ("grpc://[::1]:9", &["[::1]:9"]),
        ] {
            let expected: Vec<SocketAddr> = expected.iter().map(|one| one.parse().unwrap()).collect();
            assert_eq!(addresses_of(&target(url)).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn what_was_taken_is_said_where_it_was_not_the_first() {
        let target = target("http://localhost:81");
        let addresses = addresses_of(&target).unwrap();
        assert_eq!(which_was_taken(&target, &addresses, addresses[0]), None);
        assert_eq!(
            which_was_taken(&target, &addresses, addresses[1]).as_deref(),
            Some("localhost is [::1]:81 in this run: 127.0.0.1:81 does not accept connections")
        );
    }

    #[test]
    fn a_target_may_redirect_to_hosts_that_the_user_named_and_a_file_alone_names_none() {
        let named = ["203.0.113.7", "169.254.169.254", "no.such.host.invalid"].map(str::to_owned);
        let hosts = |url: &str, consent: &Consent| -> Vec<String> {
            let target = with_redirects(&target(url), &named, consent);
            target.redirects_to.into_iter().map(|(host, _)| host).collect()
        };
        let of_file = |hosts: &[String]| Consent::OfFile { hosts: hosts.to_vec() };
        assert_eq!(hosts("ws://127.0.0.1:1", &Consent::Own), ["203.0.113.7"]);
        assert_eq!(hosts("ws://127.0.0.1:1", &of_file(&named[..1])), ["203.0.113.7"]);
        assert_eq!(hosts("ws://127.0.0.1:1", &of_file(&[])), [""; 0]);
        assert_eq!(hosts("http://127.0.0.1:1", &Consent::Own), [""; 0]);
    }

    #[test]
    fn every_address_must_be_one_that_may_be_loaded() {
        assert!(resolve(&target("http://8.8.8.8"), &[], &Consent::Own).is_err());
        assert!(resolve(&target("http://localhost"), &[], &Consent::Own).is_ok());
    }
}
