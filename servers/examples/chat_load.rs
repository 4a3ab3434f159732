//! A bare load for the chat: talkers at an even random pace, and a count of what comes back.
//!
//!   cargo run --release --example chat_load -- ADDRESS SERVER_PID [CLIENTS [SECONDS [STALLED% [SLOW%]]]]
//!
//! It books nothing per client; it tells what the server costs, in CPU-seconds per million deliveries, and how late
//! lines are at every 32nd client. Stalled clients never read, slow ones read 1 KB/s; both speak like the others.
//! Two threads look at all their sockets every 2 ms, which is the cheapest way to read much.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

const THREADS: usize = 2;
const SETTLE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Ordinary,
    /// Looks for when lines were planned.
    Timing,
    Slow,
    Stalled,
}

struct Client {
    stream: TcpStream,
    reader: Reader,
    rest: Vec<u8>,
    next_slow_read: Instant,
}

/// Counts since the start, over both threads.
#[derive(Default)]
struct Sums {
    measuring: AtomicBool,
    talking: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
    bytes: AtomicU64,
}

fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn rss_mb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn connect(address: SocketAddr, reader: Reader) -> Client {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).unwrap();
    }
    stream.set_nonblocking(true).unwrap();
    stream.set_nodelay(true).unwrap();
    Client { stream, reader, rest: Vec::new(), next_slow_read: Instant::now() }
}

fn read(
    client: &mut Client,
    buffer: &mut [u8],
    start: Instant,
    sums: &Sums,
    late_us: &mut Histogram<u64>,
) -> u64 {
    let mut received = 0;
    let mut room = buffer.len();
    if client.reader == Reader::Slow {
        if client.next_slow_read > Instant::now() {
            return 0;
        }
        client.next_slow_read += Duration::from_millis(100);
        room = 100;
    }
    loop {
        let count = match client.stream.read(&mut buffer[..room]) {
            Ok(0) => panic!("the server has closed"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return received,
            Err(error) => panic!("{error}"),
        };
        sums.bytes.fetch_add(count as u64, Relaxed);
        received += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
        if client.reader == Reader::Timing {
            let now_us = start.elapsed().as_micros() as u64;
            client.rest.extend_from_slice(&buffer[..count]);
            let end = client.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            if sums.measuring.load(Relaxed) {
                for line in client.rest[..end]
                    .split(|byte| *byte == b'\n')
                    .filter(|line| line.len() >= 12 && line[0] != b'*')
                {
                    let planned = std::str::from_utf8(&line[..12]).unwrap().parse::<u64>();
                    late_us.saturating_record(now_us.saturating_sub(planned.expect("a planned time")));
                }
            }
            client.rest.drain(..end);
        }
        if count < room || client.reader == Reader::Slow {
            return received;
        }
    }
}

fn run(mut clients: Vec<Client>, start: Instant, sums: &Sums) -> Histogram<u64> {
    let mut late_us = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut due = BTreeSet::new();
    (0..clients.len()).for_each(|i| {
        due.insert((fastrand::u64(0..1_000_000), i));
    });
    let mut quiet = 0;
    loop {
        let turn = Instant::now();
        let now_us = start.elapsed().as_micros() as u64;
        let talking = sums.talking.load(Relaxed);
        while let Some(&(planned_us, i)) = due.first() {
            if planned_us > now_us || !talking {
                break;
            }
            due.pop_first();
            due.insert((planned_us + fastrand::u64(500_000..1_000_000), i));
            let length = fastrand::usize(15..=58);
            let line = format!("{planned_us:012}{}\n", "x".repeat(length - 12));
            clients[i].stream.write_all(line.as_bytes()).unwrap();
            sums.sent.fetch_add(1, Relaxed);
        }
        let mut received = 0;
        for client in clients.iter_mut().filter(|client| client.reader != Reader::Stalled) {
            let lines = read(client, &mut buffer, start, sums, &mut late_us);
            if client.reader != Reader::Slow {
                received += lines;
            }
        }
        sums.received.fetch_add(received, Relaxed);
        quiet = if received == 0 { quiet + 1 } else { 0 };
        if !talking && quiet > 500 {
            return late_us;
        }
        std::thread::sleep(Duration::from_millis(2).saturating_sub(turn.elapsed()));
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let address: SocketAddr = args.next().expect("ADDRESS").parse().unwrap();
    let pid: u32 = args.next().expect("SERVER_PID").parse().unwrap();
    let mut number = |default: usize| args.next().map_or(default, |arg| arg.parse().unwrap());
    let (count, seconds, stalled, slow) = (number(1024), number(10), number(0), number(0));
    let kind = |i: usize| match i * 100 / count {
        share if share < stalled => Reader::Stalled,
        share if share < stalled + slow => Reader::Slow,
        _ if i % 32 == 31 => Reader::Timing,
        _ => Reader::Ordinary,
    };
    let mut shares: Vec<Vec<Client>> = (0..THREADS).map(|_| Vec::new()).collect();
    (0..count).for_each(|i| shares[i % THREADS].push(connect(address, kind(i))));
    let readers =
        shares.iter().flatten().filter(|client| matches!(client.reader, Reader::Ordinary | Reader::Timing));
    let readers = readers.count() as u64;
    let sums = Sums { talking: true.into(), ..Sums::default() };
    let start = Instant::now();
    std::thread::scope(|scope| {
        let sums = &sums;
        let threads: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(move || run(share, start, sums))).collect();
        std::thread::sleep(SETTLE);
        let own = std::process::id();
        sums.measuring.store(true, Relaxed);
        let take = || {
            (
                Instant::now(),
                cpu_s(pid),
                cpu_s(own),
                sums.sent.load(Relaxed),
                sums.received.load(Relaxed),
                sums.bytes.load(Relaxed),
            )
        };
        let before = take();
        std::thread::sleep(Duration::from_secs(seconds as u64));
        let after = take();
        sums.measuring.store(false, Relaxed);
        let rss = rss_mb(pid);
        sums.talking.store(false, Relaxed);
        let mut late_us = Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).unwrap();
        for thread in threads {
            late_us.add(thread.join().unwrap()).unwrap();
        }
        let wall_s = (after.0 - before.0).as_secs_f64();
        let millions = (after.4 - before.4) as f64 / 1e6;
        let owed = sums.sent.load(Relaxed) * readers - {
            // A reader's own lines are not owed to it; at an even pace all send the same share.
            sums.sent.load(Relaxed) * readers / count as u64
        };
        let ms = |q: f64| late_us.value_at_quantile(q) as f64 / 1e3;
        println!(
            "clients {count} pace {:.0}/s M/s {:.3} MB/s {:.1} server {:.2} cores {:.3} CPU-s/M load {:.2} cores {:.3} CPU-s/M \
             late ms p50 {:.1} p99 {:.1} max {:.1} rss {rss} MB received {} of about {owed}",
            (after.3 - before.3) as f64 / wall_s,
            millions / wall_s,
            (after.5 - before.5) as f64 / wall_s / 1e6,
            (after.1 - before.1) / wall_s,
            (after.1 - before.1) / millions,
            (after.2 - before.2) / wall_s,
            (after.2 - before.2) / millions,
            ms(0.5),
            ms(0.99),
            late_us.max() as f64 / 1e3,
            sums.received.load(Relaxed),
        );
    });
}
