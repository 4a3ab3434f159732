//! The gRPC parts of an HTTP/2 answer: its type, its code with the text, and the length of its message.

/// The code for what has no other.
pub(crate) const UNKNOWN: u8 = 2;

/// The code in these fields, where they have one; `known`: what earlier ones of the same answer said. What is no code counts as
/// the one for "unknown", and so do two that differ, of which nothing says which is right.
pub(crate) fn code(fields: &::http::HeaderMap, known: Option<u8>) -> Option<u8> {
    let read = |value: &::http::HeaderValue| {
        value.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(UNKNOWN)
    };
    let mut codes = fields.get_all("grpc-status").iter().map(read);
    let first = codes.next()?;
    let is_one = codes.chain(known).all(|code| code == first);
    Some(if is_one { first } else { UNKNOWN })
}

/// The text of a status, which `grpc-message` carries percent-encoded. What is no such encoding stays as it is, since the text
/// of an error must not get lost.
pub(crate) fn message_text(value: &[u8]) -> Vec<u8> {
    let digit = |at: usize| value.get(at).and_then(|digit| char::from(*digit).to_digit(16));
    let (mut text, mut at) = (Vec::with_capacity(value.len()), 0);
    while let Some(&byte) = value.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                text.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                text.push(byte);
                at += 1;
            }
        }
    }
    text
}

/// Before each message: whether it is compressed, and its length.
pub(super) const PREFIX_BYTES: usize = 5;

/// The length of a message including its prefix, from its first bytes; `None` while these are incomplete.
pub(crate) fn message_bytes(begin: &[u8]) -> Option<u64> {
    let length = begin.get(1..PREFIX_BYTES)?.first_chunk::<4>()?;
    Some(u64::from(u32::from_be_bytes(*length)) + PREFIX_BYTES as u64)
}

/// Whether an answer says that it is of gRPC: `application/grpc`, alone or with the format of its messages.
pub(crate) fn is_content_type(value: &[u8]) -> bool {
    const NAME: &[u8] = b"application/grpc";
    let is_named = value.len() >= NAME.len() && value[..NAME.len()].eq_ignore_ascii_case(NAME);
    is_named && matches!(value.get(NAME.len()), None | Some(b'+' | b';' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_given_twice_must_be_the_same() {
        let code = |codes: &[&'static str], known: Option<u8>| {
            let mut fields = ::http::HeaderMap::new();
            for code in codes {
                fields.append("grpc-status", ::http::HeaderValue::from_static(code));
            }
            super::code(&fields, known)
        };
        assert_eq!((code(&[], None), code(&[], Some(5)), code(&["0"], None)), (None, None, Some(0)));
        assert_eq!((code(&["0", "0"], Some(0)), code(&["5"], None)), (Some(0), Some(5)));
        for (codes, known) in
            [(&["0", "13"][..], None), (&["13", "0"], None), (&["0"], Some(5)), (&["ok"], None)]
        {
            assert_eq!(code(codes, known), Some(UNKNOWN), "{codes:?}");
        }
    }

    #[test]
    fn the_text_of_a_status_is_decoded_and_what_is_no_encoding_stays() {
        for (sent, text) in [
            ("Error%20deserializing%20request", "Error deserializing request"),
            ("kaputt: %C3%A4%0a100%25", "kaputt: ä\n100%"),
            ("100% of %2", "100% of %2"),
            ("%zz%+1", "%zz%+1"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(message_text(sent.as_bytes())).unwrap(), text, "{sent}");
        }
    }

    #[test]
    fn the_content_type_of_grpc_may_name_a_format() {
        for (value, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("Application/gRPC; charset=x", true),
            ("application/grpc-web", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(is_content_type(value.as_bytes()), expected, "{value}");
        }
    }
}
