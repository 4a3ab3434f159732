//! Access control: the token is required, from this machine, from our own page.
//!
//! A page of any other site can make a browser send requests to 127.0.0.1. So each request must name us as its host (or
//! a name rebound to 127.0.0.1 would do), come from our own page if the browser reports the origin, and carry the token
//! as the first segment of its path. A cookie would not do: it goes to every port of a host, so any server on this
//! machine would receive it. The rules are a pure function of a request's head.
//! Source: measurement.md, security; OWASP on DNS rebinding and Fetch Metadata; RFC 6265, section 8.5, on ports.

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};

/// The doorkeeper of one viewer.
#[derive(Clone)]
pub struct Gate {
    hosts: Hosts,
    token: String,
}

/// What a client may call a server on a port of loopback, in lower case: `127.0.0.1:42068` …
#[derive(Clone)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub fn of_port(port: u16) -> Hosts {
        let mut hosts = Vec::new();
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            hosts.push(format!("{name}:{port}"));
            if port == 80 {
                hosts.push(name.to_owned());
            }
        }
        Hosts(hosts)
    }

    /// The host that a request names, where it is ours. A name that was rebound to 127.0.0.1 is not. Errors: why not.
    pub fn named_by<'a>(&self, uri: &Uri, headers: &'a HeaderMap) -> Result<&'a str, &'static str> {
        let named = single(headers, header::HOST.as_str()).filter(|host| self.contain(host));
        let host = named.ok_or("the Host header names another server")?;
        if uri.authority().is_some_and(|authority| !self.contain(authority.as_str())) {
            return Err("the address names another server");
        }
        Ok(host)
    }

    fn contain(&self, host: &str) -> bool {
        self.0.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// it is answered; `Gate::behind_token` is what it asks for
    Pass,
    /// it is the token and nothing more: the page is one slash further
    Enter,
    /// it has no token, or a wrong one
    AskForToken,
    /// it is not ours to answer, and why
    Refuse(StatusCode, &'static str),
}

impl Gate {
    /// Guards a server on `port` of loopback with a token, which is made of letters that a path may hold.
    pub fn new(port: u16, token: String) -> Self {
        Gate { hosts: Hosts::of_port(port), token }
    }

    /// The path of the page; everything that the page requests is below it.
    pub fn root(&self) -> String {
        format!("/{}/", self.token)
    }

    /// The path as the routes know it: `/TOKEN/api/runs` is `/api/runs`. `None` without the token.
    pub fn behind_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let path = path.strip_prefix('/')?;
        let end = path.find('/').unwrap_or(path.len());
        same(&path[..end], &self.token).then_some(&path[end..])
    }

    /// What becomes of a request with this head.
    pub fn rule(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Ruling {
        let refuse = |why| Ruling::Refuse(StatusCode::FORBIDDEN, why);
        let host = match self.hosts.named_by(uri, headers) {
            Ok(host) => host,
            Err(why) => return refuse(why),
        };
        let behind = self.behind_token(uri.path());
        let is_plain = matches!(*method, Method::GET | Method::HEAD);
        let origin = headers.contains_key(header::ORIGIN);
        if origin {
            let ours = format!("http://{}", host.to_ascii_lowercase());
            if single(headers, header::ORIGIN.as_str()).is_none_or(|origin| origin != ours) {
                return refuse("the request comes from another site");
            }
        }
        let is_navigation = is_plain
            && is_page(behind.unwrap_or(uri.path()))
            && single(headers, "sec-fetch-mode") == Some("navigate")
            && single(headers, "sec-fetch-dest") == Some("document");
        let from_our_page = match (headers.contains_key("sec-fetch-site"), single(headers, "sec-fetch-site"))
        {
            (false, _) => false,
            (_, Some("same-origin")) => true,
            // Typed, or a bookmark.
            (_, Some("none")) if is_plain => false,
            // A link from elsewhere, such as the printed address in a terminal that is itself a page.
            (_, Some("cross-site" | "same-site")) if is_navigation => false,
            _ => return refuse("the request comes from another site"),
        };
        if !is_plain && !from_our_page && !origin {
            return refuse("only the viewer's own page may change something");
        }
        match behind {
            None => Ruling::AskForToken,
            Some("") => Ruling::Enter,
            Some(_) => Ruling::Pass,
        }
    }
}

/// Addresses that a person opens; all others are asked by the page.
fn is_page(path: &str) -> bool {
    matches!(path, "" | "/") || path.starts_with("/report/")
}

/// The value of a header that occurs once; a second one would be meant for another parser.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok();
    if values.next().is_some() { None } else { value }
}

/// Compares in a time that does not tell how much of it is right.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    // Keeps the optimiser from stopping at the first difference.
    one.len() == other.len() && std::hint::black_box(differences) == 0
}
