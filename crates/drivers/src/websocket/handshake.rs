//! The opening handshake of RFC 6455, client side. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::address::Upgrade;
use crate::driver::OpenError;
use crate::shown::shown;

/// No answer may have a longer header.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;

/// The request for `path` at `host`, with the base64 of 16 random bytes as `key`.
pub fn request(host: &str, path: &str, key: &str, upgrade: &Upgrade) -> Vec<u8> {
    let mut request = format!("GET {path} HTTP/1.1\r\n");
    if !upgrade.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request += &format!("Host: {host}\r\n");
    }
    request += &format!(
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
    );
    if !upgrade.subprotocols.is_empty() {
        request += &format!("Sec-WebSocket-Protocol: {}\r\n", upgrade.subprotocols.join(", "));
    }
    for (name, value) in &upgrade.headers {
        request += &format!("{name}: {value}\r\n");
    }
    (request + "\r\n").into_bytes()
}

/// A key for one connection.
pub fn random_key() -> String {
    STANDARD.encode(fastrand::u128(..).to_ne_bytes())
}

/// An answer that takes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// so long was its header
    pub header_bytes: usize,
    /// index of the subprotocol that it chose of those that were offered
    pub subprotocol: Option<usize>,
}

/// Reads the answer to `key` and to the subprotocols that were `offered`; `None` when it is not complete. Errors: what the
/// server answered instead, with the beginning of the body as far as it is in `bytes`.
pub fn read_answer(bytes: &[u8], key: &str, offered: &[String]) -> Result<Option<Accepted>, OpenError> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut answer = httparse::Response::new(&mut headers);
    let header_bytes = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(count)) => count,
        Ok(httparse::Status::Partial) if bytes.len() < HEADER_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(wrong("a header of more than 16 KiB".to_owned())),
        Err(error) => return Err(wrong(format!("{error} in its answer"))),
    };
    if answer.code != Some(101) {
        return Err(refused(&answer, bytes.get(header_bytes..).unwrap_or_default()));
    }
    // Source: RFC 6455, section 1.3 and 4.2.2: a status line of HTTP/1.1. HTTP/1.0 has no upgrades.
    if answer.version != Some(1) {
        return Err(wrong("it switches protocols in HTTP/1.0, which cannot".to_owned()));
    }
    let subprotocol = check_headers(answer.headers, key, offered).map_err(wrong)?;
    Ok(Some(Accepted { header_bytes, subprotocol }))
}

/// What another status than 101 means, in the server's own words.
fn refused(answer: &httparse::Response<'_, '_>, body: &[u8]) -> OpenError {
    let code = answer.code.unwrap_or(0);
    let reason = answer.reason.unwrap_or_default();
    let value = |name: &str| {
        let header = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        header.map(|header| header.value.trim_ascii())
    };
    let mut words = format!("{code} {}", shown(reason.as_bytes())).trim_end().to_owned();
    if let (300..=399, Some(location)) = (code, value("location")) {
        words += &format!(" and redirects to \"{}\"", shown(location));
    } else if let Some(text) =
        excerpt(body, value("transfer-encoding").is_some()).filter(|text| text != reason)
    {
        words += &format!(", \"{text}\"");
    }
    match code {
        401 | 403 | 407 | 429 | 503 => OpenError::Rejected(words),
        _ => wrong(format!("it answered {words}")),
    }
}

/// The beginning of a body, as far as it has come; `None` where it says nothing.
fn excerpt(body: &[u8], is_chunked: bool) -> Option<String> {
    let text = if is_chunked {
        // The length of the first chunk is on its own line, and the chunk ends with its line.
        let begin = body.windows(2).position(|pair| pair == b"\r\n")? + 2;
        let chunk = &body[begin..];
        chunk.windows(2).position(|pair| pair == b"\r\n").map_or(chunk, |end| &chunk[..end])
    } else {
        body
    };
    let text = shown(text.trim_ascii());
    (!text.is_empty()).then_some(text)
}

/// What an answer with status 101 must say, and must not. Returns which of the subprotocols it chose. Source: RFC 6455, section
/// 4.1, what the client must validate.
fn check_headers(
    headers: &[httparse::Header<'_>],
    key: &str,
    offered: &[String],
) -> Result<Option<usize>, String> {
    let values = |name: &'static str| {
        headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.trim_ascii())
    };
    if !values("upgrade").any(|value| value.eq_ignore_ascii_case(b"websocket")) {
        return Err("no \"Upgrade: websocket\" in its answer".to_owned());
    }
    let mut options = values("connection").flat_map(|value| value.split(|byte| *byte == b','));
    if !options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade")) {
        return Err("no \"Connection: Upgrade\" in its answer".to_owned());
    }
    let accept = values("sec-websocket-accept")
        .next()
        .ok_or_else(|| "no Sec-WebSocket-Accept in its answer".to_owned())?;
    if accept != accept_for(key).as_bytes() {
        return Err("Sec-WebSocket-Accept does not fit our key".to_owned());
    }
    if values("sec-websocket-extensions").any(|value| !value.is_empty()) {
        return Err("it chose an extension, and none was offered".to_owned());
    }
    let chosen: Vec<&[u8]> = values("sec-websocket-protocol").collect();
    let index = match chosen.as_slice() {
        [] => return Ok(None),
        [one] => offered.iter().position(|name| name.as_bytes() == *one),
        _ => None,
    };
    match chosen.as_slice() {
        _ if index.is_some() => Ok(index),
        [one, ..] if offered.is_empty() => Err(format!(
            "it chose the subprotocol \"{}\", and none was offered (--subprotocol NAME or the script's protocols offer one)",
            shown(one)
        )),
        all => {
            let all: Vec<String> = all.iter().map(|name| shown(name)).collect();
            Err(format!(
                "it chose the subprotocol \"{}\", and {} was offered",
                all.join(", "),
                offered.join(", ")
            ))
        }
    }
}

pub(super) fn accept_for(key: &str) -> String {
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
            assert_eq!(read_answer(&answer.as_bytes()[..cut], key, &[]).unwrap(), None, "cut at {cut}");
        }
        let whole = Accepted { header_bytes: answer.len() - 2, subprotocol: None };
        assert_eq!(read_answer(answer.as_bytes(), key, &[]).unwrap(), Some(whole));
    }

    #[test]
    fn a_server_of_another_protocol_is_named_as_such() {
        let check = |answer: &str, expected: &str| {
            let error = read_answer(answer.as_bytes(), "k", &[]).unwrap_err().to_string();
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
            read_answer(format!("HTTP/1.1 101 OK\r\n{headers}\r\n").as_bytes(), "k", &[])
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
        check(
            &format!("{good}Sec-WebSocket-Protocol: chat\r\n"),
            "chose the subprotocol \"chat\", and none was offered",
        );
    }

    #[test]
    fn an_empty_list_of_extensions_is_none() {
        let answer = format!(
            "HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\
             Sec-WebSocket-Extensions: \r\n\r\n",
            accept_for("k")
        );
        assert!(read_answer(answer.as_bytes(), "k", &[]).is_ok_and(|length| length.is_some()));
    }

    #[test]
    fn a_server_that_is_full_turns_away_and_speaks_the_protocol_all_the_same() {
        let full = read_answer(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "k", &[]).unwrap_err();
        assert_eq!(full.to_string(), "rejected by the server: it answered 503 Service Unavailable");
        assert_eq!(OpenError::CAUSES[full.cause_index()], "rejected");
    }

    #[test]
    fn a_request_says_what_the_plan_says_besides_and_offers_the_subprotocols_in_order() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let upgrade = Upgrade {
            headers: vec![pair("Cookie", "a=b")],
            subprotocols: vec!["v2".to_owned(), "v1".to_owned()],
            ..Upgrade::default()
        };
        let text = |upgrade: &Upgrade| String::from_utf8(request("x:1", "/a", "k", upgrade)).unwrap();
        assert_eq!(
            text(&upgrade),
            "GET /a HTTP/1.1\r\nHost: x:1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: k\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v2, v1\r\nCookie: a=b\r\n\r\n"
        );
        let other_host = Upgrade { headers: vec![pair("host", "y")], ..Upgrade::default() };
        assert_eq!(text(&other_host).matches("ost: ").count(), 1, "{}", text(&other_host));
        assert!(!format!("{upgrade:?}").contains("a=b"), "{upgrade:?}");
    }

    #[test]
    fn a_server_may_choose_one_of_the_subprotocols_that_were_offered_or_none() {
        let accept = accept_for("k");
        let answer = |headers: &str, offered: &[&str]| {
            let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
            let answer = format!(
                "HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\
                 {headers}\r\n"
            );
            read_answer(answer.as_bytes(), "k", &offered).map_err(|error| error.to_string())
        };
        let chooses = |name: &str| format!("Sec-WebSocket-Protocol: {name}\r\n");
        let chosen = |answer: Result<Option<Accepted>, String>| answer.unwrap().unwrap().subprotocol;
        assert_eq!(chosen(answer("", &["a"])), None);
        assert_eq!(chosen(answer(&chooses("b"), &["a", "b"])), Some(1));
        for (headers, offered, words) in [
            (chooses("c"), &["a", "b"][..], "chose the subprotocol \"c\", and a, b was offered"),
            (chooses("A"), &["a"], "chose the subprotocol \"A\""),
            (chooses("a, b"), &["a", "b"], "chose the subprotocol \"a, b\""),
            (chooses("a").repeat(2), &["a"], "chose the subprotocol \"a, a\""),
            (
                chooses("a"),
                &[],
                "and none was offered (--subprotocol NAME or the script's protocols offer one)",
            ),
        ] {
            let told = answer(&headers, offered).expect_err("a wrong choice");
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_refusal_is_quoted_with_its_status_and_the_beginning_of_its_body() {
        let long = "x".repeat(500);
        for (answer, words) in [
            (
                "401 Unauthorized\r\nContent-Length: 8\r\n\r\nno token",
                "rejected by the server: it answered 401 Unauthorized, \"no token\"",
            ),
            ("403 Forbidden\r\n\r\nForbidden", "it answered 403 Forbidden"),
            ("407 \r\n\r\n\x1b[2J", "it answered 407, \"\\u{1b}[2J\""),
            (
                "404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nno /x\r\n0\r\n\r\n",
                "not a WebSocket server: it answered 404 Not Found, \"no /x\"",
            ),
            ("308 Moved\r\nLocation: /ws/\r\n\r\n", "it answered 308 Moved and redirects to \"/ws/\""),
            (&format!("400 Bad\r\n\r\n{long}"), &format!("it answered 400 Bad, \"{}…\"", "x".repeat(120))),
        ] {
            let told =
                read_answer(format!("HTTP/1.1 {answer}").as_bytes(), "k", &[]).unwrap_err().to_string();
            assert!(told.ends_with(words), "{told}");
        }
    }
}
