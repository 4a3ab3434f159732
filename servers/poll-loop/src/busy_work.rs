//! Burns a given amount of processor time.
//!
//! A frame needs a fixed amount of work, whoever else uses the core. Measured by the wall clock, a loop that gets half
//! of its core would draw as fast as ever, and the effect of contention on frames could not be seen. Hence the thread's
//! own CPU clock. Planted costs of services are measured the same way.

use std::hint::black_box;

use servers_shared::clock;

const POINTS: usize = 64;

/// Points that are turned in space, over and over, as drawing does.
pub(super) struct BusyWork {
    points: [[f32; 3]; POINTS],
}

impl BusyWork {
    pub(super) fn new() -> BusyWork {
        BusyWork { points: std::array::from_fn(|i| [1.0, i as f32 / POINTS as f32, 0.5]) }
    }

    /// Works for so much of the thread's processor time, or up to some µs more. Returns how much it was, in ns.
    pub(super) fn work(&mut self, cpu_ns: u64) -> u64 {
        if cpu_ns == 0 {
            return 0;
        }
        let began_ns = clock::thread_cpu_ns();
        loop {
            // Reading the clock is a system call: a few µs of work between two reads.
            for _ in 0..16 {
                self.turn();
            }
            let used_ns = clock::thread_cpu_ns() - began_ns;
            if used_ns >= cpu_ns {
                return used_ns;
            }
        }
    }

    fn turn(&mut self) {
        const COS: f32 = 0.999_95;
        const SIN: f32 = 0.009_999_83;
        for [x, y, z] in black_box(&mut self.points) {
            (*x, *y) = (*x * COS - *y * SIN, *x * SIN + *y * COS);
            (*y, *z) = (*y * COS - *z * SIN, *y * SIN + *z * COS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_the_processor_time_that_was_asked_for() {
        let mut busy_work = BusyWork::new();
        let began_ns = clock::thread_cpu_ns();
        let used_ns: u64 = (0..50).map(|_| busy_work.work(200_000)).sum();
        let passed_ns = clock::thread_cpu_ns() - began_ns;
        assert!((10_000_000..=passed_ns).contains(&used_ns), "{used_ns} of {passed_ns}");
        assert_eq!(busy_work.work(0), 0);
    }

    #[test]
    fn the_points_turn_and_stay_finite() {
        let mut busy_work = BusyWork::new();
        let before = busy_work.points;
        (0..1_000_000).for_each(|_| busy_work.turn());
        assert_ne!(before, busy_work.points);
        assert!(busy_work.points.iter().flatten().all(|part| part.is_finite()));
    }
}
