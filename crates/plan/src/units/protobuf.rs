//! Values of messages: a gRPC code, and the status inside a reply over WebSocket.

use crate::mistakes::RequestConfigError;
use crate::workloads::GRPC_CODES;

/// `NOT_FOUND` or `5`, as the first and last of a range.
pub fn code(text: &str) -> Result<(u16, u16), RequestConfigError> {
    let text = text.trim();
    let named = GRPC_CODES.iter().position(|name| name.eq_ignore_ascii_case(text));
    let numbered = || text.parse::<usize>().ok().filter(|code| *code < GRPC_CODES.len());
    match named.or_else(numbered) {
        // There are 17.
        Some(code) => Ok((code as u16, code as u16)),
        None => Err(RequestConfigError::Code(text.into())),
    }
}

/// `7` or `400..499`: what stands in the field of an error, 200 for none, 0 for one that is no number.
pub fn status(text: &str) -> Result<(u16, u16), RequestConfigError> {
    let text = text.trim();
    let wrong = || RequestConfigError::MessageStatus(text.into());
    let one = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (one(first)?, one(last)?);
    if first <= last { Ok((first, last)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_name_or_a_number() {
        for (text, code_of) in
            [("OK", Some(0)), ("not_found", Some(5)), (" 16 ", Some(16)), ("17", None), ("200", None)]
        {
            assert_eq!(code(text).ok(), code_of.map(|code| (code, code)), "{text}");
        }
    }

    #[test]
    fn a_status_is_a_number_or_a_range() {
        for (text, range) in
            [("7", Some((7, 7))), ("1..3", Some((1, 3))), ("3..1", None), ("OK", None), ("70000", None)]
        {
            assert_eq!(status(text).ok(), range, "{text}");
        }
    }
}
