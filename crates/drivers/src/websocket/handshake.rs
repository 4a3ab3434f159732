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
    // Source: RFC 6455, section 1.3 and 4.2.2: a status line of HTTP/1.1. HTTP/1.0 has no upgrades.
    if answer.version != Some(1) {
        return Err(wrong("it switches protocols in HTTP/1.0, which cannot".to_owned()));
    }
    check_headers(answer.headers, key).map_err(|why| wrong(why.to_owned()))?;
    Ok(Some(header_bytes))
}

/// What an answer with status 101 must say, and must not. Source: RFC 6455, section 4.1, what the client must validate.
fn check_headers(headers: &[httparse::Header<'_>], key: &str) -> Result<(), &'static str> {
    let values = |name: &'static str| {
        headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.trim_ascii())
    };
    if !values("upgrade").any(|value| value.eq_ignore_ascii_case(b"websocket")) {
        return Err("no \"Upgrade: websocket\" in its answer");
    }
    let mut options = values("connection").flat_map(|value| value.split(|byte| *byte == b','));
    if !options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade")) {
        return Err("no \"Connection: Upgrade\" in its answer");
    }
    let accept = values("sec-websocket-accept").next().ok_or("no Sec-WebSocket-Accept in its answer")?;
    if accept != accept_for(key).as_bytes() {
        return Err("Sec-WebSocket-Accept does not fit our key");
    }
    if values("sec-websocket-extensions").any(|value| !value.is_empty()) {
        return Err("it chose an extension, and none was offered");
    }
    if values("sec-websocket-protocol").next().is_some() {
        return Err("it chose a subprotocol, and none was offered");
    }
    Ok(())
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
        check("HTTP/1.0 101 OK\r\n\r\n", "in HTTP/1.0");
        check("HTTP/1.1 101 OK\r\n\r\n", "no \"Upgrade: websocket\"");
    }

    #[test]
    fn an_answer_that_upgrades_to_something_else_is_none() {
        let accept = accept_for("k");
        let answer = |headers: &str| {
            let headers = headers.replace("ACCEPT", &format!("Sec-WebSocket-Accept: {accept}\r\n"));
            read_answer(format!("HTTP/1.1 101 OK\r\n{headers}\r\n").as_bytes(), "k")
        };
        let good = "upgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\nACCEPT";
        assert!(answer(good).is_ok_and(|length| length.is_some()));
        let check = |headers: &str, expected: &str| {
            let error = answer(headers).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("Connection: Upgrade\r\nACCEPT", "no \"Upgrade: websocket\"");
        check("Upgrade: h2c\r\nConnection: Upgrade\r\nACCEPT", "no \"Upgrade: websocket\"");
        check("Upgrade: websocket\r\nACCEPT", "no \"Connection: Upgrade\"");
        check("Upgrade: websocket\r\nConnection: close\r\nACCEPT", "no \"Connection: Upgrade\"");
        check("Upgrade: websocket\r\nConnection: Upgrade\r\n", "no Sec-WebSocket-Accept");
        check(
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n",
            "does not fit our key",
        );
        check(&format!("{good}Sec-WebSocket-Extensions: permessage-deflate\r\n"), "chose an extension");
        check(&format!("{good}Sec-WebSocket-Protocol: chat\r\n"), "chose a subprotocol");
    }

    #[test]
    fn an_empty_list_of_extensions_is_none() {
        let answer = format!(
            "HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\
             Sec-WebSocket-Extensions: \r\n\r\n",
            accept_for("k")
        );
        assert!(read_answer(answer.as_bytes(), "k").is_ok_and(|length| length.is_some()));
    }

    #[test]
    fn a_server_that_is_full_turns_away_and_speaks_the_protocol_all_the_same() {
        let full = read_answer(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "k").unwrap_err();
        assert_eq!(full.to_string(), "rejected by the server: it answered 503 Service Unavailable");
        assert_eq!(OpenError::CAUSES[full.cause_index()], "rejected");
    }
}
