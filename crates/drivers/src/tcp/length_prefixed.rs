//! Length-prefixed frames, big-endian. Pure.

use super::framing::{Framing, Front, MESSAGE_BYTES_MAX};

/// Frames whose payload is preceded by its length in `WIDTH` bytes: 1, 2 or 4.
pub struct LengthPrefixed<const WIDTH: usize = 4>;

impl<const WIDTH: usize> LengthPrefixed<WIDTH> {
    /// The largest payload that can be sent: what the length can say, within the cap.
    pub const PAYLOAD_BYTES_MAX: usize = match WIDTH {
        1 => u8::MAX as usize,
        2 => u16::MAX as usize,
        4 => MESSAGE_BYTES_MAX,
        _ => panic!("a length has 1, 2 or 4 bytes"),
    };
}

impl<const WIDTH: usize> Framing for LengthPrefixed<WIDTH> {
    fn front(bytes: &[u8]) -> Front {
        let Some(length) = bytes.first_chunk::<WIDTH>() else { return Front::Incomplete };
        let payload_bytes = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        if payload_bytes > Self::PAYLOAD_BYTES_MAX {
            Front::TooLarge
        } else if bytes.len() < WIDTH + payload_bytes {
            Front::Incomplete
        } else {
            Front::Whole { header_bytes: WIDTH, payload_bytes }
        }
    }

    fn write(out: &mut Vec<u8>, message: &[u8]) {
        // A truncated length would turn the rest of the payload into frames that were not sent.
        assert!(message.len() <= Self::PAYLOAD_BYTES_MAX, "a payload that its length cannot say");
        let length = (message.len() as u32).to_be_bytes();
        out.extend_from_slice(&length[length.len() - WIDTH..]);
        out.extend_from_slice(message);
    }
}
