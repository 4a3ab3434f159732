//! The subject's TCP queues: connections that wait to be accepted, bytes that it has not read, bytes that its clients have not.
//!
//! Its listening ports are those of listening sockets among its descriptors. Both are read the more seldom the longer it
//! takes: with 2,000 connections, listing descriptors takes 12 ms and reading the queues 3–5 ms of CPU.
//! Sockets of it that lead elsewhere on this machine tell which services it asks (`services`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use measure::ProcessMetric;

use crate::process::descriptor_folders;
use crate::sock_diag::{CLOSE_WAIT, ESTABLISHED, LISTEN, SockDiag, Socket};
use crate::threads::thread_cpu_s;

/// Descriptors that are listed at once.
const LISTED_MAX: usize = 4_096;
/// Of a table with more descriptors the lowest: sockets that listen are opened early.
const LOWEST: usize = 256;
/// Descriptors are listed again after so long at least, and at each reading until a port is known.
const LISTED_EVERY: Duration = Duration::from_secs(2);
/// And seldom enough to take at most one 2,000th of a core.
const LISTING_SHARE: f64 = 2_000.0;
/// A reading is followed by a pause so that readings take at most one 700th of a core. It follows from their CPU time: on a
/// crowded machine a reading lasts long because it waits for a core, and queues matter most there.
const READING_SHARE: f64 = 700.0;
/// Ports that are watched.
const PORTS_MAX: usize = 8;
const OPEN: u32 = ESTABLISHED | CLOSE_WAIT;

/// Reads them again and again.
#[derive(Debug)]
pub(crate) struct Queues {
    diag: Option<SockDiag>,
    ports: Vec<u16>,
    others: Option<u64>,
    asked: BTreeSet<Asked>,
    not_before: Option<Instant>,
    list_not_before: Option<Instant>,
}

impl Queues {
    pub(crate) fn new() -> Queues {
        Queues {
            diag: SockDiag::open().ok(),
            ports: Vec::new(),
            others: None,
            asked: BTreeSet::new(),
            not_before: None,
            list_not_before: None,
        }
    }

    /// What is known now; nothing where the kernel does not tell, or where it is not the time.
    pub(crate) fn read(&mut self, pids: &[i32]) -> Vec<(ProcessMetric, f64)> {
        let begin = Instant::now();
        if self.not_before.is_some_and(|instant| begin < instant) {
            return Vec::new();
        }
        let is_listing = self.list_not_before.is_none_or(|instant| begin >= instant);
        let begin_cpu_s = thread_cpu_s();
        let listing = if is_listing { self.list(pids) } else { None };
        let listed_cpu_s = thread_cpu_s();
        let told = self.read_now(listing);
        let pause = |cost_s: f64, share: f64| Duration::from_secs_f64((cost_s * share).max(0.0));
        if is_listing {
            let least = if self.ports.is_empty() { Duration::ZERO } else { LISTED_EVERY };
            self.list_not_before = Some(begin + pause(listed_cpu_s - begin_cpu_s, LISTING_SHARE).max(least));
        }
        self.not_before = Some(begin + pause(thread_cpu_s() - listed_cpu_s, READING_SHARE));
        told.unwrap_or_default()
    }

    /// The listening sockets of others on this machine to which the subject had connections at the last listing.
    pub(crate) fn asked(&self) -> &BTreeSet<Asked> {
        &self.asked
    }

    fn list(&mut self, pids: &[i32]) -> Option<Listing> {
        let sockets = Sockets::of(pids);
        Some(Listing::of(&sockets, self.diag.as_mut()?.list(OPEN | LISTEN, None).ok()?))
    }

    /// `listing`: where descriptors were listed anew.
    fn read_now(&mut self, listing: Option<Listing>) -> Option<Vec<(ProcessMetric, f64)>> {
        if let Some(listing) = listing {
            (self.ports, self.others, self.asked) = (listing.ports, listing.others, listing.asked);
        }
        if self.ports.is_empty() {
            return None;
        }
        let diag = self.diag.as_mut()?;
        let listening = diag.list(LISTEN, None).ok()?;
        let mut clients = Vec::new();
        for &port in &self.ports {
            clients.extend(diag.list(OPEN, Some(port)).ok()?);
        }
        let own = listening.iter().filter(|socket| self.ports.contains(&socket.local_port));
        let (mut waiting, mut fullest) = (0.0, 0.0f64);
        for socket in own {
            waiting += f64::from(socket.receive_queue);
            // The kernel lets in one more than the backlog says.
            fullest = fullest.max(f64::from(socket.receive_queue) / (f64::from(socket.send_queue) + 1.0));
        }
        // A connection that was not accepted yet has no inode.
        let mut open = clients;
        open.retain(|socket| socket.inode != 0);
        let count = |of: fn(&Socket) -> u32| open.iter().filter(|socket| of(socket) > 0).count() as f64;
        let bytes = |of: fn(&Socket) -> u32| open.iter().map(|socket| f64::from(of(socket))).sum::<f64>();
        let mut told = vec![
            (ProcessMetric::AcceptQueue, waiting),
            (ProcessMetric::AcceptQueueShare, fullest.min(1.0)),
            (ProcessMetric::Connections, open.len() as f64),
            (ProcessMetric::UnreadConnections, count(|socket| socket.receive_queue)),
            (ProcessMetric::UnreadBytes, bytes(|socket| socket.receive_queue)),
            (ProcessMetric::UnsentConnections, count(|socket| socket.send_queue)),
            (ProcessMetric::UnsentBytes, bytes(|socket| socket.send_queue)),
        ];
        told.extend(self.others.map(|others| (ProcessMetric::OtherSockets, others as f64)));
        Some(told)
    }
}

/// A listening socket of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub port: u16,
    pub inode: u32,
}

/// What a listing of the subject's descriptors found.
struct Listing {
    ports: Vec<u16>,
    /// connections to other services; `None`: not every descriptor was looked at
    others: Option<u64>,
    asked: BTreeSet<Asked>,
}

impl Listing {
    /// `all`: open and listening sockets of this machine.
    fn of(sockets: &Sockets, all: Vec<Socket>) -> Listing {
        let (listening, mut own): (Vec<Socket>, Vec<Socket>) =
            all.into_iter().partition(|socket| socket.state == LISTEN);
        let is_own = |socket: &Socket| sockets.inodes.contains(&socket.inode);
        // Several sockets may listen on one port.
        let ports: BTreeSet<u16> =
            listening.iter().filter(|socket| is_own(socket)).map(|socket| socket.local_port).collect();
        own.retain(|socket| is_own(socket) && !ports.contains(&socket.local_port));
        let by_port: BTreeMap<u16, u32> =
            listening.iter().map(|socket| (socket.local_port, socket.inode)).collect();
        let asked = own.iter().filter(|socket| socket.is_here && !ports.contains(&socket.remote_port));
        let asked = asked.filter_map(|socket| {
            Some(Asked { port: socket.remote_port, inode: *by_port.get(&socket.remote_port)? })
        });
        Listing {
            asked: asked.collect(),
            others: sockets.is_whole.then_some(own.len() as u64),
            ports: ports.into_iter().take(PORTS_MAX).collect(),
        }
    }
}

/// Sockets among the descriptors of some processes.
struct Sockets {
    inodes: BTreeSet<u32>,
    /// every descriptor was looked at
    is_whole: bool,
}

impl Sockets {
    fn of(pids: &[i32]) -> Sockets {
        let (mut inodes, mut listed) = (BTreeSet::new(), 0);
        let mut is_whole = true;
        for &pid in pids {
            for folder in descriptor_folders(pid) {
                // Its size is their number (Linux 6.2 on).
                let is_large = fs::metadata(&folder).is_ok_and(|of| of.len() > LISTED_MAX as u64);
                let Ok(entries) = fs::read_dir(folder) else {
                    is_whole = false;
                    continue;
                };
                is_whole &= !is_large;
                for entry in entries.flatten().take(if is_large { LOWEST } else { usize::MAX }) {
                    listed += 1;
                    if listed > LISTED_MAX {
                        return Sockets { inodes, is_whole: false };
                    }
                    inodes.extend(fs::read_link(entry.path()).ok().and_then(|link| inode_of(link.to_str()?)));
                }
            }
        }
        Sockets { inodes, is_whole }
    }
}

/// `socket:[4711]`
pub(crate) fn inode_of(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_queues_of_this_process_are_seen_by_its_descriptors() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _server = listener.accept().unwrap();
        client.write_all(b"hello").unwrap();
        let _waits = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut queues = Queues::new();
        let pid = std::process::id() as i32;
        let begin = Instant::now();
        loop {
            (queues.not_before, queues.list_not_before) = (None, None);
            let told = queues.read(&[pid]);
            let of = |wanted| told.iter().find(|(metric, _)| *metric == wanted).map(|(_, value)| *value);
            // Other tests of this process have sockets too.
            if of(ProcessMetric::UnreadBytes).is_some_and(|bytes| bytes >= 5.0)
                && of(ProcessMetric::AcceptQueue).is_some_and(|waiting| waiting >= 1.0)
            {
                assert!(queues.ports.contains(&port) && of(ProcessMetric::UnreadConnections) >= Some(1.0));
                assert!(of(ProcessMetric::OtherSockets) >= Some(2.0), "the clients' ends lead elsewhere");
                assert!(queues.asked().iter().all(|asked| asked.port != port), "it does not ask itself");
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "{told:?}");
        }
        assert_eq!(Queues::new().read(&[]), Vec::new(), "without a process there is no port");
    }

    #[test]
    fn a_port_stays_known_between_two_listings_and_queues_are_read_no_faster_than_they_may() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pid = std::process::id() as i32;
        let mut queues = Queues::new();
        let begin = Instant::now();
        while !queues.ports.contains(&port) {
            (queues.not_before, queues.list_not_before) = (None, None);
            queues.read(&[pid]);
            assert!(begin.elapsed() < Duration::from_secs(10), "{queues:?}");
        }
        let listed = queues.list_not_before;
        assert!(listed >= Some(begin + LISTED_EVERY));
        queues.not_before = None;
        // No process is listed now, so the port is remembered.
        assert!(queues.read(&[]).iter().any(|(metric, _)| *metric == ProcessMetric::AcceptQueue));
        assert_eq!(queues.list_not_before, listed);
        queues.not_before = Some(Instant::now() + Duration::from_secs(60));
        assert_eq!(queues.read(&[pid]), Vec::new());
    }

    #[test]
    fn what_leads_elsewhere_is_told_from_clients_and_from_those_who_listen_here() {
        let socket = |state, local_port, remote_port, inode| Socket {
            local_port,
            remote_port,
            is_here: remote_port != 443,
            state,
            receive_queue: 0,
            send_queue: 0,
            inode,
        };
        // Nine of the subject's sockets listen on one port, and one on another.
        let mut all: Vec<Socket> = (1..=9).map(|inode| socket(LISTEN, 80, 0, inode)).collect();
        all.extend([
            socket(LISTEN, 81, 0, 10),
            socket(LISTEN, 6379, 0, 90),
            socket(LISTEN, 9999, 0, 91),
            // two clients of it, a store here, a service elsewhere, and a connection to itself
            socket(ESTABLISHED, 80, 40_000, 11),
            socket(ESTABLISHED, 81, 40_001, 12),
            socket(ESTABLISHED, 40_002, 6379, 13),
            socket(ESTABLISHED, 40_003, 443, 14),
            socket(CLOSE_WAIT, 40_004, 81, 15),
            // of another process
            socket(ESTABLISHED, 40_005, 9999, 92),
        ]);
        let whole = Sockets { inodes: (1..=15).collect(), is_whole: true };
        let found = Listing::of(&whole, all.clone());
        assert_eq!((found.ports, found.others), (vec![80, 81], Some(3)));
        assert_eq!(found.asked, BTreeSet::from([Asked { port: 6379, inode: 90 }]));
        assert_eq!(Listing::of(&Sockets { is_whole: false, ..whole }, all).others, None);
    }

    #[test]
    fn only_sockets_are_counted() {
        assert_eq!(inode_of("socket:[4711]"), Some(4_711));
        for other in ["pipe:[4711]", "socket:[x]", "socket:[99999999999]", "/dev/null", "socket:["] {
            assert_eq!(inode_of(other), None, "{other}");
        }
    }
}
