//! The server's process, to measure its resource use during a run.

use std::net::{SocketAddr, ToSocketAddrs};

use inflight_analysis::Usage;
use watch::{ControlGroup, Listens, ProcessTree};

/// The server under the clients, where it runs on this machine.
pub struct Member {
    pid: Option<u32>,
    /// it is read instead of the process
    group: Option<ControlGroup>,
}

impl Member {
    /// The control group, or the process named by `--pid`, or the one that listens on the target's first port.
    pub fn of(target: &str, pid: Option<u32>, group: Option<ControlGroup>) -> Member {
        Member { pid: pid.or_else(|| watch::listener(first_address(target)?, Listens::Stream).ok()), group }
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
