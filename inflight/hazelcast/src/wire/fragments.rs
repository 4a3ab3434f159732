//! Reassembles fragmented messages.
//!
//! A fragment is a message whose first frame carries only an id; the frames after it continue the message of that id.
//! Bounded: all unfinished messages together hold at most the limit of one message, and are few.
//! Source: Open Binary Client Protocol 2.x, section 2.1.4.

use super::broken::Broken;
use super::frame::{BEGIN_FRAGMENT, END_FRAGMENT, FINAL, HEADER_BYTES, header};

/// Messages that may be unfinished at once.
const UNFINISHED_MAX: usize = 64;

/// Unfinished messages by fragment id.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    unfinished: Vec<(i64, Vec<u8>)>,
    held_bytes: usize,
}

impl Fragments {
    /// Bytes of unfinished messages.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes one fragment, a whole message on the wire. Returns the joined message when it was the last.
    pub fn take(&mut self, fragment: &[u8], limit_bytes: usize) -> Result<Option<Vec<u8>>, Broken> {
        let Some((first_bytes, flags)) = header(fragment)? else {
            return Err(Broken::Malformed("a fragment without a first frame"));
        };
        let (first, frames) = fragment
            .split_at_checked(first_bytes)
            .ok_or(Broken::Malformed("a fragment that is cut short"))?;
        let id = first[HEADER_BYTES..]
            .first_chunk::<8>()
            .map(|bytes| i64::from_le_bytes(*bytes))
            .ok_or(Broken::Malformed("a fragment without an id"))?;
        let held_bytes = self.held_bytes + frames.len();
        if held_bytes > limit_bytes {
            return Err(Broken::TooLarge { bytes: held_bytes, limit_bytes });
        }
        let at = self.unfinished.iter().position(|(other, _)| *other == id);
        let at = match (flags & BEGIN_FRAGMENT != 0, at) {
            (true, None) if self.unfinished.len() < UNFINISHED_MAX => {
                self.unfinished.push((id, Vec::new()));
                self.unfinished.len() - 1
            }
            (true, None) => return Err(Broken::Malformed("too many messages in fragments at once")),
            (true, Some(_)) => return Err(Broken::Malformed("a message in fragments begins twice")),
            (false, Some(at)) => at,
            (false, None) => return Err(Broken::Malformed("a fragment of a message that never began")),
        };
        let joined = &mut self.unfinished[at].1;
        let begin = joined.len();
        joined.extend_from_slice(frames);
        self.held_bytes = held_bytes;
        if flags & END_FRAGMENT == 0 {
            unmark_final(&mut joined[begin..]);
            return Ok(None);
        }
        let (_, joined) = self.unfinished.swap_remove(at);
        self.held_bytes -= joined.len();
        Ok(Some(joined))
    }
}

/// The last frame of every fragment is marked as final, but only that of the last fragment ends the message.
fn unmark_final(mut frames: &mut [u8]) {
    while let Ok(Some((bytes, flags))) = header(frames) {
        if flags & FINAL != 0 {
            frames[4..HEADER_BYTES].copy_from_slice(&(flags & !FINAL).to_le_bytes());
        }
        match frames.get_mut(bytes..) {
            Some(rest) => frames = rest,
            None => return,
        }
    }
}
