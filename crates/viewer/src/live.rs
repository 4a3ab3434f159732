//! Following a run: what was committed since the last step, as messages for the page.
//!
//! `Follower::step` asks SQLite for its version and reads further only when something was committed. It is synchronous
//! and knows nothing of HTTP. The id of a message is the trial and the second. A follower that resumes after an id
//! resends the last few seconds before it, because CPU and ticks of a second arrive after its messages; duplicates
//! leave the page unchanged.

use std::sync::Arc;
use std::time::Instant;

use measure::TrialHead;
use serde::Serialize;
use store::{Place, RunId, RunKind, RunRecord, RunState, Store, StoreError, TrialMark};

use crate::api::{Second, Series, Short};
use crate::archive::{Archive, Detail, POINTS, SharedJudge, is_rung, page_of, read_on};
use crate::bench::Lines;
use crate::fold::Fold;

/// Values of a second come at most so much later: a sampler's round, a server's second and their slack.
const LATER_S: u32 = 4;
/// Seconds of a hold between two looks at its distributions.
const DISTRIBUTIONS_S: u32 = 5;
/// Width of their buckets while they grow; thousands of them every 5 s would cost the machine that is measured.
const LIVE_WIDTH: f64 = 1.01;
/// Looks without a commit after which the state is asked all the same: a killed process commits nothing.
const IDLE_LOOKS: u32 = 10;
/// The whole of a comparison is summed again at most in so small a part of the time: it shares the machine that is measured.
const SUMMING_SHARE: u32 = 50;
/// The id after the last message of a run.
pub const END: &str = "end";

/// A message to the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// from where a reconnect goes on
    pub id: String,
    /// `second`, `trial`, `rung`, `run`, `process`
    pub kind: &'static str,
    /// JSON
    pub data: String,
}

/// Follows one run.
pub struct Follower {
    store: Store,
    judge: SharedJudge,
    run: RunId,
    version: Option<u64>,
    idle: u32,
    current: Option<Current>,
    comparison: Followed,
    /// where the reader was before it lost the connection
    behind: Option<Behind>,
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Behind {
    seq: u32,
    /// the last second that was sent; `None` when the trial was judged already
    second: Option<u32>,
}

/// A comparison of client libraries that grows.
#[derive(Default)]
struct Followed {
    lines: Lines,
    /// processes came or went since the whole was sent
    is_stale: bool,
    /// when it may be summed again
    not_before: Option<Instant>,
}

/// The trial that is looked at.
struct Current {
    seq: u32,
    place: Place,
    fold: Fold,
    is_told: bool,
    is_judged: bool,
    distributions_at: u32,
}

impl Followed {
    fn may_sum(&self) -> bool {
        self.not_before.is_none_or(|not_before| Instant::now() >= not_before)
    }
}

impl Current {
    fn new(head: &TrialHead) -> Self {
        Current {
            seq: head.seq,
            place: Place::default(),
            fold: Fold::new(head.clone(), 0),
            is_told: false,
            is_judged: false,
            distributions_at: 0,
        }
    }
}

impl Follower {
    /// Follows `run` from now on, or from after the id of a message that was sent before.
    pub fn new(store: Store, judge: Arc<dyn crate::Judge>, run: RunId, last_id: Option<&str>) -> Self {
        let behind = last_id.and_then(read_id);
        Follower {
            store,
            judge,
            run,
            version: None,
            idle: 0,
            current: None,
            comparison: Followed::default(),
            behind,
            has_ended: false,
        }
    }

    /// True once the last message of the run was given out.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What was committed since the last step. Errors: what the store says; the run may have been deleted.
    pub fn step(&mut self) -> Result<Vec<Message>, StoreError> {
        if self.has_ended {
            return Ok(Vec::new());
        }
        // Read first: what is committed from here on appears in the next version.
        let version = self.store.version()?;
        self.idle += 1;
        let is_waiting = self.comparison.is_stale && self.comparison.may_sum();
        if self.version == Some(version) && self.idle < IDLE_LOOKS && !is_waiting {
            return Ok(Vec::new());
        }
        let is_first = self.version.replace(version).is_none();
        self.idle = 0;
        let mut messages = Vec::new();
        // Before the entries: for a run that ends in between, none is missed.
        let record = self.store.run(&self.run)?;
        let is_recording = matches!(record.state, RunState::Recording);
        if record.head.kind == RunKind::Bench {
            return self.comparison(&record, is_first, is_recording);
        }
        let marks = self.store.trial_marks(&self.run)?;
        if is_first && self.behind.is_none() {
            // A rung may have been judged between loading the page and this connection.
            messages.push(self.run_message()?);
        }
        let from = match (&self.current, self.behind) {
            (Some(current), _) => current.seq,
            (None, Some(behind)) => behind.seq,
            (None, None) => marks.last().map_or(0, |mark| mark.head.seq),
        };
        for mark in marks.iter().filter(|mark| mark.head.seq >= from) {
            self.trial(mark, &mut messages)?;
        }
        if !is_recording {
            messages.push(Message { id: END.to_owned(), ..self.run_message()? });
            self.has_ended = true;
        }
        Ok(messages)
    }

    /// The seconds of the process that runs, and the whole when one began or ended. A reader who comes back gets the whole.
    fn comparison(
        &mut self,
        record: &RunRecord,
        is_first: bool,
        is_recording: bool,
    ) -> Result<Vec<Message>, StoreError> {
        let followed = &mut self.comparison;
        let news = followed.lines.read_on(&self.store, &self.run)?;
        followed.is_stale |= news.is_structural || is_first;
        if is_recording && (!followed.is_stale || !followed.may_sum()) {
            let pages = news.processes.iter().filter_map(|number| followed.lines.process(*number));
            return Ok(pages.map(|page| message(String::new(), "process", &page)).collect());
        }
        let began = Instant::now();
        let page = Archive::new(&self.store, &*self.judge).bench_page(record, &followed.lines)?;
        followed.is_stale = false;
        followed.not_before = Some(Instant::now() + began.elapsed() * SUMMING_SHARE);
        self.has_ended = !is_recording;
        let id = if is_recording { String::new() } else { END.to_owned() };
        Ok(vec![message(id, "run", &page)])
    }

    fn trial(&mut self, mark: &TrialMark, messages: &mut Vec<Message>) -> Result<(), StoreError> {
        let seq = mark.head.seq;
        let mut current = match self.current.take() {
            Some(current) if current.seq == seq => current,
            _ => Current::new(&mark.head),
        };
        let marks_before = current.fold.trial().events.len();
        read_on(&self.store, &self.run, mark, &mut current.place, &mut current.fold)?;
        let mut seconds = current.fold.changed();
        let newest = seconds.last().map(|(index, _)| *index);
        let id = |second: Option<u32>| second.map_or(format!("{seq}"), |second| format!("{seq}:{second}"));
        let behind = self.behind.take_if(|behind| behind.seq == seq);
        if let Some(behind) = behind {
            // A reconnect: the seconds that were missed, and the last ones, which may have got their late values.
            let known = behind.second.unwrap_or(u32::MAX);
            seconds.retain(|(index, _)| index.saturating_add(LATER_S) > known);
            current.is_judged = behind.second.is_none();
        }
        if !current.is_told && behind.is_none() {
            let page = page_of(mark, &current.fold, None, current.fold.series(), Some(LIVE_WIDTH), POINTS);
            messages.push(message(id(newest), "trial", &page));
            seconds.clear();
        } else if !current.is_judged {
            let looks = newest.is_some_and(|newest| newest >= current.distributions_at + DISTRIBUTIONS_S);
            if current.fold.trial().events.len() > marks_before || looks || behind.is_some() {
                current.distributions_at = newest.unwrap_or(current.distributions_at);
                // The page has the seconds already, and keeps them.
                let page = page_of(mark, &current.fold, None, Series::default(), Some(LIVE_WIDTH), POINTS);
                messages.push(message(id(newest), "trial", &page));
            }
        }
        current.is_told = true;
        for (index, values) in seconds {
            let values = values.into_iter().map(|(name, value)| (name, Short(value))).collect();
            let second = Second { seq, t: index, values };
            // Late values of an old second do not move a reconnect back to it.
            messages.push(message(id(newest.max(Some(index))), "second", &second));
        }
        if mark.is_ended()
            && is_rung(mark)
            && !current.is_judged
            && !self.store.verdicts(&self.run, seq)?.is_empty()
        {
            current.is_judged = true;
            let page = Archive::new(&self.store, &*self.judge).trial_page(&self.run, seq, POINTS)?;
            messages.push(message(format!("{seq}:judged"), "rung", &page));
            messages.push(Message { id: format!("{seq}:judged"), ..self.run_message()? });
        }
        self.current = Some(current);
        Ok(())
    }

    /// The run as stored, with the rungs in their trials: the page takes each trial as it is.
    fn run_message(&self) -> Result<Message, StoreError> {
        let mut page = Archive::new(&self.store, &*self.judge).run_page(&self.run, Detail::First)?;
        for trial in &mut page.trials {
            trial.rung =
                page.climb.as_ref().and_then(|climb| crate::archive::rung_of(climb, trial.seq)).cloned();
            if trial.rung.is_none() {
                trial.series = Series::default();
            }
        }
        let id = self.current.as_ref().map_or(String::new(), |current| current.seq.to_string());
        Ok(message(id, "run", &page))
    }
}

fn message(id: String, kind: &'static str, data: &impl Serialize) -> Message {
    // Numbers, texts and maps with text keys: nothing that JSON cannot say.
    Message { id, kind, data: serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned()) }
}

/// `3:41`, `3:judged` or `3`.
fn read_id(id: &str) -> Option<Behind> {
    let (seq, second) = id.split_once(':').unwrap_or((id, "0"));
    Some(Behind {
        seq: seq.parse().ok()?,
        second: if second == "judged" { None } else { Some(second.parse().ok()?) },
    })
}
