//! Sanitises values so that nothing in a path or a header can start a new line. Values may come from a server's answer,
//! if a scenario puts them into the next request.

use std::io::Write;

/// Writes a path and query, percent-encoded where a byte is no graphic ASCII or is one of `also`.
pub fn write_path(out: &mut Vec<u8>, path: &str, also: &[u8]) {
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !also.contains(&byte) {
            out.push(byte);
        } else {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// The bytes that are allowed in a method or a header's name.
pub fn token(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// A header's value, with spaces where bytes control something.
pub fn value(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().map(|byte| if byte.is_ascii_control() && byte != b'\t' { b' ' } else { byte })
}
