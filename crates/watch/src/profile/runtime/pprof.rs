//! The form in which Go writes profiles: gzipped protobuf (`profile.proto` of github.com/google/pprof), of which the fields of
//! stacks are read.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;

use prost::Message;

use super::{Allocation, Allocations, Samples};
use crate::profile::names;
use crate::profile::waits::{On, Wait};

/// Unpacked, at most.
const BYTES_MAX: u64 = 256 << 20;
const FRAMES_MAX: usize = 256;

/// Values of samples, their stacks, and the texts that all names refer to.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    string_table: Vec<Vec<u8>>,
    /// of CPU: ns between two samples
    #[prost(int64, tag = "12")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// innermost first
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    /// the last one is that into which the others were compiled
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// A name of Go's without what its compiler made of a `go` or `defer` in that function: `main.hold.deferwrap1`.
fn without_wrapper(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((bare, last)) if ["deferwrap", "gowrap"].iter().any(|wrap| last.starts_with(wrap)) => bare,
        _ => name,
    }
}

impl Profile {
    /// Errors: it is not gzipped, too long, or no such message.
    pub(super) fn read(gzipped: &[u8]) -> Result<Profile, String> {
        let mut bytes = Vec::new();
        let mut unpacked = flate2::read::MultiGzDecoder::new(gzipped).take(BYTES_MAX + 1);
        unpacked.read_to_end(&mut bytes).map_err(|error| format!("its profile is not gzipped: {error}"))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(format!("its profile has more than {} MiB", BYTES_MAX >> 20));
        }
        Profile::decode(&bytes[..]).map_err(|error| format!("its profile cannot be read: {error}"))
    }

    fn text(&self, at: i64) -> String {
        let bytes = usize::try_from(at).ok().and_then(|at| self.string_table.get(at));
        bytes.map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Where in a sample's values this one is. Errors: it is not there.
    fn column(&self, name: &str) -> Result<usize, String> {
        let at = self.sample_type.iter().position(|one| self.text(one.kind) == name);
        at.ok_or_else(|| format!("its profile has no {name}"))
    }

    /// Each stack with the sums of two values.
    fn stacks(&self, columns: [usize; 2]) -> BTreeMap<String, [u64; 2]> {
        let functions: HashMap<u64, i64> = self.function.iter().map(|one| (one.id, one.name)).collect();
        let name = |line: &Line| {
            let name = functions.get(&line.function_id).map_or(String::new(), |at| self.text(*at));
            names::frame(&without_wrapper(&name).replace(';', ":"), false)
        };
        let locations: HashMap<u64, Vec<String>> =
            self.location.iter().map(|one| (one.id, one.line.iter().map(name).collect())).collect();
        let mut stacks: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for sample in &self.sample {
            let frames = sample.location_id.iter().filter_map(|id| locations.get(id)).flatten();
            let mut frames: Vec<&str> = frames.take(FRAMES_MAX).map(String::as_str).collect();
            frames.reverse();
            let value = |at: usize| sample.value.get(at).copied().unwrap_or(0).max(0) as u64;
            if frames.is_empty() || columns.iter().all(|at| value(*at) == 0) {
                continue;
            }
            let sum = stacks.entry(frames.join(";")).or_default();
            for (sum, at) in sum.iter_mut().zip(columns) {
                *sum = sum.saturating_add(value(at));
            }
        }
        stacks
    }

    /// Of CPU. Errors: it is another profile.
    pub(super) fn samples(&self) -> Result<Samples, String> {
        let count = self.column("samples")?;
        if self.period <= 0 {
            return Err("its profile does not say how often samples were taken".to_owned());
        }
        let stacks = self.stacks([count, count]);
        let folded = stacks.iter().filter(|(_, [count, _])| *count > 0);
        let folded = folded.map(|(stack, [count, _])| format!("{stack} {count}\n")).collect();
        Ok(Samples { folded, per_s: 1e9 / self.period as f64 })
    }

    /// What was allocated. Its numbers are scaled to all allocations: one of `period` bytes was a sample. Errors: it is another
    /// profile.
    pub(super) fn allocations(&self) -> Result<Allocations, String> {
        let bytes = self.column("alloc_space")?;
        let period = self.period.max(1) as u64;
        let each = self.stacks([bytes, bytes]).into_iter().filter(|(_, [bytes, _])| *bytes > 0);
        let each =
            each.map(|(stack, [bytes, _])| Allocation { stack, bytes, samples: bytes.div_ceil(period) });
        Ok(Allocations { each: each.collect() })
    }

    /// What goroutines waited in locks and channels, by the stack with which they waited; of mutexes, with which these were freed.
    /// `None`: there is none at all. Errors: it is another profile.
    pub(super) fn waits(&self) -> Result<Option<Vec<Wait>>, String> {
        let columns = [self.column("delay")?, self.column("contentions")?];
        let each = self.stacks(columns).into_iter().map(|(stack, [ns, count])| Wait {
            stack,
            on: On::Thread,
            ns,
            count,
        });
        let own = each.filter(|one| one.own_function().is_some()).collect();
        Ok((!self.sample.is_empty()).then_some(own))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use super::*;

    /// What `main.serve` waited, as the program answers it; of no samples, nothing that it recorded.
    pub(in super::super) fn of_waits(ns: i64) -> Vec<u8> {
        let mut waits = profile(&["contentions", "delay"], &[1, ns], 1);
        waits.sample.truncate(if ns == 0 { 0 } else { 1 });
        gzipped(&waits.encode_to_vec())
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn profile(kinds: &[&str], values: &[i64], period: i64) -> Profile {
        let texts = ["", "main.burn", "main.serve", "runtime.mallocgc", "e;v\u{1b}il", kinds[0], kinds[1]];
        let line = |function_id| Line { function_id };
        Profile {
            sample_type: vec![ValueType { kind: 5 }, ValueType { kind: 6 }],
            sample: vec![
                Sample { location_id: vec![1, 2], value: values.to_vec() },
                Sample { location_id: vec![2, 77], value: values.to_vec() },
                Sample { location_id: vec![], value: values.to_vec() },
                Sample { location_id: vec![2], value: vec![-5] },
            ],
            location: vec![
                // Both in one: burn was compiled into serve.
                Location { id: 1, line: vec![line(3), line(1)] },
                Location { id: 2, line: vec![line(2)] },
            ],
            function: vec![
                Function { id: 1, name: 1 },
                Function { id: 2, name: 2 },
                Function { id: 3, name: 3 },
                Function { id: 4, name: i64::MAX },
            ],
            string_table: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            period,
        }
    }

    #[test]
    fn stacks_have_the_functions_that_were_compiled_into_others() {
        let cpu = profile(&["samples", "cpu"], &[3, 30_000_000], 10_000_000);
        let read = Profile::read(&gzipped(&cpu.encode_to_vec())).unwrap();
        let expected = "user:main.serve 3\nuser:main.serve;user:main.burn;runtime:runtime.mallocgc 3\n";
        assert_eq!(read.samples().unwrap(), Samples { folded: expected.to_owned(), per_s: 100.0 });
        let heap = profile(&["alloc_objects", "alloc_space"], &[7, 1_000_000], 524_288);
        let found = heap.allocations().unwrap().each;
        let sums: Vec<(u64, u64)> = found.iter().map(|one| (one.bytes, one.samples)).collect();
        assert_eq!(sums, [(1_000_000, 2), (1_000_000, 2)]);
        assert!(heap.samples().is_err_and(|why| why.contains("no samples")));
        let mut block = profile(&["contentions", "delay"], &[7, 1_000_000], 1);
        block.string_table[2] = b"main.serve.deferwrap1".to_vec();
        let waits = block.waits().unwrap().unwrap();
        let found: Vec<_> =
            waits.iter().map(|one| (one.own_function().unwrap(), one.ns, one.count)).collect();
        assert_eq!(found, [("main.serve", 1_000_000, 7), ("main.burn", 1_000_000, 7)]);
        // Locks that are free wait for nobody; that nothing at all is recorded is another thing.
        block.sample.retain(|one| one.location_id.is_empty());
        assert_eq!(block.waits(), Ok(Some(Vec::new())));
        block.sample.clear();
        assert_eq!(block.waits(), Ok(None));
        assert!(cpu.waits().is_err_and(|why| why.contains("no delay")));
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        let whole = gzipped(&profile(&["samples", "cpu"], &[3, 3], 1).encode_to_vec());
        for (bytes, why) in [
            (b"<html>".to_vec(), "not gzipped"),
            (whole[..whole.len() / 2].to_vec(), "not gzipped"),
            (gzipped(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]), "cannot be read"),
            (gzipped(b"\xff\xff"), "cannot be read"),
        ] {
            let refused = Profile::read(&bytes);
            assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{refused:?}");
        }
        assert!(Profile::default().samples().is_err() && Profile::default().allocations().is_err());
    }
}
