//! The time after an overload: part of the load continues until the server's recovery time is known.

use ladder::Objective;
use ladder::recovery::{self, Second};
use measure::AfterHold;
use measure::{Entry, TrialHead};

/// What is known so far of the seconds since the overload.
pub(super) struct Recovering {
    after: AfterHold,
    seconds: Vec<Second>,
}

impl Recovering {
    /// `within_ns`: it ends so long after `from_ns`, the end of the hold, if the server has not recovered before.
    pub(super) fn new(head: TrialHead, from_ns: u64, within_ns: u64) -> Recovering {
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
