//! A look through stored runs: their list, and each of them load by load.

use std::io;

use console::layout::wrapped;
use console::say;
use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::frame::{Look, Ranked, bold, draw, help, put, whole_or};
use crate::screen::Covered;
use crate::state::State;

/// Lines of the list besides the runs: the header, and below a blank line, the answer, a blank line, the keys.
const AROUND: usize = 8;
/// Of these, those of the answer.
const ANSWER_MOST: usize = 4;

/// What can be looked at.
pub trait Stored {
    /// The runs, oldest first: id, subject, when it began, how it ended, its answer.
    fn runs(&self) -> &[[String; 5]];
    /// A run with all its loads. Errors: why there is nothing to see, for the user.
    fn open(&mut self, run: usize) -> Result<State, String>;
    /// Reads the seconds of a load of the run that was opened last. Errors: they cannot be read, for the user.
    fn look_at(&mut self, state: &mut State, load: usize) -> Result<(), String>;
}

/// Where the user is.
struct Browser<'a, S> {
    stored: &'a mut S,
    look: Look,
    /// of the list
    run: usize,
    /// the run that is open, and its load that is looked at
    open: Option<(State, usize)>,
    /// of a run that could not be shown
    said: String,
    /// a run was named: leaving it is leaving the view
    is_of_one: bool,
}

/// Shows stored runs until the user leaves: their list, or with `one` the only run, opened. `is_over`: the user asked otherwise.
/// Errors: the terminal refuses, or what the only run says instead of itself.
pub fn browse(stored: &mut impl Stored, one: bool, is_over: impl Fn() -> bool) -> io::Result<()> {
    let run = stored.runs().len().saturating_sub(1);
    let mut browser =
        Browser { stored, look: Look::of_user(), run, open: None, said: String::new(), is_of_one: one };
    if one {
        browser.open();
        if browser.open.is_none() {
            return Err(io::Error::other(browser.said));
        }
    }
    let mut covered = Covered::enter()?;
    while !is_over() {
        covered.draw(|frame| browser.draw(frame))?;
        for key in covered.typed() {
            if !browser.obey(key) {
                return Ok(());
            }
            covered.draw(|frame| browser.draw(frame))?;
        }
        if covered.is_gone() {
            break;
        }
    }
    Ok(())
}

impl<S: Stored> Browser<'_, S> {
    /// Takes a key; false: the user leaves.
    fn obey(&mut self, key: u8) -> bool {
        match key {
            b'?' | b'h' => self.look.has_help = !self.look.has_help,
            b'd' => self.look.has_details = !self.look.has_details,
            b'q' if self.look.has_help => self.look.has_help = false,
            b'q' if self.open.is_some() && !self.is_of_one => self.open = None,
            b'q' => return false,
            b'k' => self.step(-1),
            b'j' => self.step(1),
            b'\r' | b'\n' if self.open.is_none() => self.open(),
            _ => {}
        }
        true
    }

    fn step(&mut self, by: isize) {
        let moved = |at: usize, count: usize| at.saturating_add_signed(by).min(count.saturating_sub(1));
        let Some((state, load)) = &mut self.open else {
            self.run = moved(self.run, self.stored.runs().len());
            self.said.clear();
            return;
        };
        let to = moved(*load, state.count());
        if to != *load {
            *load = to;
            if let Err(why) = self.stored.look_at(state, to) {
                (self.open, self.said) = (None, why);
            }
        }
    }

    /// Opens the run that is chosen, at its last load.
    fn open(&mut self) {
        if self.stored.runs().is_empty() {
            return;
        }
        let opened = self.stored.open(self.run).and_then(|mut state| {
            let last = state.count().saturating_sub(1);
            self.stored.look_at(&mut state, last)?;
            Ok((state, last))
        });
        match opened {
            Ok(opened) => (self.open, self.said) = (Some(opened), String::new()),
            Err(why) => self.said = say::own_in_line(&why),
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        match &self.open {
            Some((state, _)) => draw(frame, state, self.look),
            None => self.list(frame),
        }
    }

    fn list(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        if width == 0 || height == 0 {
            return;
        }
        if self.look.has_help {
            return put(frame, help(true, width), self.look);
        }
        let runs = self.stored.runs();
        let widths: Vec<usize> =
            (0..4).map(|at| runs.iter().map(|run| run[at].chars().count()).max().unwrap_or(0)).collect();
        let of_run = |at: usize| {
            let columns = runs[at].iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
            let mark = if at == self.run { '>' } else { ' ' };
            let line = format!("{mark} {}", columns.collect::<Vec<_>>().join("  "));
            let style = if at == self.run { Modifier::BOLD } else { Modifier::empty() };
            Line::styled(say::own_in_line(&line), Style::new().add_modifier(style))
        };
        let room = height.saturating_sub(AROUND).max(1);
        let from = self.run.saturating_sub(room / 2).min(runs.len().saturating_sub(room));
        let mut lines: Vec<Ranked> = vec![
            (2, bold(format!("{} stored {}", runs.len(), if runs.len() == 1 { "run" } else { "runs" }))),
            (90, Line::default()),
        ];
        let shown = from..runs.len().min(from + room);
        lines.extend(shown.map(|at| (1 + at.abs_diff(self.run) as u32, of_run(at))));
        lines.push((91, Line::default()));
        let answer = match runs.get(self.run) {
            _ if !self.said.is_empty() => self.said.as_str(),
            Some(run) => &run[4],
            None => "no runs yet; stepladder climb arena makes one",
        };
        let answer = wrapped(&say::own_in_line(answer), 2, Some(width.max(4)));
        let rows = answer.lines().take(ANSWER_MOST).enumerate();
        lines.extend(
            rows.map(|(row, line)| (3 + 4 * row as u32, Line::from(format!("  {}", line.trim_start())))),
        );
        lines.push((80, Line::default()));
        lines.push((0, whole_or("↑ ↓ run", &["↵ open", "? help", "q leave"], "↑ ↓ ↵ ? q", width)));
        put(frame, lines, self.look);
    }
}

#[cfg(test)]
mod tests;
