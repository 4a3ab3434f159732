//! Redis's protocol, RESP 2: commands out, replies in. No sockets.

use std::io::Write as _;

/// One reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resp<'a> {
    /// +OK
    Simple(&'a str),
    /// -ERR …
    Error(&'a str),
    /// :12
    Number(i64),
    /// a string of bytes, or none
    Bulk(Option<&'a [u8]>),
}

/// A server that does not speak RESP, or says what we never asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken(pub String);

/// The longest value of a plan is 16 MB.
const LONGEST_BULK: usize = 32 << 20;
const LONGEST_LINE: usize = 64 << 10;

/// Appends a command.
pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    // Writing to memory cannot fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// The first reply in `bytes` and its length; `None` while it is incomplete.
pub(super) fn reply(bytes: &[u8]) -> Result<Option<(Resp<'_>, usize)>, Broken> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    let Some(end) = line_end(bytes) else {
        return if bytes.len() > LONGEST_LINE {
            Err(broken(bytes, "a line without an end"))
        } else {
            Ok(None)
        };
    };
    let line = std::str::from_utf8(&bytes[1..end]).map_err(|_| broken(bytes, "a line that is no text"))?;
    let next = end + 2;
    let number = || line.parse::<i64>().map_err(|_| broken(bytes, "a number that is none"));
    match kind {
        b'+' => Ok(Some((Resp::Simple(line), next))),
        b'-' => Ok(Some((Resp::Error(line), next))),
        b':' => Ok(Some((Resp::Number(number()?), next))),
        b'$' => {
            let length = number()?;
            if length == -1 {
                return Ok(Some((Resp::Bulk(None), next)));
            }
            let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST_BULK);
            let length = length.ok_or_else(|| broken(bytes, "a length beyond 32 MB"))?;
            let Some(rest) = bytes.get(next..next + length + 2) else { return Ok(None) };
            if &rest[length..] != b"\r\n" {
                return Err(broken(bytes, "a string that is longer than it says"));
            }
            Ok(Some((Resp::Bulk(Some(&rest[..length])), next + length + 2)))
        }
        _ => Err(broken(bytes, "something else")),
    }
}

/// How many more bytes an incomplete reply certainly needs, so that room is made once.
pub(super) fn missing(bytes: &[u8]) -> usize {
    let length = || {
        let end = line_end(bytes)?;
        let length: usize = std::str::from_utf8(bytes.get(1..end)?).ok()?.parse().ok()?;
        (bytes[0] == b'$' && length <= LONGEST_BULK)
            .then(|| (end + 2 + length + 2).saturating_sub(bytes.len()))
    };
    length().unwrap_or(0)
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b'\r', &bytes[..bytes.len().min(LONGEST_LINE)])?;
    (bytes.get(end + 1)? == &b'\n').then_some(end)
}

fn broken(bytes: &[u8], what: &str) -> Broken {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    Broken(format!("the server does not speak Redis's protocol: {what}: {begin:?}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn replies_are_read_one_after_the_other_wherever_they_are_cut() {
        let stream = b"+OK\r\n$3\r\nabc\r\n$-1\r\n:42\r\n-ERR no\r\n$0\r\n\r\n";
        let expected = [
            Resp::Simple("OK"),
            Resp::Bulk(Some(b"abc")),
            Resp::Bulk(None),
            Resp::Number(42),
            Resp::Error("ERR no"),
            Resp::Bulk(Some(b"")),
        ];
        let mut at = 0;
        for each in &expected {
            let (found, length) = reply(&stream[at..]).unwrap().unwrap();
            assert_eq!(found, *each);
            for cut in at..at + length {
                assert_eq!(reply(&stream[at..cut]), Ok(None), "cut at {cut}");
                assert!(missing(&stream[at..cut]) <= at + length - cut);
            }
            at += length;
        }
        assert_eq!(at, stream.len());
    }

    #[test]
    fn what_is_not_redis_is_told_by_its_first_bytes() {
        let check = |bytes: &[u8]| assert!(reply(bytes).is_err(), "{bytes:?}");
        check(b"HTTP/1.1 400 Bad Request\r\n");
        check(b"$99999999999\r\n");
        check(b"$-2\r\n");
        check(b":x\r\n");
        check(b"$1\r\nabc");
        check(&[b'+'; LONGEST_LINE + 1]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some((_, length))) = reply(&bytes) {
                prop_assert!(length <= bytes.len() && length > 0);
            }
            missing(&bytes);
        }
    }
}
