//! A process tree: CPU, memory and descriptors of a process and everything it started.
//!
//! CPU must not drop when a child ends. Normally the time of a reaped child moves into its parent. If the parent does
//! not wait for it (SIGCHLD ignored, parent gone) the kernel discards it, so its last known value is kept here instead.
//! Descriptors are counted once per table, since a thread may have its own: /proc/PID/fd shows only the leader's.
//! Threads that share a table are identified by kcmp(2). The count is the size that stat(2) gives for the `fd` folder
//! (Linux 6.2 on): 20 µs at 19,000 descriptors, where listing it took 12–58 ms.
//! Resident memory is summed per process, so shared pages count in each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use procfs::FromRead;
use procfs::process::{Stat, StatM};

/// What a process tree uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessReading {
    /// user and system time since it began (or since it is watched), with that of ended children; never falls
    pub cpu_s: f64,
    /// resident memory
    pub rss_bytes: u64,
    /// open descriptors over all tables, `None` when they may not be seen
    pub fds: Option<u64>,
    /// processes that live
    pub process_count: usize,
    /// their threads
    pub thread_count: usize,
}

/// A process and all its descendants, watched over time.
#[derive(Debug)]
pub struct ProcessTree {
    proc: PathBuf,
    with_children: bool,
    known: BTreeMap<i32, Known>,
    /// (process, thread) of everything that lived at the last reading
    threads: Vec<(i32, i32)>,
    /// CPU of processes that ended without being reaped by a parent, in clock ticks
    forgotten_ticks: u64,
    shown_ticks: u64,
    /// false on kernels without CONFIG_PROC_CHILDREN; then every process of the machine is looked at
    has_children_files: bool,
    counting: Counting,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    started_ticks: u64,
    own_ticks: u64,
    reaped_ticks: u64,
}

/// How descriptors are counted.
#[derive(Debug)]
enum Counting {
    /// the size of the `fd` folder is their number
    BySize,
    /// by listing, and the more there are the more seldom: 2,000 entries per reading in the mean
    ByListing { wait: u64, last: Option<u64> },
}

const LISTED_PER_READING: u64 = 2_000;

impl ProcessTree {
    /// The tree below `pid`. Errors: no such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        Self::rooted(PathBuf::from("/proc"), pid as i32, true)
    }

    /// This process alone: what it started is watched for itself. Errors: /proc is not mounted.
    pub fn own() -> io::Result<Self> {
        Self::rooted(PathBuf::from("/proc"), std::process::id() as i32, false)
    }

    fn rooted(proc: PathBuf, pid: i32, with_children: bool) -> io::Result<Self> {
        let stat = read_stat(&proc, pid)?;
        // In a fake file tree, folders have unrelated sizes.
        let by_size =
            proc == Path::new("/proc") && fs::metadata("/proc/self/fd").is_ok_and(|of| of.len() > 0);
        let counting = if by_size { Counting::BySize } else { Counting::ByListing { wait: 0, last: None } };
        let known = BTreeMap::from([(pid, Known::of(&stat, with_children))]);
        Ok(ProcessTree {
            proc,
            with_children,
            known,
            threads: Vec::new(),
            forgotten_ticks: 0,
            shown_ticks: 0,
            has_children_files: true,
            counting,
        })
    }

    /// Reads the tree anew; `None` when nothing of it lives any more.
    pub fn read(&mut self) -> Option<ProcessReading> {
        let parents = (self.with_children && !self.has_children_files).then(|| self.children_by_parent());
        let mut found: BTreeMap<i32, Known> = BTreeMap::new();
        // Known processes stay members when their parent ends and they are reparented.
        let mut look_at: Vec<(i32, Option<u64>)> =
            self.known.iter().map(|(&pid, known)| (pid, Some(known.started_ticks))).collect();
        let (mut rss_bytes, mut thread_count, mut alive) = (0, 0, Vec::new());
        while let Some((pid, started_ticks)) = look_at.pop() {
            if found.contains_key(&pid) {
                continue;
            }
            let Ok(stat) = read_stat(&self.proc, pid) else { continue };
            if started_ticks.is_some_and(|ticks| ticks != stat.starttime) {
                // The pid was reused.
                continue;
            }
            found.insert(pid, Known::of(&stat, self.with_children));
            if matches!(stat.state, 'Z' | 'X') {
                continue;
            }
            let tasks = tasks(&self.proc, pid);
            if self.with_children {
                let children = match &parents {
                    Some(parents) => parents.get(&pid).cloned().unwrap_or_default(),
                    None => self.children(pid, &tasks),
                };
                look_at.extend(children.into_iter().map(|child| (child, None)));
            }
            rss_bytes += self.rss_bytes(pid);
            thread_count += tasks.len();
            alive.push((pid, tasks));
        }
        self.keep_forgotten(&found);
        self.known = found;
        self.threads = alive.iter().flat_map(|(pid, tasks)| tasks.iter().map(|&tid| (*pid, tid))).collect();
        if alive.is_empty() {
            return None;
        }
        let fds = self.count_descriptors(&alive);
        let ticks = self.known.values().map(|known| known.own_ticks + known.reaped_ticks).sum::<u64>();
        self.shown_ticks = self.shown_ticks.max(ticks + self.forgotten_ticks);
        Some(ProcessReading {
            cpu_s: self.shown_ticks as f64 / procfs::ticks_per_second() as f64,
            rss_bytes,
            fds,
            process_count: alive.len(),
            thread_count,
        })
    }

    /// The processes of the last reading, including those that ended and were not reaped.
    pub fn pids(&self) -> impl Iterator<Item = i32> {
        self.known.keys().copied()
    }

    /// The threads of the last reading, each with its process's number before its own.
    pub fn threads(&self) -> &[(i32, i32)] {
        &self.threads
    }

    /// Keeps the time of ended processes that no member of the tree has taken over.
    fn keep_forgotten(&mut self, found: &BTreeMap<i32, Known>) {
        let is_same = |pid: &i32, known: &Known| {
            found.get(pid).is_some_and(|now| now.started_ticks == known.started_ticks)
        };
        let ended = self.known.iter().filter(|(pid, known)| !is_same(pid, known));
        let ended_ticks: u64 = ended.map(|(_, known)| known.own_ticks + known.reaped_ticks).sum();
        let taken_over = self.known.iter().filter(|(pid, known)| is_same(pid, known));
        let taken_over_ticks: u64 =
            taken_over.map(|(pid, known)| found[pid].reaped_ticks.saturating_sub(known.reaped_ticks)).sum();
        self.forgotten_ticks += ended_ticks.saturating_sub(taken_over_ticks);
    }

    fn children(&mut self, pid: i32, tasks: &[i32]) -> Vec<i32> {
        let mut children = Vec::new();
        for tid in tasks {
            match fs::read_to_string(self.proc.join(format!("{pid}/task/{tid}/children"))) {
                Ok(text) => {
                    children.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()))
                }
                // The thread exists but not the file: the kernel was built without it.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && self.proc.join(format!("{pid}/task/{tid}/stat")).exists()
                        && *tid == pid =>
                {
                    self.has_children_files = false;
                    return self.children_by_parent().remove(&pid).unwrap_or_default();
                }
                Err(_) => {}
            }
        }
        children
    }

    fn children_by_parent(&self) -> BTreeMap<i32, Vec<i32>> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let Ok(entries) = fs::read_dir(&self.proc) else { return children };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for pid in pids {
            if let Ok(stat) = read_stat(&self.proc, pid) {
                children.entry(stat.ppid).or_default().push(pid);
            }
        }
        children
    }

    fn rss_bytes(&self, pid: i32) -> u64 {
        let text = fs::read(self.proc.join(format!("{pid}/statm"))).unwrap_or_default();
        StatM::from_read(&text[..]).map_or(0, |memory| memory.resident * procfs::page_size())
    }

    fn count_descriptors(&mut self, alive: &[(i32, Vec<i32>)]) -> Option<u64> {
        if let Counting::ByListing { wait, last } = &mut self.counting
            && *wait > 0
        {
            *wait -= 1;
            return *last;
        }
        let by_size = matches!(self.counting, Counting::BySize);
        let mut sum = None;
        for (pid, tasks) in alive {
            let distinct = if by_size { distinct_tables } else { tables_by_size };
            let tables = distinct(&self.proc, *pid, tasks);
            for tid in tables {
                let folder = self.proc.join(format!("{pid}/task/{tid}/fd"));
                let count = if by_size {
                    fs::metadata(&folder).ok().map(|of| of.len())
                } else {
                    fs::read_dir(&folder).ok().map(|entries| entries.count() as u64)
                };
                sum = sum.map_or(count, |sum: u64| Some(sum + count.unwrap_or(0)));
            }
        }
        if let Counting::ByListing { wait, last } = &mut self.counting {
            *last = sum;
            *wait = sum.unwrap_or(0) / LISTED_PER_READING;
        }
        sum
    }
}

impl Known {
    fn of(stat: &Stat, with_children: bool) -> Self {
        let reaped = if with_children { (stat.cutime + stat.cstime).max(0) as u64 } else { 0 };
        Known { started_ticks: stat.starttime, own_ticks: stat.utime + stat.stime, reaped_ticks: reaped }
    }
}

/// When a process began, in clock ticks since boot: with its number it names a process for ever.
pub(crate) fn started_ticks(pid: u32) -> io::Result<u64> {
    let stat = read_stat(Path::new("/proc"), pid as i32)?;
    if matches!(stat.state, 'Z' | 'X') {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has ended"));
    }
    Ok(stat.starttime)
}

fn read_stat(proc: &Path, pid: i32) -> io::Result<Stat> {
    let text = fs::read(proc.join(format!("{pid}/stat")))?;
    Stat::from_read(&text[..]).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// The folder of each descriptor table of a process, below /proc.
pub(crate) fn descriptor_folders(pid: i32) -> Vec<PathBuf> {
    let proc = Path::new("/proc");
    let tables = distinct_tables(proc, pid, &tasks(proc, pid));
    tables.into_iter().map(|tid| proc.join(format!("{pid}/task/{tid}/fd"))).collect()
}

/// The threads of a process; none when it has ended.
pub(crate) fn tasks(proc: &Path, pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(proc.join(format!("{pid}/task"))).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// One thread for each descriptor table of a process.
fn distinct_tables(proc: &Path, pid: i32, tasks: &[i32]) -> Vec<i32> {
    let mut tables = vec![pid];
    for &tid in tasks.iter().filter(|&&tid| tid != pid) {
        let mut is_new = true;
        for &table in &tables {
            match same_table(table, tid) {
                Some(true) => is_new = false,
                Some(false) => continue,
                // Not permitted (a sandbox) or not compiled in.
                None => return tables_by_size(proc, pid, tasks),
            }
            break;
        }
        if is_new {
            tables.push(tid);
        }
    }
    tables
}

/// The fallback to tell tables apart: a thread whose table has a different capacity than the leader's (`FDSize`) has
/// its own. Sharing threads always show the same capacity.
fn tables_by_size(proc: &Path, pid: i32, tasks: &[i32]) -> Vec<i32> {
    let room = |tid: i32| -> Option<u64> {
        let status = fs::read_to_string(proc.join(format!("{pid}/task/{tid}/status"))).ok()?;
        status.lines().find_map(|line| line.strip_prefix("FDSize:"))?.trim().parse().ok()
    };
    let leader = room(pid);
    let own: BTreeSet<i32> = tasks
        .iter()
        .copied()
        .filter(|&tid| tid != pid && room(tid).is_some_and(|size| Some(size) != leader))
        .collect();
    std::iter::once(pid).chain(own).collect()
}

/// True when two threads share one descriptor table; `None` when the kernel does not say or a thread has ended.
fn same_table(a: i32, b: i32) -> Option<bool> {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: kcmp takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_FILES, 0, 0) };
    match order {
        0 => Some(true),
        1.. => Some(false),
        // A thread that has just ended has no table.
        _ if io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
