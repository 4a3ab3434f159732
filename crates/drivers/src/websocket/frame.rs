//! WebSocket frames as a client writes and reads them. Pure: bytes in, bytes out.
//!
//! Implements RFC 6455; checked against tokio-websockets by differential property tests.
//! Not here: sockets, the handshake (`handshake`), joining of fragments (`super`).

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// a further piece of a message
    Continuation,
    /// UTF-8
    Text,
    /// bytes
    Binary,
    /// end of the connection
    Close,
    /// asks for a pong
    Ping,
    /// answers a ping
    Pong,
}

impl Opcode {
    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0x0,
            Opcode::Text => 0x1,
            Opcode::Binary => 0x2,
            Opcode::Close => 0x8,
            Opcode::Ping => 0x9,
            Opcode::Pong => 0xA,
        }
    }

    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => Opcode::Binary,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xA => Opcode::Pong,
            _ => return None,
        })
    }

    /// Close, ping and pong: at most 125 bytes, never in pieces.
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// The position of a frame's payload, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// last piece of its message
    pub is_final: bool,
    /// kind
    pub opcode: Opcode,
    /// bytes before the payload
    pub header_bytes: usize,
    /// bytes of the payload
    pub payload_bytes: usize,
}

/// What the front of a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// a header whose payload may not be complete yet
    Header(Header),
    /// not even a whole header yet
    Incomplete,
    /// not a frame that a server may send
    Broken(&'static str),
}

/// Reads the header of a server's frame (never masked).
pub fn read_header(bytes: &[u8]) -> Front {
    let [first, second, ..] = *bytes else { return Front::Incomplete };
    if first & 0x70 != 0 {
        return Front::Broken("a reserved bit is set");
    }
    let Some(opcode) = Opcode::from_bits(first & 0x0F) else { return Front::Broken("unknown opcode") };
    if second & 0x80 != 0 {
        return Front::Broken("a server's frame is masked");
    }
    let is_final = first & 0x80 != 0;
    let (header_bytes, payload_bytes) = match second & 0x7F {
        126 => {
            let Some(length) = bytes.get(2..4) else { return Front::Incomplete };
            let length = u64::from(u16::from_be_bytes([length[0], length[1]]));
            if length < 126 {
                return Front::Broken("a length in more bytes than it needs");
            }
            (4, length)
        }
        127 => {
            let Some(length) = bytes.get(2..10).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) else {
                return Front::Incomplete;
            };
            let length = u64::from_be_bytes(length);
            if length <= u64::from(u16::MAX) {
                return Front::Broken("a length in more bytes than it needs");
            }
            (10, length)
        }
        short => (2, u64::from(short)),
    };
    if opcode.is_control() && (payload_bytes > 125 || !is_final) {
        return Front::Broken("a control frame in pieces or of more than 125 bytes");
    }
    match usize::try_from(payload_bytes) {
        Ok(payload_bytes) => Front::Header(Header { is_final, opcode, header_bytes, payload_bytes }),
        Err(_) => Front::Broken("a length beyond the address space"),
    }
}

/// Appends a client's frame (always final, always masked) to `out`.
pub fn write_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: [u8; 4]) {
    out.push(0x80 | opcode.bits());
    match payload.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length @ 126..=0xFFFF => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let from = out.len();
    out.extend_from_slice(payload);
    apply_mask(&mut out[from..], mask);
}

fn apply_mask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    let (chunks, rest) = payload.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}
