//! JSON output, written by hand, and decoding of a target's parts.
//!
//! Answers are appended to the caller's buffer; nothing else is allocated for scores of up to 64 bits.

use std::borrow::Cow;
use std::io::Write;

use leaderboard::{Page, Score};
use servers_shared::http::response::decimal;

/// Appends a string with its quotes.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[from..at]);
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            // Writing to a vector cannot fail.
            _ => drop(write!(out, "\\u{byte:04x}")),
        }
        from = at + 1;
    }
    out.extend_from_slice(&text.as_bytes()[from..]);
    out.push(b'"');
}

pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(decimal(number, &mut [0; 20]));
}

/// Appends a score as a string: most readers of JSON round numbers beyond 53 bits.
pub(super) fn put_score(out: &mut Vec<u8>, score: &Score) {
    out.push(b'"');
    match score.as_i64() {
        Some(small) => {
            if small < 0 {
                out.push(b'-');
            }
            put_number(out, small.unsigned_abs());
        }
        // Writing to a vector cannot fail.
        None => drop(write!(out, "{score}")),
    }
    out.push(b'"');
}

/// Appends the members `"member"` and `"score"` of an object, without its braces.
pub(super) fn put_member(out: &mut Vec<u8>, member: &str, score: &Score) {
    out.extend_from_slice(b"\"member\":");
    put_string(out, member);
    out.extend_from_slice(b",\"score\":");
    put_score(out, score);
}

/// Appends a member with its rank, as an object.
pub(super) fn put_ranked(out: &mut Vec<u8>, member: &str, score: &Score, rank: u64) {
    out.push(b'{');
    put_member(out, member, score);
    out.extend_from_slice(b",\"rank\":");
    put_number(out, rank);
    out.push(b'}');
}

/// Appends `,"metadata":"…"`, to follow other members of an object.
pub(super) fn put_metadata(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b",\"metadata\":");
    put_string(out, text);
}

/// Appends items, separated by commas and within brackets.
pub(super) fn put_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        put(out, item);
    }
    out.push(b']');
}

/// Appends `{"members":TOTAL,"rows":[…],"next":RANK or null}`.
pub(super) fn put_page(out: &mut Vec<u8>, page: &Page) {
    put_page_with(out, page, page.next_rank());
}

/// As `put_page`, with the `first` of the next page.
pub(super) fn put_page_with(out: &mut Vec<u8>, page: &Page, next: Option<u64>) {
    out.extend_from_slice(b"{\"members\":");
    put_number(out, page.total);
    out.extend_from_slice(b",\"rows\":");
    put_list(out, &page.rows, |out, row| {
        put_ranked(out, &row.member, &row.score, row.rank);
        if let Some(text) = &row.metadata {
            out.pop();
            put_metadata(out, text);
            out.push(b'}');
        }
    });
    out.extend_from_slice(b",\"next\":");
    match next {
        Some(rank) => put_number(out, rank),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

/// The text that a part of a target encodes (`%41` is `A`; a plus sign is one). None: no such text.
pub(super) fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'%', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let (high, low) = (digit(behind.first()?)?, digit(behind.get(1)?)?);
        bytes.push((high * 16 + low) as u8);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_are_read_back_as_they_were(text in ".*") {
            let mut out = Vec::new();
            put_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn scores_are_written_as_the_library_writes_them(small in any::<i64>(), large in any::<i128>()) {
            for score in [Score::from(small), Score::from(large), Score::from(i64::MIN), Score::ZERO] {
                let mut out = Vec::new();
                put_score(&mut out, &score);
                prop_assert_eq!(String::from_utf8(out).unwrap(), format!("\"{score}\""));
            }
        }
    }

    #[test]
    fn escapes_stand_for_bytes_of_utf_8() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(unescaped(text).as_deref(), expected);
        check("plain+text", Some("plain+text"));
        check("a%2Fb%20%C3%BC", Some("a/b ü"));
        for wrong in ["%", "%4", "%4g", "%ff", "%+1"] {
            check(wrong, None);
        }
    }
}
