//! Where the trial stands: a view of the whole climb (`terminal`) where a terminal can show one, else one updating line on a
//! terminal, and plain lines anywhere else.
//!
//! Figures are those of the last committed second; only the clock and the connect counter are fresher.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use console::signals::Interrupt;
use console::{layout, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ladder::wording::{show_cell, show_many};
use ladder::{Climb, Judged, Mark, NextTrial, Repeats, Rung};
use measure::Purpose;
use measure::{Entry, Measure, Role, TrialHead};
use plan::{HoldLength, Plan};
use store::RunId;
use terminal::{Place, Screen, State, TrialNow};

use crate::judging::hold_ns;
use crate::page;
use crate::trial::TrialStatus;

const PLAIN_EVERY: Duration = Duration::from_secs(10);
const SECOND_NS: u64 = 1_000_000_000;

/// Shows the trial's progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    view: Option<Screen>,
    /// the trial that the view shows
    shown: Option<u32>,
    last_plain: Option<(String, Instant)>,
    figures: String,
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}

impl Progress {
    /// A changing line on a terminal, plain lines otherwise.
    pub fn new() -> Self {
        let obeys = std::env::var_os("TERM").is_some_and(|name| name != "dumb");
        let is_terminal = std::io::stderr().is_terminal() && obeys;
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, ..Progress::plain() }
    }

    fn plain() -> Self {
        Progress { bar: None, view: None, shown: None, last_plain: None, figures: String::new() }
    }

    /// Shows the climb as a whole from here on, where a terminal can.
    pub fn view(&mut self, plan: &Plan, subject: &str, run: &RunId) {
        if !Screen::is_possible() {
            return;
        }
        let state = State::new(&format!("{subject} · run {run}"), &plan.objectives);
        // A terminal that refuses gets lines.
        if let Ok(screen) = Screen::open(state) {
            self.clear();
            (self.bar, self.view) = (None, Some(screen));
        }
    }

    /// The view, unless something took it away.
    fn screen(&self) -> Option<&Screen> {
        self.view.as_ref().filter(|screen| screen.is_shown())
    }

    /// What comes next: `order`, and what the plan asks for besides. Waits where the user has asked for a pause.
    pub fn next(&self, plan: &Plan, done: &[Judged], order: &NextTrial, interrupt: &Interrupt) {
        let Some(screen) = self.screen() else { return };
        let (places, left_s) = to_come(plan, done, order);
        let cell = order.cell.and_then(|at| plan.ladder.cells.get(at)).map(|cell| show_cell(&cell.names));
        let place =
            Place { load: order.load, unit: plan.ladder.load_unit.text(), cell: cell.unwrap_or_default() };
        let next = (order.purpose == Purpose::Rung).then_some(place);
        screen.update(|state| state.plan(next, places, left_s));
        while screen.is_shown() && screen.control().pauses() && !interrupt.is_asked() {
            screen.update(|state| state.pause(true));
            std::thread::sleep(Duration::from_millis(100));
        }
        screen.update(|state| state.pause(false));
    }

    /// A hold as long as the user wants it: the judge still goes by the plan's.
    pub fn lengthened(&self, hold: HoldLength) -> HoldLength {
        let times = u64::from(self.screen().map_or(1, |screen| screen.control().times_as_long()));
        match hold {
            HoldLength::Time(ns) => HoldLength::Time(ns.saturating_mul(times)),
            HoldLength::Ticks(count) => HoldLength::Ticks(count.saturating_mul(times)),
            HoldLength::Games(count) => HoldLength::Games(count.saturating_mul(times)),
        }
    }

    /// What the keys of the view did to the run since this was last asked.
    pub fn pressed(&self) -> Vec<String> {
        self.screen().map_or(Vec::new(), |screen| screen.control().take_pressed())
    }

    /// A load was judged. `so_far`: the climb until here, read only where it is shown.
    pub fn judged(
        &mut self,
        rung: &Rung,
        so_far: impl FnOnce() -> anyhow::Result<Option<Climb>>,
    ) -> anyhow::Result<()> {
        // The trial behind it may have its number, where it is profiled.
        self.shown = None;
        if let Some(screen) = self.screen() {
            let answers = so_far()?.map_or(Vec::new(), |climb| ladder::run_summary(&climb).answers);
            screen.update(|state| state.judged(rung, &page::words(rung), answers));
        }
        self.print(&page::rung(rung));
        Ok(())
    }

    /// A sentence that stays.
    pub fn say(&self, text: &str) {
        if let Some(screen) = self.screen() {
            screen.update(|state| state.say(text));
        }
        self.print(text);
    }

    fn print(&self, text: &str) {
        let text = &within_stderr(text);
        match &self.bar {
            Some(bar) => bar.suspend(|| say::err_own_text!("{text}\n")),
            None => say::err_own_text!("{text}\n"),
        }
    }

    /// Takes the figures of what was committed of a trial; `None`: of the one that is shown.
    pub fn take(&mut self, trial: Option<u32>, entries: &[Entry]) {
        let events = entries
            .iter()
            .filter_map(|entry| if let Entry::Event(event) = entry { Some(event) } else { None });
        Mark::among(events).iter().for_each(|mark| self.say(&mark.in_words()));
        if let (Some(screen), Some(trial)) = (self.screen(), trial.or(self.shown)) {
            return screen.update(|state| state.committed(trial, entries));
        }
        let (mut ticks, mut bots) = (None, None);
        for entry in entries {
            match entry {
                Entry::Ticks(second) if second.compared().is_some() => {}
                Entry::Ticks(second) => ticks = second.counts.late_share(),
                Entry::Interval(interval) => {
                    let sent: u64 = interval.messages().map(|flow| flow.sent).sum();
                    let errors: u64 = interval.errors.iter().sum();
                    let delivered = interval.counted(Role::Delivered);
                    let lag = interval.distribution(Measure::SendLag, true);
                    let lag_ms = lag.mean_ns().map(|ns| ns / 1e6);
                    bots = Some((sent, delivered, errors, lag_ms));
                }
                Entry::Sample(_) | Entry::Event(_) | Entry::Books(_) => {}
            }
        }
        if let Some((sent, delivered, errors, lag_ms)) = bots {
            self.figures = format!("{sent} sent/s");
            if let Some(delivered) = delivered {
                self.figures += &format!(" · {} deliveries/s", show_many(delivered));
            }
            if let Some(lag_ms) = lag_ms {
                self.figures += &format!(" · send lag {lag_ms:.2} ms");
            }
            if errors > 0 {
                self.figures += &format!(" · {errors} errors/s");
            }
        }
        if let Some(share) = ticks {
            let kept = self.figures.split(" · late ").next().unwrap_or_default().to_owned();
            self.figures = format!("{kept} · late {:.2} %", share * 100.0);
        }
    }

    /// Shows the trial's progress.
    pub fn show(&mut self, standing: &TrialStatus<'_>) {
        let head = standing.head;
        let left =
            standing.hold_until_ns.map(|until_ns| until_ns.saturating_sub(standing.now_ns) / SECOND_NS);
        if let Some(screen) = self.screen() {
            let now = TrialNow {
                phase: standing.phase,
                open: standing.open,
                failed: standing.failed,
                left_s: left.filter(|_| standing.phase == "hold"),
            };
            let is_new = self.shown != Some(head.seq);
            screen.update(|state| {
                if is_new {
                    state.begin(head);
                }
                state.stands(now);
            });
            self.shown = Some(head.seq);
            return;
        }
        let mut line = place(head);
        line += &format!(" · {} · {}", standing.phase, standing.open);
        // If each connection lasts only for its session or request, there is no target count.
        line += &if head.connections > 0 {
            format!("/{} connected", head.connections)
        } else {
            " connected".to_owned()
        };
        if standing.failed > 0 {
            line += &format!(" ({} attempts failed)", standing.failed);
        }
        if standing.phase == "ramp" {
            line += &of_ramp(standing.now_ns, standing.ramp_ns);
        }
        if let Some(left_s) = left {
            line += &format!(" · {left_s} s left");
        }
        if !self.figures.is_empty() && standing.phase != "ramp" {
            line += &format!(" · {}", self.figures);
        }
        match &self.bar {
            Some(bar) => {
                bar.set_message(say::own_in_line(&line));
                bar.tick();
            }
            None => {
                let key = format!("{} {} {}", head.seq, head.purpose, standing.phase);
                let is_due = self
                    .last_plain
                    .as_ref()
                    .is_none_or(|(last, at)| *last != key || at.elapsed() >= PLAIN_EVERY);
                if is_due {
                    say::err_own_text!("{}\n", within_stderr(&line));
                    self.last_plain = Some((key, Instant::now()));
                }
            }
        }
    }

    /// Clears the line, or the view, for what comes next.
    pub fn clear(&mut self) {
        self.figures.clear();
        self.view = None;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            bar.reset();
        }
    }
}

/// The loads that a list still asks for behind `order`, and how long they take at least, s. A schedule that decides as it goes
/// says neither.
fn to_come(plan: &Plan, done: &[Judged], order: &NextTrial) -> (Vec<Place>, Option<u64>) {
    let ladder = &plan.ladder;
    if ladder.search.is_some() {
        return (Vec::new(), None);
    }
    let times = match ladder.repeat {
        Repeats::Times(times) => times as usize,
        Repeats::UntilSure => 1,
    };
    let only = [BTreeMap::new()];
    let cells: Vec<_> = if ladder.cells.is_empty() {
        only.iter().collect()
    } else {
        ladder.cells.iter().map(|cell| &cell.names).collect()
    };
    let ordered = order.cell.map_or(only[0].clone(), |at| cells[at].clone());
    let (mut places, mut left_ns) = (Vec::new(), 0);
    for cell in cells {
        for load in &ladder.rungs {
            let is_it = |trial: &&Judged| {
                trial.purpose == Purpose::Rung && trial.load == *load && trial.cell == *cell
            };
            let is_ordered = order.purpose == Purpose::Rung && order.load == *load && ordered == *cell;
            let held = done.iter().filter(is_it).count() + usize::from(is_ordered);
            for _ in held..times {
                places.push(Place { load: *load, unit: ladder.load_unit.text(), cell: show_cell(cell) });
                left_ns += plan::around_ns(ladder, &plan.bots, *load) + hold_ns(plan);
            }
        }
    }
    let is_known = hold_ns(plan) > 0 && ladder.repeat != Repeats::UntilSure && !ladder.is_open_ended;
    (places, is_known.then_some(left_ns / SECOND_NS))
}

/// Broken where standard error ends, if anything says where that is.
fn within_stderr(text: &str) -> Cow<'_, str> {
    match layout::columns_of(std::io::stderr()) {
        Some(columns) => Cow::Owned(layout::broken_at(text, columns)),
        None => Cow::Borrowed(text),
    }
}

/// ` · 12 s of 99 minutes`; nothing where a ramp takes less than a second, or longer than planned.
fn of_ramp(now_ns: u64, ramp_ns: u64) -> String {
    const SECOND_NS: u64 = 1_000_000_000;
    if ramp_ns < SECOND_NS || now_ns > ramp_ns {
        return String::new();
    }
    let now_ns = now_ns / SECOND_NS * SECOND_NS;
    format!(" · {} of {}", plan::ramp::show_length(now_ns), plan::ramp::show_length(ramp_ns))
}

/// `rung 10 requesters, object · foreground`
fn place(head: &TrialHead) -> String {
    let mut place = format!("{} {} {}", head.purpose, head.load, head.load_unit);
    // A calibration's cell names the protocol it used, which the user does not need here.
    if head.purpose == Purpose::Rung && !head.cell.is_empty() {
        place += &format!(", {}", show_cell(&head.cell));
    }
    place
}

#[cfg(test)]
mod tests {
    use measure::LoadUnit;
    use measure::{Interval, MetricNames};

    use super::*;

    #[test]
    fn a_sweep_names_the_cell_that_it_is_in() {
        let mut head = TrialHead {
            seq: 3,
            purpose: Purpose::Rung,
            load: 10.0,
            load_unit: LoadUnit::Requesters,
            bots: 10,
            connections: 10,
            tick_period_ns: 0,
            cell: Default::default(),
            metric_names: MetricNames::new(&[], &[], &[], &[]),
        };
        assert_eq!(place(&head), "rung 10 requesters");
        for (axis, value) in [("view", "foreground"), ("service", "object")] {
            head.cell.insert(axis.to_owned(), value.to_owned());
        }
        assert_eq!(place(&head), "rung 10 requesters, object · foreground");
    }

    #[test]
    fn a_ramp_of_seconds_tells_how_far_it_is_and_a_short_one_does_not() {
        let check = |now_s: f64, ramp_s: f64, expected: &str| {
            assert_eq!(of_ramp((now_s * 1e9) as u64, (ramp_s * 1e9) as u64), expected);
        };
        check(12.7, 5_940.0, " · 12 s of 99 minutes");
        check(0.0, 4.0, " · 0 s of 4 s");
        check(0.1, 0.9, "");
        check(5.0, 4.0, "");
        check(0.0, 0.0, "");
    }

    #[test]
    fn the_line_tells_deliveries_where_bots_count_them_and_errors_where_there_are_some() {
        let check = |counters: &[&str], counts: &[u64], errors: u64, expected: &str| {
            let words = MetricNames::new(&["say"], &["connection lost"], counters, &[])
                .with_counter_roles(&[("received", Role::Delivered)]);
            let mut interval = Interval::new(&words);
            interval.counters.copy_from_slice(counts);
            interval.errors[0] = errors;
            interval.flow_mut(0, measure::Phase::Hold).sent = 1_365;
            let mut progress = Progress::plain();
            progress.take(None, &[Entry::Interval(Box::new(interval))]);
            assert_eq!(progress.figures, expected);
        };
        check(&["games_played"], &[7], 0, "1365 sent/s");
        check(&["received"], &[1_396_000], 0, "1365 sent/s · 1.4 M deliveries/s");
        check(&["received"], &[9_000], 3, "1365 sent/s · 9000 deliveries/s · 3 errors/s");
    }
}
