//! A control group: CPU, memory and processes of everything in it, such as a container.
//!
//! Version 2 has one tree with all figures, version 1 a tree for each controller; a machine may have both. The figures
//! are the kernel's own sums, so a process that ended between two readings is counted.
//! Memory is `memory.current` (version 1: `memory.usage_in_bytes`) without the file cache that the kernel would reclaim
//! first (`inactive_file`), as `docker stats` shows it. `memory.peak` is not read: it covers the group's whole life,
//! not one hold. Descriptors are not known.
//! Source: docs.kernel.org, admin-guide/cgroup-v2 and admin-guide/cgroup-v1.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::cores::{AllowedCores, quota};
use crate::machine::field;
use crate::process::{ProcessReading, tasks};

/// Where control groups are.
const MOUNT: &str = "/sys/fs/cgroup";
/// What version 1 calls the tree with CPU time, alone and together with the quota's.
const CPU_TREES: [&str; 3] = ["cpuacct", "cpu,cpuacct", "cpuacct,cpu"];
/// Groups below a group that are looked into; a container has a few.
const GROUPS_MAX: usize = 1_000;

/// A control group that is watched.
#[derive(Clone, Debug)]
pub struct ControlGroup {
    /// below the mount, without a slash before it
    name: PathBuf,
    mount: PathBuf,
    files: Files,
    /// its processes at the last reading
    pids: Vec<i32>,
    /// their threads, each with its process's number before its own
    threads: Vec<(i32, i32)>,
}

/// Where the figures of each kind are.
#[derive(Clone, Debug)]
enum Files {
    V2 { group: PathBuf },
    V1 { cpu: PathBuf, memory: PathBuf, pids: PathBuf, cpuset: PathBuf },
}

/// There is no such control group.
#[derive(Debug, thiserror::Error)]
#[error(
    "no control group with figures of CPU and memory is at {} below {} (version 2 has cpu.stat and memory.current in it; version 1 \
     cpuacct.usage and memory.usage_in_bytes, below cpuacct and memory); the file /proc/PID/cgroup names the group of a process",
    .name.display(), .mount.display()
)]
pub struct NoControlGroup {
    name: PathBuf,
    mount: PathBuf,
}

impl ControlGroup {
    /// A group of this machine, as `/proc/PID/cgroup` names it, or by the path of its folder.
    ///
    /// Errors: none is there, or it has no figures of CPU and memory.
    pub fn open(path: &Path) -> Result<ControlGroup, NoControlGroup> {
        Self::below(Path::new(MOUNT), path)
    }

    fn below(mount: &Path, path: &Path) -> Result<ControlGroup, NoControlGroup> {
        let name = name_below(mount, path);
        let missing = || NoControlGroup { name: path.to_owned(), mount: mount.to_owned() };
        // A path that escapes the mount would name another file.
        if name.components().any(|part| part == Component::ParentDir) {
            return Err(missing());
        }
        let files = Files::find(mount, &name).ok_or_else(missing)?;
        Ok(ControlGroup { name, mount: mount.to_owned(), files, pids: Vec::new(), threads: Vec::new() })
    }

    /// Reads it again; `None` when the group no longer exists. CPU time is since the group was created.
    pub fn read(&mut self) -> Option<ProcessReading> {
        let (cpu_s, rss_bytes) = (self.files.cpu_s()?, self.files.memory_bytes()?);
        self.pids = self.files.pids();
        self.threads = self.pids.iter().flat_map(|pid| threads_of(*pid)).collect();
        let thread_count = self.files.thread_count().unwrap_or(self.threads.len());
        Some(ProcessReading { cpu_s, rss_bytes, fds: None, process_count: self.pids.len(), thread_count })
    }

    /// The cores that the group may use: those of its set, and its quota or that of a group above.
    pub fn cores(&self) -> Option<AllowedCores> {
        let of_set = self.files.cpuset().and_then(|text| count_of_list(&text));
        let of_machine =
            || count_of_list(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default());
        let affinity = of_set.or_else(of_machine)?;
        let name = self.name.display();
        let quota = quota(&format!("0::/{name}\n1:cpu,cpuacct:/{name}\n"), &self.mount);
        Some(AllowedCores { affinity, quota })
    }

    /// Its processes at the last reading, as far as this process may see them.
    pub(crate) fn pids(&self) -> &[i32] {
        &self.pids
    }

    pub(crate) fn threads(&self) -> &[(i32, i32)] {
        &self.threads
    }
}

/// The group's name: a path of a folder has the mount before it, and in version 1 the controller's tree.
fn name_below(mount: &Path, path: &Path) -> PathBuf {
    let Ok(inside) = path.strip_prefix(mount) else {
        return path.strip_prefix("/").unwrap_or(path).to_owned();
    };
    let mut parts = inside.components();
    let first = parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let is_tree = first.is_some_and(|first| {
        CPU_TREES.contains(&first.as_str())
            || ["memory", "pids", "cpu", "cpuset", "unified"].contains(&&*first)
    });
    if is_tree { parts.as_path().to_owned() } else { inside.to_owned() }
}

impl Files {
    fn find(mount: &Path, name: &Path) -> Option<Files> {
        let group = mount.join(name);
        let v2 = Files::V2 { group };
        let memory = mount.join("memory").join(name);
        let (pids, cpuset) = (mount.join("pids").join(name), mount.join("cpuset").join(name));
        let v1 = CPU_TREES.iter().map(|tree| Files::V1 {
            cpu: mount.join(tree).join(name),
            memory: memory.clone(),
            pids: pids.clone(),
            cpuset: cpuset.clone(),
        });
        std::iter::once(v2).chain(v1).find(|files| files.cpu_s().is_some() && files.memory_bytes().is_some())
    }

    fn cpu_s(&self) -> Option<f64> {
        match self {
            Files::V2 { group } => Some(field(&group.join("cpu.stat"), "usage_usec")? as f64 / 1e6),
            Files::V1 { cpu, .. } => Some(number(&cpu.join("cpuacct.usage"))? as f64 / 1e9),
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        let (used, stat, cache) = match self {
            Files::V2 { group } => (group.join("memory.current"), group.join("memory.stat"), "inactive_file"),
            Files::V1 { memory, .. } => {
                (memory.join("memory.usage_in_bytes"), memory.join("memory.stat"), "total_inactive_file")
            }
        };
        Some(number(&used)?.saturating_sub(field(&stat, cache).unwrap_or(0)))
    }

    fn thread_count(&self) -> Option<usize> {
        let folder = match self {
            Files::V2 { group } => group,
            Files::V1 { pids, .. } => pids,
        };
        usize::try_from(number(&folder.join("pids.current"))?).ok()
    }

    fn cpuset(&self) -> Option<String> {
        fs::read_to_string(match self {
            Files::V2 { group } => group.join("cpuset.cpus.effective"),
            Files::V1 { cpuset, .. } => cpuset.join("cpuset.effective_cpus"),
        })
        .ok()
    }

    /// Of the group and those below it: version 2 has processes in the lowest ones only.
    fn pids(&self) -> Vec<i32> {
        let (Files::V2 { group: top } | Files::V1 { cpu: top, .. }) = self;
        let (mut pids, mut look_at, mut seen) = (Vec::new(), vec![top.clone()], 0);
        while let Some(folder) = look_at.pop().filter(|_| seen < GROUPS_MAX) {
            seen += 1;
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            // A process of a namespace that is not visible here is 0.
            pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            look_at.extend(folders.map(|entry| entry.path()));
        }
        pids
    }
}

fn threads_of(pid: i32) -> impl Iterator<Item = (i32, i32)> {
    tasks(Path::new("/proc"), pid).into_iter().map(move |tid| (pid, tid))
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// How many numbers a list as `0-3,5` has; `None` for an empty one, and for what is none.
fn count_of_list(text: &str) -> Option<usize> {
    let mut count = 0;
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        count += to.checked_sub(from)?.checked_add(1)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use tempfile::TempDir;

    use super::*;

    fn plant(mount: &TempDir, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_group_of_version_2_is_read_with_those_below_it() {
        let mount = tempfile::tempdir().unwrap();
        let of = |mount: &TempDir, path: &str| ControlGroup::below(mount.path(), Path::new(path));
        plant(
            &mount,
            &[
                ("web.slice/cpu.max", "300000 100000\n"),
                ("web.slice/a.scope/cpu.stat", "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n"),
                ("web.slice/a.scope/memory.current", "9000000\n"),
                ("web.slice/a.scope/memory.stat", "anon 1\ninactive_file 4000000\n"),
                ("web.slice/a.scope/pids.current", "17\n"),
                ("web.slice/a.scope/cpuset.cpus.effective", "0-3,8\n"),
                ("web.slice/a.scope/cpu.max", "max 100000\n"),
                ("web.slice/a.scope/cgroup.procs", ""),
                ("web.slice/a.scope/inner/cgroup.procs", "0\n1\n"),
            ],
        );
        let whole = mount.path().join("web.slice/a.scope");
        for path in ["web.slice/a.scope", "/web.slice/a.scope", whole.to_str().unwrap()] {
            let mut group = of(&mount, path).unwrap();
            let reading = group.read().unwrap();
            assert_eq!(
                (reading.cpu_s, reading.rss_bytes, reading.thread_count),
                (2.5, 5_000_000, 17),
                "{path}"
            );
            assert_eq!((group.pids(), reading.fds), (&[1][..], None));
            assert_eq!(group.cores().unwrap(), AllowedCores { affinity: 5, quota: Some(3.0) });
        }
        let mut gone = of(&mount, "web.slice/a.scope").unwrap();
        fs::remove_dir_all(whole).unwrap();
        assert_eq!(gone.read(), None);
    }

    #[test]
    fn a_group_of_version_1_is_read_from_the_trees_of_its_controllers() {
        let mount = tempfile::tempdir().unwrap();
        plant(
            &mount,
            &[
                ("cpu,cpuacct/docker/7f/cpuacct.usage", "1500000000\n"),
                ("cpu,cpuacct/docker/7f/cgroup.procs", "1\n"),
                ("cpu,cpuacct/docker/7f/cpu.cfs_quota_us", "50000\n"),
                ("cpu,cpuacct/docker/7f/cpu.cfs_period_us", "100000\n"),
                ("memory/docker/7f/memory.usage_in_bytes", "700\n"),
                ("memory/docker/7f/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n"),
                ("pids/docker/7f/pids.current", "3\n"),
                ("cpuset/docker/7f/cpuset.effective_cpus", "1\n"),
            ],
        );
        for path in ["/docker/7f".into(), mount.path().join("memory/docker/7f")] {
            let mut group = ControlGroup::below(mount.path(), &path).unwrap();
            let reading = group.read().unwrap();
            assert_eq!((reading.cpu_s, reading.rss_bytes, reading.thread_count), (1.5, 500, 3));
            assert_eq!(group.cores().unwrap(), AllowedCores { affinity: 1, quota: Some(0.5) });
        }
    }

    #[test]
    fn what_is_no_group_with_figures_is_refused_with_what_to_look_for() {
        let mount = tempfile::tempdir().unwrap();
        plant(&mount, &[("no-memory/cpu.stat", "usage_usec 1\n"), ("odd/cpu.stat", "usage_usec much\n")]);
        plant(&mount, &[("odd/memory.current", "1\n")]);
        for path in ["missing", "no-memory", "odd", "../outside", ""] {
            let error = ControlGroup::below(mount.path(), Path::new(path)).unwrap_err().to_string();
            assert!(
                error.contains("cpu.stat and memory.current") && error.contains("/proc/PID/cgroup"),
                "{error}"
            );
        }
    }

    #[test]
    fn lists_of_cores_are_counted() {
        let check = |text: &str, expected| assert_eq!(count_of_list(text), expected, "{text:?}");
        check("0-3,5\n", Some(5));
        check("7", Some(1));
        check("\n", None);
        check("3-1", None);
        check("a", None);
    }

    /// A group of our own with one process in it, removed when dropped.
    struct Own(Vec<PathBuf>);

    impl Own {
        fn make() -> Option<Own> {
            let name = format!("stepladder-test-{}", std::process::id());
            let mount = Path::new(MOUNT);
            let trees = if mount.join("cgroup.controllers").exists() {
                vec![mount.join(&name)]
            } else {
                vec![mount.join("cpuacct").join(&name), mount.join("memory").join(&name)]
            };
            let made: Vec<PathBuf> =
                trees.into_iter().filter(|folder| fs::create_dir(folder).is_ok()).collect();
            let own = Own(made);
            ControlGroup::open(Path::new(&format!("/{name}"))).is_ok().then_some(own)
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            for folder in &self.0 {
                // A process that has just ended may still be in it.
                let by = Instant::now() + Duration::from_secs(5);
                while fs::remove_dir(folder).is_err() && Instant::now() < by {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    #[test]
    fn a_process_in_a_group_of_this_machine_is_seen_with_its_cpu() {
        let Some(own) = Own::make() else {
            eprintln!("NOT RUN: no control group can be made here");
            return;
        };
        let mut group = ControlGroup::open(&own.0[0]).unwrap();
        let begin = group.read().unwrap();
        let mut busy = Command::new("/bin/sh");
        busy.args(["-c", "read -r _; while :; do :; done"]).stdin(Stdio::piped());
        let mut busy = busy.spawn().unwrap();
        for folder in &own.0 {
            fs::write(folder.join("cgroup.procs"), busy.id().to_string()).unwrap();
        }
        drop(busy.stdin.take());
        let by = Instant::now() + Duration::from_secs(20);
        let mut seen = begin;
        while seen.cpu_s < begin.cpu_s + 0.1 && Instant::now() < by {
            std::thread::sleep(Duration::from_millis(20));
            seen = group.read().unwrap();
        }
        let pids = group.pids().to_vec();
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(seen.cpu_s >= begin.cpu_s + 0.1, "{begin:?} {seen:?}");
        assert_eq!(pids, [busy.id() as i32]);
        assert!(group.cores().unwrap().cores() > 0.0);
    }
}
