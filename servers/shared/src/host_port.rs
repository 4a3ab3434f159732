//! `HOST[:PORT]` of another server's URL, with an IPv6 address in brackets.

use std::fmt;

/// Host and port as they are written; an address without its brackets. `None`: a bracket is not closed.
pub fn split(place: &str) -> Option<(&str, Option<&str>)> {
    Some(match place.strip_prefix('[') {
        Some(inner) => {
            let (host, behind) = inner.split_once(']')?;
            (host, behind.strip_prefix(':'))
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    })
}

/// A port from 1 to 65535.
pub fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

/// Host and port, to be written.
pub struct HostPort<'a>(pub &'a str, pub u16);

impl fmt::Display for HostPort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostPort(host, port) = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
