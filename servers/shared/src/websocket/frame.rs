//! One frame: parses its header, unmasks its payload, writes a server's frame.
//!
//! A client's frames must be masked, and a server's must not be (section 5.1).

/// Close codes that a server here sends (section 7.4).
pub mod close_code {
    /// The purpose is fulfilled.
    pub const NORMAL: u16 = 1000;
    /// The server ends.
    pub const GOING_AWAY: u16 = 1001;
    /// The peer broke the protocol.
    pub const PROTOCOL: u16 = 1002;
    /// A kind of data that this side does not take.
    pub const UNSUPPORTED: u16 = 1003;
    /// Text that is no UTF-8.
    pub const BAD_PAYLOAD: u16 = 1007;
    /// More than this side takes.
    pub const TOO_BIG: u16 = 1009;
}

/// What a frame carries (RFC 6455, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further part of a message.
    Continuation = 0,
    /// UTF-8.
    Text = 1,
    /// Bytes.
    Binary = 2,
    /// The end, with a code.
    Close = 8,
    /// To be answered by a pong.
    Ping = 9,
    /// The answer to a ping.
    Pong = 10,
}

impl Opcode {
    #[inline]
    fn from_bits(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    /// Close, ping and pong: short, whole, and allowed between the parts of a message.
    #[inline]
    pub fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// The longest payload of a control frame (section 5.5).
pub const CONTROL_PAYLOAD_MAX: usize = 125;

/// The longest header of a client's frame: two bytes, an eight-byte length, the mask.
pub const HEADER_MAX: usize = 14;

/// The front of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The last part of its message.
    pub last: bool,
    /// What it carries.
    pub opcode: Opcode,
    /// As sent; clients must use one.
    pub mask: [u8; 4],
    /// Of the header itself.
    pub header_bytes: usize,
    /// Length of what follows.
    pub payload_bytes: u64,
}

/// A header that breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHeader;

/// Reads the header of a client's frame; None when more bytes are needed.
///
/// What the first two bytes already tell is judged at once, so that nothing is awaited that cannot be right.
#[inline]
pub fn header(bytes: &[u8]) -> Result<Option<Header>, BadHeader> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    // No extension was negotiated, so the reserved bits must be zero; and a client must mask.
    if first & 0x70 != 0 || second & 0x80 == 0 {
        return Err(BadHeader);
    }
    let last = first & 0x80 != 0;
    let opcode = Opcode::from_bits(first & 0x0f).ok_or(BadHeader)?;
    let short = second & 0x7f;
    if opcode.is_control() && (!last || short as usize > CONTROL_PAYLOAD_MAX) {
        return Err(BadHeader);
    }
    let (payload_bytes, length_bytes) = match (short, rest) {
        (126, [a, b, ..]) => (u64::from(u16::from_be_bytes([*a, *b])), 2),
        (127, [a, b, c, d, e, f, g, h, ..]) => (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), 8),
        (126 | 127, _) => return Ok(None),
        (short, _) => (u64::from(short), 0),
    };
    // "The minimal number of bytes MUST be used to encode the length", and the top bit must be zero.
    let minimal = match length_bytes {
        2 => payload_bytes > 125,
        8 => payload_bytes > 0xffff && payload_bytes >> 63 == 0,
        _ => true,
    };
    if !minimal {
        return Err(BadHeader);
    }
    let Some(mask) = rest.get(length_bytes..length_bytes + 4) else { return Ok(None) };
    Ok(Some(Header {
        last,
        opcode,
        mask: [mask[0], mask[1], mask[2], mask[3]],
        header_bytes: 2 + length_bytes + 4,
        payload_bytes,
    }))
}

/// Removes (or puts on) a mask in place, eight bytes at a time.
#[inline]
pub fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let mut chunks = payload.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let word = [chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7]];
        chunk.copy_from_slice(&(u64::from_ne_bytes(word) ^ wide).to_ne_bytes());
    }
    for (i, byte) in chunks.into_remainder().iter_mut().enumerate() {
        *byte ^= mask[i & 3];
    }
}

/// Appends one whole server frame.
#[inline]
pub fn put(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    out.push(0x80 | opcode as u8);
    match payload.len() {
        short @ 0..=125 => out.push(short as u8),
        medium @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// Appends one whole server frame whose payload `put` appends. It is moved only where it needs a longer header.
pub fn put_with(out: &mut Vec<u8>, opcode: Opcode, put: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[0x80 | opcode as u8, 0]);
    let from = out.len();
    put(out);
    match out.len() - from {
        short @ 0..=125 => out[from - 1] = short as u8,
        medium @ 126..=0xffff => {
            out[from - 1] = 126;
            out.splice(from..from, (medium as u16).to_be_bytes());
        }
        long => {
            out[from - 1] = 127;
            out.splice(from..from, (long as u64).to_be_bytes());
        }
    }
}

/// Appends a close frame with a code and no reason.
#[inline]
pub fn put_close(out: &mut Vec<u8>, code: u16) {
    put(out, Opcode::Close, &code.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::client_frame;
    use proptest::prelude::*;

    #[track_caller]
    fn check_bad(bytes: &[u8]) {
        assert_eq!(header(bytes), Err(BadHeader), "{bytes:02x?}");
    }

    #[test]
    fn what_no_client_may_send_is_refused_from_the_first_bytes() {
        check_bad(&[0x81, 0x05]); // not masked
        check_bad(&[0xc1, 0x85]); // reserved bit
        check_bad(&[0x83, 0x80]); // reserved opcode
        check_bad(&[0x8b, 0x80]); // reserved control opcode
        check_bad(&[0x09, 0x80]); // fragmented ping
        check_bad(&[0x89, 0xfe]); // ping longer than 125
        check_bad(&[0x81, 0xfe, 0, 125]); // length not minimal
        check_bad(&[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        check_bad(&[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]); // top bit
    }

    proptest! {
        #[test]
        fn a_header_is_found_at_every_length_and_never_before_it_is_complete(
            length in prop_oneof![0usize..200, 60_000usize..70_000], mask: [u8; 4],
        ) {
            let frame = client_frame(true, 1, &vec![7; length], mask);
            let found = header(&frame).unwrap().unwrap();
            prop_assert_eq!(found.payload_bytes, length as u64);
            prop_assert_eq!(found.header_bytes + length, frame.len());
            for cut in 0..found.header_bytes {
                prop_assert_eq!(header(&frame[..cut]).unwrap(), None);
            }
        }

        #[test]
        fn a_payload_may_be_written_into_its_frame(
            payload in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                prop::collection::vec(any::<u8>(), 65_500..65_600),
            ],
        ) {
            let (mut copied, mut written) = (b"before".to_vec(), b"before".to_vec());
            put(&mut copied, Opcode::Binary, &payload);
            put_with(&mut written, Opcode::Binary, |out| out.extend_from_slice(&payload));
            prop_assert_eq!(copied, written);
        }

        #[test]
        fn unmasking_twice_gives_the_payload_back(payload: Vec<u8>, mask: [u8; 4]) {
            let mut twice = payload.clone();
            unmask(&mut twice, mask);
            let bytewise: Vec<u8> = payload.iter().enumerate().map(|(i, byte)| byte ^ mask[i & 3]).collect();
            prop_assert_eq!(&twice, &bytewise);
            unmask(&mut twice, mask);
            prop_assert_eq!(twice, payload);
        }
    }
}
