//! Who is let in: the browser that was given the token, on this machine, from our own page.
//!
//! A page of any other site can make a browser send requests to 127.0.0.1. So each request must name us as its host (or
//! a name that was rebound to 127.0.0.1 would do), come from our own page where a browser says from where it comes, and
//! carry the token as a cookie that no other site's requests carry. The rules are a pure function of a request's head.
//! Source: measurement.md, security; OWASP on DNS rebinding and Fetch Metadata.

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};

/// The doorkeeper of one viewer.
#[derive(Clone)]
pub struct Gate {
    /// as a client may name us, in lower case: `127.0.0.1:42068` …
    hosts: Vec<String>,
    token: String,
    cookie: String,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// it is answered
    Pass,
    /// it brought the token in its address: a cookie is set, and the address is cleaned
    Enter,
    /// it has no token, or a wrong one
    AskForToken,
    /// it is not ours to answer, and why
    Refuse(StatusCode, &'static str),
}

impl Gate {
    /// Guards a server on `port` of loopback with a token.
    pub fn new(port: u16, token: String) -> Self {
        let mut hosts = Vec::new();
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            hosts.push(format!("{name}:{port}"));
            if port == 80 {
                hosts.push(name.to_owned());
            }
        }
        // Cookies do not know ports: two viewers side by side would take each other's token.
        Gate { hosts, token, cookie: format!("stepladder-{port}") }
    }

    /// The cookie that a browser is given.
    pub(crate) fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.token)
    }

    /// What becomes of a request with this head.
    pub fn rule(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Ruling {
        let refuse = |why| Ruling::Refuse(StatusCode::FORBIDDEN, why);
        let Some(host) = single(headers, header::HOST.as_str()).filter(|host| self.is_ours(host)) else {
            return refuse("the Host header names another server");
        };
        if uri.authority().is_some_and(|authority| !self.is_ours(authority.as_str())) {
            return refuse("the address names another server");
        }
        let is_plain = matches!(*method, Method::GET | Method::HEAD);
        let origin = headers.contains_key(header::ORIGIN);
        if origin {
            let ours = format!("http://{}", host.to_ascii_lowercase());
            if single(headers, header::ORIGIN.as_str()).is_none_or(|origin| origin != ours) {
                return refuse("the request comes from another site");
            }
        }
        let is_navigation = is_plain
            && is_page(uri.path())
            && single(headers, "sec-fetch-mode") == Some("navigate")
            && single(headers, "sec-fetch-dest") == Some("document");
        let from_our_page = match (headers.contains_key("sec-fetch-site"), single(headers, "sec-fetch-site"))
        {
            (false, _) => false,
            (_, Some("same-origin")) => true,
            // Typed, or a bookmark.
            (_, Some("none")) if is_plain => false,
            // A link on another site: the cookie stays away, so it ends before the token.
            (_, Some("cross-site" | "same-site")) if is_navigation => false,
            _ => return refuse("the request comes from another site"),
        };
        if !is_plain && !from_our_page && !origin {
            return refuse("only the viewer's own page may change something");
        }
        if uri.path() == "/"
            && let Some(token) = query(uri, "token")
        {
            return if same(token, &self.token) { Ruling::Enter } else { Ruling::AskForToken };
        }
        if self.has_cookie(headers) { Ruling::Pass } else { Ruling::AskForToken }
    }

    fn is_ours(&self, host: &str) -> bool {
        self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie && same(value, &self.token))
    }
}

/// Addresses that a person opens; all others are asked by the page.
pub(crate) fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with("/report/")
}

/// The value of a header that stands once; a second one would be for somebody who reads the other.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok();
    if values.next().is_some() { None } else { value }
}

fn query<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    uri.query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Compares in a time that does not tell how much of it is right.
fn same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && differences == 0
}
