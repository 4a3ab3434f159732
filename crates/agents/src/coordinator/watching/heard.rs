//! What the agent that watches told, and whether it is heard of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use console::say;
use futures_util::StreamExt as _;
use measure::trial::kind;
use measure::{Entry, Event, Sample};

use super::Watchers;
use crate::coordinator::follow::follow;
use crate::coordinator::{lock, number_of};
use crate::messages::{Up, What, states_of, ups_of, watchers_of};
use crate::{BROKER_GONE_NS, GONE_NS};

/// How often it is looked whether it is heard of.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// What the sampler calls a step of the clock.
const CLOCK: &str = "clock";
/// Characters of an event.
const WORDS_MOST: usize = 1_000;
/// What it may tell of: never of what the load or its phases did.
const KINDS: [&str; 7] = [
    kind::SUBJECT_EXITED,
    kind::SERVICE,
    kind::TICK_LOG,
    kind::TICK_RATE,
    kind::TICKS_LOST,
    kind::COMPARED_LOST,
    CLOCK,
];

/// From the one that is taken, in the trial that goes on.
#[derive(Default)]
pub(super) struct Heard {
    /// of the one that is taken
    pub(super) number: Option<usize>,
    /// `None`: between two trials
    pub(super) trial: Option<u32>,
    pub(super) last: Option<Instant>,
    /// why nothing more comes of it
    pub(super) lost: Option<String>,
    /// everything of this trial is there
    pub(super) is_done: bool,
    pub(super) samples: Vec<Sample>,
    pub(super) entries: Vec<Entry>,
    /// the server's process has ended
    pub(super) has_ended: bool,
    /// of its ticks, found
    pub(super) rate_hz: Option<f64>,
}

impl Heard {
    /// A trial begins. `has_ended`: the server has.
    pub(super) fn begin(&mut self, trial: u32, has_ended: bool) {
        let (number, rate_hz, last) = (self.number, self.rate_hz, Some(Instant::now()));
        *self = Heard { number, rate_hz, last, trial: Some(trial), has_ended, ..Heard::default() };
    }

    /// Nothing more comes of it.
    pub(super) fn lose(&mut self, why: &str) {
        if self.lost.is_none() && !self.is_done {
            (self.lost, self.is_done) = (Some(why.to_owned()), true);
        }
    }

    /// It ended between two trials.
    pub(super) fn end_with(&mut self, why: &str) {
        self.lost.get_or_insert(why.to_owned());
    }

    fn take(&mut self, up: Up) {
        if self.trial != Some(up.trial) || self.is_done {
            return;
        }
        match up.what {
            What::Samples(samples) => self.samples.extend(samples.into_iter().map(Sample::from)),
            What::Ticks(second) => self.entries.push(Entry::Ticks(second)),
            What::Events(events) => events.into_iter().for_each(|event| self.event(event)),
            What::Done => self.is_done = true,
            What::Lost(why) | What::Bug(why) => self.lose(&why),
            // It makes no load.
            What::Second { .. } | What::Ledger { .. } => {}
        }
    }

    fn event(&mut self, mut event: Event) {
        if !KINDS.contains(&event.kind.as_str()) {
            return;
        }
        event.text = measure::plain_text(&event.text, WORDS_MOST);
        self.has_ended |= event.kind == kind::SUBJECT_EXITED;
        if event.kind == CLOCK {
            event.text = format!("on the server's machine: {}", event.text);
        }
        self.entries.push(Entry::Event(event));
    }
}

/// What goes on as long as the climb does.
pub(super) fn start(watchers: &Arc<Watchers>) {
    let runtime = &watchers.runtime;
    runtime.spawn(take_up(watchers.clone()));
    runtime.spawn(hear_states(watchers.clone()));
    runtime.spawn(look_for_lost(watchers.clone()));
}

async fn take_up(watchers: Arc<Watchers>) {
    let inner = &watchers.inner;
    let (mut next, mut at_broker) = (BTreeMap::<usize, u64>::new(), 0);
    loop {
        let subject = ups_of(&watchers_of(&inner.session));
        let mut take = |number, up: anyhow::Result<Up>| {
            let next = next.entry(number).or_default();
            let mut heard = lock(&watchers.heard);
            let is_taken = heard.number == Some(number);
            match up {
                // It was taken before.
                Ok(up) if up.seq < *next => {}
                Ok(up) if up.seq == *next => {
                    *next += 1;
                    if is_taken {
                        heard.take(up);
                    }
                }
                Ok(_) if is_taken => heard.lose("a part of what it read is missing at the broker"),
                Err(error) if is_taken => heard.lose(&format!("{error:#}")),
                _ => {}
            }
        };
        let outcome = follow(&inner.link, subject, &mut at_broker, &mut take).await;
        if let Err(error) = outcome
            && inner.link.is_up()
        {
            say::err_line!("stepladder: {error:#}; trying again");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn hear_states(watchers: Arc<Watchers>) {
    let inner = &watchers.inner;
    let states = inner.link.client.subscribe(states_of(&watchers_of(&inner.session))).await;
    let Ok(mut states) = states else { return };
    while let Some(message) = states.next().await {
        let mut heard = lock(&watchers.heard);
        if heard.number.is_some() && heard.number == number_of(&message) {
            heard.last = Some(Instant::now());
        }
    }
}

async fn look_for_lost(watchers: Arc<Watchers>) {
    let mut away = None;
    loop {
        tokio::time::sleep(LOOKS_EVERY).await;
        let (is_up, now) = (watchers.inner.link.is_up(), Instant::now());
        let mut heard = lock(&watchers.heard);
        let is_longer = |since: Instant, ns: u64| now.duration_since(since).as_nanos() > u128::from(ns);
        if is_up {
            away = None;
            let is_silent = heard.last.is_some_and(|last| is_longer(last, GONE_NS));
            if heard.trial.is_some() && is_silent {
                heard.lose("nothing was heard of it for 5 s");
            }
        } else {
            // It cannot be heard while the broker is away.
            heard.last = Some(now);
            if is_longer(*away.get_or_insert(now), BROKER_GONE_NS) {
                heard.lose("the broker has been away for a minute");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use measure::{MachineMetric, Reading};

    use super::*;
    use crate::messages::OneSample;

    fn up(trial: u32, what: What) -> Up {
        Up { seq: 0, trial, what }
    }

    fn event(kind: &str) -> Event {
        Event { at_ns: 5, kind: kind.to_owned(), text: "said".to_owned() }
    }

    #[test]
    fn what_is_told_is_of_the_trial_that_goes_on_and_never_of_its_load() {
        let mut heard = Heard { number: Some(0), rate_hz: Some(30.0), ..Heard::default() };
        heard.begin(3, false);
        let sample = Sample { at_ns: 1, what: Reading::Machine(MachineMetric::Load1), value: 2.0 };
        heard.take(up(2, What::Samples(vec![OneSample::from(&sample)])));
        assert!(heard.samples.is_empty(), "it is of the trial before");
        heard.take(up(3, What::Samples(vec![OneSample::from(&sample)])));
        heard.take(up(3, What::Ticks(Box::default())));
        heard.take(up(3, What::Events([kind::HOLD, kind::BUG, kind::TICK_LOG, CLOCK].map(event).into())));
        assert_eq!(heard.samples, [sample]);
        let [Entry::Ticks(_), Entry::Event(log), Entry::Event(clock)] = &heard.entries[..] else {
            panic!("{:?}", heard.entries)
        };
        assert_eq!(
            (log.kind.as_str(), clock.text.as_str()),
            (kind::TICK_LOG, "on the server's machine: said")
        );
        assert!(!heard.has_ended);
        heard.take(up(3, What::Events(vec![event(kind::SUBJECT_EXITED)])));
        assert!(heard.has_ended, "the server's process");
        heard.lose("gone");
        heard.take(up(3, What::Ticks(Box::default())));
        assert_eq!(
            (heard.entries.len(), heard.lost.as_deref()),
            (4, Some("gone")),
            "nothing counts after it"
        );
        heard.begin(4, false);
        assert_eq!((heard.has_ended, heard.lost.is_some(), heard.rate_hz), (false, false, Some(30.0)));
    }
}
