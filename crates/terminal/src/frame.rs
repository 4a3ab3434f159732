//! The frame that shows a state, for a terminal of any size.
//!
//! Every line has a rank: where a terminal has too few lines, those that tell least are left out. Nothing is told by a colour
//! alone.

mod keys;

use console::layout::wrapped;
use ladder::Verdict;
use ladder::objective::Op;
use measure::Purpose;
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::state::{Place, Running, State, Track};

pub(crate) use keys::{help, whole_or};

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

impl Look {
    /// As the user's environment asks for.
    pub(crate) fn of_user() -> Look {
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        Look { has_colours, ..Look::default() }
    }
}

/// Draws a state over the whole frame.
pub fn draw(frame: &mut Frame<'_>, state: &State, look: Look) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let is_stored = state.looked_at.is_some();
    let ranked = if look.has_help { help(is_stored, width) } else { lines(state, look, width) };
    put(frame, ranked, look);
}

/// Writes the lines that tell most, as many as there is room for.
pub(crate) fn put(frame: &mut Frame<'_>, mut ranked: Vec<Ranked>, look: Look) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
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

pub(crate) type Ranked = (u32, Line<'static>);

fn lines(state: &State, look: Look, width: usize) -> Vec<Ranked> {
    let mut lines = vec![(0, header(state, width)), (90, Line::default())];
    match &state.running {
        Some(running) => lines.extend(match state.looked_at.and_then(|at| state.held.get(at)) {
            Some(held) => of_stored(running, held, width),
            None => of_running(running, width),
        }),
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
    lines.push((
        4,
        if state.looked_at.is_some() { keys::of_stored(look, width) } else { keys::of_climb(look, width) },
    ));
    lines
}

fn header(state: &State, width: usize) -> Line<'static> {
    let judged = state.held.len();
    let loads = if state.knows_all() {
        format!("{judged} of {} held", judged + state.planned.len() + usize::from(state.next.is_some()))
    } else {
        format!("{judged} held")
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
    let mut place = vec![format!("{} {}", head.purpose, Place::of(head).text())];
    place.push(match now.left_s {
        Some(left_s) => format!("{} · {} left", now.phase, length(left_s)),
        None => now.phase.to_owned(),
    });
    place.push(connected);
    place.extend((now.failed > 0).then(|| format!("{} attempts failed", now.failed)));
    let mut lines = vec![(1, bold(place.join(" · ")))];
    lines.extend(figures(running, width, false));
    lines
}

/// The load of a stored climb that is looked at.
fn of_stored(running: &Running, held: &(Place, Verdict, String), width: usize) -> Vec<Ranked> {
    let (place, verdict, words) = held;
    let place = Span::styled(format!("{} · ", place.text()), bold_style());
    let verdict = Span::styled(verdict.name(), bold_style().fg(colour(*verdict)));
    let mut lines = vec![(1, Line::from(vec![place, verdict]))];
    let words = wrapped(words.trim_start(), 2, Some(width.max(4)));
    lines.extend(
        words
            .lines()
            .enumerate()
            .map(|(row, line)| (2 + 6 * row as u32, Line::from(format!("  {}", line.trim_start())))),
    );
    lines.extend(figures(running, width, true));
    lines
}

/// The objectives and other figures of a load: of its whole hold if `is_whole`, otherwise of the newest seconds.
fn figures(running: &Running, width: usize, is_whole: bool) -> Vec<Ranked> {
    let mut lines = Vec::new();
    let tracks = running.tracks.iter().filter(|track| track.newest.is_some() || !track.values.is_empty());
    let of_objectives = tracks.clone().map(|track| track.objective.to_string().chars().count()).max();
    let name_width = of_objectives.unwrap_or(0).min(OBJECTIVE_MOST).min(width / 2);
    lines.extend(
        tracks.enumerate().map(|(at, track)| (2 + at as u32, of_track(track, is_whole, name_width, width))),
    );
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
    about(9, "marked", &running.marked);
    match &running.disturbed_by {
        Some(by) => about(8, "disturbed", by),
        None if !running.generator.is_empty() => {
            about(32, "disturbed", if is_whole { "by nothing" } else { "by nothing in the last second" });
        }
        None => {}
    }
    lines
}

/// `ticks.late_share < 25%  ▁▁▂▃▁▁  3.2 %`
fn of_track(track: &Track, is_whole: bool, name_width: usize, width: usize) -> Line<'static> {
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
        spans.push(Span::raw(format!("{}  ", sparkline(track, room.min(SPARK_MOST), is_whole))));
    }
    spans.push(Span::styled(value, paint));
    Line::from(spans)
}

/// The newest seconds as bars, or of a whole hold that has more than `width` the worst of each stretch: up to the middle they are
/// within the limit, above it beyond; of a figure that must be large, below.
fn sparkline(track: &Track, width: usize, is_whole: bool) -> String {
    let bound = track.objective.bound();
    let middle = BARS.len() / 2;
    let op = track.objective.op();
    let must_be_large = matches!(op, Op::More | Op::AtLeast | Op::Unequal);
    let bar = |value: Option<f64>| {
        let Some(value) = value else { return NOT_STATED };
        let is_below = op.holds(value, bound) != must_be_large;
        let ratio = if bound == 0.0 { f64::from(u8::from(!is_below)) * 2.0 } else { (value / bound).abs() };
        // On the limit's own side, whatever rounding does to a value next to it.
        let height = (ratio * middle as f64) as usize;
        BARS[if is_below { height.min(middle - 1) } else { height.clamp(middle, BARS.len() - 1) }]
    };
    if is_whole {
        let worst = |stretch: &[Option<f64>]| {
            let stated = stretch.iter().copied().flatten();
            if must_be_large { stated.min_by(f64::total_cmp) } else { stated.max_by(f64::total_cmp) }
        };
        return track.values.chunks(track.values.len().div_ceil(width).max(1)).map(worst).map(bar).collect();
    }
    let from = track.values.len().saturating_sub(width);
    track.values.iter().skip(from).copied().map(bar).collect()
}

/// A row per load: held, running, planned. The rows next to the running one stay longest.
fn ladder(state: &State) -> Vec<Ranked> {
    const LEAST: u32 = 10;
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (at, (place, verdict, words)) in state.held.iter().enumerate() {
        let mark = if state.looked_at == Some(at) { '>' } else { ' ' };
        rows.push(Line::from(vec![
            Span::raw(format!("{mark} {:<20} ", place.text())),
            Span::styled(verdict.name(), Style::new().fg(colour(*verdict)).add_modifier(Modifier::BOLD)),
            Span::raw(format!("  {words}")),
        ]));
    }
    let at = state.looked_at.unwrap_or(rows.len());
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
        let so_far = state.so_far(question);
        let (at, answer) = (at as u32, so_far.as_ref().unwrap_or(answer));
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

fn colour(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Pass => Color::Green,
        Verdict::Fail => Color::Red,
        Verdict::GeneratorLimited | Verdict::Inconclusive => Color::Yellow,
        Verdict::Invalid => Color::Magenta,
    }
}

pub(crate) fn bold_style() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(crate) fn bold(text: String) -> Line<'static> {
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
pub(crate) mod tests;
