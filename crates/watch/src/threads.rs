//! Threads: how long each ran on a core and how long it waited for one, from `schedstat`.
//!
//! A thread that waits for a core is late whatever its program does, so this tells a crowded machine from a slow
//! server. The kernel accounts a wait when it ends: a wait over two seconds counts in the second, up to a share of 1.
//! Units: shares of the time since the reading before, in [0, 1]; times in ns.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use measure::plain_name;
use rustix::time::{ClockId, clock_gettime};

/// The largest shares over some threads, each over the time since that thread was read before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadsReading {
    /// largest share of time on a core
    pub cpu_share_max: f64,
    /// largest share of time runnable and without a core
    pub waiting_share_max: f64,
    /// the thread that was longest on a core: its name and that share
    pub busiest: Option<(String, f64)>,
    /// how often threads came to a core, per second
    pub context_switches: f64,
}

/// How many threads are read at once: 256 take about 2 ms.
pub const READ_MAX: usize = 256;
/// Of more threads the busiest are read each time, and as many others in turn.
const OTHERS_IN_TURN: usize = 64;

/// A thread that ran within this time is active.
const ACTIVE_NS: u64 = 3_000_000_000;

/// Reads threads again and again.
#[derive(Debug)]
pub struct Threads {
    proc: PathBuf,
    known: BTreeMap<(i32, i32), Seen>,
    /// the thread after which the others continue next time
    turn: (i32, i32),
    /// the last reading, of whatever threads there were
    last: Option<Listed>,
    /// see `lived_s`
    lived_ns: Option<u64>,
}

/// What there was to be read.
#[derive(Debug)]
struct Listed {
    at_ns: u64,
    /// all that lived, ascending
    threads: Vec<(i32, i32)>,
    /// all of them were read
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at_ns: u64,
    on_cpu_ns: u64,
    waiting_ns: u64,
    /// times that it came to a core
    runs: u64,
    /// `None`: not since it is watched
    ran_at_ns: Option<u64>,
    /// of the time between its last two readings, or since the reading in which it was not there yet
    last_share: f64,
}

impl Threads {
    /// Threads of this machine.
    pub fn new() -> Self {
        Self::rooted(PathBuf::from("/proc"))
    }

    fn rooted(proc: PathBuf) -> Self {
        Threads { proc, known: BTreeMap::new(), turn: (0, 0), last: None, lived_ns: None }
    }

    /// Reads the threads of some processes at `at_ns`; `None` when none of them was read before, or none can be.
    ///
    /// `threads` are pairs of a process's number and its thread's. Of more than `READ_MAX` the busiest are read.
    pub fn read(&mut self, threads: &[(i32, i32)], at_ns: u64) -> Option<ThreadsReading> {
        let chosen = self.choose(threads);
        let mut listed = threads.to_vec();
        listed.sort_unstable();
        let is_whole = chosen.len() == threads.len();
        let last = self.last.replace(Listed { at_ns, threads: listed, is_whole });
        let mut known = BTreeMap::new();
        let mut reading: Option<ThreadsReading> = None;
        let mut busiest = None;
        let mut lived_ns = 0;
        for &thread in &chosen {
            let Some((on_cpu_ns, waiting_ns, runs)) = self.times(thread) else { continue };
            let mut seen = Seen { at_ns, on_cpu_ns, waiting_ns, runs, ran_at_ns: None, last_share: 0.0 };
            // Times that decreased belong to another thread with the same id.
            let before = self.known.get(&thread).filter(|before| {
                before.at_ns < at_ns && before.on_cpu_ns <= on_cpu_ns && before.waiting_ns <= waiting_ns
            });
            if let Some(before) = before {
                let share = |ns: u64| (ns as f64 / (at_ns - before.at_ns) as f64).min(1.0);
                let (on_cpu, waiting) =
                    (share(on_cpu_ns - before.on_cpu_ns), share(waiting_ns - before.waiting_ns));
                seen.last_share = on_cpu;
                lived_ns += on_cpu_ns - before.on_cpu_ns;
                let came = runs.saturating_sub(before.runs);
                seen.ran_at_ns = if came > 0 || on_cpu > 0.0 { Some(at_ns) } else { before.ran_at_ns };
                let reading = reading.get_or_insert_default();
                reading.context_switches += came as f64 * 1e9 / (at_ns - before.at_ns) as f64;
                reading.waiting_share_max = reading.waiting_share_max.max(waiting);
                if busiest.is_none() || on_cpu > reading.cpu_share_max {
                    reading.cpu_share_max = on_cpu;
                    busiest = Some(thread);
                }
            } else if let Some(last) = &last
                && last.at_ns < at_ns
                && (last.threads.binary_search(&thread).is_err() || self.known.contains_key(&thread))
            {
                // It began since then, so that is when all of its time was used.
                seen.last_share = (on_cpu_ns as f64 / (at_ns - last.at_ns) as f64).min(1.0);
                lived_ns += on_cpu_ns;
            }
            known.insert(thread, seen);
        }
        // A thread that was not read the last time has used some of this before then.
        self.lived_ns = last.filter(|last| is_whole && last.is_whole).map(|_| lived_ns);
        if !is_whole {
            // Threads skipped this time keep their last reading, as long as they live.
            let alive: std::collections::BTreeSet<_> = threads.iter().collect();
            let kept = self.known.iter().filter(|(thread, _)| alive.contains(thread));
            kept.for_each(|(&thread, &seen)| {
                known.entry(thread).or_insert(seen);
            });
        }
        self.known = known;
        let mut reading = reading?;
        let name = busiest.and_then(|thread| self.name(thread));
        reading.busiest = name.map(|name| (name, reading.cpu_share_max));
        Some(reading)
    }

    /// Each living thread's share of a core, as of its last reading.
    pub(crate) fn shares(&self) -> impl Iterator<Item = ((i32, i32), f64)> {
        self.known.iter().map(|(thread, seen)| (*thread, seen.last_share))
    }

    /// CPU time that the threads which live used between the last two readings, s; `None` where not all of them were read both times.
    pub(crate) fn lived_s(&self) -> Option<f64> {
        self.lived_ns.map(|ns| ns as f64 / 1e9)
    }

    /// Threads of the last readings that ran within the last three seconds, each with its process's number before its own.
    pub(crate) fn active(&self) -> Vec<(i32, i32)> {
        let now_ns = self.known.values().map(|seen| seen.at_ns).max().unwrap_or(0);
        let is_active =
            |seen: &Seen| seen.ran_at_ns.is_some_and(|ran_ns| now_ns.saturating_sub(ran_ns) < ACTIVE_NS);
        self.known.iter().filter(|(_, seen)| is_active(seen)).map(|(thread, _)| *thread).collect()
    }

    /// The threads of this process whose name begins with `prefix`.
    pub fn of_this_process(prefix: &str) -> Vec<(i32, i32)> {
        let pid = std::process::id() as i32;
        let Ok(entries) = fs::read_dir("/proc/self/task") else { return Vec::new() };
        let tids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        tids.filter(|tid| {
            fs::read(format!("/proc/self/task/{tid}/comm"))
                .is_ok_and(|name| name.starts_with(prefix.as_bytes()))
        })
        .map(|tid| (pid, tid))
        .collect()
    }

    fn choose(&mut self, threads: &[(i32, i32)]) -> Vec<(i32, i32)> {
        if threads.len() <= READ_MAX {
            return threads.to_vec();
        }
        let share = |thread: &(i32, i32)| self.known.get(thread).map_or(0.0, |seen| seen.last_share);
        let mut by_share = threads.to_vec();
        by_share.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
        let mut others = by_share.split_off(READ_MAX - OTHERS_IN_TURN);
        others.sort_unstable();
        let behind = others.partition_point(|thread| *thread <= self.turn);
        let in_turn: Vec<_> =
            others.iter().cycle().skip(behind).take(OTHERS_IN_TURN.min(others.len())).collect();
        self.turn = in_turn.last().map_or((0, 0), |last| **last);
        by_share.extend(in_turn);
        by_share
    }

    /// On a core and waiting for one, ns, and how often it came to a core.
    fn times(&self, (pid, tid): (i32, i32)) -> Option<(u64, u64, u64)> {
        let text = fs::read_to_string(self.proc.join(format!("{pid}/task/{tid}/schedstat"))).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// `None` when it has ended.
    pub(crate) fn name(&self, (pid, tid): (i32, i32)) -> Option<String> {
        let name = fs::read(self.proc.join(format!("{pid}/task/{tid}/comm"))).ok()?;
        Some(plain_name(&String::from_utf8_lossy(&name)))
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::new()
    }
}

/// CPU time of the calling thread, s.
pub fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn plant(proc: &Path, tid: i32, name: &str, on_cpu_ms: u64, waiting_ms: u64) {
        let task = proc.join(format!("10/task/{tid}"));
        fs::create_dir_all(&task).unwrap();
        let times = format!("{} {} 7\n", on_cpu_ms * 1_000_000, waiting_ms * 1_000_000);
        fs::write(task.join("schedstat"), times).unwrap();
        fs::write(task.join("comm"), format!("{name}\n")).unwrap();
    }

    #[test]
    fn the_busiest_and_the_longest_waiting_thread_are_those_of_the_second() {
        let proc = tempfile::tempdir().unwrap();
        let mut threads = Threads::rooted(proc.path().to_owned());
        plant(proc.path(), 10, "main", 90_000, 50_000);
        plant(proc.path(), 11, "io\u{1b}[1m-1", 100, 10);
        let both = [(10, 10), (10, 11)];
        assert_eq!(threads.read(&both, SECOND_NS), None, "there is no second yet");
        plant(proc.path(), 10, "main", 90_200, 50_300);
        plant(proc.path(), 11, "io\u{1b}[1m-1", 850, 15);
        let reading = threads.read(&both, 2 * SECOND_NS).unwrap();
        assert_eq!((reading.cpu_share_max, reading.waiting_share_max), (0.75, 0.3));
        assert_eq!(reading.busiest, Some(("io[1m-1".to_owned(), 0.75)));
    }

    #[test]
    fn a_wait_that_was_booked_late_is_a_whole_second_at_most() {
        let proc = tempfile::tempdir().unwrap();
        let mut threads = Threads::rooted(proc.path().to_owned());
        plant(proc.path(), 10, "main", 0, 0);
        threads.read(&[(10, 10)], SECOND_NS);
        plant(proc.path(), 10, "main", 0, 3_000);
        assert_eq!(threads.read(&[(10, 10)], 2 * SECOND_NS).unwrap().waiting_share_max, 1.0);
    }

    #[test]
    fn a_thread_that_has_anothers_number_begins_anew() {
        let proc = tempfile::tempdir().unwrap();
        let mut threads = Threads::rooted(proc.path().to_owned());
        plant(proc.path(), 10, "main", 900, 0);
        threads.read(&[(10, 10)], SECOND_NS);
        plant(proc.path(), 10, "main", 100, 0);
        assert_eq!(threads.read(&[(10, 10)], 2 * SECOND_NS), None);
    }

    #[test]
    fn a_thread_that_began_since_the_last_reading_has_its_share_of_the_time_since_then() {
        let proc = tempfile::tempdir().unwrap();
        let mut threads = Threads::rooted(proc.path().to_owned());
        plant(proc.path(), 10, "main", 90_000, 0);
        threads.read(&[(10, 10)], SECOND_NS);
        assert_eq!((threads.shares().collect::<Vec<_>>(), threads.lived_s()), (vec![((10, 10), 0.0)], None));
        plant(proc.path(), 10, "main", 90_100, 0);
        plant(proc.path(), 11, "new", 300, 0);
        threads.read(&[(10, 10), (10, 11)], 3 * SECOND_NS);
        let shares: Vec<_> = threads.shares().collect();
        assert_eq!(shares, [((10, 10), 0.05), ((10, 11), 0.15)]);
        assert_eq!(threads.lived_s(), Some(0.4));
        // One that ended is neither listed nor counted.
        threads.read(&[(10, 10)], 4 * SECOND_NS);
        assert_eq!(
            (threads.shares().collect::<Vec<_>>(), threads.lived_s()),
            (vec![((10, 10), 0.0)], Some(0.0))
        );
    }

    #[test]
    fn of_very_many_threads_the_busiest_are_read_each_second_and_all_in_turn() {
        let proc = tempfile::tempdir().unwrap();
        let mut threads = Threads::rooted(proc.path().to_owned());
        let all: Vec<(i32, i32)> = (0..600).map(|tid| (10, 1_000 + tid)).collect();
        let busy = all[555].1;
        let mut last = None;
        for second in 1..=20 {
            for &(_, tid) in &all {
                plant(proc.path(), tid, "pool", if tid == busy { second * 500 } else { second }, 0);
            }
            last = threads.read(&all, second * SECOND_NS);
        }
        assert_eq!(last.unwrap().busiest, Some(("pool".to_owned(), 0.5)));
        assert!(threads.known.len() == all.len(), "{} were read", threads.known.len());
        let seconds = threads.known.values().filter(|seen| seen.at_ns == 20 * SECOND_NS).count();
        assert_eq!(seconds, READ_MAX);
        // The busy one, and 599 that use 1 ms a second, however seldom they are read.
        let sum: f64 = threads.shares().map(|(_, share)| share).sum();
        assert!((sum - 0.5 - 0.599).abs() < 0.01, "{sum}");
        assert_eq!(threads.lived_s(), None, "not all of them were read");
    }

    #[test]
    fn a_thread_is_active_from_when_it_runs_until_three_seconds_later() {
        let proc = tempfile::tempdir().unwrap();
        let mut threads = Threads::rooted(proc.path().to_owned());
        let all = [(10, 1), (10, 2)];
        let mut active = Vec::new();
        for second in 1..=8 {
            plant(proc.path(), 1, "pool", 5, 0);
            plant(proc.path(), 2, "main", 5 + second.min(3) * 10, 0);
            threads.read(&all, second * SECOND_NS);
            active.push(threads.active());
        }
        let main = vec![(10, 2)];
        assert_eq!(active[0], [], "nothing is known of it yet");
        assert!(active[1..5].iter().all(|active| *active == main), "{active:?}");
        assert_eq!(active[5], []);
    }

    #[test]
    fn a_busy_thread_of_this_process_is_found_by_its_name() {
        let (stop, is_stopped) = channel::<()>();
        let body = move || while is_stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {};
        let busy = std::thread::Builder::new().name("test-worker-7".to_owned()).spawn(body).unwrap();
        let mut threads = Threads::new();
        let begin = Instant::now();
        let mut found = None;
        // On a crowded machine it may get little CPU in one second.
        while found.is_none() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(500));
            let of_test = Threads::of_this_process("test-worker-");
            found = threads
                .read(&of_test, begin.elapsed().as_nanos() as u64)
                .filter(|reading| reading.cpu_share_max > 0.2);
        }
        drop(stop);
        busy.join().unwrap();
        let reading = found.expect("a thread that does nothing but compute is on a core");
        assert!(reading.cpu_share_max <= 1.0 && reading.waiting_share_max <= 1.0);
        assert_eq!(reading.busiest.unwrap().0, "test-worker-7");
    }
}
