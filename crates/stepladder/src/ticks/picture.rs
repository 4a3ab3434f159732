//! Tick logs drawn with block characters: the classes, the distribution of intervals, the seconds.
//!
//! All logs share one scale, and logs of different tick rates never share a chart. A nonzero bar is always visible.
//! Colours only repeat what the marks show, so nothing is lost without them.

use std::io::{self, Write};

use measure::{TickClasses, TickCounts};

use super::Log;
use super::figures::abreast;
use super::ink::{Class, Ink, fitted, percent};

/// Late share from which on a log counts as bad: the arena's default objective.
const BAD_LATE_SHARE: f64 = 0.25;
const MOST_ROWS: u64 = 22;
/// A tail that holds less than this of every log's ticks is folded into one row.
const FOLDED_SHARE: f64 = 0.01;
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns before the bars: the bracket around the band on time, and the ms.
const ROW_LABEL_WIDTH: usize = 7;

/// One line per log: its late share, and its ticks by class over the rest of the line.
pub(super) fn late_shares(logs: &[&Log], out: &mut impl Write, width: usize, ink: Ink) -> io::Result<()> {
    let names = label_width(logs, width);
    let bar_width = width.saturating_sub(names + 17).max(10);
    for log in logs {
        let counts = log.summary.counts();
        let share = counts.late_share().unwrap_or(0.0);
        let text = format!("{:>7} late", percent(share));
        let text = if share < BAD_LATE_SHARE { ink.good(&text) } else { ink.bad(&text) };
        writeln!(
            out,
            "{}  {text}  {}",
            ink.bold(&fitted(&log.label, names)),
            class_bar(&counts, bar_width, ink)
        )?;
    }
    let legend: Vec<(char, String, Class)> = CLASSES
        .iter()
        .filter(|(class, _, _)| {
            *class != Class::Missed || logs.iter().any(|log| log.summary.counts().missed > 0)
        })
        .map(|&(class, mark, name)| {
            let bounds = match common_classes(logs) {
                Some(classes) => bounds(class, classes),
                None => String::new(),
            };
            (mark, format!(" {name}{bounds}"), class)
        })
        .collect();
    // Below the bars, or further left if it would exceed the line.
    let legend_width: usize = legend.iter().map(|(_, text, _)| 3 + text.chars().count()).sum();
    let indent = (names + 16).min((width + 2).saturating_sub(legend_width));
    let legend: Vec<String> = legend
        .iter()
        .map(|(mark, text, class)| ink.class(*class, &mark.to_string()) + &ink.dim(text))
        .collect();
    writeln!(out, "{}{}", " ".repeat(indent), legend.join("  "))
}

const CLASSES: [(Class, char, &str); 4] = [
    (Class::OnTime, '█', "on time"),
    (Class::Over, '▓', "over"),
    (Class::Under, '▒', "under"),
    (Class::Missed, '░', "missed"),
];

fn bounds(class: Class, classes: TickClasses) -> String {
    match class {
        Class::OnTime => format!(" {}–{} ms", classes.from_ms, classes.to_ms),
        Class::Over => format!(" ≥{}", classes.to_ms + 1),
        Class::Under if classes.from_ms > 0 => format!(" ≤{}", classes.from_ms - 1),
        Class::Under | Class::Missed => String::new(),
    }
}

/// The classes of all logs where they have the same.
fn common_classes(logs: &[&Log]) -> Option<TickClasses> {
    let first = logs.first()?.summary.classes();
    logs.iter().all(|log| log.summary.classes() == first).then_some(first)
}

fn class_bar(counts: &TickCounts, width: usize, ink: Ink) -> String {
    let parts = [counts.on_time, counts.over, counts.under, counts.missed];
    let (mut bar, mut before, mut sum) = (String::new(), 0, 0);
    for ((class, mark, _), part) in CLASSES.iter().zip(parts) {
        // Boundaries are rounded, not lengths, so the bar has its exact width.
        sum += part;
        let end = (sum as f64 / counts.due.max(1) as f64 * width as f64).round() as usize;
        bar += &ink.class(*class, &mark.to_string().repeat(end.saturating_sub(before)));
        before = end.max(before);
    }
    bar
}

/// The distributions, as many side by side as fit.
pub(super) fn distributions(logs: &[&Log], out: &mut impl Write, width: usize, ink: Ink) -> io::Result<()> {
    let mut by_rate: Vec<(TickClasses, Vec<&Log>)> = Vec::new();
    for log in logs.iter().filter(|log| !log.summary.histogram.is_empty()) {
        let classes = log.summary.classes();
        match by_rate.iter_mut().find(|(known, _)| *known == classes) {
            Some((_, same)) => same.push(log),
            None => by_rate.push((classes, vec![log])),
        }
    }
    for (classes, same) in by_rate {
        let rows = rows(&same, classes);
        let largest = same
            .iter()
            .flat_map(|log| rows.iter().map(|row| row.share(log)))
            .fold(f64::MIN_POSITIVE, f64::max);
        for page in same.chunks(abreast(width)) {
            distribution(page, classes, &rows, largest, out, width, ink)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn distribution(
    logs: &[&Log],
    classes: TickClasses,
    rows: &[Row],
    largest: f64,
    out: &mut impl Write,
    width: usize,
    ink: Ink,
) -> io::Result<()> {
    let column = width.saturating_sub(ROW_LABEL_WIDTH) / logs.len();
    // A mark, the bar, the percentage, and a gap to the next column.
    let bar_width = column.saturating_sub(1 + 8 + 2).clamp(4, 100);
    write!(out, "{}", ink.dim(&format!("{:>width$}", "ms", width = ROW_LABEL_WIDTH - 1)))?;
    for (index, log) in logs.iter().enumerate() {
        let is_last = index + 1 == logs.len();
        let name = fitted(&log.label, column - 2);
        write!(out, " {}", ink.bold(if is_last { name.trim_end() } else { &name }))?;
        if !is_last {
            write!(out, " ")?;
        }
    }
    writeln!(out)?;
    for row in rows {
        let bracket = match (row.class == Class::OnTime, row.from_ms) {
            (true, ms) if ms == classes.from_ms => "╭",
            (true, ms) if ms == classes.to_ms => "╰",
            (true, _) => "│",
            (false, _) => " ",
        };
        let mut line = ink.class(Class::OnTime, bracket);
        line += &format!("{:>width$} ", row.label(), width = ROW_LABEL_WIDTH - 2);
        for (index, log) in logs.iter().enumerate() {
            let share = row.share(log);
            let mark = if row.class == Class::OnTime { "┃" } else { "│" };
            let bar = bar(share / largest, bar_width);
            let text = if share > 0.0 { percent(share) } else { String::new() };
            let used = 1 + bar.chars().count() + 1 + text.chars().count();
            line += &ink.class(row.class, mark);
            line += &ink.class(row.class, &bar);
            line.push(' ');
            line += &ink.dim(&text);
            if index + 1 < logs.len() {
                line += &" ".repeat(column.saturating_sub(used));
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A row of the distribution: the intervals from … to …, both inclusive.
#[derive(Clone, Copy, Debug)]
struct Row {
    from_ms: u64,
    to_ms: u64,
    class: Class,
}

impl Row {
    fn label(&self) -> String {
        if self.to_ms == u64::MAX {
            format!("≥{}", self.from_ms)
        } else if self.from_ms == self.to_ms {
            self.from_ms.to_string()
        } else {
            format!("{}–{}", self.from_ms, self.to_ms)
        }
    }

    fn share(&self, log: &Log) -> f64 {
        let ticks: u64 = log.summary.histogram.range(self.from_ms..=self.to_ms).map(|(_, count)| count).sum();
        ticks as f64 / log.summary.tick_count().max(1) as f64
    }
}

/// One row per ms where the ticks are, the tails folded. 0 ms is never folded: it is the mark of a ticker that
/// catches up.
fn rows(logs: &[&Log], classes: TickClasses) -> Vec<Row> {
    let (mut from_ms, mut to_ms) = (classes.from_ms.saturating_sub(2), classes.to_ms + 2);
    for log in logs {
        let folded = (log.summary.tick_count() as f64 * FOLDED_SHARE) as u64;
        from_ms = from_ms.min(edge(log.summary.histogram.iter(), folded).unwrap_or(from_ms));
        to_ms = to_ms.max(edge(log.summary.histogram.iter().rev(), folded).unwrap_or(to_ms));
    }
    // If there are more rows than fit, the on-time band keeps a third of the rows below it.
    from_ms = from_ms.max(classes.from_ms.saturating_sub(MOST_ROWS / 3));
    to_ms = to_ms.min(from_ms + MOST_ROWS - 1).max(classes.to_ms);
    // Rows that are empty in every log, between the band and a far tail, carry no information.
    let is_empty =
        |ms: u64| logs.iter().all(|log| log.summary.histogram.get(&ms).is_none_or(|&count| count == 0));
    while to_ms > classes.to_ms + 2 && is_empty(to_ms) {
        to_ms -= 1;
    }
    while from_ms + 2 < classes.from_ms && is_empty(from_ms) {
        from_ms += 1;
    }
    let class = |ms: u64| {
        if ms < classes.from_ms {
            Class::Under
        } else if ms > classes.to_ms {
            Class::Over
        } else {
            Class::OnTime
        }
    };
    let mut rows = Vec::new();
    if from_ms > 0 {
        rows.push(Row { from_ms: 0, to_ms: 0, class: class(0) });
    }
    if from_ms > 1 {
        rows.push(Row { from_ms: 1, to_ms: from_ms - 1, class: class(1) });
    }
    rows.extend((from_ms..=to_ms).map(|ms| Row { from_ms: ms, to_ms: ms, class: class(ms) }));
    rows.push(Row { from_ms: to_ms + 1, to_ms: u64::MAX, class: Class::Over });
    let has_ticks = |row: &Row| logs.iter().any(|log| row.share(log) > 0.0);
    let is_tail = |row: &Row| row.from_ms < from_ms || row.from_ms > to_ms;
    rows.retain(|row| !is_tail(row) || has_ticks(row));
    rows
}

/// Where one walks over more than `folded` ticks.
fn edge<'a>(histogram: impl Iterator<Item = (&'a u64, &'a u64)>, folded: u64) -> Option<u64> {
    let mut seen = 0;
    histogram.into_iter().find_map(|(&ms, &count)| {
        seen += count;
        (seen > folded).then_some(ms)
    })
}

/// A bar of `share` (in [0, 1]) of `width` columns, to an eighth of a column.
fn bar(share: f64, width: usize) -> String {
    if share <= 0.0 {
        return String::new();
    }
    let eighths = ((share.min(1.0) * (width * 8) as f64).round() as usize).max(1);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Late share over time, one line per log: a ramp, a stall, a drift are seen here and in no sum.
pub(super) fn seconds(logs: &[&Log], out: &mut impl Write, width: usize, ink: Ink) -> io::Result<()> {
    let names = label_width(logs, width);
    let cells = width.saturating_sub(names + 2).max(10);
    let longest = logs.iter().map(|log| log.seconds.len()).max().unwrap_or(0);
    if longest < 2 {
        return Ok(());
    }
    let per_cell = longest.div_ceil(cells);
    let step = if per_cell == 1 { "second by second".to_owned() } else { format!("every {per_cell} s") };
    writeln!(out, "{}", ink.dim(&format!("late share {step}, from 0 (▁) to 100 % (█)")))?;
    for log in logs {
        let mut line = String::new();
        for part in log.seconds.chunks(per_cell) {
            let mut counts = TickCounts::default();
            part.iter().for_each(|second| counts.add(second));
            match counts.late_share() {
                None => line.push(' '),
                Some(share) => {
                    let level = LEVELS[((share * 8.0) as usize).min(7)].to_string();
                    let class = if share < BAD_LATE_SHARE { Class::OnTime } else { Class::Over };
                    line += &ink.class(class, &level);
                }
            }
        }
        writeln!(out, "{}  {}", fitted(&log.label, names), line.trim_end())?;
    }
    Ok(())
}

fn label_width(logs: &[&Log], width: usize) -> usize {
    logs.iter().map(|log| log.label.chars().count()).max().unwrap_or(0).min(width / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_that_is_there_at_all_is_drawn() {
        assert_eq!((bar(0.0, 10), bar(1e-9, 10).as_str()), (String::new(), "▏"));
        assert_eq!((bar(1.0, 3).as_str(), bar(0.5, 3).as_str()), ("███", "█▌"));
        assert_eq!(bar(7.0, 2), "██", "a share beyond the scale does not leave its column");
    }

    #[test]
    fn the_bar_of_the_classes_is_as_wide_as_it_should_be() {
        let ink = Ink { colour: false };
        for (on_time, over, under) in [(1, 1, 1), (999, 1, 0), (0, 0, 7), (333, 333, 334)] {
            let counts = TickCounts { due: on_time + over + under, on_time, over, under, missed: 0 };
            assert_eq!(class_bar(&counts, 31, ink).chars().count(), 31);
        }
    }
}
