//! `perf record` around a client that does not profile itself.
//!
//! It samples the whole life of the process; samples outside the measured part are cut off by the clock that both read.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;
use watch::profile;

/// CPU time between two samples.
const PERIOD_NS: u64 = 1_000_000;

/// A recording.
#[derive(Debug)]
pub struct Perf {
    file: PathBuf,
    from_ns: u64,
    to_ns: u64,
}

impl Perf {
    /// Into this file. Errors: there is no `perf`.
    pub fn new(file: PathBuf) -> anyhow::Result<Perf> {
        if !profile::is_there() {
            bail!(
                "--profile: perf is missing; install it (Debian: apt-get install linux-perf) for clients other than node, java and go"
            );
        }
        Ok(Perf { file, from_ns: 0, to_ns: 0 })
    }

    /// What precedes the client's own command.
    pub fn words(&self) -> Vec<OsString> {
        let period = PERIOD_NS.to_string();
        let words = [
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-c",
            &period,
            "--call-graph",
            "dwarf,16384",
            "-k",
            "CLOCK_MONOTONIC",
            "-o",
        ];
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.extend([self.file.clone().into(), "--".into()]);
        words
    }

    /// What was sampled before does not count.
    pub fn begins_now(&mut self) {
        self.from_ns = profile::monotonic_ns();
    }

    /// What is sampled from here on does not count.
    pub fn ends_now(&mut self) {
        self.to_ns = profile::monotonic_ns();
    }

    /// The stacks as `inflight/clients/README.md` wants them, in µs. Errors: `perf script` failed.
    pub fn folded(&self) -> anyhow::Result<String> {
        Ok(profile::folded(&self.file, None, (self.from_ns, self.to_ns), PERIOD_NS / 1000)?)
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // It is in its own folder, which is removed too.
        let _ = std::fs::remove_file(&self.file);
    }
}
