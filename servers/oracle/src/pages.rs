//! What is answered where: well-mannered pages, and one for every way to break HTTP.
//!
//! | path | answer |
//! |---|---|
//! | `/json` | `{"ok":true,"items":[1,2,3]}` as application/json |
//! | `/echo` | the request's body |
//! | `/status/NNN` | that status, 200 to 599, with its number as the body; other numbers: 400 |
//! | `/chunked` | `ok` in two chunks; under HTTP/1.0 as `/until-close` |
//! | `/until-close` | `ok` under HTTP/1.0 without a length; then closes |
//! | `/redirect-loop` | 302 to itself |
//! | `/redirect-elsewhere` | 302 to 192.0.2.1, an address that is nobody's (RFC 5737) |
//! | `/garbage` | 64 bytes, 0x80 to 0xbf: not HTTP, and no line end |
//! | `/status-line` | `HTTP/1.1 2OO OK`, with letters for noughts, else whole |
//! | `/bad-header` | a header line without a colon, else whole |
//! | `/bad-chunk` | a good chunk, then one whose size is `zz` |
//! | `/length-lie` | Content-Length 100, a body of 2, then closes |
//! | `/unasked` | `ok`, and behind it a second answer that nobody asked for, in the same write |
//! | `/header-bomb` | a status line, then headers without an end, 16 KiB every 10 ms |
//! | `/endless` | a chunked body of one byte every 10 ms, without an end |
//! | `/close` | closes without a word |
//! | `/reset` | resets the connection without a word |
//! | any other | `ok`, but for planted faults (see `faults`) |
//!
//! HEAD is honoured by the well-mannered ones; the ill-mannered do not care. What has no end ends with the connection;
//! a client that does not take it is sent nothing more until it does.

use servers_shared::http::response;

pub(super) const TEXT: &str = "text/plain";

/// How often those without an end send more.
pub(super) const DRIP_NS: u64 = 10_000_000;

const CHUNKED_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
const BOMB_BYTES: usize = 16 * 1024;
const BOMB_LINE: &[u8] = b"X-Bomb: 0123456789abcdef0123456789abcdef0123456789abcdef012345\r\n";

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Plain,
    Json,
    Echo,
    /// None: not a status that can be answered.
    Status(Option<u16>),
    Chunked,
    UntilClose,
    RedirectLoop,
    RedirectElsewhere,
    Garbage,
    StatusLine,
    BadHeader,
    BadChunk,
    LengthLie,
    Unasked,
    HeaderBomb,
    Endless,
    Close,
    Reset,
}

/// What happens to the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Close,
    Reset,
    Drip(Drip),
}

/// What comes without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drip {
    Headers,
    Chunks,
}

impl Drip {
    /// Appends what is sent every `DRIP_NS`.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            Drip::Headers => out.extend(BOMB_LINE.iter().cycle().take(BOMB_BYTES)),
            Drip::Chunks => out.extend_from_slice(b"1\r\n.\r\n"),
        }
    }
}

impl Page {
    pub(super) fn at(path: &str) -> Page {
        match path {
            "/json" => Page::Json,
            "/echo" => Page::Echo,
            "/chunked" => Page::Chunked,
            "/until-close" => Page::UntilClose,
            "/redirect-loop" => Page::RedirectLoop,
            "/redirect-elsewhere" => Page::RedirectElsewhere,
            "/garbage" => Page::Garbage,
            "/status-line" => Page::StatusLine,
            "/bad-header" => Page::BadHeader,
            "/bad-chunk" => Page::BadChunk,
            "/length-lie" => Page::LengthLie,
            "/unasked" => Page::Unasked,
            "/header-bomb" => Page::HeaderBomb,
            "/endless" => Page::Endless,
            "/close" => Page::Close,
            "/reset" => Page::Reset,
            path => path.strip_prefix("/status/").map_or(Page::Plain, |status| Page::Status(number(status))),
        }
    }

    /// What happens to the connection after this page, if it is kept alive.
    pub(super) fn then(self) -> Then {
        match self {
            Page::UntilClose | Page::LengthLie | Page::Close => Then::Close,
            Page::Reset => Then::Reset,
            Page::HeaderBomb => Then::Drip(Drip::Headers),
            Page::Endless => Then::Drip(Drip::Chunks),
            _ => Then::GoOn,
        }
    }

    /// Appends the answer, or the beginning of one that has no end. `Plain` is answered as without faults.
    pub(super) fn put(self, out: &mut Vec<u8>, keep_alive: bool, head_only: bool, request_body: &[u8]) {
        let mut orderly = |status: u16, content_type: &str, body: &[u8]| match head_only {
            true => response::write_head(out, status, content_type, keep_alive, body.len()),
            false => response::write(out, status, content_type, keep_alive, body),
        };
        match self {
            Page::Plain => orderly(200, TEXT, b"ok"),
            Page::Json => orderly(200, "application/json", br#"{"ok":true,"items":[1,2,3]}"#),
            Page::Echo => orderly(200, "application/octet-stream", request_body),
            Page::Status(Some(status)) => {
                let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
                orderly(status, TEXT, &digits);
            }
            Page::Status(None) => orderly(400, TEXT, b""),
            Page::Chunked => {
                out.extend_from_slice(CHUNKED_HEAD);
                out.extend_from_slice(if head_only { b"" } else { b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n" });
            }
            Page::UntilClose => {
                out.extend_from_slice(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n");
                out.extend_from_slice(if head_only { b"" } else { b"ok" });
            }
            Page::RedirectLoop => put_redirect(out, "/redirect-loop"),
            Page::RedirectElsewhere => put_redirect(out, "http://192.0.2.1/"),
            Page::Garbage => out.extend(0x80..0xc0),
            Page::StatusLine => out.extend_from_slice(b"HTTP/1.1 2OO OK\r\nContent-Length: 2\r\n\r\nok"),
            Page::BadHeader => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nno colon here\r\n\r\nok");
            }
            Page::BadChunk => {
                out.extend_from_slice(CHUNKED_HEAD);
                out.extend_from_slice(b"2\r\nok\r\nzz\r\nok\r\n0\r\n\r\n");
            }
            Page::LengthLie => out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok"),
            Page::Unasked => {
                response::write(out, 200, TEXT, true, b"ok");
                response::write(out, 200, TEXT, true, b"unasked");
            }
            Page::HeaderBomb => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            Page::Endless => out.extend_from_slice(CHUNKED_HEAD),
            Page::Close | Page::Reset => {}
        }
    }
}

fn put_redirect(out: &mut Vec<u8>, to: &str) {
    out.extend_from_slice(b"HTTP/1.1 302 Found\r\nLocation: ");
    out.extend_from_slice(to.as_bytes());
    out.extend_from_slice(b"\r\nContent-Length: 0\r\n\r\n");
}

fn number(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|status| digits && (200..=599).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(path: &str, head_only: bool) -> String {
        let mut out = Vec::new();
        Page::at(path).put(&mut out, true, head_only, b"body");
        String::from_utf8_lossy(&out).into_owned()
    }

    #[track_caller]
    fn check_head(path: &str) {
        let (whole, head) = (answer(path, false), answer(path, true));
        assert!(head.ends_with("\r\n\r\n") && whole.starts_with(&head), "{path}: {head}");
    }

    #[test]
    fn a_head_request_gets_the_head_of_every_well_mannered_page() {
        for path in ["/", "/json", "/echo", "/status/404", "/status/204", "/chunked", "/until-close"] {
            check_head(path);
        }
    }

    #[test]
    fn a_status_is_three_digits_from_200_on() {
        assert_eq!(Page::at("/status/204"), Page::Status(Some(204)));
        for wrong in ["/status/", "/status/100", "/status/600", "/status/0200", "/status/+20", "/status/20x"]
        {
            assert_eq!(Page::at(wrong), Page::Status(None), "{wrong}");
        }
        assert!(answer("/status/418", false).ends_with("Content-Length: 3\r\n\r\n418"));
    }

    #[test]
    fn ill_mannered_pages_are_broken_where_they_say_and_nowhere_else() {
        assert_eq!(answer("/status-line", false).replace("2OO", "200").matches(" 200 OK\r\n").count(), 1);
        assert!(answer("/bad-header", false).ends_with("\r\nno colon here\r\n\r\nok"));
        assert!(answer("/bad-chunk", false).ends_with("\r\n\r\n2\r\nok\r\nzz\r\nok\r\n0\r\n\r\n"));
        assert!(answer("/length-lie", false).ends_with("Content-Length: 100\r\n\r\nok"));
        assert_eq!(answer("/unasked", false).matches("HTTP/1.1 200 OK").count(), 2);
        assert_eq!(answer("/reset", false), "");
        let mut garbage = Vec::new();
        Page::Garbage.put(&mut garbage, true, false, b"");
        assert!(garbage.len() == 64 && !garbage.contains(&b'\n'));
    }

    #[test]
    fn a_bomb_is_made_of_whole_headers() {
        let mut out = Vec::new();
        Drip::Headers.put(&mut out);
        assert_eq!(out.len(), BOMB_BYTES);
        assert!(out.chunks(BOMB_LINE.len()).all(|line| line == BOMB_LINE));
    }
}
