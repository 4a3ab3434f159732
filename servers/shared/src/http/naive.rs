//! The same grammar written for readability: split the text, look at the parts. The reference of the property tests.
//!
//! It needs the whole input at once, copies everything and is slow, and shares no line with `request`.

use super::request::{Fault, Limits};

/// A request as the plain reference reads it.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// as sent
    pub method: String,
    /// path and query, as sent
    pub target: String,
    /// HTTP/1.0, not 1.1
    pub http_1_0: bool,
    /// whether the connection stays open after the answer
    pub keep_alive: bool,
    /// without its framing
    pub body: Vec<u8>,
    /// bytes that the request took, framing included
    pub bytes: usize,
}

const SIGNS: &str = "!#$%&'*+-.^_`|~";

/// None: more bytes are needed. Assumes that faults are reported when their line is complete, in the order of lines.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Option<Request>, Fault> {
    // One character per byte, so that positions agree and nothing is invalid.
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let in_limit: String = text.chars().take(limits.head_bytes).collect();
    let mut lines: Vec<&str> = in_limit.split('\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    let mut head_bytes = 0;
    let mut seen: Vec<&str> = Vec::new();
    let (mut fields, mut empty_in_front) = (Vec::new(), 0);
    let mut request: Option<(String, String, bool)> = None;
    for line in lines {
        head_bytes += line.chars().count() + 1;
        let line = line.strip_suffix('\r').ok_or(Fault::BadRequest)?;
        match &request {
            None if line.is_empty() && empty_in_front == 0 => empty_in_front = 1,
            None => request = Some(first_line(line)?),
            Some((method, target, http_1_0)) if line.is_empty() => {
                return whole(method, target, *http_1_0, &fields, bytes, head_bytes, limits);
            }
            Some(_) => {
                let (name, value) = line.split_once(':').ok_or(Fault::BadRequest)?;
                let name_is_token =
                    name.chars().all(|one| one.is_ascii_alphanumeric() || SIGNS.contains(one));
                let control = |one: char| one != '\t' && (one < ' ' || one == '\u{7f}');
                if name.is_empty() || !name_is_token || value.contains(control) {
                    return Err(Fault::BadRequest);
                }
                let name = name.to_ascii_lowercase();
                let value = value.trim_matches([' ', '\t']);
                if name == "content-length" {
                    let digits = !value.is_empty() && value.chars().all(|one| one.is_ascii_digit());
                    if seen.contains(&"content-length") || !digits || value.parse::<u64>().is_err() {
                        return Err(Fault::BadLength);
                    }
                    seen.push("content-length");
                }
                fields.push((name, value.to_string()));
            }
        }
    }
    let half_an_empty_line = unfinished == "\r" && empty_in_front == 0;
    if request.is_none() && !unfinished.is_empty() && !half_an_empty_line {
        let method = unfinished.split(' ').next().unwrap_or_default();
        let token = method.chars().all(|one| one.is_ascii_alphanumeric() || SIGNS.contains(one));
        if !token || method.len() > 32 || method.is_empty() {
            return Err(Fault::BadRequest);
        }
    }
    if bytes.len() >= limits.head_bytes { Err(Fault::HeadTooLarge) } else { Ok(None) }
}

fn first_line(line: &str) -> Result<(String, String, bool), Fault> {
    let parts: Vec<&str> = line.splitn(3, ' ').collect();
    let [method, target, version] = parts[..] else { return Err(Fault::BadRequest) };
    let token = method.chars().all(|one| one.is_ascii_alphanumeric() || SIGNS.contains(one));
    if method.is_empty() || method.len() > 32 || !token {
        return Err(Fault::BadRequest);
    }
    let numbers = version.strip_prefix("HTTP/").and_then(|numbers| numbers.split_once('.'));
    let (major, minor) = numbers.ok_or(Fault::BadRequest)?;
    let digit = |text: &str| text.len() == 1 && text.chars().all(|one| one.is_ascii_digit());
    if !digit(major) || !digit(minor) {
        return Err(Fault::BadRequest);
    }
    if major != "1" {
        return Err(Fault::BadVersion);
    }
    if target.is_empty() || !target.chars().all(|one| ('!'..='~').contains(&one) && one != '#') {
        return Err(Fault::BadRequest);
    }
    let target = if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        target.to_string()
    } else if target.len() >= 7 && target[..7].eq_ignore_ascii_case("http://") {
        let rest = &target[7..];
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        match &rest[host.len()..] {
            _ if host.is_empty() => return Err(Fault::BadRequest),
            "" => "/".to_string(),
            query if query.starts_with('?') => return Err(Fault::BadRequest),
            path => path.to_string(),
        }
    } else {
        return Err(Fault::BadRequest);
    };
    Ok((method.to_string(), target, minor == "0"))
}

fn whole(
    method: &str,
    target: &str,
    http_1_0: bool,
    fields: &[(String, String)],
    bytes: &[u8],
    head_bytes: usize,
    limits: &Limits,
) -> Result<Option<Request>, Fault> {
    let count = |wanted: &str| fields.iter().filter(|(name, _)| name == wanted).count();
    if count("host") > 1 || (!http_1_0 && count("host") == 0) {
        return Err(Fault::BadRequest);
    }
    let length = fields.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value);
    if count("transfer-encoding") > 0 {
        return Err(if http_1_0 || length.is_some() { Fault::BadRequest } else { Fault::LengthRequired });
    }
    let length: u64 = length.map_or(0, |length| length.parse().expect("checked where it stood"));
    if length > limits.body_bytes as u64 {
        return Err(Fault::BodyTooLarge);
    }
    let says = |wanted: &str| {
        let connection = fields.iter().filter(|(name, _)| name == "connection");
        let mut tokens = connection.flat_map(|(_, value)| value.split(','));
        tokens.any(|token| token.trim_matches([' ', '\t']).eq_ignore_ascii_case(wanted))
    };
    let keep_alive = !says("close") && (!http_1_0 || says("keep-alive"));
    let end = head_bytes + length as usize;
    if bytes.len() < end {
        return Ok(None);
    }
    let body = bytes[head_bytes..end].to_vec();
    let (method, target) = (method.to_string(), target.to_string());
    Ok(Some(Request { method, target, http_1_0, keep_alive, body, bytes: end }))
}
