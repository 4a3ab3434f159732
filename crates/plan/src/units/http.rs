//! Values of requests: `Name: value`, `200..299`, `64KiB`, `/items/0/id`, `1..20`.
//!
//! What would break a request line or start another header is refused, so that a plan's requests are always well
//! formed.

use std::fmt;
use std::str::FromStr;

use super::{RUNG_MAX, UnitError, count_within, refuse_non_numbers, rung_load, whole_within, word_of};
use crate::mistakes::RequestConfigError;
use crate::workloads::HttpVersion;

/// More rungs than that are a slip of the keyboard.
pub const RUNGS_MAX: u64 = 1000;
/// A body may be so long at most: a TiB.
pub const BYTES_MAX: u64 = 1 << 40;

impl FromStr for HttpVersion {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<HttpVersion, UnitError> {
        word_of(text, "1.1, 2", &[("1.1", HttpVersion::One), ("2", HttpVersion::Two)])
    }
}

impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HttpVersion::One => "1.1",
            HttpVersion::Two => "2",
        })
    }
}

/// `GET`; written small it means the same.
pub fn method(text: &str) -> Result<String, RequestConfigError> {
    let text = text.trim();
    let is_method =
        !text.is_empty() && text.len() <= 32 && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
    let method = text.to_ascii_uppercase();
    // CONNECT asks for a tunnel and not for an answer.
    if is_method && method != "CONNECT" { Ok(method) } else { Err(RequestConfigError::Method(text.into())) }
}

/// Path and query, as the user writes them; characters not allowed in a request line are encoded when it is sent.
pub fn path(text: &str) -> Result<String, RequestConfigError> {
    let text = text.trim();
    if text.starts_with('/') && fits_in_path(text) {
        Ok(text.to_owned())
    } else {
        Err(RequestConfigError::Path(text.into()))
    }
}

/// Whether a text is allowed in a path and sent whole.
pub fn fits_in_path(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || c == '#')
}

/// `Name: value`, as it appears in a request.
pub fn header(text: &str) -> Result<(String, String), RequestConfigError> {
    let (name, value) = text.split_once(':').ok_or(RequestConfigError::NotAHeader)?;
    named_header(name, value)
}

/// Name and value of a header. Secrets are named by their environment variable and never written out.
pub fn named_header(name: &str, value: &str) -> Result<(String, String), RequestConfigError> {
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() {
        return Err(RequestConfigError::NotAHeader);
    }
    if !name.bytes().all(is_token) {
        return Err(RequestConfigError::HeaderName(name.into()));
    }
    let is_control = |c: char| c.is_control() && c != '\t';
    if value.contains(is_control) {
        return Err(RequestConfigError::HeaderValue(name.into()));
    }
    let ours = match name.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" => Some("the body"),
        "connection" | "keep-alive" => Some("whether connections are kept (keep_alive)"),
        _ => None,
    };
    if let Some(why) = ours {
        return Err(RequestConfigError::HeaderOfOurs { name: name.into(), why });
    }
    let has_environment = !environment_names(name, value)?.is_empty();
    let is_secret = ["authorization", "proxy-authorization", "cookie", "x-api-key"]
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret));
    if is_secret && !has_environment {
        return Err(RequestConfigError::Secret { name: name.into() });
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// `Name: value`, as it appears in the handshake of a WebSocket.
pub fn handshake_header(text: &str) -> Result<(String, String), RequestConfigError> {
    let (name, value) = text.split_once(':').ok_or(RequestConfigError::NotAHeader)?;
    named_handshake_header(name, value)
}

/// Name and value of a header of a WebSocket handshake, which has some of its own.
pub fn named_handshake_header(name: &str, value: &str) -> Result<(String, String), RequestConfigError> {
    let name = name.trim();
    let lower = name.to_ascii_lowercase();
    if lower == "sec-websocket-protocol" {
        let why = "the subprotocols (--subprotocol NAME)";
        return Err(RequestConfigError::HeaderOfOurs { name: name.into(), why });
    }
    if ["upgrade", "connection"].contains(&lower.as_str()) || lower.starts_with("sec-websocket-") {
        return Err(RequestConfigError::HeaderOfOurs { name: name.into(), why: "the WebSocket handshake" });
    }
    named_header(name, value)
}

/// The name of a subprotocol. Source: RFC 6455, section 4.1: a token of HTTP.
pub fn subprotocol(text: &str) -> Result<String, RequestConfigError> {
    let name = text.trim();
    if !name.is_empty() && name.bytes().all(is_token) {
        Ok(name.to_owned())
    } else {
        Err(RequestConfigError::Subprotocol(name.into()))
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The environment variables that the value of a header names as `${NAME}`. `name` is the header's, for the refusal.
pub fn environment_names<'a>(name: &str, value: &'a str) -> Result<Vec<&'a str>, RequestConfigError> {
    let mut names = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let inside = &rest[at + 2..];
        let found = inside.find('}').map(|end| &inside[..end]).filter(|name| is_environment_name(name));
        let found = found.ok_or_else(|| RequestConfigError::Environment(name.to_owned()))?;
        names.push(found);
        rest = &inside[found.len() + 1..];
    }
    Ok(names)
}

/// A text with each `${NAME}` replaced by what `value_of` says. What stands in such braces and is no name stays as it is.
///
/// Errors: the first name that `value_of` does not know.
pub fn with_environment(value: &str, value_of: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else { break };
        if !is_environment_name(&inside[..end]) {
            out.push_str(&rest[..at + 2]);
            rest = inside;
            continue;
        }
        out.push_str(&rest[..at]);
        out.push_str(&value_of(&inside[..end]).ok_or_else(|| inside[..end].to_owned())?);
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a text can be the name of an environment variable.
pub fn is_environment_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `200` or `200..299`, both ends included.
pub fn status(text: &str) -> Result<(u16, u16), RequestConfigError> {
    let text = text.trim();
    let wrong = || RequestConfigError::Status(text.into());
    let one = |text: &str| {
        let status: u16 = text.trim().parse().map_err(|_| wrong())?;
        if (100..=599).contains(&status) { Ok(status) } else { Err(wrong()) }
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (one(first)?, one(last)?);
    if first <= last { Ok((first, last)) } else { Err(wrong()) }
}

/// `4096`, `64KiB`, `1MB`: bytes, at least 1.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    let (number, unit) = super::number_and_unit(text);
    refuse_non_numbers(text, number)?;
    let factor = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => {
            let known = "B, kB, MB, GB, KiB, MiB, GiB";
            return Err(UnitError::UnknownUnit { text: text.into(), unit: unit.into(), known });
        }
    };
    match super::scaled(number, factor) {
        Some(bytes) if (1..=BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(UnitError::OutOfRange { text: text.into(), least: "1".into(), most: "1024GiB".into() }),
    }
}

/// `2..100` or `2`: the length of a body, both ends included.
pub fn body_range(text: &str) -> Result<(u64, u64), UnitError> {
    let text = text.trim();
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (whole_within(least, 0, BYTES_MAX)?, whole_within(most, 0, BYTES_MAX)?);
    if least <= most { Ok((least, most)) } else { Err(UnitError::EmptyRange(text.into())) }
}

/// A JSON pointer (RFC 6901): empty for the whole, else steps that begin with `/`.
pub fn pointer(text: &str) -> Result<String, RequestConfigError> {
    let is_escaped = |rest: &str| rest.starts_with(['0', '1']);
    let is_pointer = text.is_empty() || text.starts_with('/');
    if is_pointer && text.split('~').skip(1).all(is_escaped) {
        Ok(text.to_owned())
    } else {
        Err(RequestConfigError::Pointer(text.into()))
    }
}

/// The name of a variable, as it appears in braces.
pub fn variable_name(text: &str) -> Result<String, RequestConfigError> {
    if is_variable_name(text) {
        Ok(text.to_owned())
    } else {
        Err(RequestConfigError::VariableName(text.into()))
    }
}

fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// The texts in braces: possible names of variables, and whether a `$` precedes them.
pub fn braced(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.match_indices('{').filter_map(|(at, _)| {
        let inside = &text[at + 1..];
        let name = &inside[..inside.find('}')?];
        is_variable_name(name).then(|| (name, text[..at].ends_with('$')))
    })
}

/// One load of a rate: requests per second, `/s` or not.
pub fn rate(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    rung_load(text.strip_suffix("/s").unwrap_or(text))
}

/// Some counts of requesters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// the first
    pub first: u64,
    /// the last, included; the first again where the end is open
    pub last: u64,
    /// they go on beyond it
    pub is_open: bool,
}

/// `5`, `1..20`, or `1..` with an open end.
pub fn counts(text: &str) -> Result<Counts, RequestConfigError> {
    let text = text.trim();
    let one = |text: &str| count_within(text, 1, RUNG_MAX as u64).map_err(RequestConfigError::from);
    let Some((first, last)) = text.split_once("..") else {
        let only = one(text)?;
        return Ok(Counts { first: only, last: only, is_open: false });
    };
    let first = one(first)?;
    if last.trim().is_empty() {
        return Ok(Counts { first, last: first, is_open: true });
    }
    let last = one(last)?;
    match last.checked_sub(first) {
        None => Err(UnitError::EmptyRange(text.into()).into()),
        Some(more) if more >= RUNGS_MAX => Err(RequestConfigError::TooManyRungs(more + 1)),
        Some(_) => Ok(Counts { first, last, is_open: false }),
    }
}

#[cfg(test)]
mod tests;
