//! Ticks of sources that are only compared with the judged one.
//!
//! They are summed over the same hold by the same rules, silence included, and enter no other sum.

use std::collections::BTreeSet;

use super::parts::{Hold, TrialTicks};
use super::sum::touches;
use super::tick_cover::TickCover;
use super::{Trial, kind};
use crate::entry::TickSecond;
use crate::ticklog::ServerCounter;

/// What one of them told of the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedTicks {
    /// how it was written: `statsd=127.0.0.1:8125`, `client`
    pub source: String,
    /// `None`: it told of none in the hold, or could not be read for too much of it. Of `client` always: the clients' ticks are those
    /// of the trial
    pub ticks: Option<TrialTicks>,
    /// of the late ones, that may have been on time
    pub unclear: u64,
}

/// Sums them.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparing(Vec<(ComparedTicks, TickCover)>);

impl Comparing {
    /// Takes a second of the source of this name. Its cover takes every one, its sum those that end in the hold and touch none of
    /// the seconds left out.
    pub fn take(&mut self, name: &str, told: &TickSecond, hold: Option<&Hold>, left_out: &BTreeSet<u32>) {
        let (compared, cover) = self.of(name);
        cover.take(told);
        if hold.is_some_and(|hold| hold.has_end_of(told)) && !touches(left_out, told) {
            let named = || TrialTicks { source: name.to_owned(), ..TrialTicks::default() };
            let sum = compared.ticks.get_or_insert_with(named);
            sum.counts.add(&told.counts);
            sum.interval.add(&told.interval);
            let unclear = ServerCounter::TicksUnclear.of(&told.counters).unwrap_or(0);
            compared.unclear = compared.unclear.saturating_add(unclear);
        }
    }

    fn of(&mut self, name: &str) -> &mut (ComparedTicks, TickCover) {
        let at = self.0.iter().position(|(known, _)| known.source == name).unwrap_or_else(|| {
            let compared = ComparedTicks { source: name.to_owned(), ..ComparedTicks::default() };
            self.0.push((compared, TickCover::default()));
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// What each of them told: first those that were announced, in that order.
    pub fn finish(mut self, trial: &Trial) -> Vec<ComparedTicks> {
        let announced = trial.events.iter().filter(|event| event.kind == kind::TICK_SOURCE).skip(1);
        let announced: Vec<&str> = announced.map(|event| event.text.as_str()).collect();
        for name in &announced {
            self.of(name);
        }
        let place = |name: &str| announced.iter().position(|known| *known == name).unwrap_or(usize::MAX);
        self.0.sort_by_key(|(compared, _)| place(&compared.source));
        let to_the_end = |(compared, cover): (ComparedTicks, TickCover)| {
            let is_its = |text: &str| {
                text.strip_prefix(compared.source.as_str()).is_some_and(|rest| rest.starts_with(": "))
            };
            let has_failed =
                trial.events.iter().any(|event| event.kind == kind::COMPARED_LOST && is_its(&event.text));
            let ticks = cover.to_the_end(trial, compared.ticks, has_failed);
            ComparedTicks { ticks, ..compared }
        };
        self.0.into_iter().map(to_the_end).collect()
    }
}
