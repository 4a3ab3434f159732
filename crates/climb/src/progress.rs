//! The progress line: where the trial stands. A terminal gets one updating line, anything else plain lines.
//!
//! Figures are those of the last committed second; only the clock and the connect counter are fresher.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use console::{layout, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ladder::wording::{show_cell, show_many};
use measure::Purpose;
use measure::{Entry, Measure, Role, TrialHead};

use crate::trial::TrialStatus;

const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Shows the trial's progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
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
        let is_terminal = std::io::stderr().is_terminal();
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, last_plain: None, figures: String::new() }
    }

    /// A sentence that stays.
    pub fn say(&self, text: &str) {
        let text = &within_stderr(text);
        match &self.bar {
            Some(bar) => bar.suspend(|| say::err_own_text!("{text}\n")),
            None => say::err_own_text!("{text}\n"),
        }
    }

    /// Takes the figures of what was committed.
    pub fn committed(&mut self, entries: &[Entry]) {
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
            standing.hold_until_ns.map(|until_ns| until_ns.saturating_sub(standing.now_ns) / 1_000_000_000);
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

    /// Clears the line for what comes next.
    pub fn clear(&mut self) {
        self.figures.clear();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            bar.reset();
        }
    }
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
            let mut progress = Progress { bar: None, last_plain: None, figures: String::new() };
            progress.committed(&[Entry::Interval(Box::new(interval))]);
            assert_eq!(progress.figures, expected);
        };
        check(&["games_played"], &[7], 0, "1365 sent/s");
        check(&["received"], &[1_396_000], 0, "1365 sent/s · 1.40e6 deliveries/s");
        check(&["received"], &[9_000], 3, "1365 sent/s · 9000 deliveries/s · 3 errors/s");
    }
}
