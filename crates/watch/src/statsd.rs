//! Receives StatsD packets over UDP, whose timings are a server's ticks.
//!
//! One thread reads the socket, because the kernel holds no more than a few hundred packets; the sampler takes what came.
//! What the kernel or we had to drop is counted and told. Not here: what a line means (`measure::ticklog`).

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use measure::ticklog::{LoggedSecond, Malformed, TickForm, TickLogReader};

/// No packet of UDP is larger.
const PACKET_BYTES_MAX: usize = 64 << 10;
/// What comes between two readings of the sampler, at most; a server sends a few kB.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// As much as the kernel gives without privileges; it may give less.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// How soon the thread sees that it is to end.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// A socket that is read, and what came of it.
#[derive(Debug)]
pub struct Statsd {
    address: SocketAddr,
    inode: u64,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    reader: TickLogReader,
    told_lost: u64,
}

#[derive(Debug, Default)]
struct Shared {
    /// lines that wait for the sampler
    waiting: Mutex<Vec<u8>>,
    /// packets for which there was no place
    dropped: AtomicU64,
    is_over: AtomicBool,
}

impl Statsd {
    /// Listens from now on. `tick_rate_hz` (> 0) gives the classes; without it the intervals tell it. Errors: the address cannot be
    /// listened on.
    pub fn listen(
        address: SocketAddr,
        metric: Option<String>,
        tick_rate_hz: Option<f64>,
    ) -> io::Result<Statsd> {
        let socket = UdpSocket::bind(address)?;
        // Less is no error: what does not fit is counted.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES);
        socket.set_read_timeout(Some(LOOKS_EVERY))?;
        let address = socket.local_addr()?;
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd()))?;
        let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread =
            thread::Builder::new().name("statsd".to_owned()).spawn(move || receive(&socket, &theirs))?;
        Ok(Statsd {
            address,
            inode: digits.parse().unwrap_or(0),
            shared,
            thread: Some(thread),
            reader: TickLogReader::of(TickForm::Statsd { metric }, tick_rate_hz),
            told_lost: 0,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What makes seconds of its packets.
    pub(crate) fn reader(&mut self) -> &mut TickLogReader {
        &mut self.reader
    }

    /// The seconds that are complete by now, as `TickLog::poll`.
    pub fn poll(&mut self, realtime_ms: u64) -> Vec<LoggedSecond> {
        self.reader.read_at(realtime_ms);
        let lines = std::mem::take(&mut *self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.reader.push(&lines);
        self.reader.close_before(realtime_ms);
        self.reader.take_seconds()
    }

    /// What there is to say since the last call: lines that cannot be read, packets that were lost.
    pub fn take_notices(&mut self) -> Vec<String> {
        let mut notices = Vec::new();
        if let Some(Malformed { line, reason }) = self.reader.take_unreadable() {
            notices.push(format!("line {line} that came as StatsD cannot be read: {reason}"));
        }
        let lost = self.shared.dropped.load(Ordering::Relaxed) + self.dropped_by_kernel().unwrap_or(0);
        if lost > self.told_lost {
            let more = lost - self.told_lost;
            notices.push(format!(
                "{more} packets of StatsD were lost here, so ticks are missing; send them with a sample rate"
            ));
            self.told_lost = lost;
        }
        notices
    }

    fn dropped_by_kernel(&self) -> Option<u64> {
        let name = if self.address.is_ipv4() { "/proc/net/udp" } else { "/proc/net/udp6" };
        dropped_of(&fs::read_to_string(name).ok()?, self.inode)
    }
}

impl Drop for Statsd {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Packets that the kernel dropped at the socket with this inode, of the text of `/proc/net/udp`.
fn dropped_of(table: &str, inode: u64) -> Option<u64> {
    let inode = inode.to_string();
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(9) == Some(&inode.as_str())).then(|| fields.last()?.parse().ok())?
    })
}

fn receive(socket: &UdpSocket, shared: &Shared) {
    let mut packet = vec![0; PACKET_BYTES_MAX];
    while !shared.is_over.load(Ordering::Relaxed) {
        // Most errors are of a single packet; a timeout is one too.
        let Ok(count) = socket.recv(&mut packet) else { continue };
        let mut waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() + count < WAITING_BYTES_MAX {
            waiting.extend_from_slice(&packet[..count]);
            waiting.push(b'\n');
        } else {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn timings_of_one_metric_are_ticks_and_the_rest_is_not() {
        let mut statsd =
            Statsd::listen("127.0.0.1:0".parse().unwrap(), Some("tick".to_owned()), Some(60.0)).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let packets = [
            "tick:16.7|ms\ntick:16:17:40|d|#a:b",
            "tick:16|ms|@0.1",
            "other:16|ms",
            "tick:1|c",
            "tick:16|zz",
            "_e{1,1}:a|b",
        ];
        for packet in packets {
            sender.send_to(packet.as_bytes(), statsd.address()).unwrap();
        }
        let begin = Instant::now();
        let lines = packets.iter().map(|packet| packet.len() + 1).sum::<usize>();
        while statsd.shared.waiting.lock().unwrap().len() < lines {
            assert!(begin.elapsed() < Duration::from_secs(10));
            thread::yield_now();
        }
        assert_eq!(statsd.poll(7_300), []);
        let seconds = statsd.poll(9_000);
        let counts = seconds[0].counts;
        assert_eq!((seconds.len(), seconds[0].to_ms), (1, 8_000));
        assert_eq!((counts.on_time, counts.over, counts.due), (13, 1, 14));
        assert_eq!(
            statsd.take_notices(),
            ["line 6 that came as StatsD cannot be read: \"zz\" is no type of StatsD"]
        );
        assert_eq!(statsd.take_notices(), [""; 0]);
    }

    #[test]
    fn what_the_kernel_dropped_is_found_by_the_sockets_inode() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
                     35: 0100007F:1FBD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 41 2 0000 7\n \
                     36: 0100007F:1FBE 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 42 2 0000 11\n";
        assert_eq!(dropped_of(table, 42), Some(11));
        assert_eq!(dropped_of(table, 4), None);
    }

    #[test]
    fn an_address_that_is_taken_is_an_error() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(Statsd::listen(taken.local_addr().unwrap(), None, None).is_err());
    }
}
