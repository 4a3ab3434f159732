//! The machine: what disturbs a measurement on it, each second, and its description, once.
//!
//! Steal time, throttle events and pressure are differences between two readings, so that each covers its own second.
//! What a machine does not report (a guest has no throttle counters) is `None` and never 0: 0 would claim that it was
//! measured. Units: shares in [0, 1].

mod environment;

use std::fs;
use std::path::{Path, PathBuf};

pub use environment::{cpu_model, environment, online_cores, virtual_machine};

/// What was going on since the reading before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineReading {
    /// share of all cores' time that the hypervisor gave to others; `None` at the first reading
    pub steal_share: Option<f64>,
    /// the same for the core that lost most; `None` at the first reading
    pub steal_share_max: Option<f64>,
    /// user, nice and system time of all cores since boot, without interrupts and without what was stolen, s
    pub programs_cpu_s: Option<f64>,
    /// share of all cores' time that was not idle; `None` at the first reading
    pub busy_share: Option<f64>,
    /// thermal and power throttle events since the reading before
    pub throttle_events: Option<f64>,
    /// periods in which a control group's CPU quota halted this process, since the reading before
    pub quota_throttle_events: Option<f64>,
    /// share of the last 10 s in which some runnable task waited for a core
    pub cpu_pressure_some_avg10: Option<f64>,
    /// share of the last 10 s in which some task waited for memory
    pub memory_pressure_some_avg10: Option<f64>,
    /// share of the last 10 s in which some task waited for a disk
    pub io_pressure_some_avg10: Option<f64>,
    /// mean number of tasks that run or want to, over a minute
    pub load1: Option<f64>,
    /// mean over the first cores, where readable
    pub frequency_hz: Option<f64>,
    /// of the warmest zone, °C, where readable
    pub temperature_c: Option<f64>,
}

/// Reads the machine again and again.
#[derive(Debug)]
pub struct Machine {
    proc: PathBuf,
    cpu: Option<CpuTime>,
    cores: Vec<CpuTime>,
    throttled: Option<u64>,
    quota_throttled: Option<u64>,
    throttle_files: Vec<PathBuf>,
    frequency_files: Vec<PathBuf>,
    temperature_files: Vec<PathBuf>,
    quota_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
struct CpuTime {
    total: u64,
    programs: u64,
    idle: u64,
    steal: u64,
}

/// Reading a frequency may interrupt that core, and they change together.
const MOST_FREQUENCIES: usize = 4;

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// This machine.
    pub fn new() -> Self {
        Self::rooted(Path::new("/proc"), Path::new("/sys"))
    }

    fn rooted(proc: &Path, sys: &Path) -> Self {
        let cpus = cpu_folders(sys);
        let existing = |name: &'static str| {
            cpus.iter().map(move |cpu| cpu.join(name)).filter(|path| fs::read_to_string(path).is_ok())
        };
        let mut throttle_files: Vec<_> = existing("thermal_throttle/core_throttle_count").collect();
        throttle_files.extend(existing("thermal_throttle/package_throttle_count"));
        Machine {
            proc: proc.to_owned(),
            cpu: None,
            cores: Vec::new(),
            throttled: None,
            quota_throttled: None,
            throttle_files,
            frequency_files: existing("cpufreq/scaling_cur_freq").take(MOST_FREQUENCIES).collect(),
            temperature_files: temperature_files(sys),
            quota_file: quota_file(proc, sys),
        }
    }

    /// Reads everything anew.
    pub fn read(&mut self) -> MachineReading {
        let mut reading = MachineReading::default();
        let (now, cores) = self.cpu_times();
        reading.steal_share_max = steal_share_max(&self.cores, &cores);
        reading.programs_cpu_s = now.map(|now| now.programs as f64 / procfs::ticks_per_second() as f64);
        self.cores = cores;
        if let (Some(before), Some(now)) = (self.cpu, now) {
            let total = now.total.saturating_sub(before.total);
            if total > 0 {
                let share = |ticks: u64| (ticks as f64 / total as f64).clamp(0.0, 1.0);
                reading.steal_share = Some(share(now.steal.saturating_sub(before.steal)));
                reading.busy_share = Some(share(total.saturating_sub(now.idle.saturating_sub(before.idle))));
            }
        }
        self.cpu = now;
        let events = |before: &mut Option<u64>, now: Option<u64>| {
            let grown = now.map(|now| now.saturating_sub(before.unwrap_or(now)) as f64);
            *before = now;
            grown
        };
        let throttled = self.throttle_files.iter().filter_map(|path| number(path)).map(|count| count as u64);
        let throttled = (!self.throttle_files.is_empty()).then(|| throttled.sum());
        reading.throttle_events = events(&mut self.throttled, throttled);
        let quota_throttled = self.quota_file.as_ref().and_then(|path| field(path, "nr_throttled"));
        reading.quota_throttle_events = events(&mut self.quota_throttled, quota_throttled);
        reading.cpu_pressure_some_avg10 = self.pressure("cpu");
        reading.memory_pressure_some_avg10 = self.pressure("memory");
        reading.io_pressure_some_avg10 = self.pressure("io");
        reading.load1 = fs::read_to_string(self.proc.join("loadavg"))
            .ok()
            .and_then(|text| text.split_whitespace().next()?.parse().ok());
        let frequencies: Vec<f64> =
            self.frequency_files.iter().filter_map(|path| number(path)).map(|khz| khz * 1e3).collect();
        if !frequencies.is_empty() {
            reading.frequency_hz = Some(frequencies.iter().sum::<f64>() / frequencies.len() as f64);
        }
        // Millidegrees. A disabled zone returns an error or a value far below zero.
        let degrees = self.temperature_files.iter().filter_map(|path| number(path)).map(|milli| milli / 1e3);
        reading.temperature_c = degrees.filter(|celsius| *celsius > -40.0).max_by(f64::total_cmp);
        reading
    }

    /// Whether throttle events can be seen here at all.
    pub fn tells_throttling(&self) -> bool {
        !self.throttle_files.is_empty()
    }

    /// Of all cores together, and of each.
    fn cpu_times(&self) -> (Option<CpuTime>, Vec<CpuTime>) {
        let text = fs::read_to_string(self.proc.join("stat")).unwrap_or_default();
        let mut lines = text.lines();
        let all = lines.next().and_then(|line| line.strip_prefix("cpu ")).map(CpuTime::of);
        let cores = lines.map_while(|line| line.strip_prefix("cpu")).map(|line| {
            let (_, times) = line.split_once(' ').unwrap_or_default();
            CpuTime::of(times)
        });
        (all, cores.collect())
    }

    fn pressure(&self, of: &str) -> Option<f64> {
        let text = fs::read_to_string(self.proc.join("pressure").join(of)).ok()?;
        let some = text.lines().find(|line| line.starts_with("some "))?;
        let percent: f64 =
            some.split_whitespace().find_map(|part| part.strip_prefix("avg10="))?.parse().ok()?;
        Some(percent / 100.0)
    }
}

impl CpuTime {
    fn of(line: &str) -> Self {
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; the rest (guest) is already included in user and nice.
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        CpuTime {
            total: ticks.iter().take(8).sum(),
            programs: at(0) + at(1) + at(2),
            idle: at(3) + at(4),
            steal: at(7),
        }
    }
}

/// `None` when there is nothing to compare, or cores came or went.
fn steal_share_max(before: &[CpuTime], now: &[CpuTime]) -> Option<f64> {
    if before.is_empty() || before.len() != now.len() {
        return None;
    }
    let grown = |of: fn(&CpuTime) -> u64| {
        before.iter().zip(now).map(move |(then, now)| of(now).saturating_sub(of(then))).max()
    };
    // Relative to the core that counted longest: an idle core may account its time later.
    let (stolen, longest) = (grown(|core| core.steal)?, grown(|core| core.total)?);
    (longest > 0).then(|| (stolen as f64 / longest as f64).min(1.0))
}

fn cpu_folders(sys: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(sys.join("devices/system/cpu")) else { return Vec::new() };
    let mut cpus: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    cpus.sort();
    cpus.into_iter().map(|(_, path)| path).collect()
}

fn temperature_files(sys: &Path) -> Vec<PathBuf> {
    let Ok(zones) = fs::read_dir(sys.join("class/thermal")) else { return Vec::new() };
    let files = zones.flatten().filter(|zone| zone.file_name().to_string_lossy().starts_with("thermal_zone"));
    files.map(|zone| zone.path().join("temp")).filter(|path| number(path).is_some()).collect()
}

/// The statistics of this process's own control group for CPU.
fn quota_file(proc: &Path, sys: &Path) -> Option<PathBuf> {
    let groups = fs::read_to_string(proc.join("self/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let mounts = if controllers.is_empty() {
            vec![String::new()]
        } else if controllers.split(',').any(|name| name == "cpu") {
            vec![controllers.to_owned(), "cpu".to_owned()]
        } else {
            return None;
        };
        let root = sys.join("fs/cgroup");
        let files = mounts.iter().map(|mount| root.join(mount).join(path).join("cpu.stat"));
        files.into_iter().find(|file| field(file, "nr_throttled").is_some())
    })
}

/// A value of a file with a name and a number in each line.
pub(crate) fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

fn number(path: &Path) -> Option<f64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plant(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn steal_and_throttling_are_those_of_the_second() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        plant(
            &proc,
            "stat",
            "cpu  100 0 50 800 20 0 10 20 5 0\ncpu0 50 0 25 400 10 0 5 10\ncpu1 50 0 25 400 10 0 5 10\nintr 7\n",
        );
        plant(&proc, "pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=0.00\n");
        plant(&proc, "pressure/io", "some avg10=75.00 avg60=1.00 avg300=0.00 total=5\nfull avg10=50.00\n");
        plant(&proc, "loadavg", "1.50 1.0 0.5 1/99 1234\n");
        plant(&proc, "self/cgroup", "0::/a\n");
        plant(&sys, "fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 4\n");
        for cpu in [0, 1] {
            let folder = format!("devices/system/cpu/cpu{cpu}");
            plant(&sys, &format!("{folder}/thermal_throttle/core_throttle_count"), "7\n");
            plant(
                &sys,
                &format!("{folder}/cpufreq/scaling_cur_freq"),
                &format!("{}\n", 2_000_000 + cpu * 1_000_000),
            );
        }
        plant(&sys, "class/thermal/thermal_zone0/temp", "41000\n");
        plant(&sys, "class/thermal/thermal_zone1/temp", "58500\n");
        plant(&sys, "class/thermal/thermal_zone2/temp", "-274000\n");
        plant(&sys, "class/thermal/cooling_device0/temp", "99000\n");
        let mut machine = Machine::rooted(&proc, &sys);
        let first = machine.read();
        assert_eq!(
            (first.steal_share, first.steal_share_max, first.throttle_events),
            (None, None, Some(0.0))
        );
        plant(
            &proc,
            "stat",
            "cpu  150 0 60 820 20 0 10 40 9 0\ncpu0 80 0 30 400 10 0 5 25\ncpu1 70 0 30 420 10 0 5 15\nintr 7\n",
        );
        plant(&sys, "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "10\n");
        plant(&sys, "fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 6\n");
        let second = machine.read();
        assert_eq!(second.steal_share, Some(0.2));
        assert_eq!(second.steal_share_max, Some(0.3), "15 ticks of one core's 50");
        assert_eq!(second.programs_cpu_s, Some(210.0 / procfs::ticks_per_second() as f64));
        assert_eq!(second.busy_share, Some(0.8));
        assert_eq!((second.throttle_events, second.quota_throttle_events), (Some(3.0), Some(2.0)));
        assert_eq!((second.cpu_pressure_some_avg10, second.load1), (Some(0.125), Some(1.5)));
        assert_eq!((second.io_pressure_some_avg10, second.memory_pressure_some_avg10), (Some(0.75), None));
        assert_eq!(second.frequency_hz, Some(2.5e9));
        assert_eq!(second.temperature_c, Some(58.5));
    }

    #[test]
    fn what_a_machine_does_not_tell_is_not_zero() {
        let root = tempfile::tempdir().unwrap();
        let mut machine = Machine::rooted(root.path(), root.path());
        machine.read();
        assert_eq!(machine.read(), MachineReading::default());
        assert!(!machine.tells_throttling());
    }
}
