//! A path and query as a browser sends them: characters not allowed in a request line are percent-encoded.
//!
//! The plan keeps what the user wrote, and everything displayed shows that; it is encoded when sent to the server. What
//! is already encoded (%XX) is unchanged, and so are dot segments, which are sent as written.
//! Source: WHATWG URL Standard, the path and the query percent-encode sets of special URLs.

use std::borrow::Cow;

/// Path and query in the form in which they are sent. A fragment (`#…`), which no server sees, is left out: a variable or an
/// answer may bring one.
pub fn encoded(path: &str) -> Cow<'_, str> {
    let path = path.split('#').next().unwrap_or_default();
    let query_at = path.find('?').unwrap_or(path.len());
    let is_plain =
        |(at, byte): (usize, u8)| !is_encoded(byte, at > query_at) && !is_slash(byte, at > query_at);
    if path.bytes().enumerate().all(is_plain) {
        return Cow::Borrowed(path);
    }
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(path.len() + 16);
    for (at, byte) in path.bytes().enumerate() {
        let is_query = at > query_at;
        if is_encoded(byte, is_query) {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        } else {
            out.push(if is_slash(byte, is_query) { '/' } else { char::from(byte) });
        }
    }
    Cow::Owned(out)
}

fn is_encoded(byte: u8, is_query: bool) -> bool {
    match byte {
        0..=0x20 | 0x7F..=0xFF | b'"' | b'<' | b'>' => true,
        b'\'' => is_query,
        b'^' | b'`' | b'{' | b'}' => !is_query,
        _ => false,
    }
}

/// In the path of a special URL a backslash separates too.
fn is_slash(byte: u8, is_query: bool) -> bool {
    byte == b'\\' && !is_query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_sent_as_a_browser_sends_it() {
        // The results of `new URL(text, "http://h")` in Node.js.
        for (written, sent) in [
            ("/", "/"),
            ("/play?room=1&x=a+b", "/play?room=1&x=a+b"),
            ("/play?room=ä", "/play?room=%C3%A4"),
            ("/ä", "/%C3%A4"),
            ("/日本/😀", "/%E6%97%A5%E6%9C%AC/%F0%9F%98%80"),
            ("/a b?c d", "/a%20b?c%20d"),
            ("/%C3%A4?%20", "/%C3%A4?%20"),
            ("/100%?50%", "/100%?50%"),
            ("/\"<>`{}^|'", "/%22%3C%3E%60%7B%7D%5E|'"),
            ("/?\"<>`{}^|'", "/?%22%3C%3E`{}^|%27"),
            ("/a\\b?a\\b", "/a/b?a\\b"),
            ("/a?b?c", "/a?b?c"),
            ("/a#top", "/a"),
            ("/a\r\nX: y", "/a%0D%0AX:%20y"),
            ("/\u{7f}", "/%7F"),
        ] {
            assert_eq!(encoded(written), sent, "{written}");
            assert_eq!(encoded(&encoded(written)), sent, "a second time nothing changes: {written}");
            assert!(encoded(written).bytes().all(|byte| byte.is_ascii_graphic()));
        }
        assert!(matches!(encoded("/play?room=1"), Cow::Borrowed(_)));
    }
}
