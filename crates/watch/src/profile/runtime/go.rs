//! Go programs by `net/http/pprof`, where the server's own origin serves it: allocations, and CPU where `perf` is not permitted.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Asked, Seen, listening, pprof};
use crate::profile::NoProfile;

/// The section that the linker of Go puts into every program.
const SECTION: &[u8] = b"\0.go.buildinfo\0";
/// Names of sections, at most.
const NAMES_BYTES_MAX: u64 = 64 << 10;
/// Answers have some MB at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
const ASKS_WITHIN: Duration = Duration::from_secs(5);

/// Whether a process is one.
pub(super) fn is_one(pid: u32) -> bool {
    let program = File::open(format!("/proc/{pid}/exe"));
    program
        .ok()
        .and_then(|program| section_names(&program))
        .is_some_and(|names| names.windows(SECTION.len()).any(|name| name == SECTION))
}

/// The names of the sections of a 64-bit ELF file of this machine's byte order, each with a zero before and behind it.
fn section_names(file: &File) -> Option<Vec<u8>> {
    let read = |at: u64, count: u64| {
        let mut bytes = vec![0; count as usize];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let head = read(0, 64)?;
    if !head.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let u16_of = |bytes: &[u8], at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let u64_of = |bytes: &[u8], at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    // e_shoff, e_shentsize and e_shstrndx lead to the section with the names: sh_offset and sh_size.
    let table = u64_of(&head, 40)?;
    let (size, index) = (u64::from(u16_of(&head, 58)?), u64::from(u16_of(&head, 62)?));
    let section = read(table.checked_add(size * index)?, size)?;
    read(u64_of(&section, 24)?, u64_of(&section, 32)?.min(NAMES_BYTES_MAX))
}

/// A program that serves its profiles.
#[derive(Debug)]
pub(super) struct Asking {
    address: SocketAddr,
    asked: Asked,
    cpu: Option<JoinHandle<Result<Vec<u8>, String>>>,
    allocations: Option<JoinHandle<Result<Vec<u8>, String>>>,
}

impl Asking {
    /// Errors: no origin, or it does not serve them.
    pub(super) fn start(origin: Option<SocketAddr>, asked: Asked) -> Result<Asking, NoProfile> {
        let none = |said: &str| NoProfile::Tool { name: "Go's pprof", said: super::plain(said) };
        let address = origin.ok_or_else(|| none("it is asked over plain HTTP on this machine only"))?;
        listening::get(address, "/debug/pprof/", ASKS_WITHIN, ANSWER_BYTES_MAX).map_err(|why| {
            none(&format!(
                "{address}/debug/pprof/ cannot be read ({why}); import net/http/pprof and serve it there"
            ))
        })?;
        Ok(Asking { address, asked, cpu: None, allocations: None })
    }

    /// Starts profiles of this length, in whole seconds.
    pub(super) fn hold_begins(&mut self, length: Duration) {
        let seconds = length.as_secs().max(1);
        let begin = |name: &str| {
            let (address, path) = (self.address, format!("/debug/pprof/{name}?seconds={seconds}"));
            let patience = length + PATIENCE;
            std::thread::spawn(move || listening::get(address, &path, patience, ANSWER_BYTES_MAX))
        };
        (self.cpu, self.allocations) =
            (self.asked.cpu.then(|| begin("profile")), self.asked.allocations.then(|| begin("allocs")));
    }

    /// What it saw. Errors: what the server or its answer says.
    pub(super) fn end(mut self) -> Result<(Seen, Option<String>), NoProfile> {
        let failed = |said: String| NoProfile::Tool { name: "Go's pprof", said: super::plain(&said) };
        let fetched = |thread: Option<JoinHandle<Result<Vec<u8>, String>>>| {
            let thread = thread.ok_or_else(|| failed("the hold never began".to_owned()))?;
            let answer = thread.join().map_err(|_| failed("asking it failed".to_owned()))?.map_err(failed)?;
            pprof::Profile::read(&answer).map_err(failed)
        };
        let mut seen = Seen::default();
        if self.asked.cpu {
            seen.cpu = Some(fetched(self.cpu.take())?.samples().map_err(failed)?);
        }
        if self.asked.allocations {
            seen.allocations = Some(fetched(self.allocations.take())?.allocations().map_err(failed)?);
        }
        Ok((seen, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_of_go_by_its_sections_and_not_by_what_it_contains() {
        assert!(!is_one(u32::MAX));
        // These tests contain the name.
        assert!(!is_one(std::process::id()));
        let own = section_names(&File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(own.windows(7).any(|name| name == b"\0.text\0"));
        let folder = tempfile::tempdir().unwrap();
        let mut head = [0; 64];
        head[..5].copy_from_slice(b"\x7fELF\x02");
        head[40..48].copy_from_slice(&u64::MAX.to_ne_bytes());
        head[58..60].copy_from_slice(&[0xff; 2]);
        head[62..64].copy_from_slice(&[0xff; 2]);
        for bytes in [&b""[..], b"#!/bin/sh\n", &head[..40], &head] {
            let path = folder.path().join("program");
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(section_names(&File::open(&path).unwrap()), None);
        }
    }
}
