//! Replies, appended to the output buffer. A client that has sent `HELLO 3` gets the RESP 3 types where they differ.

pub(super) fn simple(out: &mut Vec<u8>, text: &str) {
    line(out, b'+', text.as_bytes());
}

pub(super) fn ok(out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
}

/// The text begins with its code, as in `ERR syntax error`. Line ends in it become spaces.
pub(super) fn error(out: &mut Vec<u8>, text: &str) {
    out.push(b'-');
    out.extend(text.bytes().map(|byte| if byte < b' ' { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

pub(super) fn number(out: &mut Vec<u8>, number: i64) {
    out.push(b':');
    if number < 0 {
        out.push(b'-');
    }
    digits(out, number.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

pub(super) fn bulk(out: &mut Vec<u8>, value: &[u8]) {
    bulk_head(out, value.len());
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// What precedes a string; a line ending follows it.
pub(super) fn bulk_head(out: &mut Vec<u8>, bytes: usize) {
    out.push(b'$');
    digits(out, bytes as u64);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn none(out: &mut Vec<u8>, resp3: bool) {
    out.extend_from_slice(if resp3 { b"_\r\n" } else { b"$-1\r\n" });
}

pub(super) fn array(out: &mut Vec<u8>, count: usize) {
    head(out, b'*', count);
}

/// Behind it come so many pairs; in RESP 2 as an array of both.
pub(super) fn map(out: &mut Vec<u8>, pairs: usize, resp3: bool) {
    if resp3 { head(out, b'%', pairs) } else { head(out, b'*', 2 * pairs) }
}

/// Text for people.
pub(super) fn text(out: &mut Vec<u8>, text: &str, resp3: bool) {
    if resp3 {
        head(out, b'=', text.len() + 4);
        out.extend_from_slice(b"txt:");
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    } else {
        bulk(out, text.as_bytes());
    }
}

fn head(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    digits(out, count as u64);
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn digits(out: &mut Vec<u8>, mut number: u64) {
    let begin = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[begin..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut out = Vec::new();
        write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn replies_are_those_of_the_protocol() {
        check(|out| number(out, i64::MIN), ":-9223372036854775808\r\n");
        check(|out| number(out, 0), ":0\r\n");
        check(|out| bulk(out, b"a\r\nb"), "$4\r\na\r\nb\r\n");
        check(|out| error(out, "ERR no\r\n+OK"), "-ERR no  +OK\r\n");
        check(|out| none(out, false), "$-1\r\n");
        check(|out| none(out, true), "_\r\n");
        check(|out| map(out, 3, false), "*6\r\n");
        check(|out| map(out, 3, true), "%3\r\n");
        check(|out| text(out, "ab", true), "=6\r\ntxt:ab\r\n");
        check(|out| text(out, "ab", false), "$2\r\nab\r\n");
    }
}
