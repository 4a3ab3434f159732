//! Go programs by `net/http/pprof`: allocations, where goroutines wait and who holds what they wait for, pauses of the collector, and
//! CPU where `perf` is not permitted. It is asked on this machine, over plain HTTP.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt as _;
use std::thread::JoinHandle;
use std::time::Duration;

use measure::Stops;

use super::{Asked, Seen, Served, Window, listening, pprof};
use crate::profile::{NoProfile, Waits};

/// The section that the linker of Go puts into every program.
const SECTION: &[u8] = b"\0.go.buildinfo\0";
/// Names of sections, at most.
const NAMES_BYTES_MAX: u64 = 64 << 10;
/// Answers have some MB at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// Its heap with the figures of its collections, as text.
const HEAP: &str = "heap?debug=1";
/// Some ports of a program answer nobody who speaks HTTP.
const ASKS_WITHIN: Duration = Duration::from_secs(2);

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

/// A profile that is asked for while the hold lasts.
type Answer = Option<JoinHandle<Result<Vec<u8>, String>>>;

/// A program that serves its profiles.
#[derive(Debug)]
pub(super) struct Asking {
    address: SocketAddr,
    /// ends with a slash
    path: String,
    asked: Asked,
    /// the program records who holds its locks
    has_mutexes: bool,
    length: Duration,
    cpu: Answer,
    allocations: Answer,
    waits: Answer,
    holders: Answer,
}

impl Asking {
    /// Where it was said that they are served, else where the server answers its users, else on a port of its own.
    ///
    /// Errors: they are served nowhere there.
    pub(super) fn start(pid: u32, at: &Served, asked: Asked) -> Result<Asking, NoProfile> {
        let usual = |address| (address, "/debug/pprof/".to_owned());
        let own =
            listening::ports_of(pid).into_iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let looked_at: Vec<(SocketAddr, String)> = match &at.pprof {
            Some(said) => vec![said.clone()],
            None => at
                .origin
                .into_iter()
                .chain(own.filter(|address| Some(*address) != at.origin))
                .map(usual)
                .collect(),
        };
        let mut why = None;
        for (address, path) in looked_at {
            let mut asking = Asking {
                address,
                path,
                asked,
                has_mutexes: false,
                length: Duration::ZERO,
                cpu: None,
                allocations: None,
                waits: None,
                holders: None,
            };
            // Many servers answer whatever they are asked for.
            match asking.get(HEAP) {
                Ok(text) if text.starts_with(b"heap profile:") => {
                    asking.has_mutexes = asked.waits && asking.records_mutexes();
                    return Ok(asking);
                }
                Ok(_) => why = why.or(Some((asking, "it answers something else".to_owned()))),
                Err(error) => why = why.or(Some((asking, error))),
            }
        }
        let why = why.map_or("it is asked over plain HTTP on this machine only".to_owned(), |(at, why)| {
            format!("{}{} does not serve it ({why})", at.address, at.path)
        });
        let said = format!("{why}; let the program serve net/http/pprof, and say where with --pprof URL");
        Err(failed(said))
    }

    /// Whether both ask the same.
    pub(super) fn is_of(&self, other: &Asking) -> bool {
        (self.address, &self.path) == (other.address, &other.path)
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, String> {
        listening::get(self.address, &format!("{}{name}", self.path), ASKS_WITHIN, ANSWER_BYTES_MAX)
    }

    fn records_mutexes(&self) -> bool {
        let text = self.get("mutex?debug=1").unwrap_or_default();
        String::from_utf8_lossy(&text).lines().any(|line| {
            line.strip_prefix("sampling period=").is_some_and(|period| period.trim().parse().unwrap_or(0) > 0)
        })
    }

    /// Starts profiles of this length, in whole seconds.
    pub(super) fn hold_begins(&mut self, length: Duration) {
        self.length = Duration::from_secs(length.as_secs().max(1));
        let begin = |is_asked: bool, name: &str| {
            let (address, path) =
                (self.address, format!("{}{name}?seconds={}", self.path, self.length.as_secs()));
            let patience = length + PATIENCE;
            is_asked.then(|| {
                std::thread::spawn(move || listening::get(address, &path, patience, ANSWER_BYTES_MAX))
            })
        };
        let Asked { cpu, allocations, waits, .. } = self.asked;
        (self.cpu, self.allocations) = (begin(cpu, "profile"), begin(allocations, "allocs"));
        (self.waits, self.holders) = (begin(waits, "block"), begin(self.has_mutexes, "mutex"));
    }

    /// What it saw. Errors: what the server or its answer says.
    pub(super) fn end(mut self, window: Window) -> Result<(Seen, Option<String>), NoProfile> {
        let fetched = |thread: Answer| {
            let thread = thread.ok_or_else(|| failed("the hold never began".to_owned()))?;
            let answer = thread.join().map_err(|_| failed("asking it failed".to_owned()))?.map_err(failed)?;
            pprof::Profile::read(&answer).map_err(failed)
        };
        let mut seen = Seen { stops: self.stops(window), ..Seen::default() };
        if self.asked.cpu {
            seen.cpu = Some(fetched(self.cpu.take())?.samples().map_err(failed)?);
        }
        if self.asked.allocations {
            seen.allocations = Some(fetched(self.allocations.take())?.allocations().map_err(failed)?);
        }
        let mut note = None;
        if self.asked.waits {
            // Where waits are recorded there is at least that of the one who asks for them.
            let each = fetched(self.waits.take())?.waits().map_err(failed)?;
            let holders =
                if self.has_mutexes { fetched(self.holders.take())?.waits().map_err(failed)? } else { None };
            let missing: Vec<&str> = [
                (each.is_none(), "where its goroutines wait (runtime.SetBlockProfileRate switches that on)"),
                (
                    !self.has_mutexes,
                    "who holds the locks that they wait for (runtime.SetMutexProfileFraction)",
                ),
            ]
            .into_iter()
            .filter_map(|(is_missing, what)| is_missing.then_some(what))
            .collect();
            note = (!missing.is_empty())
                .then(|| format!("the Go program does not record {}", missing.join(", nor ")));
            if each.is_some() || self.has_mutexes {
                let covered_ns = self.length.as_nanos() as u64;
                seen.waits = Some(Waits {
                    each: each.unwrap_or_default(),
                    holders: holders.unwrap_or_default(),
                    covered_ns,
                });
            }
        }
        Ok((seen, note))
    }

    /// Its collections within the hold, of the last 256.
    fn stops(&self, window: Window) -> Option<Stops> {
        let text = self.get(HEAP).ok()?;
        gc_of(&String::from_utf8_lossy(&text), window.realtime_ns)
    }
}

fn failed(said: String) -> NoProfile {
    NoProfile::Tool { name: "Go's pprof", said: super::plain(&said) }
}

/// The collector's pauses within a hold, from the lines of `runtime.MemStats`: `# PauseNs = [1 2 …]`, `# PauseEnd = […]`.
/// Both are circles of the last 256; where these do not reach back to its beginning, the share is of the part that they cover.
fn gc_of(text: &str, (from_ns, to_ns): (u64, u64)) -> Option<Stops> {
    let list = |name: &str| -> Option<Vec<u64>> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ["))?;
        line.strip_suffix(']')?.split(' ').map(|number| number.parse().ok()).collect()
    };
    let (pauses, ends) = (list("# PauseNs")?, list("# PauseEnd")?);
    let mut all: Vec<(u64, u64)> =
        ends.into_iter().zip(pauses).filter(|(end, _)| *end > 0 && *end < to_ns).collect();
    all.sort_unstable();
    let is_full = all.len() >= 256;
    let seen_from_ns =
        if is_full { all.first().map_or(from_ns, |(end, _)| from_ns.max(*end)) } else { from_ns };
    let within: Vec<u64> =
        all.into_iter().filter(|(end, _)| *end > seen_from_ns).map(|(_, pause)| pause).collect();
    let seen_ns = to_ns.checked_sub(seen_from_ns).filter(|ns| *ns > 0)?;
    Some(Stops {
        gc_share: Some((within.iter().sum::<u64>() as f64 / seen_ns as f64).min(1.0)),
        gc_max_ns: Some(within.into_iter().max().unwrap_or(0)),
        ..Stops::default()
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Serves what a Go program would, whose block profile has this wait, below `/p/`; ends with the test.
    fn serve(period: u64, ns: i64) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                let mut request = [0; 1024];
                let count = socket.read(&mut request).unwrap();
                let body = match std::str::from_utf8(&request[..count]).unwrap().split(' ').nth(1).unwrap() {
                    "/heap?debug=1" => b"well".to_vec(),
                    "/p/mutex?debug=1" => format!("--- mutex:\nsampling period={period}\n").into_bytes(),
                    "/p/block?seconds=2" => pprof::tests::of_waits(ns),
                    "/p/mutex?seconds=2" => pprof::tests::of_waits(7),
                    "/p/heap?debug=1" => {
                        b"heap profile: 0\n# PauseNs = [5 0]\n# PauseEnd = [50 0]\n".to_vec()
                    }
                    _ => continue,
                };
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                socket.write_all(&[head.as_bytes(), &body].concat()).unwrap();
            }
        });
        address
    }

    #[test]
    fn what_a_program_does_not_record_is_said_and_what_it_does_is_told() {
        let blocks = "where its goroutines wait (runtime.SetBlockProfileRate switches that on)";
        let mutexes = "who holds the locks that they wait for (runtime.SetMutexProfileFraction)";
        for (period, ns, expected, note) in [
            (1, 90, Some((vec![90], vec![7])), None),
            (0, 90, Some((vec![90], vec![])), Some(mutexes.to_owned())),
            (5, 0, Some((vec![], vec![7])), Some(blocks.to_owned())),
            (0, 0, None, Some(format!("{blocks}, nor {mutexes}"))),
        ] {
            let at = Served { origin: None, pprof: Some((serve(period, ns), "/p/".to_owned())) };
            let asked = Asked { waits: true, has_perf: true, ..Asked::default() };
            let mut asking = Asking::start(std::process::id(), &at, asked).unwrap();
            asking.hold_begins(Duration::from_millis(2_900));
            let (seen, said) = asking.end(Window { monotonic_ns: (0, 100), realtime_ns: (0, 100) }).unwrap();
            let waited = |waits: &[crate::profile::Wait]| waits.iter().map(|one| one.ns).collect::<Vec<_>>();
            let found = seen.waits.map(|waits| {
                assert_eq!(waits.covered_ns, 2_000_000_000);
                (waited(&waits.each), waited(&waits.holders))
            });
            assert_eq!(found, expected);
            assert_eq!(said, note.map(|what| format!("the Go program does not record {what}")));
            assert_eq!(seen.stops.unwrap().gc_share, Some(0.05));
        }
    }

    #[test]
    fn where_it_is_not_served_the_option_that_says_where_is_named() {
        // The second one answers whatever it is asked for.
        for (path, why) in [("/debug/pprof/", "("), ("/", "(it answers something else)")] {
            let at = Served { origin: None, pprof: Some((serve(1, 1), path.to_owned())) };
            let refused = Asking::start(std::process::id(), &at, Asked::default()).unwrap_err().to_string();
            assert!(refused.contains(&format!("{path} does not serve it {why}")), "{refused}");
            assert!(
                refused.ends_with("let the program serve net/http/pprof, and say where with --pprof URL")
            );
        }
    }

    #[test]
    fn pauses_within_the_hold_count_and_where_the_circle_is_full_those_that_it_still_has() {
        let text = |ends: &[u64], pauses: &[u64]| {
            format!("heap profile: 0: 0\n# PauseNs = {pauses:?}\n# PauseEnd = {ends:?}\n# NumGC = 3\n")
                .replace(',', "")
        };
        let of = |ends: &[u64], pauses: &[u64]| {
            gc_of(&text(ends, pauses), (1_000, 2_000))
                .map(|stops| (stops.gc_share.unwrap(), stops.gc_max_ns.unwrap()))
        };
        assert_eq!(of(&[900, 1_100, 1_900, 2_100, 0], &[500, 30, 20, 400, 0]), Some((0.05, 30)));
        assert_eq!(of(&[0; 256], &[0; 256]), Some((0.0, 0)));
        // The latest 256 begin at 1,744 only: 255 pauses of 1 in the 256 after it.
        let full: Vec<u64> = (1_744..2_000).collect();
        assert_eq!(of(&full, &[1; 256]), Some((255.0 / 256.0, 1)));
        for broken in
            ["", "# PauseNs = [1]", "# PauseNs = [1 x]\n# PauseEnd = [1 2]", "# PauseNs = 1\n# PauseEnd = 2"]
        {
            assert_eq!(gc_of(broken, (1_000, 2_000)), None, "{broken}");
        }
    }

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
