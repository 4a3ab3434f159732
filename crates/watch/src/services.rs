//! Services on this machine that the subject asks: a store, a database, another tier.
//!
//! A service is who listens on a port of this machine to which the subject has a TCP connection, with all of its
//! descendants. Its CPU is part of what the subject needs, so it is no other program's. Who listens is looked up once per
//! listening socket, among the descriptors of all processes. Not seen: sockets of other machines or network namespaces, and
//! Unix sockets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use measure::{Reading, ServiceMetric, ThreadState, plain_name};

use crate::process::ProcessTree;
use crate::queues::{Asked, inode_of};
use crate::thread_states::ThreadStates;
use crate::threads::Threads;

/// Services that are watched.
const SERVICES_MAX: usize = 8;
/// Descriptors of a process that are looked at: sockets that listen are opened early.
const LOOKED_AT_MAX: usize = 256;

/// All that were found.
#[derive(Debug)]
pub(crate) struct Services {
    known: Vec<ProcessTree>,
    looked_for: BTreeSet<Asked>,
    /// not told yet
    news: Vec<String>,
    threads: Threads,
    states: ThreadStates,
    /// CPU time and when it was read
    before: Option<(u64, f64)>,
}

impl Services {
    pub(crate) fn new() -> Services {
        Services {
            known: Vec::new(),
            looked_for: BTreeSet::new(),
            news: Vec::new(),
            threads: Threads::new(),
            states: ThreadStates::new(),
            before: None,
        }
    }

    /// Looks for those who listen on these sockets. Neither this process nor the subject is a service, nor who started them.
    pub(crate) fn find(&mut self, asked: &BTreeSet<Asked>, subject: &BTreeSet<i32>) {
        for &socket in asked {
            if self.known.len() >= SERVICES_MAX || !self.looked_for.insert(socket) {
                continue;
            }
            for pid in owners(Path::new("/proc"), socket.inode) {
                let is_known = self.pids().any(|known| known == pid);
                let Ok(mut tree) = ProcessTree::of(pid as u32) else { continue };
                let is_there = tree.read().is_some();
                let own = std::process::id() as i32;
                let is_ours = tree.pids().any(|pid| pid == own || subject.contains(&pid));
                if is_there && !is_ours && !is_known {
                    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                    self.news.push(format!("{} on port {}", plain_name(&name), socket.port));
                    self.known.push(tree);
                    // Its time so far is none of this second's.
                    self.before = None;
                }
            }
        }
    }

    /// Those found since it was asked before: `redis-server on port 6379`.
    pub(crate) fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Their processes at the last reading.
    pub(crate) fn pids(&self) -> impl Iterator<Item = i32> {
        self.known.iter().flat_map(ProcessTree::pids)
    }

    /// Their CPU time at the last reading, s.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.before.map_or(0.0, |(_, cpu_s)| cpu_s)
    }

    /// Looks once at what their threads do.
    pub(crate) fn look(&mut self) {
        self.states.look();
    }

    /// What they did since the reading before; nothing without a service.
    pub(crate) fn read(&mut self, at_ns: u64) -> Vec<(Reading, f64)> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let cpu_s: f64 = self.known.iter_mut().filter_map(ProcessTree::read).map(|read| read.cpu_s).sum();
        let before = self.before.replace((at_ns, cpu_s));
        let cores = before
            .filter(|(before_ns, _)| *before_ns < at_ns)
            .map(|(before_ns, before_s)| (cpu_s - before_s).max(0.0) * 1e9 / (at_ns - before_ns) as f64);
        let threads: Vec<(i32, i32)> =
            self.known.iter().flat_map(|tree| tree.threads().iter().copied()).collect();
        let share_max = self.threads.read(&threads, at_ns).map(|threads| threads.cpu_share_max);
        let states = self.states.take(self.threads.active());
        let of = |wanted| states.iter().find(|(state, _)| *state == wanted).map(|(_, mean)| *mean);
        let told = [
            (ServiceMetric::Cores, cores),
            (ServiceMetric::CpuShareMax, share_max),
            (ServiceMetric::Running, of(ThreadState::Running)),
            (ServiceMetric::Disk, of(ThreadState::Disk)),
        ];
        told.into_iter().filter_map(|(metric, value)| Some((Reading::Services(metric), value?))).collect()
    }
}

/// The processes that have this socket open, in the order of their numbers.
fn owners(proc: &Path, inode: u32) -> BTreeSet<i32> {
    let numbers = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
    };
    let owns = |pid: &i32| {
        let folder = proc.join(format!("{pid}/fd"));
        let links = numbers(folder.clone()).take(LOOKED_AT_MAX);
        let mut inodes =
            links.filter_map(|fd| inode_of(fs::read_link(folder.join(fd.to_string())).ok()?.to_str()?));
        inodes.any(|one| one == inode)
    };
    numbers(proc.to_owned()).filter(owns).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn who_listens_is_found_among_the_descriptors_of_all_processes() {
        let proc = tempfile::tempdir().unwrap();
        for (path, target) in [
            ("10/fd/3", "socket:[77]"),
            ("10/fd/4", "pipe:[78]"),
            ("11/fd/0", "/dev/null"),
            ("11/fd/9", "socket:[78]"),
            ("12/fd/5", "socket:[77]"),
            ("self/fd/5", "socket:[77]"),
        ] {
            let path = proc.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }
        for (inode, expected) in [(77, &[10, 12][..]), (78, &[11]), (79, &[])] {
            assert_eq!(owners(proc.path(), inode).into_iter().collect::<Vec<_>>(), expected, "{inode}");
        }
    }

    #[test]
    fn whoever_started_this_process_or_the_subject_is_no_service() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = |listener: &std::net::TcpListener| {
            let fd = std::os::fd::AsRawFd::as_raw_fd(listener);
            inode_of(fs::read_link(format!("/proc/self/fd/{fd}")).unwrap().to_str().unwrap()).unwrap()
        };
        let asked =
            BTreeSet::from([Asked { port: listener.local_addr().unwrap().port(), inode: inode(&listener) }]);
        let mut services = Services::new();
        services.find(&asked, &BTreeSet::new());
        assert!(services.known.is_empty() && services.take_news().is_empty());
        assert!(services.read(1).is_empty() && services.looked_for == asked, "it is looked for once");
    }
}
