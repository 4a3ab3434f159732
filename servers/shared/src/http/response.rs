//! Answers, appended to the caller's buffer: nothing else is allocated.
//!
//! An answer always states its body's length, except if the status forbids a body (1xx, 204, 304). There is no Date: it
//! is for servers with a clock (RFC 9110 section 6.6.1), and these are read by instruments.

/// Appends a whole answer. `body` is left out where the status forbids one.
#[inline]
pub fn write(out: &mut Vec<u8>, status: u16, content_type: &str, keep_alive: bool, body: &[u8]) {
    write_head(out, status, content_type, keep_alive, body.len());
    if may_have_body(status) {
        out.extend_from_slice(body);
    }
}

/// Appends the head of an answer whose body of `body_bytes` follows in pieces, or not at all after a HEAD.
#[inline]
pub fn write_head(out: &mut Vec<u8>, status: u16, content_type: &str, keep_alive: bool, body_bytes: usize) {
    write_head_with(out, status, content_type, keep_alive, body_bytes, "");
}

/// The same with further fields, each with its CRLF.
pub fn write_head_with(
    out: &mut Vec<u8>,
    status: u16,
    content_type: &str,
    keep_alive: bool,
    body_bytes: usize,
    fields: &str,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(decimal(u64::from(status), &mut [0; 20]));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    if may_have_body(status) {
        out.extend_from_slice(b"\r\nContent-Type: ");
        out.extend_from_slice(content_type.as_bytes());
        out.extend_from_slice(b"\r\nContent-Length: ");
        out.extend_from_slice(decimal(body_bytes as u64, &mut [0; 20]));
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(fields.as_bytes());
    out.extend_from_slice(if keep_alive { b"\r\n" } else { b"Connection: close\r\n\r\n" });
}

#[inline]
fn may_have_body(status: u16) -> bool {
    status >= 200 && status != 204 && status != 304
}

/// Writes a number in decimal to the end of `digits`.
#[inline]
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// For people; an unknown status has none, which the grammar allows.
#[inline]
fn reason(status: u16) -> &'static str {
    ::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, keep_alive: bool, body: &[u8], expected: &str) {
        let mut out = b"before".to_vec();
        write(&mut out, status, "text/plain", keep_alive, body);
        assert_eq!(String::from_utf8(out).unwrap(), format!("before{expected}"));
    }

    #[test]
    fn an_answer_says_its_length_and_whether_it_is_the_last_one() {
        check(200, true, b"ok", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok");
        check(
            503,
            false,
            b"",
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n",
        );
        check(599, true, b"?", "HTTP/1.1 599 \r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\n?");
    }

    #[test]
    fn a_status_that_forbids_a_body_has_neither_body_nor_length() {
        check(204, true, b"ok", "HTTP/1.1 204 No Content\r\n\r\n");
        check(304, false, b"ok", "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for number in [0, 7, 10, 65_536, 1_048_576, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_head_is_the_answer_without_its_body() {
        let (mut head, mut whole) = (Vec::new(), Vec::new());
        write_head(&mut head, 200, "text/html", true, 3);
        write(&mut whole, 200, "text/html", true, b"abc");
        assert_eq!([&head[..], b"abc"].concat(), whole);
    }
}
