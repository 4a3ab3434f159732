//! Parses clients' commands: an array of strings, or a line of words. Pure, and the same however the bytes were split.
//!
//! A command's words are offsets into the input, so that none is copied. The state of an incomplete command is kept, so
//! that a long one is not parsed from its beginning with each piece. Counts and lengths are checked before they enter
//! any calculation, and no memory is allocated for data that is only announced.
//! Source: redis.io, "Redis serialization protocol specification".

/// Words of one command; the limit of Redis before 7.
const WORDS_MAX: i64 = 1024 * 1024;
/// The longest word.
pub(super) const WORD_BYTES_MAX: usize = 64 << 20;
/// The longest command, all its words together.
const COMMAND_BYTES_MAX: usize = 128 << 20;
/// The longest line of words; the limit of Redis.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Digits, with a sign, of a count or length.
const DIGITS_MAX: usize = 18;
/// Places of words that an idle connection keeps memory for.
const KEPT_WORDS_MAX: usize = 64;

/// A client that does not speak the protocol: the text after `Protocol error: `, which is that of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Plainly(&'static str),
    /// Another character where a string begins.
    NoString(u8),
    /// What a browser would send that was made to speak to this port.
    Http,
}

/// What is known of the command at the beginning of the bytes.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// Words found so far: from and to.
    words: Vec<(u32, u32)>,
    /// Words of an array that are still to come.
    left: u32,
    /// Where the next word begins; 0: nothing is known yet.
    at: usize,
    /// The command is not whole with fewer bytes.
    needed: usize,
    /// The words of a line, without quotes.
    line: Vec<u8>,
}

/// The words of a whole command.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    source: &'a [u8],
    places: &'a [(u32, u32)],
}

impl<'a> Words<'a> {
    pub(super) fn len(self) -> usize {
        self.places.len()
    }

    /// The n-th word, an empty one after the last.
    pub(super) fn at(self, n: usize) -> &'a [u8] {
        self.places.get(n).map_or(&[], |(from, to)| &self.source[*from as usize..*to as usize])
    }

    pub(super) fn from(self, n: usize) -> impl Iterator<Item = &'a [u8]> {
        (n..self.len()).map(move |at| self.at(at))
    }
}

impl Parser {
    /// How many bytes the command at the beginning of `bytes` has; None while it is incomplete. The bytes may have grown
    /// since the last call, and not changed. Behind a whole command comes `next`.
    pub(super) fn front(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        if bytes.len() < self.needed {
            return Ok(None);
        }
        if self.at == 0 {
            match bytes.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.line(bytes),
            }
            let invalid = Broken::Plainly("invalid multibulk length");
            let Some((count, at)) = number(bytes, 1).map_err(|()| invalid.clone())? else { return Ok(None) };
            if count > WORDS_MAX {
                return Err(invalid);
            }
            self.at = at;
            // As in Redis, an array of zero or negative length is ignored.
            self.left = count.max(0) as u32;
        }
        while self.left > 0 {
            match bytes.get(self.at) {
                None => return self.awaits(bytes.len() + 1),
                Some(b'$') => {}
                Some(other) => return Err(Broken::NoString(*other)),
            }
            let invalid = Broken::Plainly("invalid bulk length");
            let Some((length, from)) = number(bytes, self.at + 1).map_err(|()| invalid.clone())? else {
                return self.awaits(bytes.len() + 1);
            };
            let length = usize::try_from(length).ok().filter(|length| *length <= WORD_BYTES_MAX);
            let to = from + length.ok_or(invalid)?;
            if to > COMMAND_BYTES_MAX {
                return Err(Broken::Plainly("too big a command"));
            }
            if bytes.len() < to + 2 {
                return self.awaits(to + 2);
            }
            if &bytes[to..to + 2] != b"\r\n" {
                return Err(Broken::Plainly("a bulk string does not end where it says"));
            }
            self.words.push((from as u32, to as u32));
            self.at = to + 2;
            self.left -= 1;
        }
        Ok(Some(self.at))
    }

    fn awaits(&mut self, needed: usize) -> Result<Option<usize>, Broken> {
        self.needed = needed;
        Ok(None)
    }

    /// How many bytes the command must have to be read any further.
    pub(super) fn needed(&self) -> usize {
        self.needed
    }

    /// Memory that it holds for the command at the beginning.
    pub(super) fn kept_bytes(&self) -> usize {
        self.words.capacity() * size_of::<(u32, u32)>() + self.line.capacity()
    }

    /// The words of the command that is whole.
    pub(super) fn words<'a>(&'a self, bytes: &'a [u8]) -> Words<'a> {
        let source = if self.line.is_empty() { bytes } else { &self.line };
        Words { source, places: &self.words }
    }

    /// The command was executed.
    pub(super) fn next(&mut self) {
        (self.left, self.at, self.needed) = (0, 0, 0);
        self.words.clear();
        self.line.clear();
        if self.words.capacity() > KEPT_WORDS_MAX {
            self.words = Vec::new();
        }
        if self.line.capacity() > 0 {
            self.line = Vec::new();
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let too_big = Broken::Plainly("too big inline request");
        let Some(end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_BYTES_MAX)]) else {
            return if bytes.len() >= LINE_BYTES_MAX { Err(too_big) } else { self.awaits(bytes.len() + 1) };
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        self.split(line).ok_or(Broken::Plainly("unbalanced quotes in request"))?;
        let first = self.words(bytes).at(0);
        if first.eq_ignore_ascii_case(b"POST") || first.eq_ignore_ascii_case(b"Host:") {
            return Err(Broken::Http);
        }
        Ok(Some(end + 1))
    }

    /// Splits a line at its spaces; quotes hold words together. None: a quote that is not closed, or that more text
    /// follows.
    fn split(&mut self, line: &[u8]) -> Option<()> {
        let mut rest = line;
        loop {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                return Some(());
            }
            let from = self.line.len();
            rest = match rest[0] {
                quote @ (b'"' | b'\'') => self.quoted(&rest[1..], quote)?,
                _ => self.plain(rest)?,
            };
            self.words.push((from as u32, self.line.len() as u32));
        }
    }

    /// Quotes may also begin within a word.
    fn plain<'b>(&mut self, mut rest: &'b [u8]) -> Option<&'b [u8]> {
        loop {
            match rest.first() {
                None => return Some(rest),
                Some(byte) if byte.is_ascii_whitespace() => return Some(rest),
                Some(quote @ (b'"' | b'\'')) => return self.quoted(&rest[1..], *quote),
                Some(byte) => {
                    self.line.push(*byte);
                    rest = &rest[1..];
                }
            }
        }
    }

    fn quoted<'b>(&mut self, mut rest: &'b [u8], quote: u8) -> Option<&'b [u8]> {
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            match (byte, quote) {
                (byte, quote) if *byte == quote => break,
                (b'\\', b'"') => {
                    let (escaped, behind) = rest.split_first()?;
                    rest = behind;
                    let hexadecimal = rest
                        .get(..2)
                        .filter(|_| *escaped == b'x')
                        .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
                    if hexadecimal.is_some() {
                        rest = &rest[2..];
                    }
                    self.line.push(hexadecimal.unwrap_or(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 8,
                        b'a' => 7,
                        other => *other,
                    }));
                }
                (b'\\', _) if rest.first() == Some(&b'\'') => {
                    self.line.push(b'\'');
                    rest = &rest[1..];
                }
                (byte, _) => self.line.push(*byte),
            }
        }
        rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
    }
}

/// A number and the position after the end of its line; None while that is incomplete.
fn number(bytes: &[u8], from: usize) -> Result<Option<(i64, usize)>, ()> {
    let (mut value, mut at) = (0i64, from);
    let is_negative = bytes.get(at) == Some(&b'-');
    at += usize::from(is_negative);
    let first = at;
    loop {
        match bytes.get(at) {
            None => return Ok(None),
            Some(digit @ b'0'..=b'9') if at - first < DIGITS_MAX => {
                value = value * 10 + i64::from(digit - b'0')
            }
            Some(b'\r') if at > first => break,
            Some(_) => return Err(()),
        }
        at += 1;
    }
    match bytes.get(at + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some((if is_negative { -value } else { value }, at + 2))),
        Some(_) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Told = (Vec<Vec<Vec<u8>>>, Option<Broken>);

    /// All commands of bytes that come in pieces which end at `cuts`.
    fn told(bytes: &[u8], cuts: &[usize]) -> Told {
        let mut edges: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        edges.push(bytes.len());
        edges.sort_unstable();
        let (mut parser, mut begin, mut all) = (Parser::default(), 0, Vec::new());
        for edge in edges {
            loop {
                match parser.front(&bytes[begin..edge]) {
                    Ok(None) => break,
                    Err(broken) => return (all, Some(broken)),
                    Ok(Some(length)) => {
                        let words = parser.words(&bytes[begin..edge]).from(0).map(<[u8]>::to_vec);
                        all.push(words.collect());
                        parser.next();
                        begin += length;
                    }
                }
            }
        }
        (all, None)
    }

    #[track_caller]
    fn check(bytes: &str, expected: &[&[&str]]) {
        let expected: Vec<Vec<Vec<u8>>> = expected
            .iter()
            .map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect())
            .collect();
        assert_eq!(told(bytes.as_bytes(), &[]), (expected, None), "{bytes:?}");
    }

    #[track_caller]
    fn check_broken(bytes: &str, broken: Broken) {
        assert_eq!(told(bytes.as_bytes(), &[]).1, Some(broken), "{bytes:?}");
    }

    #[test]
    fn arrays_and_lines_are_commands_and_may_follow_each_other() {
        check(
            "*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\nPING\r\n*1\r\n$0\r\n\r\n",
            &[&["GET", "\r\n"], &["PING"], &[""]],
        );
        check("*0\r\n*-1\r\nPING\n\r\n  \r\n", &[&[], &[], &["PING"], &[], &[]]);
    }

    #[test]
    fn a_line_has_words_with_quotes_and_escapes() {
        check("SET  k \"a b\\x41\\n\\\"\" \r\n", &[&["SET", "k", "a bA\n\""]]);
        check("SET k 'it\\'s \\n'\n", &[&["SET", "k", "it's \\n"]]);
        check("GET \"\"\r\n", &[&["GET", ""]]);
        for wrong in ["GET \"k\r\n", "GET \"k\"x\r\n", "GET 'k\r\n", "GET \"\\\r\n"] {
            check_broken(wrong, Broken::Plainly("unbalanced quotes in request"));
        }
    }

    #[test]
    fn what_is_no_command_is_refused_before_its_bytes_come() {
        let multibulk = Broken::Plainly("invalid multibulk length");
        for wrong in
            ["*1000000000\r\n", "*1048577\r\n", "*x\r\n", "*\r\n", "*9999999999999999999", "*1\rx", "*-\r\n"]
        {
            check_broken(wrong, multibulk.clone());
        }
        let bulk = Broken::Plainly("invalid bulk length");
        for wrong in
            ["*1\r\n$-1\r\n", "*1\r\n$67108865\r\n", "*1\r\n$x\r\n", "*1\r\n$99999999999999999999\r\n"]
        {
            check_broken(wrong, bulk.clone());
        }
        check_broken("*2\r\n$1\r\na\r\n*1\r\n", Broken::NoString(b'*'));
        check_broken("*1\r\n$1\r\nabc\r\n", Broken::Plainly("a bulk string does not end where it says"));
        check_broken(&"x".repeat(LINE_BYTES_MAX), Broken::Plainly("too big inline request"));
        check_broken("POST / HTTP/1.1\r\n", Broken::Http);
        check_broken("host: x\r\n", Broken::Http);
    }

    #[test]
    fn no_memory_is_taken_for_what_is_only_announced() {
        let mut parser = Parser::default();
        assert_eq!(parser.front(b"*1048576\r\n$67108864\r\nabc"), Ok(None));
        assert!(parser.words.capacity() <= 8);
        assert_eq!(parser.needed(), 67_108_864 + 23);
    }

    proptest! {
        #[test]
        fn commands_do_not_depend_on_how_their_bytes_were_cut(
            commands in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5), 1..6),
            broken in any::<bool>(),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            let mut bytes = Vec::new();
            for words in &commands {
                bytes.extend(format!("*{}\r\n", words.len()).into_bytes());
                for word in words {
                    bytes.extend(format!("${}\r\n", word.len()).into_bytes());
                    bytes.extend([&word[..], b"\r\n"].concat());
                }
            }
            bytes.extend(if broken { &b"*1\r\n:5\r\n"[..] } else { b"" });
            let whole = told(&bytes, &[]);
            prop_assert_eq!(&whole.0, &commands);
            prop_assert_eq!(whole.1.is_some(), broken);
            prop_assert_eq!(told(&bytes, &cuts), whole);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(
            prop::sample::select(&b"*$-0123459\r\n \"'\\xaG"[..]), 0..200), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
            prop_assert_eq!(told(&bytes, &cuts), told(&bytes, &[]));
        }
    }
}
