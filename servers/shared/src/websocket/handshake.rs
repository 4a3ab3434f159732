//! The opening handshake (RFC 6455 section 4.2): one HTTP request in, one answer out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A request that is longer than this is refused.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// More header fields than this are refused.
const FIELDS_MAX: usize = 64;

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// An upgrade that was understood.
#[derive(Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// How many bytes the request took; what follows are frames.
    pub request_bytes: usize,
    /// What the key must be answered with.
    pub accept: [u8; 28],
    /// The URL asks for `snapshots=1`.
    pub snapshots: bool,
}

/// A request that is answered with an error, after which the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

const BAD_REQUEST: Refused = Refused(
    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 35\r\n\r\n\
     This server speaks WebSocket only.\n",
);
const WRONG_VERSION: Refused = Refused(
    "HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n",
);
const TOO_LONG: Refused =
    Refused("HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
/// For a server that holds as many connections as it may, or is going down.
pub const UNAVAILABLE: Refused =
    Refused("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");

/// Reads a request; None when more bytes are needed.
pub fn read(bytes: &[u8]) -> Result<Option<Upgrade>, Refused> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let request_bytes = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= REQUEST_BYTES_MAX => length,
        Ok(httparse::Status::Partial) if bytes.len() < REQUEST_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
        Err(_) => return Err(BAD_REQUEST),
    };
    if request.method != Some("GET") || request.version != Some(1) {
        return Err(BAD_REQUEST);
    }
    let (mut upgrade, mut connection, mut version, mut key) = (false, false, None, None);
    for field in request.headers.iter() {
        if field.name.eq_ignore_ascii_case("upgrade") {
            upgrade |= lists(field.value, "websocket");
        } else if field.name.eq_ignore_ascii_case("connection") {
            connection |= lists(field.value, "upgrade");
        } else if field.name.eq_ignore_ascii_case("sec-websocket-version") {
            version = Some(field.value.trim_ascii());
        } else if field.name.eq_ignore_ascii_case("sec-websocket-key") {
            key = Some(field.value.trim_ascii());
        } else if field.name.eq_ignore_ascii_case("transfer-encoding")
            || field.name.eq_ignore_ascii_case("content-length") && field.value.trim_ascii() != b"0"
        {
            // The bytes of its body would be parsed as frames.
            return Err(BAD_REQUEST);
        }
    }
    if !upgrade || !connection {
        return Err(BAD_REQUEST);
    }
    if version != Some(b"13") {
        return Err(WRONG_VERSION);
    }
    let key = key.filter(|key| is_key(key)).ok_or(BAD_REQUEST)?;
    let query = request.path.and_then(|path| path.split_once('?')).map_or("", |(_, query)| query);
    let snapshots =
        query.split('&').any(|pair| matches!(pair, "snapshots" | "snapshots=1" | "snapshots=true"));
    Ok(Some(Upgrade { request_bytes, accept: accept(key), snapshots }))
}

/// The first value of this name in the query of a request that was understood, as it was sent.
pub fn query<'r>(request: &'r [u8], name: &str) -> Option<&'r str> {
    let (_, query) = target(request)?.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Path and query of a request that was understood, as they were sent.
pub fn target(request: &[u8]) -> Option<&str> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    std::str::from_utf8(line).ok()?.split(' ').nth(1)
}

/// Appends the answer that completes the handshake.
pub fn put_answer(out: &mut Vec<u8>, upgrade: &Upgrade) {
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: ",
    );
    out.extend_from_slice(&upgrade.accept);
    out.extend_from_slice(b"\r\n\r\n");
}

fn accept(key: &[u8]) -> [u8; 28] {
    let mut sha = sha1_smol::Sha1::new();
    sha.update(key);
    sha.update(GUID.as_bytes());
    let mut accept = [0; 28];
    // Twenty bytes always become 28 characters, so that the slice cannot be too small.
    let _ = STANDARD.encode_slice(sha.digest().bytes(), &mut accept);
    accept
}

/// Sixteen bytes in base64.
fn is_key(key: &[u8]) -> bool {
    let mut nonce = [0; 18];
    key.len() == 24 && STANDARD.decode_slice(key, &mut nonce) == Ok(16)
}

/// Whether a comma-separated field names this token.
fn lists(value: &[u8], token: &str) -> bool {
    value.split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUEST: &str = "GET /any?snapshots=1 HTTP/1.1\r\nHost: localhost:42069\r\nupgrade: WebSocket\r\n\
        Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    #[test]
    fn the_rfcs_own_example_gets_the_rfcs_own_answer() {
        let upgrade = read(REQUEST.as_bytes()).unwrap().unwrap();
        assert_eq!(&upgrade.accept, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(upgrade.snapshots);
        assert_eq!(target(REQUEST.as_bytes()), Some("/any?snapshots=1"));
        assert_eq!(
            (query(REQUEST.as_bytes(), "snapshots"), query(REQUEST.as_bytes(), "snap")),
            (Some("1"), None)
        );
        assert_eq!(upgrade.request_bytes, REQUEST.len());
        let mut answer = Vec::new();
        put_answer(&mut answer, &upgrade);
        assert_eq!(
            String::from_utf8(answer).unwrap(),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        );
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, status: &str) {
        assert!(REQUEST.contains(from));
        let Refused(answer) = read(REQUEST.replace(from, to).as_bytes()).unwrap_err();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
    }

    #[test]
    fn what_is_not_a_websocket_request_is_refused_with_the_fitting_status() {
        check_refused("GET", "POST", "400");
        check_refused("HTTP/1.1", "HTTP/1.0", "400");
        check_refused("WebSocket\r\n", "h2c\r\n", "400");
        check_refused("keep-alive, Upgrade", "keep-alive", "400");
        check_refused("Version: 13", "Version: 8", "426");
        check_refused("dGhlIHNhbXBsZSBub25jZQ==", "short", "400");
        check_refused("Host: localhost:42069", &"a: b\r\n".repeat(80), "431");
        check_refused("localhost", &"x".repeat(REQUEST_BYTES_MAX), "431");
        check_refused("Host", "Ho st", "400");
        check_refused("Host:", "Content-Length: 6\r\nHost:", "400");
        check_refused("Host:", "Transfer-Encoding: chunked\r\nHost:", "400");
        let without_body = REQUEST.replace("Host:", "Content-Length: 0\r\nHost:");
        assert!(read(without_body.as_bytes()).unwrap().is_some());
    }

    #[test]
    fn an_endless_request_is_refused_at_its_limit_and_not_before() {
        let endless = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(REQUEST_BYTES_MAX));
        assert_eq!(read(&endless.as_bytes()[..REQUEST_BYTES_MAX - 1]), Ok(None));
        assert_eq!(read(endless.as_bytes()), Err(TOO_LONG));
    }

    proptest! {
        #[test]
        fn a_request_is_understood_only_when_it_is_whole(cut in 0usize..1000, after: Vec<u8>) {
            let cut = cut % REQUEST.len();
            prop_assert_eq!(read(&REQUEST.as_bytes()[..cut]), Ok(None));
            let mut bytes = REQUEST.as_bytes().to_vec();
            bytes.extend(after);
            prop_assert_eq!(read(&bytes).unwrap().unwrap().request_bytes, REQUEST.len());
        }
    }
}
