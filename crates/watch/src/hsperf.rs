//! What a JVM tells without being asked: the counters that it keeps in a file mapped into its memory, as `jcmd PerfCounter.print`
//! shows them.
//!
//! The file is `/tmp/hsperfdata_USER/PID`, seen through the process's own root; numbers may be those of its own namespace. It is written
//! by another program while it is read, so every length and offset is checked, and a counter that cannot be read is absent.
//! Source: HotSpot's perfMemory.hpp, version 2.0 of the format.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::{self, Accepts};

/// The longest file that is read: 32 KiB by default (`-XX:PerfDataMemorySize`).
const SIZE_MAX: u64 = 1 << 20;
const MAGIC: u32 = 0xcafe_c0c0;
const PROLOGUE: usize = 32;
const ENTRY: usize = 20;
/// Most entries that are read; a JVM has about 250.
const ENTRIES_MAX: u32 = 4_096;

/// The counters of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// in which all threads were stopped to collect garbage, since the start, s
    pub gc_s: f64,
    /// of the heap, in use
    pub heap_used_bytes: f64,
}

/// The file of a process; `None` where it is no JVM, or keeps none.
pub(crate) fn find(pid: i32) -> Option<PathBuf> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let inner =
        status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().next_back()?;
    let folders = fs::read_dir(format!("/proc/{pid}/root/tmp")).ok()?.flatten();
    let of_jvms = folders.filter(|folder| folder.file_name().as_encoded_bytes().starts_with(b"hsperfdata_"));
    of_jvms.map(|folder| folder.path().join(inner)).find(|path| path.is_file())
}

/// Reads such a file.
pub(crate) fn read(path: &Path) -> Option<Counters> {
    parse(&files::read(path, Accepts::Files, SIZE_MAX).ok()?)
}

/// Of the bytes of such a file; `None` where they are none.
pub fn parse(bytes: &[u8]) -> Option<Counters> {
    let prologue = bytes.first_chunk::<PROLOGUE>()?;
    if u32::from_be_bytes(*prologue.first_chunk()?) != MAGIC {
        return None;
    }
    let reader = Reader { bytes, is_little: prologue[4] == 1 };
    let (mut at, count) = (reader.u32(24)? as usize, reader.u32(28)?.min(ENTRIES_MAX));
    let (mut collectors, mut safepoints, mut frequency, mut used) = (0.0, None, None, 0.0);
    for _ in 0..count {
        let length = reader.u32(at)? as usize;
        if length < ENTRY {
            return None;
        }
        if let Some((name, value)) = reader.number(at, length) {
            match name {
                b"sun.os.hrt.frequency" => frequency = Some(value),
                b"sun.rt.safepointTime" => safepoints = Some(value),
                _ if name.starts_with(b"sun.gc.collector.") && name.ends_with(b".time") => {
                    collectors += value
                }
                _ if name.starts_with(b"sun.gc.generation.") && name.ends_with(b".used") => used += value,
                _ => {}
            }
        }
        at = at.checked_add(length)?;
    }
    let frequency = frequency.filter(|frequency| *frequency > 0.0)?;
    // A collector that works beside the threads counts that time too; only stops count here.
    let stopped = safepoints.map_or(collectors, |safepoints| collectors.min(safepoints));
    Some(Counters { gc_s: stopped / frequency, heap_used_bytes: used })
}

struct Reader<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl<'a> Reader<'a> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// Name and value of the entry at this place, where it is a whole number that is not negative.
    fn number(&self, at: usize, length: usize) -> Option<(&'a [u8], f64)> {
        let entry = self.bytes.get(at..at.checked_add(length)?)?;
        let kind = *entry.get(12)?;
        if kind != b'J' || self.u32(at.checked_add(8)?)? != 0 {
            return None;
        }
        let name = entry.get(self.u32(at.checked_add(4)?)? as usize..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        let value = *entry.get(self.u32(at.checked_add(16)?)? as usize..)?.first_chunk::<8>()?;
        let value = if self.is_little { i64::from_le_bytes(value) } else { i64::from_be_bytes(value) };
        (value >= 0).then_some((name, value as f64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(entries: &[(&str, i64)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_be_bytes().to_vec();
        bytes.extend([1, 2, 0, 1]);
        bytes.extend([0; 16]);
        bytes.extend((PROLOGUE as u32).to_le_bytes());
        bytes.extend((entries.len() as u32).to_le_bytes());
        for (name, value) in entries {
            let data_at = (ENTRY + name.len() + 1).next_multiple_of(8);
            for number in [data_at + 8, ENTRY, 0] {
                bytes.extend((number as u32).to_le_bytes());
            }
            bytes.extend([b'J', 0, 1, 1]);
            bytes.extend((data_at as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.resize(bytes.len() + data_at - ENTRY - name.len(), 0);
            bytes.extend(value.to_le_bytes());
        }
        bytes
    }

    const OF_JVM: [(&str, i64); 7] = [
        ("sun.os.hrt.frequency", 1_000_000_000),
        ("sun.gc.collector.0.time", 371_442_868),
        ("sun.gc.collector.1.time", 1_829_375_206),
        ("sun.rt.safepointTime", 2_229_227_635),
        ("sun.gc.generation.0.space.0.used", 1_000),
        ("sun.gc.generation.1.space.0.used", 40_265_040),
        ("sun.gc.metaspace.used", 144_640),
    ];

    #[test]
    fn the_time_of_stops_and_the_heap_are_read() {
        let counters = parse(&file(&OF_JVM)).unwrap();
        assert!((counters.gc_s - 2.200_818_074).abs() < 1e-9, "{counters:?}");
        assert_eq!(counters.heap_used_bytes, 40_266_040.0);
        let mut beside = OF_JVM;
        beside[3].1 = 5_000_000;
        assert_eq!(parse(&file(&beside)).unwrap().gc_s, 0.005, "a collector that works beside the threads");
        assert_eq!(parse(&file(&OF_JVM[1..])), None, "times without a unit");
        assert_eq!(parse(b"no such file"), None);
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_are_reading_ends(at in 0usize..600, value: u8, cut in 0usize..700) {
            let mut bytes = file(&OF_JVM);
            let length = bytes.len();
            bytes[at % length] = value;
            bytes.truncate(cut);
            if let Some(counters) = parse(&bytes) {
                prop_assert!(counters.gc_s >= 0.0 && counters.heap_used_bytes >= 0.0);
            }
        }
    }
}
