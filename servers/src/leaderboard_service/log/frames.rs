//! Files of frames: a header, then frames of a length, a checksum and a payload each.
//!
//! A frame is what one write and one fdatasync put on disk, so only the last frame of the last file can be torn by a
//! crash. Bytes that are no frame are therefore a torn tail if no valid frame follows them, and corruption if one does.
//! The checksum covers the frame's offset, too: a payload that looks like a frame is not taken for one elsewhere.

use std::fs::File;
use std::io::{self, Write};

const MAGIC: [u8; 4] = *b"\xf5SLF";
const HEAD_BYTES: usize = 12;

/// Bytes of a file's header: what it is, and its number.
pub(super) const FILE_HEAD_BYTES: usize = 16;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn mark(self) -> &'static [u8; 8] {
        match self {
            FileKind::Log => b"SLBLOG01",
            FileKind::Snapshot => b"SLBSNP01",
        }
    }
}

/// Appends frames to a file.
pub(super) struct FrameWriter {
    file: File,
    offset: u64,
    head: Vec<u8>,
}

impl FrameWriter {
    /// Begins a new file.
    pub(super) fn begin(mut file: File, kind: FileKind, number: u64) -> io::Result<FrameWriter> {
        file.write_all(&[*kind.mark(), number.to_le_bytes()].concat())?;
        Ok(FrameWriter { file, offset: FILE_HEAD_BYTES as u64, head: Vec::new() })
    }

    /// Appends one frame; it is on disk after `sync`.
    pub(super) fn put(&mut self, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        self.head.clear();
        self.head.extend_from_slice(&MAGIC);
        self.head.extend_from_slice(&length.to_le_bytes());
        self.head.extend_from_slice(&checksum(self.offset, payload).to_le_bytes());
        self.file.write_all(&self.head)?;
        self.file.write_all(payload)?;
        self.offset += (HEAD_BYTES + payload.len()) as u64;
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }
}

/// How a file ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// From here on there is the beginning of a frame that was never completed.
    Torn {
        at: usize,
    },
}

/// Bytes that are no frame, with frames behind them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Corrupt {
    pub(super) at: usize,
}

/// Hands all payloads of a file to `each`, which says whether one is valid.
pub(super) fn read(
    bytes: &[u8],
    kind: FileKind,
    number: u64,
    mut each: impl FnMut(&[u8]) -> bool,
) -> Result<End, Corrupt> {
    if bytes.len() < FILE_HEAD_BYTES {
        return Ok(End::Torn { at: 0 });
    }
    if bytes[..FILE_HEAD_BYTES] != [*kind.mark(), number.to_le_bytes()].concat() {
        return Err(Corrupt { at: 0 });
    }
    let mut at = FILE_HEAD_BYTES;
    while at < bytes.len() {
        match frame(bytes, at) {
            Some(payload) if each(payload) => at += HEAD_BYTES + payload.len(),
            Some(_) => return Err(Corrupt { at }),
            None => {
                let mut later = memchr::memmem::find_iter(&bytes[at + 1..], &MAGIC);
                let follows = later.any(|found| frame(bytes, at + 1 + found).is_some());
                return if follows { Err(Corrupt { at }) } else { Ok(End::Torn { at }) };
            }
        }
    }
    Ok(End::Whole)
}

/// The payload of the frame that begins here, if one does.
fn frame(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let head = bytes.get(at..at + HEAD_BYTES)?;
    let number =
        |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    let from = at + HEAD_BYTES;
    let payload = bytes.get(from..from.checked_add(number(4) as usize)?)?;
    (head[..4] == MAGIC && checksum(at as u64, payload) == number(8)).then_some(payload)
}

fn checksum(offset: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut writer = FrameWriter::begin(File::create(&path).unwrap(), FileKind::Log, 7).unwrap();
        payloads.iter().for_each(|payload| writer.put(payload).unwrap());
        std::fs::read(path).unwrap()
    }

    fn check(bytes: &[u8], count: usize, expected: Result<End, Corrupt>) {
        let mut found = 0;
        let end = read(bytes, FileKind::Log, 7, |_| {
            found += 1;
            true
        });
        assert_eq!((end, found), (expected, count));
    }

    #[test]
    fn a_file_cut_anywhere_keeps_all_whole_frames() {
        let whole = file(&[b"one", b"two", b"three"]);
        check(&whole, 3, Ok(End::Whole));
        let starts = [16, 31, 46];
        for length in 0..whole.len() {
            let frames =
                starts.iter().filter(|start| length >= *start + 15 + if **start == 46 { 2 } else { 0 });
            let count = frames.count();
            let at = if length < 16 { 0 } else { starts.get(count).copied().unwrap_or(0) };
            let end = if length == at && length >= 16 { End::Whole } else { End::Torn { at } };
            check(&whole[..length], count, Ok(end));
        }
    }

    #[test]
    fn any_changed_byte_is_found_with_its_frame_unless_it_is_in_the_last_one() {
        let whole = file(&[b"one", b"two", b"three"]);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            match at {
                0..16 => check(&bytes, 0, Err(Corrupt { at: 0 })),
                16..31 => check(&bytes, 0, Err(Corrupt { at: 16 })),
                31..46 => check(&bytes, 1, Err(Corrupt { at: 31 })),
                _ => check(&bytes, 2, Ok(End::Torn { at: 46 })),
            }
        }
    }
}
