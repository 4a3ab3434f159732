//! How precisely this machine reads and keeps time: the clock, timers, and stalls of a busy core.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// The cost of one reading of the monotonic clock, ns: the median of many short series.
pub(super) fn clock_cost_ns() -> f64 {
    const READINGS: u32 = 2_000;
    let mut costs: Vec<f64> = (0..15)
        .map(|_| {
            let begin = Instant::now();
            (0..READINGS).for_each(|_| {
                black_box(Instant::now());
            });
            begin.elapsed().as_nanos() as f64 / f64::from(READINGS)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// How late a thread wakes that sleeps until a given instant, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness {
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) max_ns: u64,
}

/// Sleeps until 300 instants 1 ms apart, on a separate thread so that its timer slack affects nothing else.
pub(super) fn timer_lateness() -> Option<Lateness> {
    thread::spawn(|| {
        let slack = std::num::NonZeroU64::new(1);
        let _ = rustix::thread::set_current_timer_slack(slack);
        const STEP: Duration = Duration::from_millis(1);
        let begin = Instant::now();
        let mut late_ns: Vec<u64> = (1..=300u32)
            .map(|index| {
                let due = STEP * index;
                let now = begin.elapsed();
                if now < due {
                    thread::sleep(due - now);
                }
                (begin.elapsed().saturating_sub(due)).as_nanos() as u64
            })
            .collect();
        late_ns.sort_unstable();
        let at = |share: f64| late_ns[((late_ns.len() - 1) as f64 * share) as usize];
        Lateness { p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0) }
    })
    .join()
    .ok()
}

/// What a core that is busy all the time loses to others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalls {
    /// share of the time that went by in gaps
    pub(super) lost_share: f64,
    /// longest gap
    pub(super) longest_ns: u64,
    /// how long was looked
    pub(super) looked_ns: u64,
}

/// Reads the clock without pause for a while; a gap between two readings is time that this core gave to others: the
/// hypervisor, an interrupt, another process.
pub(super) fn stalls(during: Duration) -> Stalls {
    /// Longer than a reading, a cache miss, or a timer interrupt.
    const GAP_NS: u64 = 50_000;
    let begin = Instant::now();
    let (mut last_ns, mut lost_ns, mut longest_ns) = (0, 0, 0);
    while last_ns < during.as_nanos() as u64 {
        let now_ns = begin.elapsed().as_nanos() as u64;
        let gap_ns = now_ns - last_ns;
        if gap_ns > GAP_NS {
            lost_ns += gap_ns;
            longest_ns = longest_ns.max(gap_ns);
        }
        last_ns = now_ns;
    }
    Stalls { lost_share: lost_ns as f64 / last_ns as f64, longest_ns, looked_ns: last_ns }
}
