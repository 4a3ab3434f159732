use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A folder that looks like /proc.
struct Planted(tempfile::TempDir);

impl Planted {
    fn new() -> Self {
        Planted(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn process(&self, pid: i32, parent: i32, own_ticks: u64, reaped_ticks: u64, children: &str) {
        let task = self.path().join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(task.join("fd")).unwrap();
        let stat = format!(
            "{pid} (a (b) c) S {parent} {pid} {pid} 0 -1 0 0 0 0 0 {own_ticks} 0 {reaped_ticks} 0 20 0 1 0 {} 0 0 \
             18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
            1_000 + pid
        );
        fs::write(self.path().join(format!("{pid}/stat")), &stat).unwrap();
        fs::write(task.join("stat"), stat).unwrap();
        fs::write(task.join("children"), children).unwrap();
        fs::write(task.join("status"), "Name:\ta\nFDSize:\t64\n").unwrap();
        fs::write(self.path().join(format!("{pid}/statm")), "100 10 5 1 0 20 0\n").unwrap();
    }

    fn end(&self, pid: i32) {
        fs::remove_dir_all(self.path().join(pid.to_string())).unwrap();
    }

    fn tree(&self, pid: i32) -> ProcessTree {
        ProcessTree::rooted(self.path(), pid, true).unwrap()
    }
}

fn ticks(reading: Option<ProcessReading>) -> u64 {
    (reading.unwrap().cpu_s * procfs::ticks_per_second() as f64).round() as u64
}

#[test]
fn a_tree_is_a_process_and_all_it_started() {
    let planted = Planted::new();
    planted.process(10, 1, 100, 0, "11 12 ");
    planted.process(11, 10, 20, 0, "13");
    planted.process(12, 10, 3, 0, "");
    planted.process(13, 11, 1, 0, "");
    planted.process(14, 1, 5_000, 0, "");
    let reading = planted.tree(10).read();
    assert_eq!(ticks(reading), 124);
    let reading = reading.unwrap();
    assert_eq!((reading.process_count, reading.thread_count), (4, 4));
    assert_eq!(reading.rss_bytes, 4 * 10 * procfs::page_size());
}

#[test]
fn cpu_does_not_change_when_a_child_ends_and_is_waited_for() {
    let planted = Planted::new();
    planted.process(10, 1, 100, 0, "11");
    planted.process(11, 10, 40, 0, "");
    let mut tree = planted.tree(10);
    assert_eq!(ticks(tree.read()), 140);
    planted.end(11);
    planted.process(10, 1, 100, 45, "");
    assert_eq!(ticks(tree.read()), 145, "the five ticks of its last moments are there too");
}

#[test]
fn cpu_of_a_child_that_nobody_waits_for_is_kept() {
    let planted = Planted::new();
    planted.process(10, 1, 100, 0, "11");
    planted.process(11, 10, 40, 0, "");
    let mut tree = planted.tree(10);
    assert_eq!(ticks(tree.read()), 140);
    planted.end(11);
    planted.process(10, 1, 101, 0, "");
    assert_eq!(ticks(tree.read()), 141);
    planted.process(10, 1, 103, 0, "");
    assert_eq!(ticks(tree.read()), 143);
}

#[test]
fn an_orphan_stays_a_member() {
    let planted = Planted::new();
    planted.process(10, 1, 100, 0, "11");
    planted.process(11, 10, 40, 0, "12");
    planted.process(12, 11, 7, 0, "");
    let mut tree = planted.tree(10);
    assert_eq!(ticks(tree.read()), 147);
    planted.end(11);
    planted.process(10, 1, 100, 40, "");
    planted.process(12, 1, 9, 0, "");
    assert_eq!(ticks(tree.read()), 149);
}

#[test]
fn a_number_that_was_given_to_another_process_is_not_the_old_one() {
    let planted = Planted::new();
    planted.process(10, 1, 100, 0, "");
    let mut tree = planted.tree(10);
    let stat = fs::read_to_string(planted.path().join("10/stat")).unwrap();
    fs::write(planted.path().join("10/stat"), stat.replace(" 1010 ", " 2222 ")).unwrap();
    assert_eq!(tree.read(), None);
}

#[test]
fn without_children_files_the_whole_table_is_searched() {
    let planted = Planted::new();
    planted.process(10, 1, 100, 0, "");
    planted.process(11, 10, 5, 0, "");
    planted.process(12, 1, 5_000, 0, "");
    for pid in [10, 11, 12] {
        fs::remove_file(planted.path().join(format!("{pid}/task/{pid}/children"))).unwrap();
    }
    let mut tree = planted.tree(10);
    assert_eq!(ticks(tree.read()), 105);
    assert_eq!(ticks(tree.read()), 105);
}

#[test]
fn a_thread_with_a_table_of_its_own_is_counted_for_itself() {
    let planted = Planted::new();
    planted.process(10, 1, 0, 0, "");
    for (tid, room, descriptors) in [(10, 64, 3), (20, 64, 3), (21, 1_024, 7)] {
        let task = planted.path().join(format!("10/task/{tid}"));
        fs::create_dir_all(task.join("fd")).unwrap();
        fs::write(task.join("status"), format!("FDSize:\t{room}\n")).unwrap();
        (0..descriptors).for_each(|fd| fs::write(task.join(format!("fd/{fd}")), "").unwrap());
    }
    assert_eq!(planted.tree(10).read().unwrap().fds, Some(10));
}

#[test]
fn many_descriptors_are_listed_seldom() {
    let planted = Planted::new();
    planted.process(10, 1, 0, 0, "");
    let folder = planted.path().join("10/task/10/fd");
    (0..4_500).for_each(|fd| fs::write(folder.join(fd.to_string()), "").unwrap());
    let mut tree = planted.tree(10);
    assert_eq!(tree.read().unwrap().fds, Some(4_500));
    fs::remove_file(folder.join("0")).unwrap();
    let seen: Vec<_> = (0..3).map(|_| tree.read().unwrap().fds.unwrap()).collect();
    assert_eq!(seen, [4_500, 4_500, 4_499]);
}

fn shell(command: &str) -> Child {
    Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

fn within_seconds(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn the_work_of_a_real_child_is_seen_while_it_runs_and_after_it_ended() {
    let mut child = shell("(i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done); read line");
    let mut tree = ProcessTree::of(child.id()).unwrap();
    let mut last_s = 0.0;
    let seen = within_seconds(|| {
        let reading = tree.read().unwrap();
        assert!(reading.cpu_s >= last_s, "CPU never falls");
        last_s = reading.cpu_s;
        last_s > 0.03 && reading.process_count == 1
    });
    assert!(seen, "{last_s} s");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(tree.read(), None);
}

#[test]
fn descriptors_of_this_process_are_seen_in_every_table() {
    let before = ProcessTree::own().unwrap().read().unwrap().fds.unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // SAFETY: plain numbers; only this thread's own new table is emptied, and this thread uses no descriptor.
        let unshared =
            unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) } == 0;
        let files: Vec<_> = (0..300).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        ready.send(unshared).unwrap();
        let _ = is_done.recv();
        drop(files);
    });
    let unshared = is_ready.recv().unwrap();
    let during = ProcessTree::own().unwrap().read().unwrap().fds.unwrap();
    drop(done);
    thread.join().unwrap();
    assert!(unshared && during >= before + 250, "{before} before, {during} with another table");
}

#[test]
fn a_process_that_does_not_exist_cannot_be_watched() {
    assert!(ProcessTree::of(u32::MAX >> 1).is_err());
}
