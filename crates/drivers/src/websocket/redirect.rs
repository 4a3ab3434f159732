//! Where a server sends a handshake instead of taking it (status 3xx and `Location`). Pure.
//!
//! A redirect must not be a way to load somebody else's server: it is followed to this machine's loopback, to the host that
//! redirects, and to hosts that the user named, which were looked up before the run. Names are not looked up here: that
//! would make a worker wait. TLS stays as it is, on or off. Credentials do not go to another host or port.
//! Source: RFC 6455, section 4.1; RFC 9110, section 15.4.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Uri;
use rustls::pki_types::ServerName;

use crate::address::{Address, TlsSettings};
use crate::driver::OpenError;
use crate::shown::shown;

/// A handshake is redirected so often at most.
pub const REDIRECTS_MAX: u8 = 3;

/// What is meant for one server alone.
const OF_ONE_SERVER: [&str; 4] = ["authorization", "cookie", "host", "proxy-authorization"];

/// An answer that sends a handshake elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// of the answer
    pub status: u16,
    /// its `Location`
    pub location: String,
}

impl Redirect {
    /// It is not followed. `why` goes on behind where it leads to.
    pub(super) fn refused(&self, why: &str) -> OpenError {
        let location = shown(self.location.as_bytes());
        OpenError::Redirected(format!("redirected to \"{location}\" (status {}){why}", self.status))
    }
}

/// The redirect that an answer is; `None` where it is none, or not whole.
pub fn read(answer: &[u8]) -> Option<Redirect> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut headers);
    parsed.parse(answer).ok().filter(httparse::Status::is_complete)?;
    let status = parsed.code.filter(|code| matches!(code, 301 | 302 | 303 | 307 | 308))?;
    let header = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("location"));
    let location = String::from_utf8_lossy(header?.value.trim_ascii()).into_owned();
    Some(Redirect { status, location })
}

/// The address that the server at `from` redirects to. Errors: it is none, or may not be loaded.
pub fn follow(from: &Address, redirect: &Redirect) -> Result<Address, OpenError> {
    let refuse = |why: &str| redirect.refused(&format!(", {why}"));
    let uri: Uri = redirect.location.parse().map_err(|_| refuse("which is no URL"))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refuse("whose path cannot stand in a request"));
    }
    let Some(authority) = uri.authority() else {
        return Ok(Address { path, ..from.clone() });
    };
    let is_tls = match uri.scheme_str() {
        Some("ws" | "http") => false,
        Some("wss" | "https") => true,
        _ => return Err(refuse("which is no URL of a WebSocket")),
    };
    match (is_tls, from.tls.is_some()) {
        (true, false) => return Err(refuse("over TLS; name the target with wss://")),
        (false, true) => return Err(refuse("without TLS, which the target is asked for")),
        _ => {}
    }
    if authority.as_str().contains('@') {
        return Err(refuse("with a user name or password, which is not sent"));
    }
    let host = authority.host();
    // The library takes a port that is out of range for none.
    let port = match authority.as_str().strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) {
        None if is_tls => Some(443),
        None => Some(80),
        Some(port) => port.parse().ok().filter(|port| *port > 0),
    };
    let port = port.ok_or_else(|| refuse("which has no port from 1 to 65535"))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let Some(ip) = allowed(from, bare) else {
        return Err(refuse(&format!(
            "which is neither this machine nor a host that this run may load; if it may, say --i-may-load {}",
            shown(bare.as_bytes())
        )));
    };
    let tls = match &from.tls {
        Some(tls) => {
            let name =
                ServerName::try_from(bare.to_owned()).map_err(|_| refuse("which no certificate can name"))?;
            Some(TlsSettings { name, ..tls.clone() })
        }
        None => None,
    };
    let socket = SocketAddr::new(ip, port);
    let mut upgrade = from.upgrade.clone();
    if socket != from.socket {
        let is_of_one = |name: &str| OF_ONE_SERVER.iter().any(|one| name.eq_ignore_ascii_case(one));
        upgrade.headers.retain(|(name, _)| !is_of_one(name));
    }
    Ok(Address { socket, host: authority.as_str().to_owned(), path, tls, upgrade, ..from.clone() })
}

/// The address of a host that may be loaded.
fn allowed(from: &Address, host: &str) -> Option<IpAddr> {
    let literal: Option<IpAddr> = host.parse().ok();
    if let Some(ip) = literal.filter(|ip| ip.to_canonical().is_loopback() || *ip == from.socket.ip()) {
        return Some(ip);
    }
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let own = from.host.rsplit_once(':').map_or(from.host.as_str(), |(own, _)| own);
    if own.eq_ignore_ascii_case(host) {
        return Some(from.socket.ip());
    }
    let is_named = |(name, ip): &&(String, IpAddr)| name.eq_ignore_ascii_case(host) || Some(*ip) == literal;
    from.upgrade.redirects_to.iter().find(is_named).map(|(_, ip)| *ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Upgrade;

    fn lobby() -> Address {
        let header = |name: &str| (name.to_owned(), "s3cret".to_owned());
        let upgrade = Upgrade {
            headers: vec![header("Authorization"), header("X-Game")],
            redirects_to: vec![("node.example.org".to_owned(), [203, 0, 113, 7].into())],
            ..Upgrade::default()
        };
        let socket = ([198, 51, 100, 1], 80).into();
        Address {
            upgrade,
            host: "lobby.example.org".to_owned(),
            path: "/a?b=1".to_owned(),
            ..Address::plain(socket)
        }
    }

    fn to(location: &str) -> Redirect {
        Redirect { status: 307, location: location.to_owned() }
    }

    #[test]
    fn a_redirect_leads_to_this_machine_to_its_own_host_and_to_hosts_that_were_named() {
        let check = |location: &str, socket: &str, host: &str, path: &str| {
            let to = follow(&lobby(), &to(location)).unwrap();
            let found = (to.socket.to_string(), to.host.as_str(), to.path.as_str());
            assert_eq!(found, (socket.to_owned(), host, path), "{location}");
        };
        check("ws://127.0.0.9:81/x?t=1", "127.0.0.9:81", "127.0.0.9:81", "/x?t=1");
        check("http://[::1]:81", "[::1]:81", "[::1]:81", "/");
        check("ws://localhost/#part", "127.0.0.1:80", "localhost", "/");
        check("ws://LOBBY.example.org:99/", "198.51.100.1:99", "LOBBY.example.org:99", "/");
        check("ws://198.51.100.1:99/", "198.51.100.1:99", "198.51.100.1:99", "/");
        check("ws://Node.example.org/", "203.0.113.7:80", "Node.example.org", "/");
        check("ws://203.0.113.7/", "203.0.113.7:80", "203.0.113.7", "/");
        check("/other?c", "198.51.100.1:80", "lobby.example.org", "/other?c");
    }

    #[test]
    fn a_redirect_to_another_machine_is_refused_with_what_to_say() {
        let check = |location: &str, part: &str| {
            let refused = follow(&lobby(), &to(location)).unwrap_err().to_string();
            assert!(refused.starts_with("redirected to \"") && refused.contains(part), "{refused}");
        };
        check("ws://8.8.8.8/x", "\"ws://8.8.8.8/x\" (status 307), which is neither this machine nor a host");
        check("ws://8.8.8.8/x", "say --i-may-load 8.8.8.8");
        check("ws://10.0.0.1/", "say --i-may-load 10.0.0.1");
        check("ws://node.example.org.evil.example/", "say --i-may-load node.example.org.evil.example");
        check("ws://0.0.0.0/", "say --i-may-load");
        check("ws://[::ffff:8.8.8.8]/", "say --i-may-load");
        check("wss://127.0.0.1/", "over TLS; name the target with wss://");
        check("ftp://127.0.0.1/", "which is no URL of a WebSocket");
        check("ws://u:p@127.0.0.1/", "with a user name or password");
        check("ws://127.0.0.1:0/", "no port from 1 to 65535");
        check("ws://127.0.0.1:99999/", "no port from 1 to 65535");
        check("ws://a b/", "which is no URL");
        check("ws://\u{1b}[2J/", "which is no URL");
    }

    #[test]
    fn credentials_go_to_no_other_server() {
        let names = |location: &str| -> Vec<String> {
            let headers = follow(&lobby(), &to(location)).unwrap().upgrade.headers;
            headers.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names("/again"), ["Authorization", "X-Game"]);
        assert_eq!(names("ws://lobby.example.org:81/"), ["X-Game"]);
    }

    #[test]
    fn only_a_whole_redirect_has_a_location() {
        let answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation:  ws://a/ \r\n\r\n";
        assert_eq!(read(answer), Some(to("ws://a/")));
        assert_eq!(read(&answer[..answer.len() - 1]), None);
        assert_eq!(read(b"HTTP/1.1 304 Not Modified\r\nLocation: ws://a/\r\n\r\n"), None);
        assert_eq!(read(b"HTTP/1.1 308 Permanent Redirect\r\n\r\n"), None);
    }
}
