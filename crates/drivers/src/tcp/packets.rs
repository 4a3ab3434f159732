//! MQTT control packets, delivered in blocks. Pure.
//!
//! A packet is a byte of type and flags, the remaining length in one to four bytes of seven bits each, and that many
//! bytes. Like lines they are delivered in blocks of whole packets, and the receiver splits it (`split_packet`).
//! Source: MQTT 3.1.1, section 2.2.

use super::framing::{Framing, Front, MESSAGE_BYTES_MAX};

/// Most bytes of a length.
const LENGTH_BYTES_MAX: usize = 4;

/// MQTT packets. Heard in blocks of whole ones; sent as they are, so the caller writes the headers.
pub struct Packets;

impl Framing for Packets {
    fn front(bytes: &[u8]) -> Front {
        let mut block_bytes = 0;
        let rest = loop {
            match front_packet(&bytes[block_bytes..]) {
                Front::Whole { payload_bytes, .. } if block_bytes + payload_bytes <= MESSAGE_BYTES_MAX => {
                    block_bytes += payload_bytes;
                }
                other => break other,
            }
        };
        // The bytes after the whole packets are parsed once they are at the front.
        if block_bytes > 0 { Front::Whole { header_bytes: 0, payload_bytes: block_bytes } } else { rest }
    }

    fn write(out: &mut Vec<u8>, message: &[u8]) {
        out.extend_from_slice(message);
    }
}

/// The first packet of a block, its header included, and what follows. `None` when it is not whole.
pub fn split_packet(block: &[u8]) -> Option<(&[u8], &[u8])> {
    match front_packet(block) {
        Front::Whole { payload_bytes, .. } => Some(block.split_at(payload_bytes)),
        _ => None,
    }
}

/// The part after a packet's header.
pub fn packet_body(packet: &[u8]) -> &[u8] {
    let header_bytes =
        packet.iter().skip(1).position(|byte| byte & 0x80 == 0).map_or(packet.len(), |at| at + 2);
    &packet[header_bytes..]
}

/// Appends the header of a packet followed by `body_bytes` (at most `MESSAGE_BYTES_MAX`).
pub fn write_packet_header(out: &mut Vec<u8>, kind: u8, mut body_bytes: usize) {
    out.push(kind);
    while body_bytes >= 0x80 {
        out.push(0x80 | (body_bytes & 0x7f) as u8);
        body_bytes >>= 7;
    }
    out.push(body_bytes as u8);
}

fn front_packet(bytes: &[u8]) -> Front {
    let mut body_bytes = 0;
    for at in 0..LENGTH_BYTES_MAX {
        let Some(&byte) = bytes.get(1 + at) else { return Front::Incomplete };
        body_bytes |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let whole_bytes = 2 + at + body_bytes;
            return if whole_bytes > MESSAGE_BYTES_MAX {
                Front::TooLarge
            } else if bytes.len() < whole_bytes {
                Front::Incomplete
            } else {
                Front::Whole { header_bytes: 0, payload_bytes: whole_bytes }
            };
        }
    }
    // A fifth byte of length: no packet is that long.
    Front::TooLarge
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_are_split_where_they_were_joined(
            bodies in vec(vec(any::<u8>(), 0..300), 1..12), cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            for body in &bodies {
                write_packet_header(&mut bytes, 0x30, body.len());
                bytes.extend_from_slice(body);
            }
            let cut = cut.index(bytes.len() + 1);
            let mut received = Vec::new();
            let mut from = 0;
            for to in [cut, bytes.len()] {
                while let Front::Whole { payload_bytes, .. } = Packets::front(&bytes[from..to]) {
                    let mut block = &bytes[from..from + payload_bytes];
                    while let Some((packet, rest)) = split_packet(block) {
                        received.push(packet_body(packet).to_vec());
                        block = rest;
                    }
                    prop_assert!(block.is_empty());
                    from += payload_bytes;
                }
            }
            prop_assert_eq!(received, bodies);
        }

        #[test]
        fn any_bytes_are_looked_at_without_harm(bytes in vec(any::<u8>(), 0..40)) {
            let _ = Packets::front(&bytes);
            let _ = packet_body(&bytes);
        }
    }

    #[test]
    fn a_length_beyond_the_cap_is_refused_before_its_bytes_come() {
        assert_eq!(Packets::front(&[0x30, 0xff, 0xff, 0x7f]), Front::TooLarge);
        assert_eq!(Packets::front(&[0x30, 0xff, 0xff, 0xff, 0xff, 0x01]), Front::TooLarge);
        assert_eq!(Packets::front(&[0x30, 0x80]), Front::Incomplete);
    }
}
