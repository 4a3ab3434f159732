//! The subject's CPU by the names of its threads, and what threads used that have ended.
//!
//! Names are read once per thread, when it has used CPU, and shares are those that `Threads` has read anyway. Of more threads than it reads each second,
//! those that were not read count as when they were. A thread that ended between two readings has no file: its CPU is what the whole process used
//! and no living thread did.
//! Units: cores.

use std::collections::{BTreeMap, BTreeSet};

use measure::by_kind_of_name;

use crate::threads::Threads;

/// Names that are told of a second, the busiest; each of the others used less than any of these.
const NAMES_MAX: usize = 16;
/// Threads of a name that used less together are not told.
const CORES_MIN: f64 = 0.01;
/// CPU times of a process come in ticks of 10 ms, user's and kernel's apart, and are read a moment before those of its threads.
const TICKS_S: f64 = 0.02;

#[derive(Debug, Default)]
pub(super) struct ThreadNames {
    names: BTreeMap<(i32, i32), String>,
}

impl ThreadNames {
    /// CPU of each name since the reading before, the largest first.
    pub fn read(&mut self, threads: &Threads) -> Vec<(String, f64)> {
        let shares: Vec<_> = threads.shares().filter(|(_, share)| *share > 0.0).collect();
        let busy: BTreeSet<(i32, i32)> = shares.iter().map(|(thread, _)| *thread).collect();
        self.names.retain(|thread, _| busy.contains(thread));
        for (thread, _) in &shares {
            if !self.names.contains_key(thread)
                && let Some(name) = threads.name(*thread)
            {
                self.names.insert(*thread, name);
            }
        }
        let named =
            shares.iter().filter_map(|(thread, share)| Some((self.names.get(thread)?.as_str(), *share)));
        let mut kinds = by_kind_of_name(named);
        kinds.retain(|(_, cores)| *cores >= CORES_MIN);
        kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
        kinds.truncate(NAMES_MAX);
        kinds
    }
}

/// What ended threads used: the CPU time of the whole less that of the threads which live.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// when it was read, ns, and the CPU time of the whole, s
    before: Option<(u64, f64)>,
    /// used by none that lives, and not told yet, s
    untold_s: f64,
}

impl Ended {
    /// In cores since the reading before. `cpu_s`: of all `processes` since they began; `lived_s`: of the threads that live,
    /// since the reading before. `None` at the first reading, and where not every thread was read.
    pub fn read(&mut self, at_ns: u64, cpu_s: f64, lived_s: Option<f64>, processes: usize) -> Option<f64> {
        let (before_ns, before_s) = self.before.replace((at_ns, cpu_s))?;
        let Some(lived_s) = lived_s.filter(|_| at_ns > before_ns) else {
            self.untold_s = 0.0;
            return None;
        };
        // What ticks round is made up for at a later reading, so it is kept.
        self.untold_s += cpu_s - before_s - lived_s;
        if self.untold_s <= TICKS_S * (processes as f64 + 1.0) {
            return Some(0.0);
        }
        Some(std::mem::take(&mut self.untold_s) * 1e9 / (at_ns - before_ns) as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::process::ProcessTree;
    use crate::threads::thread_cpu_s;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn threads_of_this_process_are_summed_by_name_and_what_ended_ones_used_is_missed_by_none_that_lives() {
        let burn = |ms: u64| {
            let until_s = thread_cpu_s() + ms as f64 / 1e3;
            while thread_cpu_s() < until_s {}
        };
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (mut threads, mut names, mut ended) = (Threads::new(), ThreadNames::default(), Ended::default());
        let mut own = ProcessTree::own().unwrap();
        let begin = Instant::now();
        let mut read = || {
            let (cpu_s, at_ns) = (own.read().unwrap().cpu_s, begin.elapsed().as_nanos() as u64);
            threads.read(&Threads::of_this_process(""), at_ns);
            let gone = ended.read(at_ns, cpu_s, threads.lived_s(), 1);
            (at_ns as f64 / 1e9, names.read(&threads), gone)
        };
        let (before_s, ..) = read();
        let (stop, is_stopped) = channel::<()>();
        let is_stopped = Arc::new(Mutex::new(is_stopped));
        let busy: Vec<_> = [("a-thread-1", 100), ("a-thread-2", 200), ("another", 100)]
            .into_iter()
            .map(|(name, ms)| {
                let is_stopped = is_stopped.clone();
                let body = move || {
                    burn(ms);
                    let _ = is_stopped.lock().unwrap().recv();
                };
                named(name).spawn(body).unwrap()
            })
            .collect();
        for _ in 0..4 {
            named("short").spawn(move || burn(100)).unwrap().join().unwrap();
        }
        // The last of them may take long on a crowded machine.
        let (mut cores_s, mut gone_s, mut at_s) = (BTreeMap::<String, f64>::new(), 0.0, before_s);
        let of = |cores_s: &BTreeMap<String, f64>, name: &str| cores_s.get(name).copied().unwrap_or(0.0);
        while begin.elapsed().as_secs() < 20
            && (of(&cores_s, "a-thread-*") < 0.29 || of(&cores_s, "another") < 0.09 || gone_s < 0.3)
        {
            std::thread::sleep(Duration::from_millis(300));
            let (now_s, told, gone) = read();
            told.into_iter()
                .for_each(|(name, cores)| *cores_s.entry(name).or_default() += cores * (now_s - at_s));
            gone_s += gone.unwrap_or(0.0) * (now_s - at_s);
            at_s = now_s;
        }
        drop(stop);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        let about = |seen: f64, expected: f64| (seen - expected).abs() < 0.05;
        assert!(about(of(&cores_s, "a-thread-*"), 0.3) && about(of(&cores_s, "another"), 0.1), "{cores_s:?}");
        // Other tests of this process have threads that end, too.
        assert!(gone_s >= 0.3 && !cores_s.contains_key("short"), "{gone_s} of 0.4 s in {cores_s:?}");
    }

    #[test]
    fn what_no_living_thread_used_is_told_once_it_is_more_than_ticks_round() {
        let mut ended = Ended::default();
        assert_eq!(ended.read(0, 5.0, None, 1), None, "there is no second yet");
        let mut told = Vec::new();
        for (second, (cpu_s, lived_s)) in
            [(5.5, 0.5), (5.7, 0.199), (6.2, 0.25), (6.23, 0.01), (6.255, 0.01)].into_iter().enumerate()
        {
            told.push(ended.read((second as u64 + 1) * SECOND_NS, cpu_s, Some(lived_s), 1).unwrap());
        }
        let about = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
        assert!(told[0] == 0.0 && told[1] == 0.0 && about(told[2], 0.251), "{told:?}");
        assert!(told[3] == 0.0 && told[4] == 0.0, "what ticks may have rounded: {told:?}");
        assert!(about(ended.read(7 * SECOND_NS, 6.29, Some(0.0), 1).unwrap(), 0.07 / 2.0));
        assert_eq!(ended.read(8 * SECOND_NS, 9.28, None, 1), None, "not every thread was read");
        assert_eq!(ended.read(9 * SECOND_NS, 9.38, Some(0.1), 1), Some(0.0));
    }
}
