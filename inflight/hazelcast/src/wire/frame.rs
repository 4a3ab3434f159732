//! Frames: the units of which every message consists.
//!
//! A frame is its length (int32, itself included), flags (uint16) and content, little-endian. A message is one or more
//! frames, the last of which carries `FINAL`. Pure: slices in, slices out; nothing here is larger than what it was given.
//! Source: Open Binary Client Protocol 2.x, sections 2.1.1 (frame) and 2.1.3 (special frames).

use super::broken::Broken;

/// Length and flags in front of every content.
pub const HEADER_BYTES: usize = 6;

/// First frame of a message or of the first fragment of one.
pub const BEGIN_FRAGMENT: u16 = 1 << 15;
/// First frame of a message or of the last fragment of one.
pub const END_FRAGMENT: u16 = 1 << 14;
/// First frame of a message that came in one piece.
pub const UNFRAGMENTED: u16 = BEGIN_FRAGMENT | END_FRAGMENT;
/// Last frame of a message.
pub const FINAL: u16 = 1 << 13;
/// Begin of a list, map or custom type.
pub const BEGIN: u16 = 1 << 12;
/// End of a list, map or custom type.
pub const END: u16 = 1 << 11;
/// Null instead of a parameter.
pub const NULL: u16 = 1 << 10;
/// First frame of an event.
pub const EVENT: u16 = 1 << 9;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// any of the constants of this module, together
    pub flags: u16,
    /// what follows the header
    pub content: &'a [u8],
}

impl Frame<'_> {
    /// Whether all of `flags` are set.
    pub fn is(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// Length (header included) and flags of the frame that `bytes` begin with; `None` when its header is incomplete.
///
/// Errors: `Broken::FrameLength` for a length that no frame can have. How long a frame may be is the reader's question.
pub fn header(bytes: &[u8]) -> Result<Option<(usize, u16)>, Broken> {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = i32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let flags = u16::from_le_bytes([header[4], header[5]]);
    match usize::try_from(length) {
        Ok(bytes) if bytes >= HEADER_BYTES => Ok(Some((bytes, flags))),
        _ => Err(Broken::FrameLength(length)),
    }
}

/// The frames of a whole message, one after the other. It ends at the first that is not whole.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Over `bytes`, which begin with a frame.
    pub fn new(bytes: &'a [u8]) -> Self {
        Frames { rest: bytes }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let (length, flags) = header(self.rest).ok()??;
        let (frame, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Frame { flags, content: &frame[HEADER_BYTES..] })
    }
}

/// Appends a frame. Contents beyond `i32::MAX` are refused before they come here (`Session::send`).
pub fn put(out: &mut Vec<u8>, flags: u16, content: &[u8]) {
    put_header(out, flags, content.len());
    out.extend_from_slice(content);
}

/// Appends the header of a frame whose content of `content_bytes` follows by another way.
pub fn put_header(out: &mut Vec<u8>, flags: u16, content_bytes: usize) {
    let length = (HEADER_BYTES + content_bytes) as u32;
    let [a, b, c, d] = length.to_le_bytes();
    let [e, f] = flags.to_le_bytes();
    out.extend_from_slice(&[a, b, c, d, e, f]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were_put() {
        let mut bytes = Vec::new();
        put(&mut bytes, UNFRAGMENTED, b"first");
        put(&mut bytes, NULL, b"");
        put(&mut bytes, FINAL, &[7; 300]);
        let frames: Vec<Frame<'_>> = Frames::new(&bytes).collect();
        assert_eq!(frames.len(), 3);
        assert_eq!(frames[0], Frame { flags: UNFRAGMENTED, content: b"first" });
        assert!(frames[1].is(NULL) && frames[1].content.is_empty());
        assert_eq!(frames[2].content, [7; 300]);
    }

    #[test]
    fn a_length_below_the_headers_is_refused_and_half_a_header_waited_for() {
        assert_eq!(header(&[6, 0, 0, 0, 0]), Ok(None));
        assert_eq!(header(&[6, 0, 0, 0, 1, 0]), Ok(Some((6, 1))));
        assert_eq!(header(&[5, 0, 0, 0, 0, 0]), Err(Broken::FrameLength(5)));
        assert_eq!(header(&[0xff; 6]), Err(Broken::FrameLength(-1)));
    }
}
