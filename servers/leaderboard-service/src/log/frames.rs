//! Files of frames: a header, then frames of a length, a checksum and a payload each.
//!
//! A frame is what one write and one fdatasync put on disk, so only the last frame of the last file can be torn by a
//! crash. Bytes that are no frame are therefore a torn tail if no valid frame follows them, and corruption if one does.
//! A log has preallocated room for more frames at its end, filled with zeros: an fdatasync of data written there takes
//! half as long as one that has to grow the file.
//! The checksum also covers the frame's offset and a number drawn for the file: neither a payload that looks like a
//! frame nor old data of another file in the same place is taken for one.

use std::io;
use std::ops::RangeInclusive;

use super::disk::{self, DiskFile};

const MAGIC: [u8; 4] = *b"\xf5SLF";
const HEAD_BYTES: usize = 12;

/// Bytes of a file's header: what it is, its number, the number drawn for it, and a checksum of these.
pub(super) const FILE_HEAD_BYTES: usize = 28;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn mark(self) -> &'static [u8; 8] {
        match self {
            FileKind::Log => b"SLBLOG02",
            FileKind::Snapshot => b"SLBSNP02",
        }
    }
}

/// Appends frames to a file.
pub(super) struct FrameWriter {
    file: Box<dyn DiskFile>,
    offset: u64,
    /// Up to here the file has zeros.
    room: u64,
    /// Room that is made at once: as many bytes as the file has already, within these bounds.
    extension: RangeInclusive<u64>,
    salt: u64,
}

impl FrameWriter {
    /// Begins a new file.
    pub(super) fn begin(mut file: Box<dyn DiskFile>, kind: FileKind, number: u64) -> io::Result<FrameWriter> {
        let salt = fastrand::u64(..);
        file.write_at(0, &head(kind, number, salt))?;
        let offset = FILE_HEAD_BYTES as u64;
        Ok(FrameWriter { file, offset, room: offset, extension: 0..=0, salt })
    }

    /// From now on room is made for so many bytes at once.
    pub(super) fn with_room(self, extension: RangeInclusive<u64>) -> FrameWriter {
        FrameWriter { extension, ..self }
    }

    /// Appends one frame; it is on disk after `sync`. After an error the file has to be given up, or cut by `take_back`.
    pub(super) fn put(&mut self, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..].copy_from_slice(&checksum(self.salt, self.offset, payload).to_le_bytes());
        let end = self.offset + (HEAD_BYTES + payload.len()) as u64;
        if end > self.room && *self.extension.end() > 0 {
            self.make_room(end)?;
        }
        self.file.write_at(self.offset, &head)?;
        self.file.write_at(self.offset + HEAD_BYTES as u64, payload)?;
        self.offset = end;
        Ok(())
    }

    /// Makes room for a frame up to `end`, and for later ones.
    fn make_room(&mut self, end: u64) -> io::Result<()> {
        let from = self.room.max(self.offset);
        self.room = end + self.offset.clamp(*self.extension.start(), *self.extension.end());
        match self.file.extend(from, self.room) {
            // Frames may still fit; otherwise each of them would first fill the disk with zeros.
            Err(error) if disk::is_full(&error) => {
                self.extension = 0..=0;
                self.take_back()
            }
            extended => extended,
        }
    }

    /// Removes what a `put` that failed has left, and what room there was.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.room = self.offset;
        self.file.truncate(self.offset)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    /// Bytes of the file without its room.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }
}

/// How a file ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a frame, possibly followed by preallocated room.
    Whole,
    /// From here on there is the beginning of a frame that was never completed.
    Torn { at: usize },
}

/// Bytes that are no frame, followed by frames.
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
    let salt = u64::from_le_bytes(std::array::from_fn(|at| bytes[16 + at]));
    if bytes[..FILE_HEAD_BYTES] != head(kind, number, salt) {
        // The header is on disk before the first frame is written.
        return if bytes.len() == FILE_HEAD_BYTES { Ok(End::Torn { at: 0 }) } else { Err(Corrupt { at: 0 }) };
    }
    let end = used_bytes(bytes);
    let mut at = FILE_HEAD_BYTES;
    // A frame may end in zeros, but none begins with one.
    while at < end {
        match frame(bytes, salt, at) {
            Some(payload) if each(payload) => at += HEAD_BYTES + payload.len(),
            Some(_) => return Err(Corrupt { at }),
            None => {
                let mut later = memchr::memmem::find_iter(&bytes[at + 1..], &MAGIC);
                let follows = later.any(|found| frame(bytes, salt, at + 1 + found).is_some());
                return if follows { Err(Corrupt { at }) } else { Ok(End::Torn { at }) };
            }
        }
    }
    Ok(End::Whole)
}

/// Up to where a file is not just zeros.
pub(super) fn used_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// The payload of the frame that begins here, if one does.
fn frame(bytes: &[u8], salt: u64, at: usize) -> Option<&[u8]> {
    let head = bytes.get(at..at + HEAD_BYTES)?;
    let number =
        |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    let from = at + HEAD_BYTES;
    let payload = bytes.get(from..from.checked_add(number(4) as usize)?)?;
    (head[..4] == MAGIC && checksum(salt, at as u64, payload) == number(8)).then_some(payload)
}

fn head(kind: FileKind, number: u64, salt: u64) -> [u8; FILE_HEAD_BYTES] {
    let mut head = [0; FILE_HEAD_BYTES];
    head[..8].copy_from_slice(kind.mark());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..24].copy_from_slice(&salt.to_le_bytes());
    let sum = crc32fast::hash(&head[..24]);
    head[24..].copy_from_slice(&sum.to_le_bytes());
    head
}

fn checksum(salt: u64, offset: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// The bytes of a file with these payloads, as `FrameWriter` writes them.
#[cfg(feature = "fuzz")]
pub(super) fn file_of(kind: FileKind, number: u64, payloads: &[&[u8]]) -> Vec<u8> {
    let salt = 7;
    let mut bytes = head(kind, number, salt).to_vec();
    for payload in payloads {
        let sum = checksum(salt, bytes.len() as u64, payload);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(payload);
    }
    bytes
}

/// Makes all checksums valid, whatever the payloads are: what a log without them would be.
#[cfg(test)]
pub(super) fn repair_checksums(bytes: &mut [u8]) {
    let salt = u64::from_le_bytes(std::array::from_fn(|at| bytes[16 + at]));
    let mut at = FILE_HEAD_BYTES;
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let length = u32::from_le_bytes(std::array::from_fn(|byte| head[4 + byte])) as usize;
        let Some(payload) = bytes.get(at + HEAD_BYTES..at + HEAD_BYTES + length) else { return };
        let sum = checksum(salt, at as u64, payload).to_le_bytes();
        bytes[at + 8..at + HEAD_BYTES].copy_from_slice(&sum);
        at += HEAD_BYTES + length;
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::Disk;
    use super::super::simulated::SimulatedDisk;
    use super::*;

    /// Where the frames of `file` with three, three and five bytes begin.
    const STARTS: [usize; 3] = [28, 43, 58];

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let disk = SimulatedDisk::default();
        let mut writer = FrameWriter::begin(disk.create("log").unwrap(), FileKind::Log, 7).unwrap();
        payloads.iter().for_each(|payload| writer.put(payload).unwrap());
        disk.read("log").unwrap()
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
        for length in 0..whole.len() {
            let count = STARTS.iter().skip(1).filter(|end| length >= **end).count();
            let at = if length < 28 { 0 } else { STARTS[count] };
            let end = if length == at && length >= 28 { End::Whole } else { End::Torn { at } };
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
                0..28 => check(&bytes, 0, Err(Corrupt { at: 0 })),
                28..43 => check(&bytes, 0, Err(Corrupt { at: 28 })),
                43..58 => check(&bytes, 1, Err(Corrupt { at: 43 })),
                _ => check(&bytes, 2, Ok(End::Torn { at: 58 })),
            }
        }
    }

    #[test]
    fn room_at_the_end_is_no_frame_and_what_is_torn_within_it_is_found() {
        let disk = SimulatedDisk::default();
        let writer = FrameWriter::begin(disk.create("log").unwrap(), FileKind::Log, 7).unwrap();
        let mut writer = writer.with_room(20..=20);
        let mut lengths = Vec::new();
        for payload in [&b"one"[..], b"two", b"th\0"] {
            writer.put(payload).unwrap();
            lengths.push(disk.read("log").unwrap().len());
        }
        assert_eq!((lengths, writer.bytes()), (vec![63, 63, 93], 73));
        let whole = disk.read("log").unwrap();
        check(&whole, 3, Ok(End::Whole));
        for at in 58..73 {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            check(&bytes, 2, Ok(End::Torn { at: 58 }));
            // Nothing of the last frame is on disk before this byte.
            bytes[58..=at].fill(0);
            check(&bytes, 2, Ok(if at >= 71 { End::Whole } else { End::Torn { at: 58 } }));
        }
    }

    #[test]
    fn frames_of_another_file_in_the_same_place_are_not_taken() {
        let (one, other) = (file(&[b"one", b"two"]), file(&[b"one", b"two"]));
        check(&[&one[..43], &other[43..]].concat(), 1, Ok(End::Torn { at: 43 }));
    }
}
