//! What a request or a connection leaves behind for good.

use std::fs::File;

use servers_shared::fault::{Fault, Kind};

/// What is leaked; nothing unless it is planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leak {
    /// memory per request, bytes
    per_request: usize,
    /// memory per connection that ended, bytes
    per_connection: usize,
    /// a descriptor per connection that ended
    descriptors: bool,
}

impl Leak {
    pub(super) fn planted(faults: &[Fault]) -> Leak {
        let mut leak = Leak::default();
        for fault in faults {
            match fault.kind() {
                Kind::LeakPerRequest(bytes) => leak.per_request += bytes as usize,
                Kind::LeakPerConnection(bytes) => leak.per_connection += bytes as usize,
                Kind::LeakDescriptors => leak.descriptors = true,
                _ => {}
            }
        }
        leak
    }

    /// After a request.
    pub(super) fn request(self) {
        lose(self.per_request);
    }

    /// After a connection.
    pub(super) fn connection(self) {
        lose(self.per_connection);
        if self.descriptors {
            // Where there is none left, none is lost.
            let _ = File::open("/dev/null").map(std::mem::forget);
        }
    }
}

/// Memory that was touched and is never freed.
fn lose(bytes: usize) {
    if bytes > 0 {
        // Ones, since zeroed memory is not touched. Otherwise an optimised build leaves out what nothing reads: all of it.
        std::mem::forget(std::hint::black_box(vec![1u8; bytes]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_planted_is_leaked() {
        let planted = |faults: &[&str]| {
            Leak::planted(&faults.iter().map(|fault| fault.parse().unwrap()).collect::<Vec<Fault>>())
        };
        assert_eq!(planted(&["lock", "leak:20MB"]), Leak::default());
        let all = planted(&["leak-per-request:0.2kB", "leak-per-connection:1kB", "leak-descriptors"]);
        assert_eq!(all, Leak { per_request: 200, per_connection: 1_000, descriptors: true });
    }

    #[test]
    fn memory_that_is_leaked_is_resident() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
        };
        let before = resident();
        let leak = Leak { per_connection: 10_000, ..Leak::default() };
        (0..4_000).for_each(|_| leak.connection());
        // Other tests of this process give little back.
        assert!(resident() - before > 35_000_000, "{} of 40 MB", resident() - before);
    }

    #[test]
    fn a_descriptor_stays_open_per_connection_that_ended() {
        let leak = Leak { descriptors: true, ..Leak::default() };
        let is_null = |entry: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_link(entry.unwrap().path()).is_ok_and(|file| file.ends_with("null"))
        };
        let open =
            || std::fs::read_dir("/proc/self/fd").unwrap().map(is_null).filter(|is_one| *is_one).count();
        let before = open();
        (0..5).for_each(|_| leak.connection());
        assert_eq!(open() - before, 5);
    }
}
