use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
const OWN: i32 = 20;

/// A folder that looks like /proc, of a machine with a hundred clock ticks per second.
struct Planted(tempfile::TempDir);

impl Planted {
    fn new() -> Self {
        let planted = Planted(tempfile::tempdir().unwrap());
        planted.process(1, "init", 0, 0, 0, 0);
        planted.process(2, "kthreadd", 0, 0, 0, PF_KTHREAD);
        fs::write(planted.path().join("2/comm"), "kthreadd\n").unwrap();
        planted.process(OWN, "stepladder", 1, 0, 0, 0);
        planted
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn process(&self, pid: i32, name: &str, parent: i32, own_ticks: u64, reaped_ticks: u64, flags: u64) {
        let folder = self.path().join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "{pid} ({name}) S {parent} {pid} {pid} 0 -1 {flags} 0 0 0 0 {own_ticks} 0 {reaped_ticks} 0 20 0 1 0 {} 0 0\n",
            1_000 + pid
        );
        fs::write(folder.join("stat"), text).unwrap();
    }

    fn end(&self, pid: i32) {
        fs::remove_dir_all(self.path().join(pid.to_string())).unwrap();
    }

    fn others(&self) -> OtherPrograms {
        OtherPrograms::rooted(self.path().to_owned(), OWN)
    }
}

fn ticks(cores: f64) -> u64 {
    (cores * procfs::ticks_per_second() as f64).round() as u64
}

fn none() -> BTreeSet<i32> {
    BTreeSet::new()
}

#[test]
fn others_are_all_but_this_process_the_subject_and_what_they_started() {
    let planted = Planted::new();
    let subject = BTreeSet::from([30]);
    let plant = |second: u64| {
        planted.process(OWN, "stepladder", 1, 50 * second, 0, 0);
        planted.process(21, "sh", OWN, 7 * second, 0, 0);
        planted.process(30, "server", 1, 80 * second, 0, 0);
        planted.process(31, "helper", 30, 9 * second, 0, 0);
        planted.process(40, "cc (1) x", 1, 30 * second, 0, 0);
        planted.process(41, "cc (1) x", 40, 10 * second, 0, 0);
        planted.process(42, "idle", 1, second, 0, 0);
        planted.process(43, "kworker", 2, 60 * second, 0, PF_KTHREAD);
    };
    let mut others = planted.others();
    plant(1);
    assert_eq!(others.read(&subject, None, SECOND_NS), None, "nothing to compare with");
    plant(2);
    let reading = others.read(&subject, None, 2 * SECOND_NS).unwrap();
    assert_eq!(ticks(reading.cores), 41);
    assert_eq!(reading.programs, [("cc (1) x".to_owned(), 0.4)], "one tick is not worth a name");
    plant(3);
    let reading = others.read(&subject, None, 4 * SECOND_NS).unwrap();
    assert_eq!(ticks(reading.cores * 2.0), 41, "over two seconds it is half of it per second");
}

#[test]
fn a_quiet_machine_has_no_names_and_a_crowded_one_five() {
    let planted = Planted::new();
    let mut others = planted.others();
    let plant = |each: &dyn Fn(i32) -> u64| {
        (50..58).for_each(|pid| planted.process(pid, &format!("p{pid}"), 1, each(pid), 0, 0));
    };
    plant(&|_| 0);
    others.read(&none(), None, SECOND_NS);
    plant(&|pid| if pid == 50 { 5 } else { 0 });
    assert_eq!(
        others.read(&none(), None, 2 * SECOND_NS).unwrap(),
        OthersReading { cores: 0.05, programs: Vec::new() }
    );
    plant(&|pid| if pid == 50 { 5 } else { pid as u64 });
    let reading = others.read(&none(), None, 3 * SECOND_NS).unwrap();
    let names: Vec<&str> = reading.programs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["p57", "p56", "p55", "p54", "p53"]);
    assert_eq!(ticks(reading.cores), (51..58).sum::<u64>());
}

#[test]
fn a_child_that_lived_between_two_readings_is_counted_as_its_parent() {
    let planted = Planted::new();
    let mut others = planted.others();
    planted.process(40, "make", 1, 10, 100, 0);
    others.read(&none(), None, SECOND_NS);
    planted.process(40, "make", 1, 11, 160, 0);
    let reading = others.read(&none(), None, 2 * SECOND_NS).unwrap();
    assert_eq!(reading.programs, [("make".to_owned(), 0.61)]);
}

#[test]
fn a_child_that_ended_counts_only_what_it_used_since_it_was_seen() {
    let planted = Planted::new();
    let mut others = planted.others();
    planted.process(40, "make", 1, 10, 0, 0);
    planted.process(41, "cc", 40, 70, 0, 0);
    others.read(&none(), None, SECOND_NS);
    planted.end(41);
    planted.process(40, "make", 1, 10, 76, 0);
    let reading = others.read(&none(), None, 2 * SECOND_NS).unwrap();
    assert_eq!((ticks(reading.cores), reading.programs), (6, vec![("make".to_owned(), 0.06)]));
}

#[test]
fn a_family_that_ended_counts_once_by_way_of_the_grandparent_or_of_init() {
    let family = |planted: &Planted| {
        planted.process(40, "make", 1, 0, 0, 0);
        planted.process(41, "sh", 40, 5, 0, 0);
        planted.process(42, "cc", 41, 70, 0, 0);
    };
    let planted = Planted::new();
    let mut others = planted.others();
    family(&planted);
    others.read(&none(), None, SECOND_NS);
    [41, 42].into_iter().for_each(|pid| planted.end(pid));
    planted.process(40, "make", 1, 0, 75, 0);
    assert_eq!(others.read(&none(), None, 2 * SECOND_NS).unwrap().cores, 0.0);

    let planted = Planted::new();
    let mut others = planted.others();
    family(&planted);
    others.read(&none(), None, SECOND_NS);
    [41, 42].into_iter().for_each(|pid| planted.end(pid));
    planted.process(40, "make", 1, 0, 5, 0);
    planted.process(1, "init", 0, 0, 70, 0);
    assert_eq!(others.read(&none(), None, 2 * SECOND_NS).unwrap().cores, 0.0);
}

#[test]
fn a_subjects_process_that_lost_its_parent_and_ended_is_not_another_program() {
    let planted = Planted::new();
    let mut others = planted.others();
    planted.process(30, "server", 1, 10, 0, 0);
    planted.process(31, "helper", 30, 40, 0, 0);
    let subject = BTreeSet::from([30, 31]);
    others.read(&subject, None, SECOND_NS);
    planted.process(31, "helper", 1, 60, 0, 0);
    assert_eq!(others.read(&none(), None, 2 * SECOND_NS).unwrap().cores, 0.0, "it stays the subject's");
    planted.end(31);
    planted.process(1, "init", 0, 0, 62, 0);
    assert_eq!(ticks(others.read(&none(), None, 3 * SECOND_NS).unwrap().cores), 2);
}

#[test]
fn where_not_all_can_be_seen_the_difference_of_the_totals_is_taken_and_is_never_negative() {
    let planted = Planted::new();
    fs::write(planted.path().join("2/comm"), "sleep\n").unwrap();
    let mut others = planted.others();
    assert!(!others.sees_all());
    let totals = |machine_s, ours_s| Some(Totals { machine_s, ours_s });
    others.read(&none(), totals(100.0, 40.0), SECOND_NS);
    let reading = others.read(&none(), totals(102.0, 41.0), 2 * SECOND_NS).unwrap();
    assert_eq!(reading.cores, 1.0);
    let reading = others.read(&none(), totals(103.0, 42.1), 3 * SECOND_NS).unwrap();
    assert_eq!(reading, OthersReading::default());
    assert_eq!(others.read(&none(), None, 4 * SECOND_NS), None);
}

#[test]
fn a_busy_program_beside_us_is_seen_and_named() {
    // Started by a shell that exits, it is not our child, just like another user's program.
    let line = "sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!";
    let pid = Command::new("sh").args(["-c", line]).output().unwrap().stdout;
    let pid: i32 = String::from_utf8(pid).unwrap().trim().parse().unwrap();
    let mut others = OtherPrograms::new();
    let begin = Instant::now();
    let mut seen = Vec::new();
    let mut found = None;
    // On a crowded machine it may get little CPU in one second.
    while found.is_none() && begin.elapsed() < Duration::from_secs(20) {
        let reading = others.read(&none(), None, begin.elapsed().as_nanos() as u64);
        found = reading.and_then(|reading| {
            seen.push(reading.clone());
            let shell = reading.programs.iter().find(|(name, _)| name == "sh")?.1;
            (shell > 0.3).then_some((shell, reading.cores))
        });
        std::thread::sleep(Duration::from_secs(1));
    }
    // SAFETY: plain numbers; it is the process that was started above, which nothing else waits for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    if others.sees_all() {
        let (shell, all) = found.unwrap_or_else(|| panic!("{seen:?}"));
        assert!(shell <= all + 1e-9, "{shell} of {all}");
    }
}
