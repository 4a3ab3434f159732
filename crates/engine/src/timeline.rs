//! The phases of a trial, as instants that the control plane sets and the workers read.
//!
//! Instants are set slightly in the future, so every worker sees them in time; the phase of a message then follows from
//! its planned instant alone. Reading them is two relaxed loads. Nothing is woken: workers check each turn.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use measure::Phase;

/// Instants in ns since the start of the trial; `u64::MAX` while unknown.
#[derive(Debug)]
pub struct Timeline {
    settle_ns: AtomicU64,
    hold_ns: AtomicU64,
    /// the hold ends, and a part of the load goes on until the drain
    recover_ns: AtomicU64,
    drain_ns: AtomicU64,
    stop_ns: AtomicU64,
    /// the subject gets SIGTERM; messages planned later are not judged
    subject_stops_ns: AtomicU64,
    /// it was told, just before this instant became known
    subject_signalled_ns: AtomicU64,
    /// it runs again
    subject_back_ns: AtomicU64,
}

impl Default for Timeline {
    fn default() -> Self {
        let unknown = || AtomicU64::new(u64::MAX);
        Timeline {
            settle_ns: unknown(),
            hold_ns: unknown(),
            recover_ns: unknown(),
            drain_ns: unknown(),
            stop_ns: unknown(),
            subject_stops_ns: unknown(),
            subject_signalled_ns: unknown(),
            subject_back_ns: unknown(),
        }
    }
}

impl Timeline {
    /// All bots are there from this instant on.
    pub fn settle_at(&self, at_ns: u64) {
        self.settle_ns.store(at_ns, Relaxed);
    }

    /// What is planned from this instant on is judged.
    pub fn hold_at(&self, at_ns: u64) {
        self.hold_ns.store(at_ns, Relaxed);
    }

    /// The hold ends at this instant, and a part of the load goes on to see when the server has recovered. What is planned
    /// from then on is not judged with the hold.
    pub fn recover_at(&self, at_ns: u64) {
        self.recover_ns.store(at_ns, Relaxed);
    }

    /// Nothing is planned from this instant on.
    pub fn drain_at(&self, at_ns: u64) {
        self.drain_ns.fetch_min(at_ns, Relaxed);
    }

    /// The subject gets SIGTERM at this instant or slightly later; messages planned after it are not judged.
    pub fn subject_stops_at(&self, at_ns: u64) {
        self.subject_stops_ns.store(at_ns, Relaxed);
    }

    /// The subject gets SIGTERM right after this call: messages that have left by then are under way.
    pub fn subject_signalled_at(&self, at_ns: u64) {
        self.subject_signalled_ns.store(at_ns, std::sync::atomic::Ordering::SeqCst);
    }

    /// The subject that was told to end runs again.
    pub fn subject_is_back_at(&self, at_ns: u64) {
        self.subject_back_ns.store(at_ns, Relaxed);
    }

    /// Workers end at this instant at the latest.
    pub fn stop_at(&self, at_ns: u64) {
        self.stop_ns.fetch_min(at_ns, Relaxed);
    }

    /// The phase of what is planned at an instant.
    #[inline]
    pub fn phase(&self, planned_ns: u64) -> Phase {
        let over_ns = self.drain_ns.load(Relaxed).min(self.recover_ns.load(Relaxed));
        let ends_ns = over_ns.min(self.subject_stops_ns.load(Relaxed));
        if planned_ns < self.settle_ns.load(Relaxed) && planned_ns < self.hold_ns.load(Relaxed) {
            if planned_ns >= ends_ns { Phase::Drain } else { Phase::Ramp }
        } else if planned_ns >= ends_ns {
            Phase::Drain
        } else if planned_ns >= self.hold_ns.load(Relaxed) {
            Phase::Hold
        } else {
            Phase::Settle
        }
    }

    /// See `settle_at`.
    #[inline]
    pub fn settle_ns(&self) -> u64 {
        self.settle_ns.load(Relaxed)
    }

    /// See `hold_at`.
    #[inline]
    pub fn hold_ns(&self) -> u64 {
        self.hold_ns.load(Relaxed)
    }

    /// See `recover_at`.
    #[inline]
    pub fn recover_ns(&self) -> u64 {
        self.recover_ns.load(Relaxed)
    }

    /// See `drain_at`.
    #[inline]
    pub fn drain_ns(&self) -> u64 {
        self.drain_ns.load(Relaxed)
    }

    /// See `stop_at`.
    #[inline]
    pub fn stop_ns(&self) -> u64 {
        self.stop_ns.load(Relaxed)
    }
}

impl Timeline {
    /// See `subject_stops_at`.
    #[inline]
    pub fn subject_stops_ns(&self) -> u64 {
        self.subject_stops_ns.load(Relaxed)
    }

    /// See `subject_signalled_at`.
    #[inline]
    pub fn subject_signalled_ns(&self) -> u64 {
        self.subject_signalled_ns.load(Relaxed)
    }

    /// See `subject_is_back_at`.
    #[inline]
    pub fn subject_back_ns(&self) -> u64 {
        self.subject_back_ns.load(Relaxed)
    }
}

/// The same instants on another machine.
impl Timeline {
    fn all(&self) -> [&AtomicU64; INSTANTS] {
        [
            &self.settle_ns,
            &self.hold_ns,
            &self.recover_ns,
            &self.subject_stops_ns,
            &self.subject_signalled_ns,
            &self.subject_back_ns,
            &self.drain_ns,
            &self.stop_ns,
        ]
    }

    /// All instants, in an order of their own; `u64::MAX` while unknown.
    pub fn instants(&self) -> [u64; INSTANTS] {
        self.all().map(|instant| instant.load(Relaxed))
    }

    /// Takes over the instants of another timeline. Returns by how much the begin of the hold, its end or the end of the load had
    /// already passed at `now_ns` when it became known, ns; 0: all were known in time.
    pub fn learn(&self, instants: [u64; INSTANTS], now_ns: u64) -> u64 {
        let mut late_ns = 0;
        for (at, (known, told_ns)) in self.all().into_iter().zip(instants).enumerate() {
            if told_ns < known.load(Relaxed) {
                known.store(told_ns, Relaxed);
                if JUDGED.contains(&at) {
                    late_ns = late_ns.max(now_ns.saturating_sub(told_ns));
                }
            }
        }
        late_ns
    }
}

/// How many instants a timeline has.
pub const INSTANTS: usize = 8;
/// Of these, what must not become known late: hold, recovery, end of the subject and drain.
const JUDGED: [usize; 4] = [1, 2, 3, 6];

/// One worker's connections, for the progress line and for the control plane to see the end of the ramp.
#[derive(Debug, Default)]
pub struct Progress {
    /// units of load (games, clients) whose ramp instant has come, and that their bots do not call pending
    pub joined: AtomicU64,
    /// connections open now
    pub open: AtomicU64,
    /// connections opened so far
    pub opened: AtomicU64,
    /// failed attempts so far
    pub failed: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_belongs_to_the_phase_it_was_planned_in() {
        let timeline = Timeline::default();
        assert_eq!(timeline.phase(1_000), Phase::Ramp);
        timeline.settle_at(1_000);
        timeline.hold_at(2_000);
        timeline.drain_at(3_000);
        let phases = [999, 1_000, 1_999, 2_000, 2_999, 3_000].map(|at_ns| timeline.phase(at_ns));
        use Phase::{Drain, Hold, Ramp, Settle};
        assert_eq!(phases, [Ramp, Settle, Settle, Hold, Hold, Drain]);
    }

    #[test]
    fn what_goes_on_after_the_hold_is_not_judged_with_it() {
        let timeline = Timeline::default();
        timeline.settle_at(1_000);
        timeline.hold_at(2_000);
        timeline.recover_at(3_000);
        assert_eq!([2_999, 3_000].map(|at_ns| timeline.phase(at_ns)), [Phase::Hold, Phase::Drain]);
        timeline.drain_at(9_000);
        assert_eq!(
            [2_999, 3_000, 9_000].map(|at_ns| timeline.phase(at_ns)),
            [Phase::Hold, Phase::Drain, Phase::Drain]
        );
    }

    #[test]
    fn what_is_planned_after_the_subject_was_told_to_end_is_not_judged_although_it_is_sent() {
        let timeline = Timeline::default();
        timeline.settle_at(1_000);
        timeline.hold_at(2_000);
        timeline.subject_stops_at(3_000);
        timeline.drain_at(4_000);
        assert_eq!([2_999, 3_000, 4_000].map(|at_ns| timeline.phase(at_ns)), {
            [Phase::Hold, Phase::Drain, Phase::Drain]
        });
    }

    #[test]
    fn another_timeline_learns_the_instants_and_tells_which_came_too_late() {
        let (here, there) = (Timeline::default(), Timeline::default());
        here.settle_at(500);
        here.hold_at(1_000);
        assert_eq!(there.learn(here.instants(), 900), 0, "that the ramp is over may be known late");
        here.drain_at(3_000);
        here.stop_at(4_000);
        assert_eq!(there.learn(here.instants(), 3_250), 250);
        assert_eq!(there.learn(here.instants(), 9_000), 0, "it was known");
        assert_eq!(there.instants(), here.instants());
        // A trial that is cut short.
        here.drain_at(0);
        assert_eq!((there.learn(here.instants(), 2_000), there.drain_ns()), (2_000, 0));
    }

    #[test]
    fn a_trial_that_is_cut_short_in_its_ramp_drains() {
        let timeline = Timeline::default();
        timeline.drain_at(500);
        assert_eq!((timeline.phase(499), timeline.phase(500)), (Phase::Ramp, Phase::Drain));
    }
}
