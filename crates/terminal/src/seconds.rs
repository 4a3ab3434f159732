//! The seconds of a hold, each summed as a trial of its own, so that figures and objectives are those of `ladder`.

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{Entry, Event, Sum, Trial, TrialHead};

const SECOND_NS: u64 = 1_000_000_000;

/// Seconds of one trial that may still get entries.
#[derive(Debug)]
pub(crate) struct Seconds {
    head: TrialHead,
    sums: BTreeMap<u64, Sum>,
    /// the hold as far as its marks came, ns since the start of the trial
    hold: Option<(u64, u64)>,
}

impl Seconds {
    pub(crate) fn of(head: TrialHead) -> Seconds {
        Seconds { head, sums: BTreeMap::new(), hold: None }
    }

    /// Takes an entry. Returns the seconds of the hold that are complete by now: the server's ticks and what the machine did come
    /// a little after the clients' second, so one is complete when the next one has come.
    pub(crate) fn take(&mut self, entry: &Entry) -> Vec<Trial> {
        match entry {
            Entry::Event(event) if event.kind == kind::HOLD => self.hold = Some((event.at_ns, u64::MAX)),
            Entry::Event(event) if matches!(event.kind.as_str(), kind::DRAIN | kind::RECOVERY) => {
                self.hold = self.hold.map(|(from_ns, to_ns)| (from_ns, to_ns.min(event.at_ns)));
            }
            Entry::Interval(interval) => {
                let newest = u64::from(interval.index);
                self.put(newest, entry);
                let later = self.sums.split_off(&newest);
                let complete = std::mem::replace(&mut self.sums, later);
                return complete.into_values().map(|sum| without_open_requests(sum.finish())).collect();
            }
            Entry::Sample(sample) => self.put(u64::from(sample.second()), entry),
            Entry::Ticks(ticks) => self.put(ticks.to_ns.saturating_sub(1) / SECOND_NS, entry),
            Entry::Event(_) | Entry::Books(_) => {}
        }
        Vec::new()
    }

    fn put(&mut self, second: u64, entry: &Entry) {
        let (from_ns, to_ns) = (second * SECOND_NS, (second + 1) * SECOND_NS);
        if !self.hold.is_some_and(|hold| hold.0 <= from_ns && to_ns <= hold.1) {
            return;
        }
        let mark = |kind: &str, at_ns| Event { at_ns, kind: kind.to_owned(), text: String::new() };
        let begin =
            || Sum::new(self.head.clone(), vec![mark(kind::HOLD, from_ns), mark(kind::DRAIN, to_ns)], 0);
        self.sums.entry(second).or_insert_with(begin).take(entry);
    }
}

/// Requests that are open when a second ends are not lost: they count when their answer comes, or the hold ends.
fn without_open_requests(mut second: Trial) -> Trial {
    second.ops.values_mut().for_each(|flow| flow.open_after = 0);
    second
}
