//! What is at the front of the received bytes: a complete request, part of one, or a fault.
//!
//! Parsed in order, line by line, and the first fault counts. So the verdict never depends on how the bytes were split:
//! `Incomplete` input has only one possible outcome, whether the rest arrives in pieces or at once.
//! Strict where two parsers of the same bytes could disagree on where a request ends: lines end with CRLF (a bare LF or
//! CR is refused), no space before a header's colon, folded lines are refused, Content-Length occurs once and in
//! digits, HTTP/1.1 names its host once. A chunked body is refused with 411, like a body without a length: decoding it
//! would need a second buffer, and no client of these servers has to send one.
//! `Expect: 100-continue` is not answered; a client that sends it will send its body after a while anyway (RFC 9110
//! section 10.1.1).

/// Lengths beyond which a request is refused rather than awaited.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first byte to the end of the empty line, in bytes.
    pub head_bytes: usize,
    /// In bytes.
    pub body_bytes: usize,
}

impl Default for Limits {
    #[inline]
    fn default() -> Limits {
        Limits { head_bytes: 16 * 1024, body_bytes: 64 * 1024 }
    }
}

/// What is at the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front<'a> {
    /// A request. What follows is the next one.
    Whole {
        /// what it says
        request: Request<'a>,
        /// how many bytes it took
        bytes: usize,
    },
    /// The beginning of a request, or nothing at all.
    Incomplete,
    /// No request. Where the next one would begin is unknown, so the connection has to end.
    Broken(Fault),
}

/// One request. Fields that no server here needs were checked and forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// as sent
    pub method: &'a str,
    /// Path and query, as they were sent except for a scheme and host; `*` only with OPTIONS.
    pub target: &'a str,
    /// HTTP/1.0; any later 1.x counts as 1.1.
    pub http_1_0: bool,
    /// The connection may go on after the answer.
    pub keep_alive: bool,
    /// All lines between the request line and the empty line; see `field`.
    fields: &'a [u8],
    /// without its framing
    pub body: &'a [u8],
}

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 400
    BadRequest,
    /// 431
    HeadTooLarge,
    /// 413
    BodyTooLarge,
    /// 505
    BadVersion,
    /// 400
    BadLength,
    /// 411
    LengthRequired,
}

impl Fault {
    /// The status that says so.
    #[inline]
    pub fn status(self) -> u16 {
        match self {
            Fault::BadRequest | Fault::BadLength => 400,
            Fault::LengthRequired => 411,
            Fault::BodyTooLarge => 413,
            Fault::HeadTooLarge => 431,
            Fault::BadVersion => 505,
        }
    }
}

impl<'a> Request<'a> {
    /// The target without its query.
    #[inline]
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The first field of this name, without the blanks around it. Not for fields that the parser understands.
    #[inline]
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.split(|byte| *byte == b'\n').find_map(|line| {
            let (found, value) = line.split_at(memchr::memchr(b':', line)?);
            found.eq_ignore_ascii_case(name.as_bytes()).then(|| value[1..].trim_ascii())
        })
    }

    /// The first value of this name in the query, as it was sent: nothing is unescaped. A name alone has an empty
    /// value.
    #[inline]
    pub fn query(&self, name: &str) -> Option<&'a str> {
        let (_, query) = self.target.split_once('?')?;
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    }
}

/// Parses what is at the front of `bytes`.
#[inline]
pub fn front<'a>(bytes: &'a [u8], limits: &Limits) -> Front<'a> {
    match read(bytes, limits) {
        Ok(Some((request, bytes))) => Front::Whole { request, bytes },
        Ok(None) => Front::Incomplete,
        Err(fault) => Front::Broken(fault),
    }
}

/// What the head says about the body and the connection.
#[derive(Default)]
struct Fields {
    hosts: u32,
    length: Option<u64>,
    transfer_encoding: bool,
    close: bool,
    keep_alive: bool,
}

fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<(Request<'a>, usize)>, Fault> {
    let mut lines = Lines { bytes, at: 0, head_bytes: limits.head_bytes };
    let first = match lines.next()? {
        // One leading empty line is tolerated: old clients send one after a body (RFC 9112 section 2.2).
        Some([]) => lines.next()?,
        first => first,
    };
    let Some(first) = first else {
        // A client that does not speak HTTP at all may never end its line.
        if lines.at > 0 || lines.rest() != b"\r" {
            method_of(lines.rest())?;
        }
        return lines.wait();
    };
    let (method, target, http_1_0) = request_line(first)?;
    let mut fields = Fields::default();
    let fields_at = lines.at;
    loop {
        match lines.next()? {
            None => return lines.wait(),
            Some([]) => break,
            Some(line) => fields.read(line)?,
        }
    }
    if fields.hosts > 1 || (fields.hosts == 0 && !http_1_0) {
        return Err(Fault::BadRequest);
    }
    if fields.transfer_encoding {
        let smuggled = fields.length.is_some() || http_1_0;
        return Err(if smuggled { Fault::BadRequest } else { Fault::LengthRequired });
    }
    let length = fields.length.unwrap_or(0);
    if length > limits.body_bytes as u64 {
        return Err(Fault::BodyTooLarge);
    }
    let end = lines.at + length as usize;
    let Some(body) = bytes.get(lines.at..end) else { return Ok(None) };
    let keep_alive = !fields.close && (fields.keep_alive || !http_1_0);
    let fields = &bytes[fields_at..lines.at];
    Ok(Some((Request { method, target, http_1_0, keep_alive, fields, body }, end)))
}

/// The lines of the head, each without its CRLF.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    head_bytes: usize,
}

impl<'a> Lines<'a> {
    /// The next line; None when its end is not there yet.
    #[inline]
    fn next(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let rest = self.rest();
        let Some(length) = memchr::memchr(b'\n', rest) else { return Ok(None) };
        self.at += length + 1;
        match &rest[..length] {
            [line @ .., b'\r'] => Ok(Some(line)),
            _ => Err(Fault::BadRequest),
        }
    }

    /// The line's end is not there yet; whether it may still come.
    #[inline]
    fn wait<T>(&self) -> Result<Option<T>, Fault> {
        if self.bytes.len() >= self.head_bytes { Err(Fault::HeadTooLarge) } else { Ok(None) }
    }

    /// What is left of the bytes that the head may take.
    #[inline]
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..self.bytes.len().min(self.head_bytes)]
    }
}

fn request_line(line: &[u8]) -> Result<(&str, &str, bool), Fault> {
    let method = method_of(line)?;
    let rest = line.get(method.len() + 1..).ok_or(Fault::BadRequest)?;
    let space = memchr::memchr(b' ', rest).ok_or(Fault::BadRequest)?;
    let (target, version) = (&rest[..space], &rest[space + 1..]);
    let http_1_0 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => false,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => return Err(Fault::BadVersion),
        _ => return Err(Fault::BadRequest),
    };
    let visible = target.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#');
    let target = std::str::from_utf8(target).ok().filter(|_| visible).ok_or(Fault::BadRequest)?;
    Ok((method, path_and_query(method, target).ok_or(Fault::BadRequest)?, http_1_0))
}

/// The method at the front of a request line, whose space need not be there yet.
#[inline]
fn method_of(line: &[u8]) -> Result<&str, Fault> {
    let length = line.iter().position(|byte| !is_token(*byte)).unwrap_or(line.len());
    let ended = length < line.len();
    if length > 32 || ended && (length == 0 || line[length] != b' ') {
        return Err(Fault::BadRequest);
    }
    std::str::from_utf8(&line[..length]).map_err(|_| Fault::BadRequest)
}

/// A proxy's form of the target (RFC 9112 section 3.2.2) loses scheme and host.
#[inline]
fn path_and_query<'a>(method: &str, target: &'a str) -> Option<&'a str> {
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Some(target);
    }
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") || rest.is_empty() || rest.starts_with(['/', '?']) {
        return None;
    }
    match rest.find(['/', '?']) {
        None => Some("/"),
        Some(at) if rest.as_bytes()[at] == b'/' => Some(&rest[at..]),
        Some(_) => None,
    }
}

impl Fields {
    fn read(&mut self, line: &[u8]) -> Result<(), Fault> {
        // A folded line begins with a blank, and a name before a blank and a colon ends with one: no token either.
        let colon = memchr::memchr(b':', line).ok_or(Fault::BadRequest)?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
            return Err(Fault::BadRequest);
        }
        if !value.iter().all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f)) {
            return Err(Fault::BadRequest);
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.hosts += 1,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for token in value.split(|byte| *byte == b',') {
                    let token = token.trim_ascii();
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                if self.length.is_some() {
                    return Err(Fault::BadLength);
                }
                self.length = Some(digits(value.trim_ascii()).ok_or(Fault::BadLength)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.transfer_encoding = true,
            _ => {}
        }
        Ok(())
    }
}

/// Digits and nothing else; a sign, a list or an overflow is no length.
#[inline]
fn digits(text: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    match text {
        [] => None,
        text => text.iter().try_fold(0u64, |sum, byte| sum.checked_mul(10)?.checked_add(digit(byte)?)),
    }
}

/// What names and methods are made of (RFC 9110 section 5.6.2).
const TOKEN: [bool; 256] = {
    let mut token = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let other = b"!#$%&'*+-.^_`|~";
        token[byte] = (byte as u8).is_ascii_alphanumeric();
        let mut i = 0;
        while i < other.len() {
            token[byte] |= other[i] as usize == byte;
            i += 1;
        }
        byte += 1;
    }
    token
};

#[inline]
fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

#[cfg(test)]
mod tests;
