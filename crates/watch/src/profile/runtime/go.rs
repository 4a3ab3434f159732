//! Go programs by `net/http/pprof`, where the server's own origin serves it: allocations, and CPU where `perf` is not permitted.

use std::io::Read as _;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Asked, Seen, listening, pprof};
use crate::profile::NoProfile;

/// What the linker of Go puts into every program.
const MARK: &[u8] = b"\xff Go buildinf:";
/// Programs are looked through to here.
const PROGRAM_BYTES_MAX: u64 = 256 << 20;
/// Answers have some MB at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
const ASKS_WITHIN: Duration = Duration::from_secs(5);

/// Whether a process is one.
pub(super) fn is_one(pid: u32) -> bool {
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/exe")) else { return false };
    let mut rest = file.take(PROGRAM_BYTES_MAX);
    let (mut piece, mut kept) = (vec![0; 1 << 20], 0);
    loop {
        match rest.read(&mut piece[kept..]) {
            Ok(0) | Err(_) => return false,
            Ok(count) => {
                let length = kept + count;
                if memchr::memmem::find(&piece[..length], MARK).is_some() {
                    return true;
                }
                // The mark may lie across two pieces.
                kept = length.min(MARK.len() - 1);
                piece.copy_within(length - kept..length, 0);
            }
        }
    }
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
            none(&format!("{address}/debug/pprof/ cannot be read ({why}); import net/http/pprof and serve it there"))
        })?;
        Ok(Asking { address, asked, cpu: None, allocations: None })
    }

    /// Profiles of so many whole seconds begin.
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
    #[test]
    fn a_program_that_is_not_of_go_is_none() {
        assert!(!super::is_one(u32::MAX));
        let mut sleeper = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let found = super::is_one(sleeper.id());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(!found);
    }
}
