//! CPU and memory of this process.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// User and system time so far, in ns.
pub(crate) fn cpu_ns() -> (u64, u64) {
    // Clock ticks of /proc are 10 ms; the sum is exact, so only the split into user and system is that coarse.
    let total = clock_gettime(ClockId::ProcessCPUTime);
    let total_ns = total.tv_sec as u64 * 1_000_000_000 + total.tv_nsec as u64;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may contain blanks and ends with the last parenthesis; utime and stime are fields 14 and 15.
    let fields: Vec<u64> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    match fields[..] {
        [user, system] if user + system > 0 => {
            let user_ns = (total_ns as f64 * user as f64 / (user + system) as f64) as u64;
            (user_ns, total_ns - user_ns)
        }
        _ => (total_ns, 0),
    }
}

/// Memory that is resident now.
pub(crate) fn rss_bytes() -> u64 {
    status("VmRSS:")
}

/// The most that ever was.
pub(crate) fn rss_peak_bytes() -> u64 {
    status("VmHWM:")
}

fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_are_read() {
        let (user_ns, system_ns) = cpu_ns();
        assert!(user_ns + system_ns > 0);
        assert!(rss_bytes() > 100_000 && rss_bytes() <= rss_peak_bytes() * 2);
    }
}
