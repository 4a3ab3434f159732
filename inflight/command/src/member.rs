//! The server's process, to measure its resource use during a run.

use std::net::{SocketAddr, ToSocketAddrs};

use inflight_analysis::Usage;
use procfs::net::TcpState;
use procfs::process::FDTarget;
use watch::{ControlGroup, ProcessTree};

/// The server under the clients, where it runs on this machine.
pub struct Member {
    pid: Option<u32>,
    /// it is read instead of the process
    group: Option<ControlGroup>,
}

impl Member {
    /// The control group, or the process named by `--pid`, or the one that listens on the target's first port.
    pub fn of(target: &str, pid: Option<u32>, group: Option<ControlGroup>) -> Member {
        Member { pid: pid.or_else(|| listener(first_address(target)?)), group }
    }

    /// `None` where the process or group is unknown or has ended.
    pub fn usage(&self) -> Option<Usage> {
        let reading = match &self.group {
            Some(group) => group.clone().read()?,
            None => ProcessTree::of(self.pid?).ok()?.read()?,
        };
        Some(Usage { cpu_s: reading.cpu_s, rss_bytes: reading.rss_bytes })
    }
}

fn first_address(target: &str) -> Option<SocketAddr> {
    let rest = target.split_once("://")?.1;
    let member = rest.split(['/', ',']).next()?;
    member.to_socket_addrs().ok()?.next()
}

/// The process that listens on an address, or on all addresses with its port.
fn listener(address: SocketAddr) -> Option<u32> {
    let tables = [procfs::net::tcp(), procfs::net::tcp6()];
    let inodes: Vec<u64> = tables
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == address.port())
        .map(|entry| entry.inode)
        .collect();
    let holds = |process: &procfs::process::Process| {
        process
            .fd()
            .ok()?
            .flatten()
            .find(|entry| matches!(entry.target, FDTarget::Socket(inode) if inodes.contains(&inode)))
    };
    let mut all = procfs::process::all_processes().ok()?.flatten();
    let found = all.find(|process| holds(process).is_some())?;
    u32::try_from(found.pid).ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_process_that_listens_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = format!("hazelcast://127.0.0.1:{port},127.0.0.1:1/map");
        let member = Member::of(&target, None, None);
        assert_eq!(member.pid, Some(std::process::id()));
        assert!(member.usage().unwrap().rss_bytes > 0);
        drop(listener);
        assert_eq!(Member::of(&target, None, None).pid, None);
    }
}
