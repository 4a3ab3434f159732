//! The cores a process may use: its affinity and the quota of its control groups.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

/// The cores a process may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllowedCores {
    /// cores in its affinity mask, ≥ 1
    pub affinity: usize,
    /// CPU time per time that its control groups allow, in cores; `None`: no limit
    pub quota: Option<f64>,
}

impl AllowedCores {
    /// For one process; `None` when it has ended. Individually pinned threads count together.
    pub fn of(pid: u32) -> Option<Self> {
        let mut together = CpuSet::new();
        for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let tid = task.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let Some(Ok(set)) = tid.map(|tid| sched_getaffinity(Some(tid))) else { continue };
            members(&set).for_each(|core| together.set(core));
        }
        let affinity = together.count() as usize;
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        (affinity > 0).then(|| AllowedCores { affinity, quota: quota(&groups, Path::new("/sys/fs/cgroup")) })
    }

    /// For this process.
    pub fn own() -> Self {
        Self::of(std::process::id()).unwrap_or(AllowedCores { affinity: 1, quota: None })
    }

    /// The smaller of the two.
    pub fn cores(&self) -> f64 {
        self.quota.map_or(self.affinity as f64, |quota| quota.min(self.affinity as f64))
    }
}

/// Which cores the calling thread may run on, by number: those that its threads to come can be pinned to.
pub fn of_this_thread() -> io::Result<Vec<usize>> {
    Ok(members(&sched_getaffinity(None)?).collect())
}

fn members(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core))
}

/// The tightest CPU quota on the way from a process's groups to the root, in cores.
///
/// `groups` is the text of /proc/PID/cgroup.
pub(crate) fn quota(groups: &str, mount: &Path) -> Option<f64> {
    let of_groups = groups_of_cpu(groups, mount).into_iter();
    of_groups.filter_map(|group| quota_v2(&group).or_else(|| quota_v1(&group))).min_by(f64::total_cmp)
}

/// The groups that may limit a process's CPU time, from its own to the root.
///
/// Version 2 has one line `0::/path`, version 1 one per controller.
pub(crate) fn groups_of_cpu(groups: &str, mount: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let roots: Vec<PathBuf> = if controllers.is_empty() {
            vec![mount.to_owned(), mount.join("unified")]
        } else if controllers.split(',').any(|name| name == "cpu") {
            vec![mount.join(controllers), mount.join("cpu")]
        } else {
            continue;
        };
        for root in roots {
            // Inside a container the path may be the host's and not exist here; then the container's own root still has
            // the quota.
            let group = root.join(path.trim_start_matches('/'));
            found.extend(group.ancestors().take_while(|group| group.starts_with(&root)).map(Path::to_owned));
        }
    }
    found
}

fn quota_v2(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let mut parts = text.split_whitespace();
    let (quota_us, period_us): (f64, f64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    (period_us > 0.0).then(|| quota_us / period_us)
}

fn quota_v1(group: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(group.join(name)).ok()?.trim().parse::<f64>().ok();
    let (quota_us, period_us) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
    (quota_us > 0.0 && period_us > 0.0).then(|| quota_us / period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_quota_on_the_way_to_the_root_counts() {
        let mount = tempfile::tempdir().unwrap();
        let plant = |path: &str, text: &str| {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        plant("outer/inner/cpu.max", "400000 100000\n");
        plant("outer/cpu.max", "150000 100000\n");
        plant("cpu.max", "max 100000\n");
        assert_eq!(quota("0::/outer/inner\n", mount.path()), Some(1.5));
        assert_eq!(quota("0::/elsewhere\n", mount.path()), None);
        plant("cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
        plant("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
        plant("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
        plant("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota("4:memory:/job\n3:cpu,cpuacct:/job\n", mount.path()), Some(0.5));
        assert_eq!(quota("3:cpu,cpuacct:/path/of/the/host\n", mount.path()), None);
    }

    #[test]
    fn this_process_may_use_a_core() {
        assert!(AllowedCores::own().cores() > 0.0);
        assert!((1..=AllowedCores::own().affinity).contains(&of_this_thread().unwrap().len()));
        assert_eq!(AllowedCores::of(u32::MAX >> 1), None);
    }
}
