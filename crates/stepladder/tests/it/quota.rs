//! `serve limited --fault throttled`: the server's control group, and that none is left behind.

use std::fs;
use std::path::PathBuf;

use crate::place::{Place, Running, eventually, is_gone};

fn start(place: &Place) -> Running {
    place.start(["serve", "limited", "--listen", "127.0.0.1:0", "--fault", "throttled"])
}

/// Its group, by the name that the kernel tells.
fn group(server: &Running) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", server.pid())).ok()?;
    let name = format!("stepladder-throttled-{}", server.pid());
    let line = groups.lines().find(|line| line.ends_with(&name))?;
    let path = line.rsplit_once(':')?.1.trim_start_matches('/');
    let roots = ["", "unified", "cpu", "cpu,cpuacct"].map(|root| PathBuf::from("/sys/fs/cgroup").join(root));
    roots.into_iter().map(|root| root.join(path)).find(|group| group.exists())
}

#[test]
fn a_throttled_server_has_a_group_of_its_own_until_it_ends_and_one_that_was_killed_until_the_next_starts() {
    let place = Place::new();
    let mut server = start(&place);
    let it = "it listens, or has ended";
    eventually(it, || (server.out().contains("listening") || is_gone(server.pid())).then_some(()));
    let Some(first) = group(&server) else {
        let ran = server.finish();
        eprintln!("NOT RUN: {}", ran.err);
        return assert!(ran.code == 2 && ran.err.contains(servers::NO_QUOTA), "{ran:#?}");
    };
    server.wait_for_out("listening");
    let quota = fs::read_to_string(first.join("cpu.max"))
        .or_else(|_| fs::read_to_string(first.join("cpu.cfs_quota_us")));
    assert!(quota.unwrap().starts_with("20000"));
    server.signal(libc::SIGTERM);
    assert_eq!(server.finish().code, 0);
    assert!(!first.exists(), "its group is gone with it");
    let mut killed = start(&place);
    killed.wait_for_out("listening");
    let left = group(&killed).unwrap();
    killed.signal(libc::SIGKILL);
    killed.finish();
    assert!(left.exists());
    let mut next = start(&place);
    next.wait_for_out("listening");
    assert!(!left.exists(), "the next one removes it");
    next.signal(libc::SIGTERM);
    assert_eq!(next.finish().code, 0);
}
