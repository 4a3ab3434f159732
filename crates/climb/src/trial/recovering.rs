//! The time after an overload: a part of the load goes on until it is known when the server recovered.

use ladder::Objective;
use ladder::recovery::{self, Second};
use measure::AfterHold;
use measure::trial::kind;
use measure::{Entry, TrialHead};

use super::{TrialEnv, TrialRunner, keep_event};

/// What is known so far of the seconds since the overload.
pub(super) struct Recovering {
    after: AfterHold,
    seconds: Vec<Second>,
}

impl Recovering {
    fn new(head: TrialHead, from_ns: u64, within_ns: u64) -> Recovering {
        let after = AfterHold::between(head, from_ns, from_ns.saturating_add(within_ns));
        Recovering { after, seconds: Vec::new() }
    }

    /// Takes an entry. A second is judged when the next one has come: by then the machine was sampled to its end.
    pub(super) fn take(&mut self, entry: &Entry, objectives: &[Objective]) {
        self.after.take(entry);
        let Entry::Interval(interval) = entry else { return };
        let number = self.seconds.len() as u32;
        if self.after.number_of(interval.index).is_some_and(|newest| newest > number)
            && let Some(second) = self.after.second(number)
        {
            self.seconds.push(Second::of(&second, objectives));
            self.after.forget(number);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        recovery::is_over(&self.seconds)
    }
}

impl TrialRunner<'_> {
    /// The hold ends at this instant, and a part of the load goes on.
    pub(super) fn begin_recovery(
        &mut self,
        at_ns: u64,
        ended_by: &str,
        around: &mut impl TrialEnv,
    ) -> anyhow::Result<()> {
        keep_event(around, at_ns, kind::DRAIN, ended_by)?;
        (self.hold_end_ns, self.so_far) = (Some(at_ns), None);
        let Some(recovery) = self.order.recovery else {
            self.begin_drain(at_ns);
            return Ok(());
        };
        self.timeline.recover_at(at_ns);
        self.phase = "recovery";
        self.recovering = Some(Recovering::new(self.order.head.clone(), at_ns, recovery.within_ns));
        keep_event(around, at_ns, kind::RECOVERY, &recovery.load.to_string())
    }

    /// It ends too.
    pub(super) fn end_recovery(
        &mut self,
        at_ns: u64,
        cut_by: Option<&str>,
        around: &mut impl TrialEnv,
    ) -> anyhow::Result<()> {
        self.begin_drain(at_ns);
        self.recovering = None;
        keep_event(around, at_ns, kind::RECOVERY_ENDS, cut_by.unwrap_or_default())
    }
}
