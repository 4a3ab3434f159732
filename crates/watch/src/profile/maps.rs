//! Names of compiled functions by their address, from the maps that runtimes write (`/tmp/perf-PID.map`: a line
//! `START SIZE NAME` for each, in hexadecimal digits).
//!
//! Runtimes use addresses again. The newest line about an address counts here, while `perf script` takes an older one.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use crate::files::{self, Accepts};

/// A map has a line for everything that was ever compiled.
const MAP_BYTES_MAX: u64 = 512 << 20;

/// Of one map: end and name by start.
type Functions = BTreeMap<u64, (u64, String)>;

fn read(text: &str) -> Functions {
    let mut functions = Functions::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut number = || parts.next().and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let (Some(start), Some(size)) = (number(), number()) else { continue };
        let (Some(name), end) = (parts.next(), start.saturating_add(size)) else { continue };
        // What was there before is gone.
        while let Some((old, (old_end, _))) = functions.range(..end).next_back() {
            let old = *old;
            if *old_end <= start {
                break;
            }
            functions.remove(&old);
        }
        functions.insert(start, (end, name.to_owned()));
    }
    functions
}

/// The lines of `perf script`, with such names in place of its own.
pub(super) struct Renamed<R> {
    script: R,
    maps: BTreeMap<String, Functions>,
    line: Vec<u8>,
    read: usize,
}

impl<R: BufRead> Renamed<R> {
    pub(super) fn of(script: R) -> Self {
        Renamed { script, maps: BTreeMap::new(), line: Vec::new(), read: 0 }
    }

    /// A line of a frame in a map, anew; `None`: it is another, or its address is in no function.
    fn anew(&mut self) -> Option<String> {
        let line = std::str::from_utf8(&self.line).ok()?.trim();
        let (_, path) = line.strip_suffix(')')?.rsplit_once(" (")?;
        if !path.starts_with("/tmp/perf-") || !path.ends_with(".map") {
            return None;
        }
        let address = u64::from_str_radix(line.split_once(' ')?.0, 16).ok()?;
        let functions = self.maps.entry(path.to_owned()).or_insert_with(|| {
            // Without it the names of perf stay.
            let text = files::read(Path::new(path), Accepts::Files, MAP_BYTES_MAX).unwrap_or_default();
            read(&String::from_utf8_lossy(&text))
        });
        let (_, (end, name)) = functions.range(..=address).next_back()?;
        (address < *end).then(|| format!("\t{address:x} {name} ({path})\n"))
    }
}

impl<R: BufRead> Read for Renamed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            self.line.clear();
            self.read = 0;
            self.script.read_until(b'\n', &mut self.line)?;
            if let Some(line) = self.anew() {
                self.line = line.into_bytes();
            }
        }
        let count = into.len().min(self.line.len() - self.read);
        into[..count].copy_from_slice(&self.line[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_function_at_an_address_counts() {
        let functions = read(
            "1000 100 JS:~old /a.js:1:1\n1100 80 other\nno line\n10 zz x\n1080 100 JS:*render /b c.js:2:2\nffffffffffffffff 2 end\n",
        );
        let names: Vec<(u64, &str)> =
            functions.iter().map(|(start, (_, name))| (*start, name.as_str())).collect();
        assert_eq!(names, [(0x1080, "JS:*render /b c.js:2:2"), (u64::MAX, "end")]);
    }

    #[test]
    fn frames_in_a_map_are_named_by_it_and_all_others_stay() {
        let path = format!("/tmp/perf-{}.map", u32::MAX - 1 - std::process::id());
        std::fs::write(&path, "7f00 100 JS:~old /a.js:1:1\n7f00 10 JS:*render /b.js:2:2\n").unwrap();
        let script = format!(
            "node 7 1.0: cpu-clock:\n\t7f01 JS:~old /a.js:1:1 ({path})\n\t7f20 [unknown] ({path})\n\t1 main (/bin/x)\n\n"
        );
        let mut named = String::new();
        Renamed::of(script.as_bytes()).read_to_string(&mut named).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(named, script.replace("JS:~old /a.js:1:1", "JS:*render /b.js:2:2"));
    }
}
