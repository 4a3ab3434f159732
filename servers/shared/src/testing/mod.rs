//! Test input shared by several servers. Compiled for tests only (feature `testing`).

#![allow(clippy::unwrap_used)]

pub mod flood;

/// The request by which a client begins a WebSocket.
pub const UPGRADE: &[u8] = b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A client's frame.
pub fn client_frame(last: bool, opcode: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut out = vec![if last { 0x80 } else { 0 } | opcode];
    match payload.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        medium @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    out.extend(payload.iter().enumerate().map(|(i, byte)| byte ^ mask[i & 3]));
    out
}
