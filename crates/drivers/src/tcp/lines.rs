//! Lines that end with `\n`, delivered in blocks. Pure.
//!
//! A block is one or more whole lines: everything complete that a read brought, up to the cap. At millions of lines a
//! second a call per line through worker, ledger and bots would cost more than the line itself, so the receiver of a
//! block splits it (`lines`).

use super::framing::{Framing, Front, MESSAGE_BYTES_MAX};

/// Lines. Heard in blocks that end with `\n`; sent as they are, so the caller writes the ends.
pub struct Lines;

impl Framing for Lines {
    fn front(bytes: &[u8]) -> Front {
        // A block within the cap cannot contain a line beyond it; a larger one is delivered in several.
        let reach = &bytes[..bytes.len().min(MESSAGE_BYTES_MAX)];
        match memchr::memrchr(b'\n', reach) {
            Some(at) => Front::Whole { header_bytes: 0, payload_bytes: at + 1 },
            None if bytes.len() > MESSAGE_BYTES_MAX => Front::TooLarge,
            None => Front::Incomplete,
        }
    }

    fn write(out: &mut Vec<u8>, message: &[u8]) {
        out.extend_from_slice(message);
    }
}

/// The lines of a block without their ends, which are `\n` or `\r\n`.
pub fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    debug_assert!(block.is_empty() || block.ends_with(b"\n"), "a block ends with the end of a line");
    let mut from = 0;
    memchr::memchr_iter(b'\n', block).map(move |at| {
        let line = &block[from..at];
        from = at + 1;
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}
