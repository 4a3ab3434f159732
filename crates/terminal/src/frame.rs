//! The frame that shows a state, for a terminal of any size.
//!
//! Every line has a rank: where a terminal has too few lines, those that tell least are left out. Nothing is told by a colour
//! alone.

use console::layout::wrapped;
use ladder::Verdict;
use ladder::objective::Op;
use measure::Purpose;
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::state::{Running, State, Track};

/// Heights of a sparkline; the limit is at the middle.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A second that does not state the figure.
const NOT_STATED: char = '·';
/// Fewer columns than this show no sparkline.
const SPARK_LEAST: usize = 6;
/// A sparkline is no wider: a minute.
const SPARK_MOST: usize = 60;
/// Objectives stand one below the other up to this width.
const OBJECTIVE_MOST: usize = 34;

/// What the user wants to see, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// the terminal shows colours
    pub has_colours: bool,
    /// the figures of the last second instead of the answers
    pub has_details: bool,
    /// what the keys do instead of everything else
    pub has_help: bool,
    /// the climb pauses after the running load
    pub pauses: bool,
    /// loads are held so many times as long as planned
    pub times_as_long: u32,
}

/// Draws a state over the whole frame.
pub fn draw(frame: &mut Frame<'_>, state: &State, look: Look) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut ranked = if look.has_help { help(width) } else { lines(state, look, width) };
    while ranked.len() > height {
        let Some(least) = (0..ranked.len()).rev().max_by_key(|at| ranked[*at].0) else { break };
        ranked.remove(least);
    }
    // The last line is that of the keys, and stays at the bottom.
    let filled = ranked.len();
    for (at, (_, line)) in ranked.into_iter().enumerate() {
        let at = if at + 1 == filled { height.saturating_sub(1) } else { at };
        let line = if look.has_colours { line } else { without_colours(line) };
        let (y, is_cut) = (area.y + at as u16, line.width() > width);
        let buffer = frame.buffer_mut();
        buffer.set_line(area.x, y, &line, area.width);
        if is_cut && let Some(cell) = buffer.cell_mut((area.x + area.width - 1, y)) {
            cell.set_symbol("…");
        }
    }
}

type Ranked = (u32, Line<'static>);

fn lines(state: &State, look: Look, width: usize) -> Vec<Ranked> {
    let mut lines = vec![(0, header(state, width)), (90, Line::default())];
    match &state.running {
        Some(running) => lines.extend(of_running(running, width)),
        None if state.is_paused => lines.push((1, bold("paused: p goes on with the next load".to_owned()))),
        None => lines.push((1, Line::from("the next load begins"))),
    }
    lines.push((91, Line::default()));
    lines.extend(ladder(state));
    lines.push((92, Line::default()));
    if look.has_details {
        lines.extend(of_details(state));
    } else {
        lines.extend(answers(state, width));
    }
    lines.push((80, Line::default()));
    lines.push((4, keys(look, width)));
    lines
}

fn header(state: &State, width: usize) -> Line<'static> {
    let judged = state.held.len();
    let loads = match state.planned.len() {
        0 if state.left_s().is_none() => format!("{judged} held"),
        left => format!("{judged} of {} held", judged + left + usize::from(state.next.is_some())),
    };
    let left =
        state.left_s().map_or(loads.clone(), |left_s| format!("{loads} · about {} left", length(left_s)));
    let title = state.title();
    let gap = width.saturating_sub(Span::raw(title).width() + Span::raw(left.as_str()).width());
    if gap < 2 {
        return bold(format!("{title} · {loads}"));
    }
    Line::from(vec![
        Span::styled(title.to_owned(), bold_style()),
        Span::raw(" ".repeat(gap)),
        Span::raw(left),
    ])
}

fn of_running(running: &Running, width: usize) -> Vec<Ranked> {
    let (head, now) = (&running.head, &running.now);
    let connected = match head.connections {
        // If each connection lasts only for its session or request, there is no target count.
        0 => format!("{} connected", now.open),
        all => format!("{}/{all} connected", now.open),
    };
    let mut place = vec![format!("{} {}", head.purpose, crate::Place::of(head).text())];
    place.push(match now.left_s {
        Some(left_s) => format!("{} · {} left", now.phase, length(left_s)),
        None => now.phase.to_owned(),
    });
    place.push(connected);
    place.extend((now.failed > 0).then(|| format!("{} attempts failed", now.failed)));
    let mut lines = vec![(1, bold(place.join(" · ")))];
    let tracks = running.tracks.iter().filter(|track| track.newest.is_some() || !track.values.is_empty());
    let of_objectives = tracks.clone().map(|track| track.objective.to_string().chars().count()).max();
    let name_width = of_objectives.unwrap_or(0).min(OBJECTIVE_MOST).min(width / 2);
    lines.extend(tracks.enumerate().map(|(at, track)| (2 + at as u32, of_track(track, name_width, width))));
    let mut about = |rank, name: &str, text: &str| {
        if !text.is_empty() {
            lines.push((
                rank,
                Line::from(format!("{name:<name_width$}  {text}", name_width = name_width.max(9))),
            ));
        }
    };
    about(30, "traffic", &running.figures.join(" · "));
    about(31, "generator", &running.generator);
    match &running.disturbed_by {
        Some(by) => about(8, "disturbed", by),
        None if !running.generator.is_empty() => about(32, "disturbed", "by nothing in the last second"),
        None => {}
    }
    lines
}

/// `ticks.late_share < 25%  ▁▁▂▃▁▁  3.2 %`
fn of_track(track: &Track, name_width: usize, width: usize) -> Line<'static> {
    let name: String = track.objective.to_string().chars().take(name_width).collect();
    let (value, is_met) = track.newest.clone().unwrap_or(("too few samples in a second".to_owned(), None));
    let value = if is_met == Some(false) { format!("{value} (not met)") } else { value };
    let paint = match is_met {
        Some(true) => Style::new().fg(Color::Green),
        Some(false) => Style::new().fg(Color::Red),
        None => Style::new(),
    };
    let room = width.saturating_sub(name_width + 4 + value.chars().count());
    let mut spans = vec![Span::raw(format!("{name:<name_width$}  "))];
    if room >= SPARK_LEAST {
        spans.push(Span::raw(format!("{}  ", sparkline(track, room.min(SPARK_MOST)))));
    }
    spans.push(Span::styled(value, paint));
    Line::from(spans)
}

/// The newest seconds as bars: up to the middle they are within the limit, above it beyond; of a figure that must be large, below.
fn sparkline(track: &Track, width: usize) -> String {
    let bound = track.objective.bound();
    let middle = BARS.len() / 2;
    let bar = |value: &Option<f64>| {
        let Some(value) = *value else { return NOT_STATED };
        let op = track.objective.op();
        let must_be_large = matches!(op, Op::More | Op::AtLeast | Op::Unequal);
        let is_below = op.holds(value, bound) != must_be_large;
        let ratio = if bound == 0.0 { f64::from(u8::from(!is_below)) * 2.0 } else { (value / bound).abs() };
        // On the limit's own side, whatever rounding does to a value next to it.
        let height = (ratio * middle as f64) as usize;
        BARS[if is_below { height.min(middle - 1) } else { height.clamp(middle, BARS.len() - 1) }]
    };
    let from = track.values.len().saturating_sub(width);
    track.values.iter().skip(from).map(bar).collect()
}

/// A row per load: held, running, planned. The rows next to the running one stay longest.
fn ladder(state: &State) -> Vec<Ranked> {
    const LEAST: u32 = 10;
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (place, verdict, words) in &state.held {
        rows.push(Line::from(vec![
            Span::raw(format!("  {:<20} ", place.text())),
            Span::styled(verdict.name(), Style::new().fg(colour(*verdict)).add_modifier(Modifier::BOLD)),
            Span::raw(format!("  {words}")),
        ]));
    }
    let at = rows.len();
    if let Some(place) = &state.next {
        let is_running = state.running.as_ref().is_some_and(|running| running.head.purpose == Purpose::Rung);
        let how = if is_running { "held now" } else { "next" };
        rows.push(Line::from(format!("> {:<20} {how}", place.text())));
    }
    rows.extend(state.planned.iter().map(|place| Line::from(format!("  {:<20} to come", place.text()))));
    let rank = |row: usize| LEAST + row.abs_diff(at) as u32 * 2 + u32::from(row > at);
    rows.into_iter().enumerate().map(|(row, line)| (rank(row), line)).collect()
}

fn answers(state: &State, width: usize) -> Vec<Ranked> {
    let mut lines = Vec::new();
    for (at, (question, answer)) in state.answers.iter().enumerate() {
        let at = at as u32;
        lines.push((13 + at, bold(format!("{question}?"))));
        let broken = wrapped(answer, 2, Some(width.max(4)));
        for (row, line) in broken.lines().enumerate() {
            lines.push((14 + at + 6 * row as u32, Line::from(format!("  {}", line.trim_start()))));
        }
    }
    if lines.is_empty() {
        lines.push((40, Line::from("The answers stand here once a load was held.")));
    }
    lines
}

fn of_details(state: &State) -> Vec<Ranked> {
    let details = state.running.iter().flat_map(|running| &running.details);
    let mut lines: Vec<Ranked> =
        details.map(|(name, value)| (12, Line::from(format!("{name:<13}  {value}")))).collect();
    lines.extend(state.sentences.iter().map(|sentence| (40, Line::from(format!("- {sentence}")))));
    if lines.is_empty() {
        lines.push((12, Line::from("The figures of each second stand here while a load is held.")));
    }
    lines
}

fn help(width: usize) -> Vec<Ranked> {
    let keys = [
        ("p", "pause after this load; p again goes on"),
        ("q", "stop now, and judge what was held; a second q ends at once"),
        ("+", "hold the next loads longer, each time by as much as planned"),
        ("d", "the figures of the last second in place of the answers, or back"),
        ("?", "this help, or back"),
    ];
    let mut lines = vec![(0, bold("Keys".to_owned()))];
    for (key, does) in keys {
        for (row, line) in wrapped(does, 4, Some(width.max(8))).lines().enumerate() {
            let key = if row == 0 { key } else { "" };
            lines.push((1 + row as u32, Line::from(format!("  {key:<2}{}", line.trim_start()))));
        }
    }
    let more = "No key ends a single hold: one that is cut short has no verdict. A bar of a sparkline is a second; up to \
                the middle it is below the limit, above the middle beyond it.";
    for line in wrapped(more, 2, Some(width.max(8))).lines() {
        lines.push((9, Line::from(format!("  {}", line.trim_start()))));
    }
    lines.push((0, Line::from("? back")));
    lines
}

fn keys(look: Look, width: usize) -> Line<'static> {
    let pause = if look.pauses { "p go on" } else { "p pause" };
    let longer = match look.times_as_long {
        0 | 1 => "+ longer".to_owned(),
        times => format!("+ longer (now ×{times})"),
    };
    let details = if look.has_details { "d answers" } else { "d details" };
    let all = [pause, "q stop", &longer, details, "? help"];
    let whole = all.join(" · ");
    // A narrow terminal has the keys alone.
    if whole.chars().count() <= width { Line::from(whole) } else { Line::from("p q + d ?") }
}

fn colour(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Pass => Color::Green,
        Verdict::Fail => Color::Red,
        Verdict::GeneratorLimited | Verdict::Inconclusive => Color::Yellow,
        Verdict::Invalid => Color::Magenta,
    }
}

fn bold_style() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn bold(text: String) -> Line<'static> {
    Line::from(Span::styled(text, bold_style()))
}

fn without_colours(mut line: Line<'static>) -> Line<'static> {
    for span in &mut line.spans {
        span.style.fg = None;
    }
    line
}

/// `1:05`, `12 s`
fn length(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests;
