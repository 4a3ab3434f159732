//! The first operations of a run as bars in lanes: the end of each starts the next.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use inflight_analysis::{Cell, Report, Run};
use serde_json::Value;

/// One operation, ns since the measured part began.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bar {
    start_ns: u64,
    end_ns: u64,
}

/// The operations of a line `timeline`. Errors: it is not of the format.
fn bars(line: &Value) -> anyhow::Result<Vec<Bar>> {
    let operations = line["operations"].as_array().context("its timeline has no \"operations\"")?;
    let bar = |pair: &Value| {
        let bar = Bar { start_ns: pair[0].as_u64()?, end_ns: pair[1].as_u64()? };
        (bar.start_ns <= bar.end_ns).then_some(bar)
    };
    operations
        .iter()
        .map(bar)
        .collect::<Option<Vec<Bar>>>()
        .context("an operation of its timeline is no pair of times")
}

/// The lane of each bar: an operation takes that of the one that ended last before it began, or a new one.
fn lanes(bars: &[Bar]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..bars.len()).collect();
    order.sort_by_key(|at| (bars[*at].start_ns, *at));
    let mut ends: Vec<u64> = Vec::new();
    let mut lanes = vec![0; bars.len()];
    for at in order {
        let free = ends.iter().enumerate().filter(|(_, end)| **end <= bars[at].start_ns);
        let lane = free.max_by_key(|(lane, end)| (**end, std::cmp::Reverse(*lane))).map(|(lane, _)| lane);
        lanes[at] = lane.unwrap_or(ends.len());
        match lane {
            Some(lane) => ends[lane] = bars[at].end_ns,
            None => ends.push(bars[at].end_ns),
        }
    }
    lanes
}

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 44.0;
const LANE: f64 = 12.0;
/// Lines of the time axis, at most.
const TICKS: f64 = 10.0;

/// The picture. No script, nothing from elsewhere.
fn svg(title: &str, bars: &[Bar]) -> String {
    let lanes = lanes(bars);
    let count = lanes.iter().max().map_or(0, |most| most + 1);
    let to_ns = bars.iter().map(|bar| bar.end_ns).max().unwrap_or(1).max(1);
    let x = |ns: u64| MARGIN + ns as f64 / to_ns as f64 * (WIDTH - 2.0 * MARGIN);
    let (top, bottom) = (MARGIN, MARGIN + count as f64 * LANE);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{MARGIN}\" y=\"18\" \
         font-size=\"13\">{}</text>\n",
        escaped(title),
        height = bottom + MARGIN,
    );
    let step = step_ns(to_ns);
    for ns in (0..=to_ns).step_by(step as usize) {
        let (x, label) = (x(ns), ns as f64 / 1e6);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\" fill=\"#555\">{label} ms</text>",
            bottom + 16.0
        );
    }
    for (at, bar) in bars.iter().enumerate() {
        let (from, to) = (x(bar.start_ns), x(bar.end_ns));
        let _ = writeln!(
            out,
            "<rect x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\" rx=\"1\" fill=\"{}\"><title>operation {at}: \
             from {:.3} ms, for {:.3} ms</title></rect>",
            top + lanes[at] as f64 * LANE + 1.0,
            (to - from).max(0.5),
            LANE - 2.0,
            ["#3b6ea8", "#7fa7d1"][at % 2],
            bar.start_ns as f64 / 1e6,
            (bar.end_ns - bar.start_ns) as f64 / 1e6,
        );
    }
    out + "</svg>\n"
}

/// 1, 2 or 5 times a power of ten.
fn step_ns(to_ns: u64) -> u64 {
    let least = to_ns as f64 / TICKS;
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least);
    (step.unwrap_or(least) as u64).max(1)
}

fn escaped(text: &str) -> String {
    let clean: String = text.chars().filter(|letter| !letter.is_control()).collect();
    clean.replace('&', "&amp;").replace('<', "&lt;")
}

/// The first run that has a timeline, and what it is of.
fn first(report: &Report) -> Option<(&Cell, &Run, &Value)> {
    report.cells.iter().find_map(|cell| cell.runs().find_map(|run| Some((cell, run, run.timeline.as_ref()?))))
}

/// Whether any run has one.
pub fn is_in(report: &Report) -> bool {
    first(report).is_some()
}

/// Draws where `--timeline` says. Errors: no client wrote a timeline, it cannot be read, or the file not be written.
pub fn write(report: &Report, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let (cell, run, line) = first(report)
        .with_context(|| format!("--timeline {}: no client wrote a line \"timeline\"", path.display()))?;
    let bars = bars(line).with_context(|| format!("client {}", cell.client))?;
    let title =
        format!("{} ({}): {}, the first {} operations", cell.client, run.client, cell.key, bars.len());
    std::fs::write(path, svg(&title, &bars))
        .with_context(|| format!("--timeline {}: cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bar(start_ns: u64, end_ns: u64) -> Bar {
        Bar { start_ns, end_ns }
    }

    #[test]
    fn an_operation_takes_the_lane_of_the_one_that_ended_last() {
        // Two in flight: 2 follows 1, 3 follows 0, 4 follows 3.
        let planted = [bar(0, 50), bar(0, 30), bar(31, 90), bar(51, 60), bar(61, 99)];
        assert_eq!(lanes(&planted), [0, 1, 1, 0, 0]);
        assert_eq!(lanes(&[]), [0; 0]);
    }

    #[test]
    fn a_closed_loop_never_takes_more_lanes_than_are_in_flight() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut free = [0u64; 7];
        let mut bars = Vec::new();
        for _ in 0..200 {
            let at = (0..free.len()).min_by_key(|at| free[*at]).unwrap();
            let end_ns = free[at] + random.u64(100..10_000);
            bars.push(bar(free[at], end_ns));
            free[at] = end_ns;
        }
        assert_eq!(lanes(&bars).into_iter().max(), Some(6));
    }

    #[test]
    fn the_picture_holds_every_operation_and_nothing_that_runs() {
        let line = json!({"type": "timeline", "operations": [[0, 1_500_000], [10, 2_000_000]]});
        let drawn = svg("a <script> & more", &bars(&line).unwrap());
        assert_eq!(drawn.matches("<title>").count(), 2);
        assert!(drawn.contains("operation 0: from 0.000 ms, for 1.500 ms"), "{drawn}");
        assert!(!drawn.contains("<script") && !drawn.contains("href"), "{drawn}");
        assert!(bars(&json!({"operations": [[5, 3]]})).is_err());
    }

    #[test]
    fn the_time_axis_has_round_steps() {
        let check = |to_ns, expected| assert_eq!(step_ns(to_ns), expected);
        check(10_000_000, 1_000_000);
        check(12_000_000, 2_000_000);
        check(49_000, 5000);
        check(1, 1);
    }
}
