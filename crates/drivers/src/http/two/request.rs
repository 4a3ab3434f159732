//! Requests in HTTP/2 format: assembled once, their headers compressed each time.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Uri};

use crate::http::harmless;
use crate::http::message::{Parts, is_idempotent};

/// Headers that belong to a connection, which HTTP/2 forbids; `Host` became `:authority`.
const LEFT_OUT: [&str; 7] = [
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];
/// Not allowed in a URI, though servers of HTTP/1.1 take them.
const NOT_IN_A_PATH: &[u8] = b"\"<>\\^`{|}#";

/// A request, put together.
#[derive(Debug)]
pub struct Request {
    /// `None` where no URI can be made of it; it is refused when it is sent
    pub head: Option<http::Request<()>>,
    /// may be empty
    pub body: Bytes,
    /// the answer's body is looked at
    pub keeps_body: bool,
    /// the longest body that an answer may have
    pub body_cap: u64,
    /// of an unfinished body: what counts for nothing
    pub free_bytes: usize,
    /// it is the last on its connection
    pub closes: bool,
    /// it may be resent if it is unknown whether it was executed
    pub is_idempotent: bool,
    /// for gRPC: the answer has its own status, mostly in its trailers
    pub is_grpc: bool,
}

impl Request {
    /// Puts it together.
    pub fn new(parts: &Parts<'_>) -> Self {
        Request {
            head: head(parts),
            body: Bytes::copy_from_slice(parts.body),
            keeps_body: parts.keeps_body,
            body_cap: parts.body_cap(),
            free_bytes: parts.body_bytes_free(),
            closes: parts.closes(),
            is_idempotent: is_idempotent(parts.method),
            is_grpc: parts.header("content-type").is_some_and(|value| value.starts_with("application/grpc")),
        }
    }
}

fn head(parts: &Parts<'_>) -> Option<http::Request<()>> {
    let authority = parts.header("host").unwrap_or(parts.authority);
    let uri = Uri::builder().scheme(parts.scheme).authority(authority).path_and_query(path(parts.path)?);
    let mut head = http::Request::new(());
    *head.uri_mut() = uri.build().ok()?;
    let method: Vec<u8> = harmless::token(parts.method).collect();
    *head.method_mut() = Method::from_bytes(&method).ok()?;
    let headers = head.headers_mut();
    let mut add = |name: &str, value: &str| {
        let name: Vec<u8> = harmless::token(name).collect();
        let value: Vec<u8> = harmless::value(value).collect();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&name), HeaderValue::from_bytes(&value)) {
            headers.append(name, value);
        }
    };
    for (name, value) in parts.headers {
        let is_left_out = LEFT_OUT.iter().any(|one| name.eq_ignore_ascii_case(one));
        // Of hop-by-hop codings only trailers may be named.
        let is_te = name.eq_ignore_ascii_case("te") && value != "trailers";
        if !is_left_out && !is_te {
            add(name, value);
        }
    }
    if parts.sends_length() {
        add("content-length", &parts.body.len().to_string());
    }
    Some(head)
}

fn path(path: &str) -> Option<PathAndQuery> {
    let encoded = |also| {
        let mut bytes = Vec::with_capacity(path.len());
        harmless::write_path(&mut bytes, path, also);
        PathAndQuery::try_from(bytes).ok()
    };
    encoded(b"#").or_else(|| encoded(NOT_IN_A_PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const POST: Parts<'static> = Parts {
        method: "POST",
        scheme: "https",
        authority: "example.org:8080",
        body: b"xyz",
        body_bytes_max: 1000,
        ..Parts::get("/a?b={\"c\": 1}#d")
    };

    #[test]
    fn what_belongs_to_a_connection_is_left_out() {
        let given = headers(&[
            ("Connection", "close"),
            ("Upgrade", "x"),
            ("TE", "gzip"),
            ("X-A", "1\r\n2"),
            ("hOST", "o"),
        ]);
        let request = Request::new(&Parts { headers: &given, ..POST });
        assert!(request.closes);
        let head = request.head.unwrap();
        let mut lines: Vec<_> =
            head.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        lines.sort();
        assert_eq!(lines, ["content-length: \"3\"", "x-a: \"1  2\""]);
        assert_eq!(head.uri().authority().unwrap(), "o");
    }

    #[test]
    fn no_path_keeps_a_request_from_being_made() {
        for path in ["/", "/a?b={\"c\": 1}#d", "/<a>\\^`|\r\nü\0", "/?\"{}"] {
            let head = Request::new(&Parts { path, ..POST }).head.unwrap();
            let sent = head.uri().path_and_query().unwrap().as_str();
            assert!(
                sent.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'),
                "{path:?} became {sent:?}"
            );
        }
        assert!(Request::new(&Parts { authority: "a b", ..POST }).head.is_none());
    }
}
