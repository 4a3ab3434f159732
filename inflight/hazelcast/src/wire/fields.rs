//! Reading parameters: those of fixed size out of one frame, the others frame by frame.
//!
//! Newer members append parameters after the known ones; whatever is not read is skipped.
//! Source: Open Binary Client Protocol 2.x, sections 2.1.3 (variable size) and 2.1.6 (compatibility).

use super::broken::Broken;
use super::frame::{BEGIN, END, Frame, Frames, NULL};
use super::uuid::Uuid;

const CUT_SHORT: Broken = Broken::Malformed("a message that lacks parameters");
const NESTING: Broken = Broken::Malformed("a message whose lists and types do not nest");

/// Parameters of fixed size in one frame's content, little-endian.
#[derive(Clone, Copy)]
pub(super) struct Fixed<'a> {
    content: &'a [u8],
}

impl<'a> Fixed<'a> {
    pub fn new(content: &'a [u8]) -> Self {
        Fixed { content }
    }

    fn bytes<const N: usize>(&self, offset: usize) -> Result<[u8; N], Broken> {
        self.content.get(offset..).and_then(|rest| rest.first_chunk()).copied().ok_or(CUT_SHORT)
    }

    pub fn u8(&self, offset: usize) -> Result<u8, Broken> {
        self.bytes::<1>(offset).map(|[byte]| byte)
    }

    pub fn bool(&self, offset: usize) -> Result<bool, Broken> {
        self.u8(offset).map(|byte| byte != 0)
    }

    pub fn i32(&self, offset: usize) -> Result<i32, Broken> {
        self.bytes(offset).map(i32::from_le_bytes)
    }

    /// A UUID takes 17 bytes: whether it is null, and its two halves.
    pub fn uuid(&self, offset: usize) -> Result<Option<Uuid>, Broken> {
        let bytes = self.bytes::<17>(offset)?;
        if bytes[0] != 0 {
            return Ok(None);
        }
        let half = |from: usize| {
            let mut half = [0; 8];
            half.copy_from_slice(&bytes[from..from + 8]);
            u64::from_le_bytes(half)
        };
        Ok(Some(Uuid::from_halves(half(1), half(9))))
    }
}

/// The frames after a message's first one.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    frames: Frames<'a>,
}

impl<'a> Fields<'a> {
    pub fn new(frames: &'a [u8]) -> Self {
        Fields { frames: Frames::new(frames) }
    }

    fn next(&mut self) -> Result<Frame<'a>, Broken> {
        self.frames.next().ok_or(CUT_SHORT)
    }

    /// A frame that carries a parameter.
    fn content(&mut self) -> Result<&'a [u8], Broken> {
        let frame = self.next()?;
        if frame.flags & (BEGIN | END | NULL) == 0 { Ok(frame.content) } else { Err(NESTING) }
    }

    /// A serialised value, a list of numbers, anything in one frame.
    pub fn bytes(&mut self) -> Result<&'a [u8], Broken> {
        self.content()
    }

    pub fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>, Broken> {
        let frame = self.next()?;
        match frame.flags & (BEGIN | END | NULL) {
            0 => Ok(Some(frame.content)),
            NULL => Ok(None),
            _ => Err(NESTING),
        }
    }

    pub fn string(&mut self) -> Result<&'a str, Broken> {
        std::str::from_utf8(self.content()?).map_err(|_| Broken::Malformed("a string that is not UTF-8"))
    }

    pub fn optional_string(&mut self) -> Result<Option<&'a str>, Broken> {
        let Some(bytes) = self.optional_bytes()? else { return Ok(None) };
        std::str::from_utf8(bytes).map(Some).map_err(|_| Broken::Malformed("a string that is not UTF-8"))
    }

    /// The parameters of fixed size of a custom type.
    pub fn fixed(&mut self) -> Result<Fixed<'a>, Broken> {
        self.content().map(Fixed::new)
    }

    /// Begin of a list or custom type.
    pub fn open(&mut self) -> Result<(), Broken> {
        if self.next()?.is(BEGIN) { Ok(()) } else { Err(NESTING) }
    }

    /// Whether the list ends here; its end is taken then.
    pub fn closes(&mut self) -> Result<bool, Broken> {
        let mut ahead = self.frames.clone();
        let frame = ahead.next().ok_or(CUT_SHORT)?;
        if frame.is(END) {
            self.frames = ahead;
        }
        Ok(frame.is(END))
    }

    /// Skips past the end of the custom type or list that was opened last.
    pub fn close(&mut self) -> Result<(), Broken> {
        let mut depth = 1u32;
        while depth > 0 {
            let frame = self.next()?;
            // There cannot be more levels than frames, and frames are fewer than 2³².
            if frame.is(BEGIN) {
                depth += 1;
            } else if frame.is(END) {
                depth -= 1;
            }
        }
        Ok(())
    }

    /// Skips one parameter of any kind.
    pub fn skip(&mut self) -> Result<(), Broken> {
        let frame = self.next()?;
        if frame.is(END) {
            return Err(NESTING);
        }
        if frame.is(BEGIN) { self.close() } else { Ok(()) }
    }
}
