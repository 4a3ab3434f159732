//! Before any load: descriptors, ports, and whether the target can be reached.
//!
//! Only facts, and one change of our own (the soft limit is raised to the hard one); what a plan needs is not known
//! here. Everything refusable is refused with a remedy before the first connection of a run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::inherited::Inherited;

/// Raises the soft limit of open descriptors to the hard one; returns what holds now, `None`: unlimited.
///
/// What was inherited is remembered first, so that a subject gets it back. The limit is per descriptor table, not per
/// process: a thread with a table of its own has as many again.
pub fn raise_descriptors() -> io::Result<Option<u64>> {
    Inherited::remember();
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(getrlimit(Resource::Nofile).current)
}

/// The local ports that connections may leave from, and how soon one may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// first port of the range
    pub from: u16,
    /// last port of the range
    pub to: u16,
    /// net.ipv4.tcp_tw_reuse: 0 never, 1 always, 2 on loopback; `None` when it cannot be read
    pub reuse: Option<u8>,
    /// most closed connections that the kernel remembers; beyond that it forgets them early
    pub time_wait_most: Option<u64>,
}

impl Ports {
    /// As the kernel is set. Linux's own default range where it cannot be read.
    pub fn read() -> Self {
        let text = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        let range = text("ip_local_port_range");
        let mut numbers = range.split_whitespace().filter_map(|number| number.parse().ok());
        let (from, to) = match (numbers.next(), numbers.next()) {
            (Some(from), Some(to)) if to >= from => (from, to),
            _ => (32_768, 60_999),
        };
        Ports {
            from,
            to,
            reuse: text("tcp_tw_reuse").trim().parse().ok(),
            time_wait_most: text("tcp_max_tw_buckets").trim().parse().ok(),
        }
    }

    /// Connections from one source address to one target.
    pub fn count(&self) -> u64 {
        u64::from(self.to - self.from) + 1
    }
}

/// True when connections may leave from 127.0.0.10 and its neighbours without any setting, as Linux allows.
pub fn has_loopback_sources() -> bool {
    TcpListener::bind((IpAddr::V4(Ipv4Addr::new(127, 0, 0, 10)), 0)).is_ok()
}

/// A target that does not accept connections.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot reach {target} ({why}, tried {tries} times in {waited_s:.0} s); is a server listening there? To try Stepladder \
     without one of your own: {start_with}"
)]
pub struct Unreachable {
    /// as the user wrote it: `ws://127.0.0.1:9001`
    pub target: String,
    /// `connection refused`, or of a name with several addresses `connection refused at 127.0.0.1 and ::1`
    pub why: String,
    /// how often it was tried
    pub tries: u32,
    /// over how long
    pub waited_s: f64,
    /// a command that would start such a server
    pub start_with: String,
}

/// Tries to connect to each address in turn, three times within about 2 s; returns the first one that accepts.
///
/// `shown` and `start_with` go into the message. Errors: `Unreachable`.
pub fn reach(
    addresses: &[SocketAddr],
    listens: Listens,
    shown: &str,
    start_with: &str,
) -> Result<SocketAddr, Unreachable> {
    const TRIES: u32 = 3;
    const PAUSE: Duration = Duration::from_secs(1);
    let begin = Instant::now();
    let mut whys = Vec::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            thread::sleep(PAUSE.saturating_sub(begin.elapsed().saturating_sub(PAUSE * (attempt - 1))));
        }
        whys.clear();
        for address in addresses {
            match listens.at(address, PAUSE).or_else(accepted_all_the_same) {
                Ok(()) => return Ok(*address),
                Err(error) => whys.push((in_words(&error), address.ip().to_string())),
            }
        }
    }
    Err(Unreachable {
        target: shown.to_owned(),
        why: together(&whys),
        tries: TRIES,
        waited_s: begin.elapsed().as_secs_f64(),
        start_with: start_with.to_owned(),
    })
}

/// How a server of this machine or another shows that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listens {
    /// it accepts connections
    Stream,
    /// it takes datagrams, which it may leave unanswered: on this machine its port is in use, on another it cannot be
    /// determined
    Datagrams,
}

impl Listens {
    /// Errors: those of the kernel; for datagrams `ConnectionRefused` if nobody has the port.
    pub fn at(self, address: &SocketAddr, patience: Duration) -> io::Result<()> {
        match self {
            Listens::Stream => TcpStream::connect_timeout(address, patience).map(drop),
            Listens::Datagrams => match UdpSocket::bind(address) {
                Ok(_) => Err(io::ErrorKind::ConnectionRefused.into()),
                Err(_) => Ok(()),
            },
        }
    }
}

/// A connection that is reset before `connect` returns was accepted: a server is there, and the handshake that follows reports
/// what is wrong with it.
fn accepted_all_the_same(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::ConnectionReset { Ok(()) } else { Err(error) }
}

/// `connection refused at 127.0.0.1 and ::1`, `no answer at 10.0.0.1, connection refused at ::1`; without the address where
/// there is but one.
fn together(whys: &[(String, String)]) -> String {
    if let [(why, _)] = whys {
        return why.clone();
    }
    let mut by_why: Vec<(&str, Vec<&str>)> = Vec::new();
    for (why, address) in whys {
        match by_why.iter_mut().find(|(known, _)| known == why) {
            Some((_, addresses)) => addresses.push(address),
            None => by_why.push((why, vec![address])),
        }
    }
    let parts = by_why.iter().map(|(why, addresses)| format!("{why} at {}", addresses.join(" and ")));
    parts.collect::<Vec<_>>().join(", ")
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "no answer".to_owned(),
        io::ErrorKind::NetworkUnreachable => "no route to its network".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to this host".to_owned(),
        io::ErrorKind::PermissionDenied => "a firewall of this machine forbids it".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_there_is_named_with_a_remedy() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let text = reach(&[free], Listens::Stream, "ws://127.0.0.1:9001", "stepladder serve arena")
            .unwrap_err()
            .to_string();
        // A crowded machine takes longer.
        let (begin, rest) = text.split_once(" s); ").unwrap();
        let begin = begin.trim_end_matches(|c: char| c.is_ascii_digit());
        assert_eq!(begin, "cannot reach ws://127.0.0.1:9001 (connection refused, tried 3 times in ");
        assert_eq!(
            rest,
            "is a server listening there? To try Stepladder without one of your own: stepladder serve arena"
        );
        let refused = |address: &str| ("connection refused".to_owned(), address.to_owned());
        assert_eq!(
            together(&[refused("127.0.0.1"), refused("::1")]),
            "connection refused at 127.0.0.1 and ::1"
        );
        let silent = ("no answer".to_owned(), "10.0.0.1".to_owned());
        assert_eq!(together(&[silent, refused("::1")]), "no answer at 10.0.0.1, connection refused at ::1");
    }

    #[test]
    fn a_target_that_resets_at_once_is_there_and_one_that_refuses_is_not() {
        assert!(accepted_all_the_same(io::ErrorKind::ConnectionReset.into()).is_ok());
        for not_there in [io::ErrorKind::ConnectionRefused, io::ErrorKind::TimedOut, io::ErrorKind::Other] {
            assert_eq!(accepted_all_the_same(not_there.into()).unwrap_err().kind(), not_there);
        }
    }

    #[test]
    fn the_first_address_that_accepts_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (free, open) = {
            let other = TcpListener::bind("127.0.0.1:0").unwrap();
            (other.local_addr().unwrap(), listener.local_addr().unwrap())
        };
        assert_eq!(reach(&[open], Listens::Stream, "tcp://x", "x").unwrap(), open);
        assert_eq!(reach(&[free, open], Listens::Stream, "tcp://x", "x").unwrap(), open);
    }

    #[test]
    fn the_soft_limit_goes_up_to_the_hard_one() {
        let hard = Inherited::remember().descriptors_hard;
        assert_eq!(raise_descriptors().unwrap(), hard);
    }

    #[test]
    fn the_range_of_ports_is_counted_with_both_ends() {
        let ports = Ports { from: 32_768, to: 60_999, reuse: None, time_wait_most: None };
        assert_eq!(ports.count(), 28_232);
        assert!(Ports::read().count() > 0);
    }
}
