//! The process that listens at an address of this machine.
//!
//! Sockets of this network namespace, by their inodes, among the descriptors of all processes that may be looked at.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use procfs::net::{TcpNetEntry, TcpState, UdpNetEntry};
use procfs::process::{FDTarget, Process, all_processes};

use crate::preflight::Listens;

/// Why it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoListener {
    /// there is no such socket
    #[error("nothing listens at {0} there")]
    Nothing(SocketAddr),
    /// there is one, and no process that may be looked at has it
    #[error(
        "the process that listens at {0} belongs to another user; run this as that user or as root, or name the process with --pid"
    )]
    Hidden(SocketAddr),
}

/// The process that listens at `address`, or at all addresses with its port; of several that share the socket the one that started
/// the others.
pub fn listener(address: SocketAddr, listens: Listens) -> Result<u32, NoListener> {
    let inodes = match listens {
        Listens::Stream => streams(address),
        Listens::Datagrams => datagrams(address),
    };
    if inodes.is_empty() {
        return Err(NoListener::Nothing(address));
    }
    let has_one = |process: &Process| {
        let targets = process.fd().into_iter().flatten().flatten().map(|entry| entry.target);
        targets.into_iter().any(|target| matches!(target, FDTarget::Socket(inode) if inodes.contains(&inode)))
    };
    let all = all_processes().into_iter().flatten().flatten();
    let owners: Vec<Process> = all.filter(has_one).collect();
    let pids: BTreeSet<i32> = owners.iter().map(|owner| owner.pid).collect();
    let is_first = |owner: &&Process| owner.stat().is_ok_and(|stat| !pids.contains(&stat.ppid));
    let first = owners.iter().find(is_first).or(owners.first());
    first.and_then(|owner| u32::try_from(owner.pid).ok()).ok_or(NoListener::Hidden(address))
}

fn is_at(local: SocketAddr, address: SocketAddr) -> bool {
    let (ip, wanted) = (local.ip().to_canonical(), address.ip().to_canonical());
    local.port() == address.port() && (ip == wanted || ip.is_unspecified())
}

fn streams(address: SocketAddr) -> BTreeSet<u64> {
    let all = [procfs::net::tcp(), procfs::net::tcp6()].into_iter().flatten().flatten();
    let is_it = |entry: &TcpNetEntry| entry.state == TcpState::Listen && is_at(entry.local_address, address);
    all.filter(is_it).map(|entry| entry.inode).collect()
}

fn datagrams(address: SocketAddr) -> BTreeSet<u64> {
    let all = [procfs::net::udp(), procfs::net::udp6()].into_iter().flatten().flatten();
    // One that is connected sends to a server elsewhere.
    let is_it = |entry: &UdpNetEntry| entry.remote_address.port() == 0 && is_at(entry.local_address, address);
    all.filter(is_it).map(|entry| entry.inode).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn the_process_that_listens_is_found_by_its_address_and_kind() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tcp.local_addr().unwrap();
        assert_eq!(listener(at, Listens::Stream), Ok(std::process::id()));
        // Whether anything takes datagrams at that number is another question; at this address it is not ours.
        assert_ne!(listener(at, Listens::Datagrams), Ok(std::process::id()));
        let elsewhere = SocketAddr::from(([127, 0, 0, 77], at.port()));
        assert_eq!(listener(elsewhere, Listens::Stream), Err(NoListener::Nothing(elsewhere)));
        drop(tcp);
        assert_eq!(listener(at, Listens::Stream), Err(NoListener::Nothing(at)));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = udp.local_addr().unwrap();
        assert_eq!(listener(at, Listens::Datagrams), Ok(std::process::id()));
    }

    #[test]
    fn a_socket_of_all_addresses_listens_at_each_of_them() {
        let any = TcpListener::bind("0.0.0.0:0").unwrap();
        let at = SocketAddr::from(([127, 0, 0, 9], any.local_addr().unwrap().port()));
        assert_eq!(listener(at, Listens::Stream), Ok(std::process::id()));
        for (local, wanted, is) in [
            ("[::]:80", "10.0.0.1:80", true),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80", true),
            ("10.0.0.2:80", "10.0.0.1:80", false),
            ("0.0.0.0:81", "10.0.0.1:80", false),
        ] {
            assert_eq!(is_at(local.parse().unwrap(), wanted.parse().unwrap()), is, "{local} {wanted}");
        }
    }
}
