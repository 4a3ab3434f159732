//! Other programs: how much CPU is used by programs that are neither this one nor the subject, and which they are.
//!
//! Every process of the machine is read once per second, and its usage since the previous reading is summed. The time
//! of a reaped child moves into its parent; what was counted while the child lived is subtracted there, so nothing
//! counts twice, and a child that lived between two readings is counted as its parent (make, cargo, sh).
//! Kernel threads are left out: they work on behalf of programs, ours included.
//! If not every process is visible (in a container, or with hidepid) the difference of /proc/stat is used, which is
//! coarser: see `OtherPrograms`. Units: cores = CPU time per time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use measure::plain_name;
use rustix::process::{Resource, getrlimit};

/// What other programs used since the reading before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OthersReading {
    /// by all of them together, ≥ 0
    pub cores: f64,
    /// by name, largest first: at most `PROGRAMS_MAX` of at least `PROGRAM_CORES_MIN` each; empty in seconds in which
    /// all together used no more than `NAMED_ABOVE_CORES`
    pub programs: Vec<(String, f64)>,
}

/// What was used in all by the time of a reading, for machines on which not every process can be seen.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// user, nice and system time of the machine, s
    pub machine_s: f64,
    /// CPU time of this process and of the subject, s
    pub ours_s: f64,
}

/// Programs are named only in seconds in which others used more than this.
pub const NAMED_ABOVE_CORES: f64 = 0.05;
/// A program that used less is not named.
pub const PROGRAM_CORES_MIN: f64 = 0.02;
/// How many programs are named in a second.
pub const PROGRAMS_MAX: usize = 5;

const PF_KTHREAD: u64 = 0x0020_0000;
/// A number of a kernel thread that ended may be given to a program, so it is looked at again after so many readings.
const KERNEL_EVERY: u64 = 16;
/// Descriptors are the bots' first: at most this many are kept, and of a small limit a 64th.
const OPEN_FILES_MAX: usize = 256;
const MOST_GENERATIONS: usize = 64;

/// Reads other programs again and again.
///
/// Why not the difference of /proc/stat alone: it is made of samples (250 ticks per second and core here, so one second
/// is off by 0.03 cores anyway), and its user and system time leave out interrupts and stolen time, which the times of
/// processes contain. Measured on 2 cores of a virtual machine, Linux 6.18, `examples/others.rs`: with 8,000 HTTP
/// requests per second against the null server and a compiler beside them the difference fell short of the sum by
/// 0.11–0.25 cores (mean 0.17) in each of 24 seconds, while ours and the sum over the others made 1.9–2.0 cores of 2;
/// without our load both agreed to 0.06. So the difference misses others rather than invents them. The sum is exact to
/// two clock ticks (20 ms) per process and reading, and what a reading leaves out the next one has.
/// Cost: 0.6–1.1 ms of CPU per reading with 70 processes, 4.4–6.5 ms with 470, on a machine busy with other things.
#[derive(Debug)]
pub struct OtherPrograms {
    files: StatFiles,
    own_pid: i32,
    sees_all: bool,
    before: Option<Before>,
    /// threads of the kernel, which are not read again for a while
    of_kernel: BTreeSet<i32>,
    readings: u64,
}

#[derive(Debug)]
struct Before {
    at_ns: u64,
    known: BTreeMap<i32, Known>,
    totals: Option<Totals>,
}

#[derive(Clone, Debug)]
struct Known {
    started_ticks: u64,
    parent: i32,
    own_ticks: u64,
    reaped_ticks: u64,
    is_ours: bool,
    name: String,
}

/// What a number in /proc is.
enum Process {
    OfKernel,
    Program(Known),
}

impl OtherPrograms {
    /// Those of this machine.
    pub fn new() -> Self {
        let mut others = Self::rooted(PathBuf::from("/proc"), std::process::id() as i32);
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        others.files.open_max = OPEN_FILES_MAX.min((limit / 64) as usize);
        others
    }

    fn rooted(proc: PathBuf, own_pid: i32) -> Self {
        // On a whole machine process 2 is kthreadd; in a container it is something else, and under hidepid it is not
        // visible.
        let sees_all = fs::read_to_string(proc.join("2/comm")).is_ok_and(|name| name.trim() == "kthreadd");
        let files = StatFiles { proc, open: BTreeMap::new(), open_max: 0 };
        OtherPrograms { files, own_pid, sees_all, before: None, of_kernel: BTreeSet::new(), readings: 0 }
    }

    /// Whether every process of the machine can be seen, so that the sum is exact to a clock tick per process.
    pub fn sees_all(&self) -> bool {
        self.sees_all
    }

    /// What was used since the reading before, at `at_ns`; `None` at the first reading.
    ///
    /// `subject` are the processes of the subject's tree; they, this process and what it started are not others.
    /// `totals` is used where not every process can be seen, and there `None` gives `None`.
    pub fn read(
        &mut self,
        subject: &BTreeSet<i32>,
        totals: Option<Totals>,
        at_ns: u64,
    ) -> Option<OthersReading> {
        let known = self.scan(subject);
        let before = self.before.replace(Before { at_ns, known, totals })?;
        let now = &self.before.as_ref()?.known;
        let elapsed_s = at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        if elapsed_s <= 0.0 {
            return None;
        }
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (pid, ticks) in used(&before.known, now) {
            if ticks > 0 && !now[&pid].is_ours {
                *by_name.entry(&now[&pid].name).or_default() += ticks;
            }
        }
        let cores = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64 / elapsed_s;
        let all = if self.sees_all {
            cores(by_name.values().sum())
        } else {
            let (then, now) = before.totals.zip(totals)?;
            ((now.machine_s - then.machine_s) - (now.ours_s - then.ours_s)).max(0.0) / elapsed_s
        };
        let mut programs: Vec<(String, f64)> = Vec::new();
        if all > NAMED_ABOVE_CORES {
            let named = by_name.into_iter().map(|(name, ticks)| (plain_name(name), cores(ticks)));
            programs.extend(named.filter(|&(_, cores)| cores >= PROGRAM_CORES_MIN));
            programs.sort_by(|a, b| b.1.total_cmp(&a.1));
            programs.truncate(PROGRAMS_MAX);
        }
        Some(OthersReading { cores: all, programs })
    }

    fn scan(&mut self, subject: &BTreeSet<i32>) -> BTreeMap<i32, Known> {
        let mut found = BTreeMap::new();
        if self.readings.is_multiple_of(KERNEL_EVERY) {
            self.of_kernel.clear();
        }
        self.readings += 1;
        let Ok(entries) = fs::read_dir(&self.files.proc) else { return found };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for pid in pids {
            let before = self.before.as_ref().and_then(|before| before.known.get(&pid));
            if self.of_kernel.contains(&pid) {
                continue;
            }
            let mut process = match self.files.read(pid) {
                Some(Process::Program(process)) => process,
                Some(Process::OfKernel) => {
                    self.of_kernel.insert(pid);
                    continue;
                }
                None => continue,
            };
            let same = before.filter(|before| before.started_ticks == process.started_ticks);
            process.is_ours =
                pid == self.own_pid || subject.contains(&pid) || same.is_some_and(|before| before.is_ours);
            found.insert(pid, process);
        }
        self.files.open.retain(|pid, _| found.contains_key(pid));
        // Descendants of our processes are ours, at any depth; a parent's pid may be larger than its child's.
        loop {
            let heirs: Vec<i32> = found
                .iter()
                .filter(|(_, process)| {
                    !process.is_ours && found.get(&process.parent).is_some_and(|parent| parent.is_ours)
                })
                .map(|(&pid, _)| pid)
                .collect();
            if heirs.is_empty() {
                return found;
            }
            for pid in heirs {
                if let Some(process) = found.get_mut(&pid) {
                    process.is_ours = true;
                }
            }
        }
    }
}

impl Default for OtherPrograms {
    fn default() -> Self {
        Self::new()
    }
}

/// Clock ticks that each process of `now` used since `before`, without what was counted as a child's already.
fn used(before: &BTreeMap<i32, Known>, now: &BTreeMap<i32, Known>) -> Vec<(i32, u64)> {
    let is_alive = |pid: i32, known: &Known| {
        now.get(&pid).is_some_and(|process| process.started_ticks == known.started_ticks)
    };
    // The last known usage of ended processes, by the process that reaped them.
    let mut counted: BTreeMap<i32, u64> = BTreeMap::new();
    // The part of it whose own parent ended too: either that parent reaped it first, or process 1 did afterwards.
    let mut orphaned: BTreeMap<i32, u64> = BTreeMap::new();
    for (_, ended) in before.iter().filter(|(pid, known)| !is_alive(**pid, known)) {
        let ticks = ended.own_ticks + ended.reaped_ticks;
        let mut heir = ended.parent;
        // Bounded, because pids reused during the reading could form a cycle.
        for _ in 0..MOST_GENERATIONS {
            let Some(parent) = before.get(&heir).filter(|parent| !is_alive(heir, parent)) else { break };
            heir = parent.parent;
        }
        *counted.entry(heir).or_default() += ticks;
        if heir != ended.parent {
            *orphaned.entry(heir).or_default() += ticks;
        }
    }
    let mut used = Vec::with_capacity(now.len());
    let mut by_init = 0;
    // Process 1 is the last one of this order.
    for (&pid, process) in now.iter().rev() {
        let known = before.get(&pid).filter(|known| known.started_ticks == process.started_ticks);
        let (own_before, reaped_before) = known.map_or((0, 0), |known| (known.own_ticks, known.reaped_ticks));
        let reaped_ticks = process.reaped_ticks.saturating_sub(reaped_before);
        let mut again = counted.get(&pid).copied().unwrap_or(0);
        if pid == 1 {
            again += by_init;
        } else {
            by_init += again.saturating_sub(reaped_ticks).min(orphaned.get(&pid).copied().unwrap_or(0));
        }
        let own_ticks = process.own_ticks.saturating_sub(own_before);
        used.push((pid, own_ticks + reaped_ticks.saturating_sub(again)));
    }
    used
}

/// Reads `stat` of processes, and keeps those files open: opening one takes twice as long as reading it.
#[derive(Debug)]
struct StatFiles {
    proc: PathBuf,
    open: BTreeMap<i32, File>,
    open_max: usize,
}

impl StatFiles {
    /// `None` when it has ended.
    fn read(&mut self, pid: i32) -> Option<Process> {
        // One read returns all of it.
        let mut text = [0; 1_024];
        if let Some(file) = self.open.get(&pid) {
            // An open file stays with its process, even if the pid is reused.
            match file.read_at(&mut text, 0) {
                Ok(count) if count > 0 => return parse(&text[..count]),
                _ => drop(self.open.remove(&pid)),
            }
        }
        let file = File::open(self.proc.join(format!("{pid}/stat"))).ok()?;
        let count = file.read_at(&mut text, 0).ok()?;
        let process = parse(&text[..count]);
        if self.open.len() < self.open_max && matches!(process, Some(Process::Program(_))) {
            self.open.insert(pid, file);
        }
        process
    }
}

fn parse(text: &[u8]) -> Option<Process> {
    // A name may hold spaces and brackets, so it ends at the last one.
    let (open, close) =
        (text.iter().position(|&byte| byte == b'(')?, text.iter().rposition(|&byte| byte == b')')?);
    let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(&text[close + 1..]).ok()?;
    // The fields after the name: the third of proc_pid_stat(5) is the first here.
    let mut fields = [0u64; 20];
    for (field, text) in fields.iter_mut().zip(rest.split_ascii_whitespace()) {
        *field = text.parse().unwrap_or(0);
    }
    let field = |number: usize| fields[number - 3];
    if field(9) & PF_KTHREAD != 0 {
        return Some(Process::OfKernel);
    }
    Some(Process::Program(Known {
        started_ticks: field(22),
        parent: field(4) as i32,
        own_ticks: field(14) + field(15),
        reaped_ticks: field(16) + field(17),
        is_ours: false,
        name,
    }))
}

#[cfg(test)]
mod tests;
