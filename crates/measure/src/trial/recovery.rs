//! The seconds after a hold in which part of the load continued, each as a trial of its own.
//!
//! So everything that can be computed from a trial can be computed from one of them. Each also knows the second before
//! it, without its messages: the effects of its disturbance may last.

use std::collections::BTreeMap;
use std::ops::Range;

use super::parts::TrialHead;
use super::sum::Sum;
use super::{Trial, kind};
use crate::entry::{Entry, Event};
use crate::interval::Interval;
use crate::seconds::{SECOND_NS, second_at};

/// What is kept of each second; entries of all others are passed over.
#[derive(Clone, Debug)]
pub struct AfterHold {
    seconds: BTreeMap<u32, Sum>,
    range: Range<u32>,
    head: TrialHead,
}

impl AfterHold {
    /// The seconds between two instants of a trial, ns since its start. They count from the first whole one on.
    pub fn between(head: TrialHead, from_ns: u64, to_ns: u64) -> AfterHold {
        let range = second_at(from_ns.saturating_add(SECOND_NS - 1))..second_at(to_ns);
        AfterHold { seconds: BTreeMap::new(), range, head }
    }

    /// The same by the marks of a trial; `None` where its load did not go on.
    pub fn of(head: &TrialHead, events: &[Event]) -> Option<AfterHold> {
        let at = |kind: &str| events.iter().find(|event| event.kind == kind).map(|event| event.at_ns);
        Some(AfterHold::between(head.clone(), at(kind::RECOVERY)?, at(kind::RECOVERY_ENDS)?))
    }

    /// Takes one entry of the trial, in any order.
    pub fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Interval(interval) => {
                self.put(interval.index, &Entry::Interval(Box::new(interval.planned_after_hold())));
                // Only the position of the second before is needed, for its samples.
                let mut before = Interval::new(&interval.metric_names);
                before.index = interval.index;
                self.put(interval.index.saturating_add(1), &Entry::Interval(Box::new(before)));
            }
            Entry::Sample(sample) => {
                self.put(sample.second(), entry);
                self.put(sample.second().saturating_add(1), entry);
            }
            Entry::Ticks(ticks) => self.put(second_at(ticks.to_ns.saturating_sub(1)), entry),
            Entry::Books(_) | Entry::Event(_) => {}
        }
    }

    fn put(&mut self, index: u32, entry: &Entry) {
        if !self.range.contains(&index) {
            return;
        }
        let begin = || {
            let mark = |kind: &str, second: u32| Event {
                at_ns: u64::from(second) * SECOND_NS,
                kind: kind.to_owned(),
                text: String::new(),
            };
            let marks = vec![mark(kind::HOLD, index), mark(kind::DRAIN, index + 1)];
            Sum::new(self.head.clone(), marks, 0)
        };
        self.seconds.entry(index).or_insert_with(begin).take(entry);
    }

    /// The n-th of these seconds, from 0, as far as it was taken; `None` where nothing was.
    pub fn second(&self, number: u32) -> Option<Trial> {
        let index = self.range.start.checked_add(number).filter(|index| self.range.contains(index))?;
        self.seconds.get(&index).cloned().map(Sum::finish)
    }

    /// Which of these seconds this second of the trial is; `None`: none of them.
    pub fn number_of(&self, index: u32) -> Option<u32> {
        self.range.contains(&index).then(|| index - self.range.start)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Drops a second that is no longer needed.
    pub fn forget(&mut self, number: u32) {
        self.seconds.remove(&self.range.start.saturating_add(number));
    }
}
