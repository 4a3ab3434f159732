//! What the view shows: the climb as far as it was committed and judged.

use std::collections::VecDeque;

use console::say;
use ladder::wording::{show_bytes, show_cell, show_many, show_ns, show_number, show_share};
use ladder::{Objective, Outcome, Rung, Verdict, disturbance};
use measure::trial::kind;
use measure::{Entry, Measure, Role, Trial, TrialHead};

use crate::seconds::Seconds;

/// Sentences that are kept for the details.
const SENTENCES_KEPT: usize = 8;

/// A load in its cell, which is to be held.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// in its unit
    pub load: f64,
    /// `games`
    pub unit: &'static str,
    /// of a sweep; else empty
    pub cell: String,
}

impl Place {
    /// Of a trial.
    pub fn of(head: &TrialHead) -> Place {
        Place { load: head.load, unit: head.load_unit.text(), cell: show_cell(&head.cell) }
    }

    /// `1000 games, object · foreground`
    pub(crate) fn text(&self) -> String {
        let cell = if self.cell.is_empty() { String::new() } else { format!(", {}", self.cell) };
        format!("{} {}{cell}", show_number(self.load), self.unit)
    }
}

/// Where the running trial stands: not committed yet, as on the progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialNow {
    /// `ramp`, `settle`, `hold`, `drain`
    pub phase: &'static str,
    /// connections open now
    pub open: u64,
    /// attempts to connect that failed
    pub failed: u64,
    /// until the end of the hold, s; `None`: not known yet
    pub left_s: Option<u64>,
}

/// The seconds of an objective in a hold.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    pub(crate) objective: Objective,
    /// in the figure's unit; `None`: the second does not state it
    pub(crate) values: Vec<Option<f64>>,
    /// of the newest second, or of a stored load's whole hold: `3.2 %`, and whether that is within the limit
    pub(crate) newest: Option<(String, Option<bool>)>,
}

/// The running trial, or the one of a stored climb that is looked at; figures are then those of its whole hold.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) head: TrialHead,
    pub(crate) now: TrialNow,
    pub(crate) tracks: Vec<Track>,
    /// of the newest committed second
    pub(crate) figures: Vec<String>,
    /// of the newest complete second of the hold
    pub(crate) generator: String,
    pub(crate) disturbed_by: Option<String>,
    /// the newest mark and its instant; empty: there is none
    pub(crate) marked: String,
    /// name and value, of the same second
    pub(crate) details: Vec<(&'static str, String)>,
    seconds: Seconds,
}

/// The climb as the view shows it.
#[derive(Debug, Default)]
pub struct State {
    /// `arena · run arena-3`
    title: String,
    objectives: Vec<Objective>,
    /// loads that were judged, in the order they were held: place, verdict, words
    pub(crate) held: Vec<(Place, Verdict, String)>,
    /// the load whose turn it is
    pub(crate) next: Option<Place>,
    /// loads that are to be held behind it, as far as that is known
    pub(crate) planned: Vec<Place>,
    /// how long they take, s; `None`: the schedule decides as it goes
    planned_s: Option<u64>,
    /// the three answers as they stand: question and answer
    pub(crate) answers: Vec<(String, String)>,
    pub(crate) running: Option<Running>,
    pub(crate) sentences: VecDeque<String>,
    /// the climb waits for its user between two loads
    pub(crate) is_paused: bool,
    /// of a stored climb the load that is looked at, as its place in `held`
    pub(crate) looked_at: Option<usize>,
}

impl State {
    /// A climb before its first trial. `title`: `arena · run arena-3`.
    pub fn new(title: &str, objectives: &[Objective]) -> State {
        State { title: say::own_in_line(title), objectives: objectives.to_vec(), ..State::default() }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The load whose turn it is (`None`: a calibration), and what the schedule asks for behind it. `left_s`: how long that takes;
    /// `None`: it decides as it goes.
    pub fn plan(&mut self, next: Option<Place>, places: Vec<Place>, left_s: Option<u64>) {
        (self.next, self.planned, self.planned_s) = (next, places, left_s);
    }

    /// A trial begins.
    pub fn begin(&mut self, head: &TrialHead) {
        let track =
            |objective: &Objective| Track { objective: objective.clone(), values: Vec::new(), newest: None };
        self.running = Some(Running {
            head: head.clone(),
            now: TrialNow::default(),
            tracks: self.objectives.iter().map(track).collect(),
            figures: Vec::new(),
            generator: String::new(),
            disturbed_by: None,
            marked: String::new(),
            details: Vec::new(),
            seconds: Seconds::of(head.clone()),
        });
    }

    /// Where the running trial stands.
    pub fn stands(&mut self, now: TrialNow) {
        if let Some(running) = &mut self.running {
            running.now = now;
        }
    }

    /// Takes what was committed of a trial; what belongs to another than the running one is passed over.
    pub fn committed(&mut self, trial: u32, entries: &[Entry]) {
        let Some(running) = self.running.as_mut().filter(|running| running.head.seq == trial) else { return };
        for entry in entries {
            for second in running.seconds.take(entry) {
                running.complete(&second);
            }
            if let Entry::Event(event) = entry
                && event.kind == kind::MARK
            {
                let mark = format!("at {:.1} s: {}", event.at_ns as f64 / 1e9, event.text);
                running.marked = say::own_in_line(&mark);
            }
            if let Entry::Interval(interval) = entry {
                let sent: u64 = interval.messages().map(|flow| flow.sent).sum();
                let errors: u64 = interval.errors.iter().sum();
                let delivered = interval.counted(Role::Delivered);
                running.figures = vec![format!("{} sent/s", show_many(sent))];
                running.figures.extend(delivered.map(|count| format!("{} deliveries/s", show_many(count))));
                running.figures.extend((errors > 0).then(|| format!("{} errors/s", show_many(errors))));
            }
        }
    }

    /// The load of a stored climb whose seconds were taken: how it was over its whole hold.
    pub fn whole(&mut self, place: usize, trial: &Trial) {
        self.looked_at = Some(place);
        let Some(running) = &mut self.running else { return };
        running.tells(trial);
        let seconds = trial.hold.as_ref().map_or(0.0, measure::Hold::seconds);
        let per_s = (trial.flow().sent as f64 / seconds.max(1e-9)).round() as u64;
        running.figures =
            vec![format!("{} sent/s", show_many(per_s)), format!("held for {}", show_ns(seconds * 1e9))];
    }

    /// Loads that were judged.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// A load was judged. `words`: what its line says besides the verdict.
    pub fn judged(&mut self, rung: &Rung, words: &str, answers: Vec<(String, String)>) {
        let cell = rung.cell.as_ref().map(show_cell).unwrap_or_default();
        let place = Place { load: rung.load, unit: rung.load_unit.text(), cell };
        self.held.push((place, rung.verdict, say::own_in_line(words)));
        let answers = answers.into_iter().map(|(question, answer)| (question, say::own_in_line(&answer)));
        self.answers = answers.collect();
        (self.running, self.next) = (None, None);
    }

    /// A sentence that the user should see.
    pub fn say(&mut self, text: &str) {
        self.sentences.push_back(say::own_in_line(text));
        while self.sentences.len() > SENTENCES_KEPT {
            self.sentences.pop_front();
        }
    }

    /// Whether the climb waits for its user.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Whether the schedule says which loads are to come.
    pub(crate) fn knows_all(&self) -> bool {
        !self.planned.is_empty() || self.planned_s.is_some()
    }

    /// What stands for an answer while loads are to come and none has failed: the stored answers are those of a climb that has ended.
    pub(crate) fn so_far(&self, question: &str) -> Option<String> {
        self.next.as_ref()?;
        let all_passed =
            self.held.iter().all(|(place, verdict, _)| *verdict == Verdict::Pass && place.cell.is_empty());
        let most = self.held.iter().map(|(place, ..)| place).max_by(|a, b| a.load.total_cmp(&b.load))?;
        match question {
            "How many" if all_passed => Some(format!("{} held so far.", most.text())),
            "Why not more" if all_passed => {
                Some("Nothing has failed so far; the climb is still running.".to_owned())
            }
            _ => None,
        }
    }

    /// Until the end of the climb, s, where the schedule knows: what is planned and what is left of the running hold. `None` before
    /// that hold is known, as between two loads.
    pub(crate) fn left_s(&self) -> Option<u64> {
        let of_hold = match &self.running {
            Some(running) => running.now.left_s?,
            None if self.next.is_some() => return None,
            None => 0,
        };
        self.planned_s.map(|planned_s| planned_s + of_hold)
    }
}

impl Running {
    /// Takes a second of the hold.
    fn complete(&mut self, second: &Trial) {
        let values = self.tells(second);
        for (track, value) in self.tracks.iter_mut().zip(values) {
            track.values.push(value);
        }
    }

    /// Tells the figures of a second, or of a whole hold. Returns each objective's.
    fn tells(&mut self, second: &Trial) -> Vec<Option<f64>> {
        let lag = second.distribution(Measure::SendLag).summary();
        let lag_ns = lag.as_ref().and_then(|lag| lag.p99.or(lag.max));
        let lag = lag_ns.map_or("nothing sent".to_owned(), |ns| format!("send lag {}", show_ns(ns as f64)));
        let busy = second.busy_share_max;
        let busy = busy.map_or(String::new(), |share| format!(" · busiest worker {}", show_share(share)));
        self.generator = lag + &busy;
        let found = disturbance(second);
        self.disturbed_by = found.any().then(|| say::own_in_line(&found.culprit()));
        self.details = details(second);
        let value_of = |track: &mut Track| {
            let show = |value: f64| track.objective.figure().unit.show(value);
            let (value, newest) = match track.objective.evaluate(second) {
                Outcome::Met { value: Some(value), .. } => (Some(value), Some((show(value), Some(true)))),
                Outcome::Met { value: None, .. } => (None, Some(("within".to_owned(), Some(true)))),
                Outcome::NotMet { value, shown } => (Some(value), Some((shown, Some(false)))),
                Outcome::CannotTell { .. } => (None, None),
            };
            track.newest = newest;
            value
        };
        self.tracks.iter_mut().map(value_of).collect()
    }
}

/// The figures of a second, for those who want to see more.
fn details(second: &Trial) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (name, measure) in [
        ("response", Measure::Response),
        ("delivery", Measure::Delivery),
        ("send lag", Measure::SendLag),
        ("tick interval", Measure::TickInterval),
    ] {
        let Some(summary) = second.distribution(measure).summary() else { continue };
        let stated = [("p50", summary.p50), ("p99", summary.p99), ("max", summary.max)];
        let stated = stated.into_iter().filter_map(|(q, ns)| Some(format!("{q} {}", show_ns(ns? as f64))));
        found.push((name, stated.collect::<Vec<_>>().join(" · ")));
    }
    let flow = second.flow();
    found.push((
        "messages",
        format!(
            "{} sent · {} answered · {} failed · {} lost",
            show_many(flow.sent),
            show_many(flow.answered),
            show_many(flow.failed),
            show_many(flow.lost)
        ),
    ));
    // CPU is read once a second, so a second alone has no figure of it.
    let memory = [("server memory", second.subject.as_ref()), ("bots memory", Some(&second.worker))];
    found.extend(
        memory.into_iter().filter_map(|(name, figures)| Some((name, show_bytes(figures?.rss_bytes as f64)))),
    );
    let mut errors: Vec<String> = second
        .errors
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(cause, count)| format!("{cause} {count}"))
        .collect();
    if errors.is_empty() {
        errors.push("none".to_owned());
    }
    found.push(("errors", say::own_in_line(&errors.join(" · "))));
    found
}
