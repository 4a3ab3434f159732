//! What keys do: the line at the bottom of a frame, and the help.

use console::layout::wrapped;
use ratatui::text::Line;

use super::{Look, Ranked, bold};

/// Keys while a climb goes on, and what they do.
const KEYS: &[(&str, &str)] = &[
    ("p", "pause after this load; p again goes on"),
    ("q", "stop now, and judge what was held; a second q ends at once"),
    ("+", "hold the next loads longer, each time by as much as planned"),
    ("d", "the figures of the last second in place of the answers, or back"),
    ("?", "this help, or back"),
];
/// Keys of stored runs.
const KEYS_OF_STORED: &[(&str, &str)] = &[
    ("↑ ↓", "the load, or the run, above or below; j and k do the same"),
    ("↵", "open the run"),
    ("d", "the figures of the load's hold in place of the answers, or back"),
    ("q", "back, or leave"),
    ("?", "this help, or back"),
];

pub(crate) fn help(is_stored: bool, width: usize) -> Vec<Ranked> {
    let keys = if is_stored { KEYS_OF_STORED } else { KEYS };
    let mut lines = vec![(0, bold("Keys".to_owned()))];
    for (key, does) in keys {
        for (row, line) in wrapped(does, 6, Some(width.max(10))).lines().enumerate() {
            let key = if row == 0 { *key } else { "" };
            lines.push((1 + row as u32, Line::from(format!("  {key:<4}{}", line.trim_start()))));
        }
    }
    let more = if is_stored {
        "A bar of a sparkline is a second, or the worst of several; up to the middle it is below the limit, above the middle \
         beyond it."
    } else {
        "No key ends a single hold: one that is cut short has no verdict. A bar of a sparkline is a second; up to \
         the middle it is below the limit, above the middle beyond it."
    };
    for line in wrapped(more, 2, Some(width.max(8))).lines() {
        lines.push((9, Line::from(format!("  {}", line.trim_start()))));
    }
    lines.push((0, Line::from("? back")));
    lines
}

pub(super) fn of_stored(look: Look, width: usize) -> Line<'static> {
    let details = if look.has_details { "d answers" } else { "d details" };
    whole_or("↑ ↓ load", &[details, "q back", "? help"], "↑ ↓ d q ?", width)
}

/// A narrow terminal has the keys alone.
pub(crate) fn whole_or(first: &str, rest: &[&str], keys: &'static str, width: usize) -> Line<'static> {
    let whole = [&[first], rest].concat().join(" · ");
    if whole.chars().count() <= width { Line::from(whole) } else { Line::from(keys) }
}

pub(super) fn of_climb(look: Look, width: usize) -> Line<'static> {
    let pause = if look.pauses { "p go on" } else { "p pause" };
    let longer = match look.times_as_long {
        0 | 1 => "+ longer".to_owned(),
        times => format!("+ longer (now ×{times})"),
    };
    let details = if look.has_details { "d answers" } else { "d details" };
    whole_or(pause, &["q stop", &longer, details, "? help"], "p q + d ?", width)
}
