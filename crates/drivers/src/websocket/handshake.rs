//! The opening handshake of RFC 6455, client side. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::driver::OpenError;

/// No answer may have a longer header.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;

/// The request for `path` at `host`, with the base64 of 16 random bytes as `key`.
pub fn request(host: &str, path: &str, key: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    .into_bytes()
}

/// A key for one connection.
pub fn random_key() -> String {
    STANDARD.encode(fastrand::u128(..).to_ne_bytes())
}

/// Reads the answer to `key`. Returns how long its header was, `None` when it is not complete.
pub fn read_answer(bytes: &[u8], key: &str) -> Result<Option<usize>, OpenError> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut answer = httparse::Response::new(&mut headers);
    let header_bytes = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(count)) => count,
        Ok(httparse::Status::Partial) if bytes.len() < HEADER_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(wrong("a header of more than 16 KiB".to_owned())),
        Err(error) => return Err(wrong(format!("{error} in its answer"))),
    };
    if answer.code != Some(101) {
        let code = answer.code.unwrap_or(0);
        let status = format!("{code} {}", answer.reason.unwrap_or_default()).trim_end().to_owned();
        if matches!(code, 429 | 503) {
            return Err(OpenError::Rejected(status));
        }
        return Err(wrong(format!("it answered {status}")));
    }
    let accept = answer
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("sec-websocket-accept"))
        .ok_or_else(|| wrong("no Sec-WebSocket-Accept in its answer".to_owned()))?;
    if accept.value.trim_ascii() != accept_for(key).as_bytes() {
        return Err(wrong("Sec-WebSocket-Accept does not fit our key".to_owned()));
    }
    Ok(Some(header_bytes))
}

fn accept_for(key: &str) -> String {
    let mut hash = sha1_smol::Sha1::new();
    hash.update(key.as_bytes());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(hash.digest().bytes())
}

fn wrong(why: String) -> OpenError {
    OpenError::WrongProtocol { protocol: "WebSocket", why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_rfc_gives_the_accept_of_the_rfc() {
        assert_eq!(accept_for("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn an_answer_is_read_only_when_its_header_is_whole() {
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                      sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x01\x02";
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        for cut in 0..answer.len() - 2 {
            assert_eq!(read_answer(&answer.as_bytes()[..cut], key).unwrap(), None, "cut at {cut}");
        }
        assert_eq!(read_answer(answer.as_bytes(), key).unwrap(), Some(answer.len() - 2));
    }

    #[test]
    fn a_server_of_another_protocol_is_named_as_such() {
        let check = |answer: &str, expected: &str| {
            let error = read_answer(answer.as_bytes(), "k").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("HTTP/1.1 404 Not Found\r\n\r\n", "not a WebSocket server: it answered 404 Not Found");
        check("HTTP/1.1 200 \r\n\r\n", "not a WebSocket server: it answered 200");
        check("SSH-2.0-OpenSSH_9.2\r\n", "not a WebSocket server");
        check("HTTP/1.1 101 OK\r\n\r\n", "no Sec-WebSocket-Accept");
        check("HTTP/1.1 101 OK\r\nSec-WebSocket-Accept: x\r\n\r\n", "does not fit our key");
    }

    #[test]
    fn a_server_that_is_full_turns_away_and_speaks_the_protocol_all_the_same() {
        let full = read_answer(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "k").unwrap_err();
        assert_eq!(full.to_string(), "rejected by the server: it answered 503 Service Unavailable");
        assert_eq!(OpenError::CAUSES[full.cause_index()], "rejected");
    }
}
