//! What the subject was doing in a second: its threads' states, its queues, its limits and the stops of its runtime.
//!
//! None of it decides a verdict; it tells why one came about (`ladder`'s causes). What cannot be read is absent, never 0.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use measure::{MachineMetric, ProcessMetric, Reading};

use super::disturbance::Told;
use crate::cores::groups_of_cpu;
use crate::hsperf;
use crate::machine::field;
use crate::process::descriptor_folders;
use crate::queues::{Asked, Queues};
use crate::thread_states::ThreadStates;

/// Files that seldom change are looked for every so many readings.
const SELDOM: u64 = 10;
/// Processes whose limits are compared; of more the first.
const PROCESSES_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Activity {
    pub states: ThreadStates,
    queues: Queues,
    readings: u64,
    /// control groups with a CPU quota above the subject
    groups: Vec<PathBuf>,
    /// limit of descriptors of each process
    limits: BTreeMap<i32, u64>,
    jvms: BTreeMap<i32, PathBuf>,
    /// periods of each quota and those in which it halted its group, at the reading before
    quotas: BTreeMap<PathBuf, (f64, f64)>,
    /// whose network namespace was read before
    network_of: Option<i32>,
    /// counters at the reading before, by their names
    before: BTreeMap<&'static str, f64>,
    before_at: Option<Instant>,
}

impl Activity {
    pub fn new() -> Activity {
        Activity {
            states: ThreadStates::new(),
            queues: Queues::new(),
            readings: 0,
            groups: Vec::new(),
            limits: BTreeMap::new(),
            jvms: BTreeMap::new(),
            quotas: BTreeMap::new(),
            network_of: None,
            before: BTreeMap::new(),
            before_at: None,
        }
    }

    /// Readings of the processes of the subject, whose `active` threads are looked at from now on.
    pub fn read(&mut self, pids: &[i32], active: Vec<(i32, i32)>) -> Vec<Told> {
        let pids = &pids[..pids.len().min(PROCESSES_MAX)];
        let is_seldom = self.readings.is_multiple_of(SELDOM);
        if is_seldom {
            self.look_for_files(pids);
        }
        // A process may enter its group late, and a quota has no periods before it was used.
        if is_seldom || self.groups.is_empty() {
            self.look_for_groups(pids);
        }
        self.readings += 1;
        let now = Instant::now();
        let seconds = self.before_at.replace(now).map(|before| (now - before).as_secs_f64());
        let mut told: Vec<Told> = Vec::new();
        let states = self.states.take(active);
        told.extend(states.into_iter().map(|(state, mean)| (Reading::Threads(state), mean)));
        let of_subject = |(metric, value)| (Reading::Subject(metric), value);
        told.extend(self.queues.read(pids).into_iter().map(of_subject));
        told.extend(self.descriptors(pids).into_iter().flatten().map(of_subject));
        let faults: Vec<f64> = pids.iter().filter_map(|pid| major_faults(*pid)).collect();
        told.extend(
            (!faults.is_empty()).then(|| of_subject((ProcessMetric::MajorFaults, faults.iter().sum()))),
        );
        if let Some(share) = self.throttled_share() {
            told.push(of_subject((ProcessMetric::ThrottledShare, share)));
        }
        let counters: Vec<hsperf::Counters> =
            self.jvms.values().filter_map(|path| hsperf::read(path)).collect();
        if !counters.is_empty() {
            let gc_s = counters.iter().map(|one| one.gc_s).sum();
            let heap = counters.iter().map(|one| one.heap_used_bytes).sum();
            told.push(of_subject((ProcessMetric::HeapUsed, heap)));
            let growth = self.growth("gc", gc_s).zip(seconds.filter(|seconds| *seconds > 0.0));
            let share = growth.map(|(growth, seconds)| (growth / seconds).min(1.0));
            told.extend(share.map(|share| of_subject((ProcessMetric::GcShare, share))));
        }
        told.extend(self.of_network(pids));
        told
    }

    /// Listening sockets of others to which the subject has connections.
    pub fn asked(&self) -> &BTreeSet<Asked> {
        self.queues.asked()
    }

    fn look_for_files(&mut self, pids: &[i32]) {
        self.limits = pids.iter().filter_map(|pid| Some((*pid, descriptor_limit(*pid)?))).collect();
        self.jvms = pids.iter().filter_map(|pid| Some((*pid, hsperf::find(*pid)?))).collect();
    }

    fn look_for_groups(&mut self, pids: &[i32]) {
        let texts = pids.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
        let groups: BTreeSet<PathBuf> =
            texts.flat_map(|text| groups_of_cpu(&text, Path::new("/sys/fs/cgroup"))).collect();
        self.groups = groups.into_iter().collect();
        self.groups.retain(|group| periods(group).is_some_and(|(periods, _)| periods > 0.0));
    }

    /// Since the reading before; `None` at the first, and where it fell.
    fn growth(&mut self, name: &'static str, value: f64) -> Option<f64> {
        let before = self.before.insert(name, value)?;
        Some(value - before).filter(|growth| *growth >= 0.0)
    }

    /// The tables of the process that is nearest to its limit.
    fn descriptors(&self, pids: &[i32]) -> [Option<(ProcessMetric, f64)>; 2] {
        let of = |pid: &i32| Some((descriptors_of_one(*pid)? as f64, *self.limits.get(pid)? as f64));
        let nearest = pids.iter().filter_map(of).max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let Some((open, limit)) = nearest else { return [None, None] };
        [Some((ProcessMetric::FdsOfOne, open)), Some((ProcessMetric::FdLimit, limit))]
    }

    /// Of the group that was halted for the largest share of its periods since the reading before.
    fn throttled_share(&mut self) -> Option<f64> {
        let read = |group: &PathBuf| Some((group.clone(), periods(group)?));
        let now: BTreeMap<PathBuf, (f64, f64)> = self.groups.iter().filter_map(read).collect();
        let before = std::mem::replace(&mut self.quotas, now);
        // Each group is compared with itself: one that was halted often long ago may have the largest sum.
        let share = |(group, now): (&PathBuf, &(f64, f64))| {
            let then = before.get(group)?;
            let (periods, throttled) = (now.0 - then.0, now.1 - then.1);
            (periods > 0.0 && throttled >= 0.0).then(|| (throttled / periods).min(1.0))
        };
        self.quotas.iter().filter_map(share).max_by(f64::total_cmp)
    }

    /// Counters of the subject's network namespace, which may be another than ours.
    fn of_network(&mut self, pids: &[i32]) -> Vec<Told> {
        let Some(&pid) = pids.first() else { return Vec::new() };
        let is_same = self.network_of.replace(pid) == Some(pid);
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
        let (netstat, snmp) = (read("netstat"), read("snmp"));
        let mut told = Vec::new();
        for (metric, text, table, column) in [
            (MachineMetric::ListenOverflows, &netstat, "TcpExt:", "ListenOverflows"),
            (MachineMetric::Retransmissions, &snmp, "Tcp:", "RetransSegs"),
            (MachineMetric::UdpDrops, &snmp, "Udp:", "RcvbufErrors"),
        ] {
            let growth = counter(text, table, column).and_then(|value| self.growth(column, value));
            told.extend(growth.filter(|_| is_same).map(|growth| (Reading::Machine(metric), growth)));
        }
        told
    }
}

/// A column of a table of /proc/net: a line of names, then one of numbers.
fn counter(text: &str, table: &str, column: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let place = lines.next()?.split_whitespace().position(|name| name == column)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// Periods of a quota and those in which it halted the group, since the start.
fn periods(group: &Path) -> Option<(f64, f64)> {
    let file = group.join("cpu.stat");
    Some((field(&file, "nr_periods")? as f64, field(&file, "nr_throttled")? as f64))
}

/// The soft limit; `None` without one.
fn descriptor_limit(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

/// Of its fullest table, by the size that the kernel gives the folder (Linux 6.2 on).
fn descriptors_of_one(pid: i32) -> Option<u64> {
    let sizes =
        descriptor_folders(pid).into_iter().filter_map(|folder| Some(fs::metadata(folder).ok()?.len()));
    sizes.max().filter(|size| *size > 0)
}

/// With those of its children that ended.
fn major_faults(pid: i32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(9);
    Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_by_its_name_in_the_right_table() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 23 45\nIpExt: ListenOverflows\nIpExt: 7\n";
        assert_eq!(counter(text, "TcpExt:", "ListenOverflows"), Some(23.0));
        assert_eq!(counter(text, "IpExt:", "ListenOverflows"), Some(7.0));
        for (table, column) in [("TcpExt:", "Other"), ("Tcp:", "ListenOverflows"), ("", "")] {
            assert_eq!(counter(text, table, column), None, "{table} {column}");
        }
        assert_eq!(counter("TcpExt: A B\nTcpExt: 1\n", "TcpExt:", "B"), None);
    }

    #[test]
    fn this_process_has_descriptors_below_a_limit_and_readings_of_the_network() {
        let pid = std::process::id() as i32;
        let mut activity = Activity::new();
        activity.read(&[pid], Vec::new());
        let told = activity.read(&[pid], Vec::new());
        let of = |wanted: Reading| told.iter().find(|(what, _)| *what == wanted).map(|(_, value)| *value);
        let open = of(Reading::Subject(ProcessMetric::FdsOfOne)).unwrap();
        assert!(open >= 3.0 && open < of(Reading::Subject(ProcessMetric::FdLimit)).unwrap());
        assert!(of(Reading::Machine(MachineMetric::ListenOverflows)).is_some());
        assert!(of(Reading::Subject(ProcessMetric::MajorFaults)).is_some());
        assert_eq!(of(Reading::Subject(ProcessMetric::GcShare)), None, "it is no JVM");
    }

    #[test]
    fn the_periods_of_a_quota_are_counted_where_it_has_halted_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let plant = |group: &str, periods: u64, throttled: u64| {
            fs::create_dir_all(folder.path().join(group)).unwrap();
            let text = format!("nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time 5\n");
            fs::write(folder.path().join(group).join("cpu.stat"), text).unwrap();
        };
        let groups = vec![folder.path().join("old"), folder.path().join("young")];
        let mut activity = Activity { groups, ..Activity::new() };
        plant("old", 9_000, 8_000);
        plant("young", 100, 40);
        assert_eq!(activity.throttled_share(), None, "there is nothing to compare with");
        plant("old", 9_010, 8_000);
        plant("young", 110, 44);
        assert_eq!(activity.throttled_share(), Some(0.4), "of the group that is halted now");
        plant("old", 9_020, 8_008);
        plant("young", 120, 44);
        assert_eq!(activity.throttled_share(), Some(0.8));
        assert_eq!(activity.throttled_share(), None, "no period has passed");
    }

    #[test]
    fn counters_of_a_network_are_told_only_between_two_readings_of_the_same_process() {
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own, child) = (std::process::id() as i32, other.id() as i32);
        let mut activity = Activity::new();
        let counts = [[own], [own], [child], [child]].map(|pids| activity.of_network(&pids).len());
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(counts, [0, 3, 0, 3]);
        assert_eq!(activity.of_network(&[]), [], "whose namespace it would be is not known");
    }
}
