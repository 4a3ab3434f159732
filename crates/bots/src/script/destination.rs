//! Where a script's connection may go: the target's host, on any port and protocol.
//!
//! Names were resolved once, before the run, and the user agreed to these hosts then; so any other host is refused.

use drivers::any::Protocol;
use drivers::{Address, Driver};
use engine::BotContext;
use plan::WorkerPlan;

/// The target, as it appears in addresses.
pub(super) struct Home {
    /// host and port, without the port where it is the scheme's own
    authority: String,
    /// of the first of the two schemes, where no port is written
    port: u16,
}

/// Where to connect.
pub(super) struct Place<'a> {
    /// `ws`, `https` …; empty: not said
    pub scheme: &'a str,
    /// host and port
    pub authority: &'a str,
    /// path and query; begins with `/` or is empty
    pub path: &'a str,
}

impl<'a> Place<'a> {
    pub fn of(url: &'a str) -> Place<'a> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        Place { scheme, authority, path }
    }

    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, "wss" | "https")
    }
}

impl Home {
    pub fn of(plan: &WorkerPlan) -> Home {
        Home { authority: plan.target.authority(), port: plan.target.port }
    }

    /// The address of a place. Errors: words for the script's author.
    pub fn address<D: Driver>(
        &self,
        place: &Place<'_>,
        speaks: Protocol,
        ctx: &BotContext<'_, D>,
    ) -> Result<Address, String> {
        let (host, port) = split(place.authority);
        let (own_host, _) = split(&self.authority);
        let known = ctx.known_address().filter(|_| host.eq_ignore_ascii_case(own_host));
        let mut address =
            known.ok_or_else(|| format!("{host} is not the server of --target, and no other is loaded"))?;
        let port = port.unwrap_or(if place.is_tls() { 443 } else { 80 });
        // The started process may listen on another port than its URL names.
        if port != self.port {
            address.socket.set_port(port);
        }
        address.host = place.authority.to_owned();
        if !place.is_tls() {
            address.tls = None;
        } else if address.tls.is_none() {
            return Err(format!(
                "{}://{} is behind TLS and the target is not; give a target with wss:// or https://",
                place.scheme, place.authority
            ));
        }
        let path =
            if place.path.starts_with('/') { place.path.to_owned() } else { format!("/{}", place.path) };
        address.path = plan::percent::encoded(&path).into_owned();
        address.speaks = speaks;
        Ok(address)
    }

    /// The host of the target, and its port.
    pub fn place(&self, host: Option<&str>, port: Option<u16>) -> String {
        let host = host.unwrap_or(split(&self.authority).0);
        format!("{host}:{}", port.unwrap_or(self.port))
    }
}

/// Host and port; an IPv6 address keeps its brackets.
fn split(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !host.ends_with(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (authority, None),
        },
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (authority, expected) in [
            ("a.example:80", ("a.example", Some(80))),
            ("a.example", ("a.example", None)),
            ("[::1]:8080", ("[::1]", Some(8080))),
            ("[::1]", ("[::1]", None)),
        ] {
            assert_eq!(split(authority), expected);
        }
        let place = Place::of("wss://a:1/b?c=d://e");
        assert_eq!(
            (place.scheme, place.authority, place.path, place.is_tls()),
            ("wss", "a:1", "/b?c=d://e", true)
        );
        assert_eq!((Place::of("http://a?x").authority, Place::of("http://a?x").path), ("a", "?x"));
    }
}
