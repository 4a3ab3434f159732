//! Redis's protocol, RESP 2: commands out, replies in. Pure.
//!
//! Only the replies of single commands on strings: no arrays, which none of our commands returns.
//! Lengths are checked before they enter any calculation.
//! Source: redis.io, "Redis serialization protocol specification", RESP2.

/// No string may be longer; the longest value of a plan is half of it.
pub const BULK_BYTES_MAX: usize = 32 << 20;
const LINE_BYTES_MAX: usize = 64 << 10;

/// One reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resp<'a> {
    /// `+OK`
    Simple(&'a [u8]),
    /// `-ERR …`
    Error(&'a [u8]),
    /// `:12`
    Number(i64),
    /// a string of bytes, or none
    Bulk(Option<&'a [u8]>),
}

/// A server that does not speak RESP, or says what we never ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak Redis's protocol: {0}")]
pub struct Broken(pub &'static str);

/// The position of a whole reply in the bytes that it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    shape: Shape,
    from: usize,
    to: usize,
    /// bytes of all of it
    pub reply_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Simple,
    Error,
    Number(i64),
    Bulk,
    NoBulk,
}

impl Place {
    /// The reply; `bytes` begin where they began when it was found.
    pub fn of(self, bytes: &[u8]) -> Resp<'_> {
        let text = &bytes[self.from..self.to];
        match self.shape {
            Shape::Simple => Resp::Simple(text),
            Shape::Error => Resp::Error(text),
            Shape::Number(number) => Resp::Number(number),
            Shape::Bulk => Resp::Bulk(Some(text)),
            Shape::NoBulk => Resp::Bulk(None),
        }
    }
}

/// Appends a command.
pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_number(out, b'*', words.len());
    words.iter().for_each(|word| put_bulk(out, word));
}

/// Appends one word of a command.
pub fn put_bulk(out: &mut Vec<u8>, word: &[u8]) {
    put_number(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn put_number(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    put_digits(out, number as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number as a word of a command.
pub fn put_number_word(out: &mut Vec<u8>, number: u64) {
    put_number(out, b'$', number.checked_ilog10().unwrap_or(0) as usize + 1);
    put_digits(out, number);
    out.extend_from_slice(b"\r\n");
}

fn put_digits(out: &mut Vec<u8>, number: u64) {
    let begin = out.len();
    let mut rest = number;
    loop {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out[begin..].reverse();
}

/// The first reply in `bytes` and its length; `None` while it is incomplete.
pub fn reply(bytes: &[u8]) -> Result<Option<(Resp<'_>, usize)>, Broken> {
    Ok(front(bytes)?.map(|place| (place.of(bytes), place.reply_bytes)))
}

/// The position of the first reply in `bytes`; `None` while it is incomplete.
pub fn front(bytes: &[u8]) -> Result<Option<Place>, Broken> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    if !b"+-:$".contains(&kind) {
        return Err(Broken("a reply of a kind that was never asked for"));
    }
    let Some(end) = line_end(bytes) else {
        return if bytes.len() > LINE_BYTES_MAX { Err(Broken("a line without an end")) } else { Ok(None) };
    };
    let next = end + 2;
    let line = |shape| Ok(Some(Place { shape, from: 1, to: end, reply_bytes: next }));
    match kind {
        b'+' => line(Shape::Simple),
        b'-' => line(Shape::Error),
        b':' => line(Shape::Number(number(&bytes[1..end])?)),
        _ => {
            let length = number(&bytes[1..end])?;
            if length == -1 {
                return line(Shape::NoBulk);
            }
            let length = usize::try_from(length).ok().filter(|length| *length <= BULK_BYTES_MAX);
            let length = length.ok_or(Broken("a length beyond 32 MB"))?;
            let to = next + length;
            match bytes.get(to..to + 2) {
                None => Ok(None),
                Some(b"\r\n") => Ok(Some(Place { shape: Shape::Bulk, from: next, to, reply_bytes: to + 2 })),
                Some(_) => Err(Broken("a string that is longer than it says")),
            }
        }
    }
}

/// How many more bytes an incomplete reply certainly needs, so that room is made once.
pub fn missing(bytes: &[u8]) -> usize {
    let length = || {
        let end = line_end(bytes)?;
        let length = usize::try_from(number(bytes.get(1..end)?).ok()?).ok()?;
        (bytes[0] == b'$' && length <= BULK_BYTES_MAX)
            .then(|| (end + 2 + length + 2).saturating_sub(bytes.len()))
    };
    length().unwrap_or(0)
}

fn number(digits: &[u8]) -> Result<i64, Broken> {
    let text = std::str::from_utf8(digits).ok();
    text.and_then(|text| text.parse().ok()).ok_or(Broken("a number that is none"))
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b'\r', &bytes[..bytes.len().min(LINE_BYTES_MAX)])?;
    (bytes.get(end + 1)? == &b'\n').then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn replies_are_read_one_after_the_other_wherever_they_are_cut() {
        let stream = b"+OK\r\n$3\r\nabc\r\n$-1\r\n:42\r\n-ERR no\r\n$0\r\n\r\n";
        let expected = [
            Resp::Simple(b"OK"),
            Resp::Bulk(Some(b"abc")),
            Resp::Bulk(None),
            Resp::Number(42),
            Resp::Error(b"ERR no"),
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
        check(b"*1\r\n");
        check(&[b'+'; LINE_BYTES_MAX + 1]);
    }

    #[test]
    fn a_command_is_its_words_with_their_lengths() {
        let mut out = Vec::new();
        command(&mut out, &[b"SET", b"k", &[b'x'; 1203]]);
        assert!(out.starts_with(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1203\r\nxxx"));
        assert!(out.ends_with(b"x\r\n"));
        for number in [0, 9, 10, 1234, 86_400_000] {
            let (mut word, mut text) = (Vec::new(), Vec::new());
            put_number_word(&mut word, number);
            put_bulk(&mut text, number.to_string().as_bytes());
            assert_eq!(word, text);
        }
        out.clear();
        command(&mut out, &[b""]);
        assert_eq!(out, b"*1\r\n$0\r\n\r\n");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
            if let Ok(Some((_, length))) = reply(&bytes) {
                prop_assert!(length <= bytes.len() && length > 0);
            }
            missing(&bytes);
        }

        #[test]
        fn bytes_that_look_like_replies_are_read_without_a_panic(text in "[$:+-][0-9-]{0,12}\r?\n?[a-z\r\n]{0,20}") {
            if let Ok(Some((_, length))) = reply(text.as_bytes()) {
                prop_assert!(length <= text.len() && length > 0);
            }
            missing(text.as_bytes());
        }

        #[test]
        fn a_word_is_read_back_as_it_was_written(word in vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            put_bulk(&mut out, &word);
            prop_assert_eq!(reply(&out), Ok(Some((Resp::Bulk(Some(&word)), out.len()))));
        }
    }
}
