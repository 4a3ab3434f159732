//! A CPU quota on this process: a control group of its own, which goes with the guard.
//!
//! Version 2 where a group may be divided (`cpu` in its `cgroup.subtree_control`), else version 1. The nearest group that permits it is
//! taken, so that limits which the process has already stay. A killed server leaves an empty group behind; the next one removes it.
//! Source: kernel documentation, cgroup-v2.rst ("cpu.max") and sched-bwc.rst ("cpu.cfs_quota_us").

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// CPU time of each period, µs: 0.2 cores.
const QUOTA_US: u32 = 20_000;
const PERIOD_US: u32 = 100_000;
/// A process's number follows.
const NAME: &str = "stepladder-throttled-";
/// A group that was left is not empty for the kernel at once.
const REMOVAL_TRIES: u32 = 20;
const REMOVAL_GAP: Duration = Duration::from_millis(10);

/// The quota, until it is dropped.
#[derive(Debug)]
pub(super) struct Quota {
    group: PathBuf,
    /// where its processes were before
    back: PathBuf,
}

/// A group below which one can be made.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    parent: PathBuf,
    /// the process's own group
    own: PathBuf,
    is_v2: bool,
}

impl Quota {
    /// On this process with all of its threads. Errors, in words: no control group can be made for it, and why.
    pub(super) fn of_this_process() -> Result<Quota, String> {
        Quota::of(std::process::id(), Path::new("/proc"), Path::new("/sys/fs/cgroup"))
    }

    fn of(pid: u32, proc: &Path, mount: &Path) -> Result<Quota, String> {
        let groups = fs::read_to_string(proc.join(format!("{pid}/cgroup"))).unwrap_or_default();
        let mut refused = Vec::new();
        for place in places(&groups, mount) {
            remove_left_behind(&place.parent, proc);
            let group = place.parent.join(format!("{NAME}{pid}"));
            match place.make(&group, pid) {
                Ok(()) => return Ok(Quota { group, back: place.own }),
                Err(error) => refused.push(format!("{}: {error}", group.display())),
            }
        }
        // That of the nearest group says most.
        let nothing = || format!("no group below {} passes its cpu controller on", mount.display());
        Err(refused.into_iter().next().unwrap_or_else(nothing))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for pid in fs::read_to_string(self.group.join(PROCESSES)).unwrap_or_default().lines() {
            let _ = fs::write(self.back.join(PROCESSES), pid);
        }
        for _ in 0..REMOVAL_TRIES {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(REMOVAL_GAP);
        }
    }
}

const PROCESSES: &str = "cgroup.procs";

impl Place {
    /// A group with the quota, and the process in it; none where any of it fails.
    fn make(&self, group: &Path, pid: u32) -> io::Result<()> {
        // Of a killed server whose number this process has now.
        let _ = fs::remove_dir(group);
        fs::create_dir(group)?;
        let limits = if self.is_v2 {
            vec![("cpu.max", format!("{QUOTA_US} {PERIOD_US}"))]
        } else {
            vec![("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", QUOTA_US.to_string())]
        };
        let words = limits.into_iter().chain([(PROCESSES, pid.to_string())]);
        let made = words.into_iter().try_for_each(|(file, text)| fs::write(group.join(file), text));
        if made.is_err() {
            let _ = fs::remove_dir(group);
        }
        made
    }
}

/// From the process's own group to the root, version 2 first. `groups` is the text of /proc/PID/cgroup.
fn places(groups: &str, mount: &Path) -> Vec<Place> {
    let (mut v2, mut v1) = (Vec::new(), Vec::new());
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_v2 = controllers.is_empty();
        let roots = match controllers.split(',').any(|name| name == "cpu") {
            true => [mount.join(controllers), mount.join("cpu")],
            false if is_v2 => [mount.to_owned(), mount.join("unified")],
            false => continue,
        };
        // Both names of a hierarchy may be there: the first that is.
        let passes_on = |group: &&Path| {
            let text = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
            text.split_whitespace().any(|name| name == "cpu")
        };
        let is_right =
            |group: &&Path| if is_v2 { passes_on(group) } else { group.join("cpu.cfs_quota_us").exists() };
        for root in roots {
            // Inside a container the path may be the host's; its own root is there all the same.
            let path = root.join(path.trim_start_matches('/'));
            let above: Vec<&Path> = path.ancestors().take_while(|group| group.starts_with(&root)).collect();
            let Some(own) = above.iter().find(|group| group.join(PROCESSES).exists()) else { continue };
            let place =
                |parent: &&Path| Place { parent: parent.to_path_buf(), own: own.to_path_buf(), is_v2 };
            let found: Vec<Place> = above.iter().filter(|group| is_right(group)).map(place).collect();
            if !found.is_empty() {
                if is_v2 { &mut v2 } else { &mut v1 }.extend(found);
                break;
            }
        }
    }
    v2.into_iter().chain(v1).collect()
}

/// Groups of servers that were killed. One that has processes stays, whoever made it.
fn remove_left_behind(parent: &Path, proc: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !proc.join(pid.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;

    fn child(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// A folder with the files of some groups below it.
    fn planted(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_nearest_group_that_may_be_divided_is_taken_and_version_2_before_version_1() {
        let mount = planted(&[
            ("cgroup.subtree_control", "cpu memory\n"),
            ("cgroup.procs", ""),
            ("user/cgroup.subtree_control", "memory cpu io\n"),
            ("user/cgroup.procs", ""),
            ("user/shell/cgroup.subtree_control", "cpuset\n"),
            ("user/shell/cgroup.procs", ""),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cgroup.procs", ""),
        ]);
        let of = |groups: &str| -> Vec<(String, String)> {
            let short = |path: &Path| path.strip_prefix(mount.path()).unwrap().display().to_string();
            let of = |place: Place| (short(&place.parent), short(&place.own));
            places(groups, mount.path()).into_iter().map(of).collect()
        };
        let pair = |parent: &str, own: &str| (parent.to_owned(), own.to_owned());
        let v2 = [pair("user", "user/shell"), pair("", "user/shell")];
        assert_eq!(of("0::/user/shell\n"), v2);
        assert_eq!(of("3:cpu,cpuacct:/far\n0::/user/shell\n"), [&v2[..], &[pair("cpu", "cpu")]].concat());
        assert_eq!(of("5:memory:/\nname=systemd:/\n"), []);
    }

    #[test]
    fn a_group_of_version_2_gets_quota_and_process_and_one_that_is_refused_is_not_left() {
        let proc = planted(&[("77/cgroup", "0::/\n")]);
        let mount = planted(&[("cgroup.subtree_control", "cpu\n"), ("cgroup.procs", "")]);
        let quota = Quota::of(77, proc.path(), mount.path()).unwrap();
        let text = |file: &str| fs::read_to_string(mount.path().join("stepladder-throttled-77").join(file));
        assert_eq!(
            (text("cpu.max").unwrap(), text("cgroup.procs").unwrap()),
            ("20000 100000".into(), "77".into())
        );
        // A file where the group should be.
        drop(quota);
        fs::remove_dir_all(mount.path().join("stepladder-throttled-77")).unwrap();
        fs::write(mount.path().join("stepladder-throttled-77"), "").unwrap();
        let refused = Quota::of(77, proc.path(), mount.path()).unwrap_err();
        assert!(refused.contains("stepladder-throttled-77: "), "{refused}");
        let none = Quota::of(78, proc.path(), mount.path()).unwrap_err();
        assert!(none.contains("passes its cpu controller on"), "{none}");
    }

    #[test]
    fn a_process_under_the_quota_is_halted_and_its_group_goes_with_the_guard_like_those_of_the_dead() {
        let busy = child("while :; do :; done");
        let quota = match Quota::of(busy.id(), Path::new("/proc"), Path::new("/sys/fs/cgroup")) {
            Ok(quota) => quota,
            Err(why) => {
                eprintln!("NOT RUN: no control group can be made here ({why})");
                return end(busy);
            }
        };
        let halted = || {
            let text = fs::read_to_string(quota.group.join("cpu.stat")).unwrap();
            let count = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
            count.unwrap().parse::<u64>().unwrap()
        };
        let begin = Instant::now();
        while halted() < 3 {
            assert!(begin.elapsed() < Duration::from_secs(20), "it was never halted");
            std::thread::sleep(Duration::from_millis(50));
        }
        // One that was killed has left its group.
        let dead = child("exit 0");
        let dead_group = quota.group.with_file_name(format!("{NAME}{}", dead.id()));
        fs::create_dir(&dead_group).unwrap();
        end(dead);
        let other = child("exec sleep 60");
        let second = Quota::of(other.id(), Path::new("/proc"), Path::new("/sys/fs/cgroup")).unwrap();
        assert!(!dead_group.exists() && quota.group.exists() && second.group.exists());
        let groups = [quota.group.clone(), second.group.clone()];
        drop((quota, second));
        assert!(groups.iter().all(|group| !group.exists()));
        end(other);
        end(busy);
    }
}
