//! Returns memory that was held for clients to the system once most of it is no longer needed.
//!
//! Freed memory stays with the allocator, in the arenas of the threads that allocated it, and only an explicit request
//! returns all of it. The controlling thread checks once a second. A request after every disconnect, or between two
//! waves of a backlog, would cost the page faults of the next one, and each holds the allocator's locks for a moment.

use std::fs::File;
use std::io::Read;

use crate::clock;

const LOOK_EVERY_NS: u64 = 1_000_000_000;
/// Looks in a row that find few clients, or little that waits for them.
const LOOKS: u32 = 2;
/// Less than this is not worth the request, in bytes.
const WORTH_BYTES: u64 = 4 << 20;

/// When the allocator is asked.
#[derive(Debug)]
pub struct MemoryReturn {
    next_look_ns: u64,
    /// most clients since the last request
    clients_max: usize,
    /// most that waited for clients since the last check, and since the last request, in bytes
    waiting_bytes: usize,
    waiting_bytes_max: usize,
    /// memory after the last request, or before there were clients, in bytes
    least_bytes: u64,
    looks: u32,
}

impl MemoryReturn {
    /// Before the first client comes.
    pub fn new() -> MemoryReturn {
        MemoryReturn::over(resident_bytes())
    }

    fn over(least_bytes: u64) -> MemoryReturn {
        MemoryReturn {
            next_look_ns: 0,
            clients_max: 0,
            waiting_bytes: 0,
            waiting_bytes_max: 0,
            least_bytes,
            looks: 0,
        }
    }

    /// For servers that know it: so much waits for clients, or has since the last call. Else their going is all that tells.
    pub fn waits(&mut self, bytes: usize) {
        self.waiting_bytes = self.waiting_bytes.max(bytes);
    }

    /// Looks, when it is time to, and asks. `most`: clients at once since the last call.
    pub fn look(&mut self, clients: usize, most: usize) {
        self.clients_max = self.clients_max.max(most);
        let now_ns = clock::now_ns();
        if now_ns < self.next_look_ns {
            return;
        }
        self.next_look_ns = now_ns + LOOK_EVERY_NS;
        let waiting_bytes = std::mem::take(&mut self.waiting_bytes);
        if self.is_due(clients, waiting_bytes, resident_bytes()) {
            give_back();
            self.least_bytes = resident_bytes();
        }
    }

    /// Three of four clients have disconnected, or three quarters of what waited for them is sent; memory is half as
    /// much again as it was without them; and that twice in a row.
    fn is_due(&mut self, clients: usize, waiting_bytes: usize, bytes: u64) -> bool {
        self.clients_max = self.clients_max.max(clients);
        self.waiting_bytes_max = self.waiting_bytes_max.max(waiting_bytes);
        let waited = self.waiting_bytes_max as u64 >= WORTH_BYTES;
        let is_over = clients < self.clients_max.div_ceil(4)
            || (waited && waiting_bytes < self.waiting_bytes_max.div_ceil(4));
        let is_high = bytes > self.least_bytes + self.least_bytes / 2 + WORTH_BYTES;
        self.looks = if is_high && is_over { self.looks + 1 } else { 0 };
        let is_due = self.looks >= LOOKS;
        if is_due {
            (self.clients_max, self.waiting_bytes_max, self.looks) = (clients, waiting_bytes, 0);
        }
        is_due
    }
}

/// Asks the allocator for what it keeps, where it can be asked.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call; it takes the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory of this process that is in RAM; 0 where that cannot be read. Allocates nothing. Source: proc_pid_statm(5).
fn resident_bytes() -> u64 {
    let mut statm = [0; 256];
    let read = File::open("/proc/self/statm").and_then(|mut file| file.read(&mut statm)).unwrap_or(0);
    let statm = std::str::from_utf8(&statm[..read]).unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    // SAFETY: a plain question.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * u64::try_from(page_bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is due, look by look, of clients and MB.
    fn due(looks: &[(usize, u64)]) -> Vec<bool> {
        let mut memory = MemoryReturn::over(12 << 20);
        looks.iter().map(|&(clients, mb)| memory.is_due(clients, 0, mb << 20)).collect()
    }

    #[test]
    fn memory_goes_back_once_when_most_clients_have_been_gone_for_two_looks() {
        assert_eq!(
            due(&[(0, 12), (2000, 300), (499, 200), (3, 190), (3, 190), (3, 190)]),
            [false, false, false, true, false, false]
        );
    }

    #[test]
    fn clients_that_come_again_and_memory_that_was_always_there_are_left_alone() {
        assert!(!due(&[(0, 12), (2000, 300), (3, 200), (2000, 200), (3, 200), (2000, 200)]).contains(&true));
        assert!(!due(&[(0, 12), (2000, 21), (0, 21), (0, 21), (0, 21)]).contains(&true), "too little");
        assert!(!due(&[(0, 12), (4, 300), (4, 300), (1, 300), (1, 300)]).contains(&true), "a quarter stayed");
    }

    #[test]
    fn memory_goes_back_once_when_a_backlog_has_been_gone_for_two_looks_and_not_between_its_waves() {
        let mut memory = MemoryReturn::over(12 << 20);
        let mut due = |looks: &[(usize, u64)]| -> Vec<bool> {
            looks.iter().map(|&(waits, mb)| memory.is_due(80, waits << 20, mb << 20)).collect()
        };
        assert_eq!(due(&[(0, 12), (100, 130), (60, 130), (20, 130), (100, 130), (1, 130)]), [false; 6]);
        assert_eq!(due(&[(0, 130), (0, 130), (0, 130)]), [true, false, false]);
        assert_eq!(due(&[(3, 130), (0, 130), (0, 130)]), [false; 3], "too little waited");
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn the_memory_of_this_process_is_read() {
        assert!((1 << 20..1 << 40).contains(&resident_bytes()), "{}", resident_bytes());
    }
}
