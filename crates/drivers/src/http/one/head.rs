//! The head of an answer: where it ends, what follows it, and whether the connection stays open.
//!
//! Pure. A head parses the same however its bytes were split. Two contradictory headers are a fault, since either
//! choice would allow response smuggling.
//! Source: RFC 9112, sections 4 to 6 and 9.3.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::http::fault::Fault;
use crate::http::message::{HEAD_BYTES_MAX, Media};

/// More lines than this are too much header.
const HEADERS_MAX: usize = 128;
/// `HTTP/1.1 200`: a shorter part of a head is not known to be interim.
const STATUS_AT: usize = 9;
const BEGIN: &[u8] = b"HTTP/1.";

/// What a head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// its length, the empty line included; at most `HEAD_BYTES_MAX`
    pub bytes: usize,
    /// three digits
    pub status: u16,
    /// what follows
    pub body: Body,
    /// what that is
    pub media: Media,
    /// no further request can be sent
    pub closes: bool,
    /// the position of a redirect's `Location`
    pub location: Option<Range<usize>>,
    /// the position of the value of `Date`: the only difference between otherwise equal answers
    date: Range<usize>,
}

/// How an answer's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// after so many bytes; 0 where there is none
    Sized(u64),
    /// with its last chunk
    Chunked,
    /// with the connection
    UntilEnd,
}

impl Head {
    /// True when the answer is still to come (100 Continue, 103 Early Hints). 101 is an answer: what follows it is no
    /// HTTP.
    pub fn is_interim(&self) -> bool {
        is_interim(self.status)
    }
}

fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}

/// The head at the beginning of `bytes`; `None` when its end is not there yet. `is_answer_to_head`: the request was a
/// HEAD.
pub fn read(bytes: &[u8], is_answer_to_head: bool) -> Result<Option<Head>, Fault> {
    check_begin(bytes)?;
    let mut lines = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut lines,
    );
    let head_bytes = match parsed {
        Ok(httparse::Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => head_bytes,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(_) => return Err(Fault::HeadTooLarge),
        Err(error) => return Err(fault(error)),
    };
    // The library also accepts a bare line feed as a line ending; others do not, and would see other headers here.
    if bytes[..head_bytes]
        .iter()
        .zip(&bytes[1..head_bytes])
        .any(|(before, byte)| *byte == b'\n' && *before != b'\r')
    {
        return Err(Fault::Header);
    }
    let (Some(status @ 100..), Some(version)) = (response.code, response.version) else {
        return Err(Fault::StatusLine);
    };
    let said = Said::read(response.headers)?;
    let has_none = is_answer_to_head || status < 200 || status == 204 || status == 304;
    let body = match (said.transfer, said.length) {
        (Transfer::Chunked | Transfer::Other, Some(_)) => return Err(Fault::Header),
        _ if has_none => Body::Sized(0),
        (Transfer::None, Some(length)) => Body::Sized(length),
        (Transfer::Chunked, None) => Body::Chunked,
        (Transfer::None | Transfer::Other, None) => Body::UntilEnd,
    };
    // An empty location leads nowhere.
    let location = said.location.filter(|location| (300..400).contains(&status) && !location.is_empty());
    // A redirect that cannot be followed is not an answer without one.
    if location.is_some_and(|location| std::str::from_utf8(location).is_err()) {
        return Err(Fault::Header);
    }
    let ends_with_it = body == Body::UntilEnd || status == 101;
    let keeps = version > 0 || (said.keep_alive && said.transfer == Transfer::None);
    let within = |value: &[u8]| {
        let from = value.as_ptr() as usize - bytes.as_ptr() as usize;
        from..from + value.len()
    };
    Ok(Some(Head {
        bytes: head_bytes,
        status,
        body,
        media: Media::of(said.content_type),
        closes: said.close || !keeps || ends_with_it,
        location: location.map(within),
        date: said.date.map_or(0..0, within),
    }))
}

/// True when these first bytes of an incomplete head are known to announce another one.
pub fn begins_interim(bytes: &[u8]) -> bool {
    bytes.get(STATUS_AT) == Some(&b'1') && bytes.get(STATUS_AT + 1..STATUS_AT + 3) != Some(b"01")
}

fn check_begin(bytes: &[u8]) -> Result<(), Fault> {
    let differs = bytes.iter().zip(BEGIN).position(|(byte, expected)| byte != expected);
    match differs {
        None => Ok(()),
        Some(at) if at < b"HTTP/".len() => Err(Fault::NotHttp),
        Some(_) => Err(Fault::StatusLine),
    }
}

fn fault(error: httparse::Error) -> Fault {
    match error {
        httparse::Error::Version | httparse::Error::Status => Fault::StatusLine,
        httparse::Error::TooManyHeaders => Fault::HeadTooLarge,
        _ => Fault::Header,
    }
}

/// The headers that frame an answer.
#[derive(Default)]
struct Said<'b> {
    length: Option<u64>,
    transfer: Transfer,
    close: bool,
    keep_alive: bool,
    location: Option<&'b [u8]>,
    content_type: Option<&'b [u8]>,
    date: Option<&'b [u8]>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Transfer {
    #[default]
    None,
    /// the last coding is `chunked`
    Chunked,
    /// codings none of which says where it ends
    Other,
}

impl<'b> Said<'b> {
    fn read(lines: &[httparse::Header<'b>]) -> Result<Self, Fault> {
        let mut said = Said::default();
        for line in lines {
            // The length distinguishes most names, without comparing them.
            match line.name.len() {
                4 if line.name.eq_ignore_ascii_case("date") => said.date = Some(line.value),
                8 if line.name.eq_ignore_ascii_case("location") => said.location = Some(line.value),
                10 if line.name.eq_ignore_ascii_case("connection") => {
                    for word in words(line.value) {
                        said.close |= word.eq_ignore_ascii_case(b"close");
                        said.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                12 if line.name.eq_ignore_ascii_case("content-type") => said.content_type = Some(line.value),
                14 if line.name.eq_ignore_ascii_case("content-length") => said.add_length(line.value)?,
                17 if line.name.eq_ignore_ascii_case("transfer-encoding") => {
                    for word in words(line.value).filter(|word| !word.is_empty()) {
                        if said.transfer == Transfer::Chunked {
                            return Err(Fault::Header);
                        }
                        let is_chunked = word.eq_ignore_ascii_case(b"chunked");
                        said.transfer = if is_chunked { Transfer::Chunked } else { Transfer::Other };
                    }
                }
                _ => {}
            }
        }
        Ok(said)
    }

    /// A length may be said twice, but not two lengths.
    fn add_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        for word in words(value) {
            if word.is_empty() {
                return Err(Fault::Header);
            }
            let length = word.iter().try_fold(0u64, |length, digit| {
                let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
                length.checked_mul(10)?.checked_add(digit)
            });
            let length = length.ok_or(Fault::Header)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(Fault::Header);
            }
            self.length = Some(length);
        }
        Ok(())
    }
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// The last head that was read, so that one that is the same but for its date need not be read again.
///
/// Correct because `read` is pure and looks at the date's place only: the bytes before and behind it are compared, and
/// a date of printable characters cannot end its line. Blanks at either end of it are left to `read`, which trims them.
#[derive(Debug, Default)]
pub struct Memo {
    bytes: Vec<u8>,
    head: Option<Head>,
    /// a request that is answered but once is not worth the memory
    has_answered: bool,
}

/// Longer heads are read each time.
const MEMO_BYTES_MAX: usize = 1024;

impl Memo {
    /// The head at the beginning of `bytes`, if it is the remembered one.
    #[inline]
    pub fn recall(&self, bytes: &[u8]) -> Option<&Head> {
        let head = self.head.as_ref()?;
        let Range { start, end } = head.date;
        let same = bytes.len() >= head.bytes
            && bytes[..start] == self.bytes[..start]
            && bytes[end..head.bytes] == self.bytes[end..]
            && bytes[start..end].iter().all(|byte| (0x20..0x7F).contains(byte))
            && bytes[start..end].trim_ascii().len() == end - start;
        same.then_some(head)
    }

    /// Remembers a head that `read` found at the beginning of `bytes`.
    pub fn keep(&mut self, bytes: &[u8], head: &Head) {
        if std::mem::replace(&mut self.has_answered, true) && head.bytes <= MEMO_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(&bytes[..head.bytes]);
            self.head = Some(head.clone());
        }
    }
}

#[cfg(test)]
mod tests;
