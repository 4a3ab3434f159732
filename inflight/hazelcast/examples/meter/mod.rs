//! CPU time of consecutive steps on one thread.

/// How far the sum of the steps may be from the whole.
const TOLERANCE: f64 = 0.1;

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime only writes into the timespec it is given.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process so far.
pub fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Adds the CPU time since the last call to a step.
#[derive(Clone, Copy)]
pub struct Meter<const STEPS: usize> {
    last_ns: u64,
    steps_ns: [u64; STEPS],
}

impl<const STEPS: usize> Meter<STEPS> {
    pub fn new() -> Self {
        Meter { last_ns: clock_ns(libc::CLOCK_THREAD_CPUTIME_ID), steps_ns: [0; STEPS] }
    }

    pub fn step(&mut self, step: usize) {
        let now_ns = clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        self.steps_ns[step] += now_ns - self.last_ns;
        self.last_ns = now_ns;
    }

    /// Prints each step by name and what it is, per operation and as a share of the whole; returns the share of all steps.
    fn print(&self, steps: &[(&str, &str); STEPS], operations: f64, whole_ns: u64) -> f64 {
        let line = |name: &str, ns: f64, what: &str| {
            println!("{name:<12}{:>8.0}  {:>4.1} %  {what}", ns / operations, ns / whole_ns as f64 * 100.0);
        };
        for ((name, what), ns) in steps.iter().zip(self.steps_ns) {
            line(name, ns as f64, what);
        }
        let sum_ns = self.steps_ns.iter().sum::<u64>() as f64;
        line("sum", sum_ns, &format!("of the process's {:.0}", whole_ns as f64 / operations));
        sum_ns / whole_ns as f64
    }

    /// Prints the table of a run under what was done (`get 3 B, 100 in flight`); whether the steps sum to the whole within 10 %.
    /// Errors: answers were wrong.
    pub fn report(
        &self,
        done: &str,
        steps: &[(&str, &str); STEPS],
        (operations, turns): (u64, u64),
        whole_ns: u64,
        wrong: u64,
    ) -> Result<bool, String> {
        let operations = operations as f64;
        println!("{done}, {:.1} operations per turn; CPU ns per operation:", operations / turns as f64);
        let share = self.print(steps, operations, whole_ns);
        if wrong > 0 {
            return Err(format!("{wrong} answers were wrong"));
        }
        Ok((share - 1.0).abs() <= TOLERANCE)
    }
}
