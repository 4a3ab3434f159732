//! RESP2, the protocol of Redis and Valkey: commands out, replies in.
//!
//! A reply is read in place, once all of it is there; until then, the scan resumes where it stopped, so that a large
//! reply in small pieces costs no more than one that comes at once.
//! Only the reply types of the service's commands are read: a scalar, or a list of scalars. Anything else, and any
//! length beyond the limits, is `Broken`, before memory is allocated for it: the start of the next reply is unknown
//! then, so the connection has to end.
//! Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

use servers_shared::http::response::decimal;

/// Bytes of one reply at most.
pub(super) const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a line at most: numbers are short, and errors are sentences.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// The fewest bytes of an item of a list (`:1\r\n`).
const ITEM_BYTES_MIN: usize = 4;

/// The bytes are no reply to anything this service requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it sent what is not a reply to these commands")]
pub(super) struct Broken;

/// Appends commands as lists of strings.
pub(super) struct Command<'a> {
    out: &'a mut Vec<u8>,
}

impl Command<'_> {
    /// Begins a command of so many words, its name included. As many `word`s must follow.
    pub(super) fn begin(out: &mut Vec<u8>, words: usize) -> Command<'_> {
        put_head(out, b'*', words);
        Command { out }
    }

    pub(super) fn word(&mut self, word: &[u8]) -> &mut Self {
        self.word_of(&[word])
    }

    /// One word, in pieces.
    pub(super) fn word_of(&mut self, pieces: &[&[u8]]) -> &mut Self {
        put_head(self.out, b'$', pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| self.out.extend_from_slice(piece));
        self.out.extend_from_slice(b"\r\n");
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.word(decimal(number, &mut [0; 20]))
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(decimal(count as u64, &mut [0; 20]));
    out.extend_from_slice(b"\r\n");
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    Nothing,
    Number(i64),
    Text(&'a [u8]),
    /// The command failed; a word in capitals says how.
    Error(&'a [u8]),
}

/// A whole reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    One(Scalar<'a>),
    List(Items<'a>),
}

/// The items of a list. They were scanned, so reading them cannot fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Items<'a> {
    left: usize,
    bytes: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Scalar<'a>;

    fn next(&mut self) -> Option<Scalar<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (scalar, bytes) = read_scalar(self.bytes)?;
        self.bytes = &self.bytes[bytes..];
        Some(scalar)
    }
}

/// How far the reply at the front of the input was scanned.
#[derive(Debug, Default)]
pub(super) struct Scan {
    at: usize,
    /// Items of the list that were not scanned yet.
    left: usize,
    is_list: bool,
}

impl Scan {
    /// The bytes of the reply at the front of `input`; None while it is not whole.
    ///
    /// `input` must begin where it did in the calls before, until one has returned a length.
    pub(super) fn whole(&mut self, input: &[u8]) -> Result<Option<usize>, Broken> {
        if self.at == 0 && input.first() == Some(&b'*') {
            let Some((line, bytes)) = line_of(input)? else { return Ok(None) };
            // A null list (-1) is a separate scalar, which no command here has as its reply.
            self.left = length_of(line, REPLY_BYTES_MAX / ITEM_BYTES_MIN)?.ok_or(Broken)?;
            self.is_list = true;
            self.at = bytes;
        }
        if !self.is_list {
            self.left = 1;
        }
        while self.left > 0 {
            let Some(bytes) = scalar_bytes(&input[self.at..])? else {
                // Do not wait for the rest if there is too much already.
                return if input.len() > REPLY_BYTES_MAX { Err(Broken) } else { Ok(None) };
            };
            self.at += bytes;
            self.left -= 1;
            if self.at > REPLY_BYTES_MAX {
                return Err(Broken);
            }
        }
        let bytes = std::mem::take(self).at;
        Ok(Some(bytes))
    }
}

/// The reply that `bytes` are, which were scanned.
pub(super) fn read(bytes: &[u8]) -> Reply<'_> {
    if bytes.first() == Some(&b'*')
        && let Ok(Some((line, head))) = line_of(bytes)
        && let Ok(Some(left)) = length_of(line, usize::MAX)
    {
        return Reply::List(Items { left, bytes: &bytes[head..] });
    }
    Reply::One(read_scalar(bytes).map_or(Scalar::Nothing, |(scalar, _)| scalar))
}

/// The line at the front, without its kind and its end, and how many bytes it takes with them.
fn line_of(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Broken> {
    let seen = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\r', seen) else {
        return if bytes.len() >= LINE_BYTES_MAX { Err(Broken) } else { Ok(None) };
    };
    match bytes.get(end + 1) {
        None => Ok(None),
        Some(b'\n') if end > 0 => Ok(Some((&bytes[1..end], end + 2))),
        Some(_) => Err(Broken),
    }
}

/// A length, None for -1.
fn length_of(line: &[u8], most: usize) -> Result<Option<usize>, Broken> {
    match number_of(line)? {
        -1 => Ok(None),
        number => usize::try_from(number).ok().filter(|length| *length <= most).map(Some).ok_or(Broken),
    }
}

fn number_of(line: &[u8]) -> Result<i64, Broken> {
    // The protocol has no plus sign.
    let text = std::str::from_utf8(line).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| text.parse().ok()).ok_or(Broken)
}

/// The bytes of the scalar at the front; None while it is not whole.
fn scalar_bytes(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some(kind) = bytes.first() else { return Ok(None) };
    if !matches!(kind, b'+' | b'-' | b':' | b'$') {
        return Err(Broken);
    }
    let Some((line, head)) = line_of(bytes)? else { return Ok(None) };
    match kind {
        b':' => number_of(line).map(|_| Some(head)),
        b'$' => {
            let Some(length) = length_of(line, REPLY_BYTES_MAX)? else { return Ok(Some(head)) };
            let end = head + length;
            match bytes.get(end..end + 2) {
                None => Ok(None),
                Some(b"\r\n") => Ok(Some(end + 2)),
                Some(_) => Err(Broken),
            }
        }
        _ => Ok(Some(head)),
    }
}

/// The scalar at the front and its bytes; None for bytes that were not scanned.
fn read_scalar(bytes: &[u8]) -> Option<(Scalar<'_>, usize)> {
    let whole = scalar_bytes(bytes).ok()??;
    let (line, head) = line_of(bytes).ok()??;
    let scalar = match bytes[0] {
        b'+' => Scalar::Text(line),
        b'-' => Scalar::Error(line),
        b':' => Scalar::Number(number_of(line).ok()?),
        _ if whole == head => Scalar::Nothing,
        _ => Scalar::Text(&bytes[head..whole - 2]),
    };
    Some((scalar, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scanned(bytes: &[u8]) -> Result<Option<usize>, Broken> {
        Scan::default().whole(bytes)
    }

    #[test]
    fn replies_are_read_as_the_protocol_says() {
        let check = |text: &str, expected: Scalar<'_>| {
            assert_eq!(scanned(text.as_bytes()), Ok(Some(text.len())), "{text:?}");
            assert_eq!(read(text.as_bytes()), Reply::One(expected));
        };
        check("+PONG\r\n", Scalar::Text(b"PONG"));
        check("-ERR no such thing\r\n", Scalar::Error(b"ERR no such thing"));
        check(":-42\r\n", Scalar::Number(-42));
        check("$-1\r\n", Scalar::Nothing);
        check("$0\r\n\r\n", Scalar::Text(b""));
        check("$6\r\na\r\nb\r\n\r\n", Scalar::Text(b"a\r\nb\r\n"));
        let list = b"*4\r\n:1\r\n$2\r\nab\r\n$-1\r\n-ERR x\r\n:9\r\n";
        assert_eq!(scanned(list), Ok(Some(list.len() - 4)), "the next reply is not taken");
        let Reply::List(items) = read(&list[..list.len() - 4]) else { panic!("a list") };
        let expected = [Scalar::Number(1), Scalar::Text(b"ab"), Scalar::Nothing, Scalar::Error(b"ERR x")];
        assert_eq!(items.collect::<Vec<_>>(), expected);
        assert_eq!(read(b"*0\r\n"), Reply::List(Items { left: 0, bytes: b"" }));
    }

    #[test]
    fn lengths_beyond_the_limits_and_what_is_no_reply_are_refused_before_anything_is_stored() {
        let endless_line = format!("+{}", "x".repeat(LINE_BYTES_MAX));
        for text in [
            "$999999999999\r\n",
            "$16777217\r\n",
            "$-2\r\n",
            "*999999999\r\n",
            "*-1\r\n",
            "*1\r\n*1\r\n:1\r\n",
            "$3\r\nabcd\r\n",
            ":\r\n",
            ":1.5\r\n",
            ":+1\r\n",
            "%1\r\n",
            "HTTP/1.1 200 OK\r\n",
            "\r\n",
            "+half\rline\r\n",
            &endless_line,
        ] {
            assert_eq!(scanned(text.as_bytes()), Err(Broken), "{text:?}");
        }
    }

    #[test]
    fn a_list_of_many_small_items_ends_at_the_limit_of_bytes() {
        let mut bytes = b"*4000000\r\n".to_vec();
        bytes.extend(b":12345678901\r\n".repeat(REPLY_BYTES_MAX / 14 + 1));
        assert_eq!(scanned(&bytes), Err(Broken));
    }

    #[derive(Clone, Debug)]
    enum Planted {
        Nothing,
        Number(i64),
        Text(Vec<u8>),
        Line(String),
        Error(String),
    }

    impl Planted {
        fn put(&self, out: &mut Vec<u8>) {
            match self {
                Planted::Nothing => out.extend(b"$-1\r\n"),
                Planted::Number(number) => out.extend(format!(":{number}\r\n").bytes()),
                Planted::Text(text) => {
                    out.extend(format!("${}\r\n", text.len()).bytes());
                    out.extend(text);
                    out.extend(b"\r\n");
                }
                Planted::Line(text) => out.extend(format!("+{text}\r\n").bytes()),
                Planted::Error(text) => out.extend(format!("-{text}\r\n").bytes()),
            }
        }

        fn is(&self, read: Scalar<'_>) -> bool {
            match self {
                Planted::Nothing => read == Scalar::Nothing,
                Planted::Number(number) => read == Scalar::Number(*number),
                Planted::Text(text) => read == Scalar::Text(text),
                Planted::Line(text) => read == Scalar::Text(text.as_bytes()),
                Planted::Error(text) => read == Scalar::Error(text.as_bytes()),
            }
        }
    }

    fn planted() -> impl Strategy<Value = Planted> {
        prop_oneof![
            Just(Planted::Nothing),
            any::<i64>().prop_map(Planted::Number),
            prop::collection::vec(any::<u8>(), 0..40).prop_map(Planted::Text),
            "[ -~]{0,20}".prop_map(Planted::Line),
            "[ -~]{0,20}".prop_map(Planted::Error),
        ]
    }

    proptest! {
        #[test]
        fn any_replies_are_read_back_however_they_are_cut(
            replies in prop::collection::vec((any::<bool>(), prop::collection::vec(planted(), 1..6)), 1..6),
            cuts in prop::collection::vec(1..30_usize, 1..20),
        ) {
            let mut bytes = Vec::new();
            for (is_list, items) in &replies {
                if *is_list {
                    put_head(&mut bytes, b'*', items.len());
                    items.iter().for_each(|item| item.put(&mut bytes));
                } else {
                    items[0].put(&mut bytes);
                }
            }
            let (mut scan, mut input, mut cuts) = (Scan::default(), Vec::new(), cuts.iter().cycle());
            let mut wanted = replies.iter();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                rest = behind;
                input.extend_from_slice(piece);
                while let Some(length) = scan.whole(&input).unwrap() {
                    let (is_list, items) = wanted.next().unwrap();
                    match read(&input[..length]) {
                        Reply::One(scalar) => prop_assert!(!is_list && items[0].is(scalar)),
                        Reply::List(list) => {
                            let read: Vec<_> = list.collect();
                            prop_assert!(*is_list && read.len() == items.len());
                            prop_assert!(items.iter().zip(read).all(|(item, read)| item.is(read)));
                        }
                    }
                    input.drain(..length);
                }
            }
            prop_assert!(wanted.next().is_none() && input.is_empty());
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some(length)) = scanned(&bytes) {
                prop_assert!(length <= bytes.len());
                if let Reply::List(items) = read(&bytes[..length]) {
                    items.for_each(drop);
                }
            }
        }

        #[test]
        fn the_verdict_does_not_depend_on_the_cuts(text in "[*$:+-]?[-0-9]{0,3}(\r\n)?[*$:+-]?[a-z0-9\r\n]{0,12}") {
            let bytes = text.as_bytes();
            let mut scan = Scan::default();
            let mut by_pieces = Ok(None);
            for end in 1..=bytes.len() {
                by_pieces = scan.whole(&bytes[..end]);
                if by_pieces != Ok(None) {
                    break;
                }
            }
            prop_assert_eq!(by_pieces, scanned(bytes));
        }
    }
}
