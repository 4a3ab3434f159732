//! `stepladder ticks FILE…`: tick logs in the terminal, one or several side by side, and as JSON.
//!
//! The late share comes first and large, then the figures, then the distribution of intervals on one scale for all
//! files, so that they compare at a glance. Faults in a log (unreadable lines, two runs in one file, counters and
//! histogram that contradict each other) are reported below its figures and never silently repaired.
//! Not here: what a line means (`measure::ticklog`).

mod contract;
mod figures;
mod ink;
mod picture;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use climb::outputs::write_whole;
use console::exit::Exit;
use console::layout::grouped;
use measure::TickCounts;
use measure::ticklog::{Disagreement, TickForm, TickLogReader, TickLogSummary};
use plan::units::tick_file;
use watch::files::{self, Accepts};

use ink::Ink;

/// The options of `ticks`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// tick logs; never empty
    pub files: Vec<PathBuf>,
    /// where the figures go as JSON; `-`: to `out`, in place of the picture
    pub json: Option<PathBuf>,
    /// rate of files that do not tell theirs, Hz, > 0
    pub tick_rate_hz: Option<f64>,
}

/// One log, read to its end.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// short name, different for each log shown
    label: String,
    summary: TickLogSummary,
    seconds: Vec<TickCounts>,
}

const NARROWEST: usize = 60;
const WIDEST: usize = 160;

/// Shows the logs on `out`, `width` columns wide. Returns the exit code: 0, 2 when no log tells of any tick, 3 when a
/// file could not be read (the others were shown).
pub fn run(options: &Options, out: &mut impl Write, width: usize, colour: bool) -> anyhow::Result<Exit> {
    let (mut logs, mut unreadable) = (Vec::new(), Vec::new());
    for path in &options.files {
        match read(path, options.tick_rate_hz) {
            Ok(log) => logs.push(log),
            Err(error) => unreadable.push((path, error)),
        }
    }
    name_apart(&mut logs);
    let to_out = options.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", contract::of(&logs, &unreadable));
        if to_out {
            out.write_all(text.as_bytes()).or_else(enough)?;
        } else {
            write_whole(path, |out| Ok(out.write_all(text.as_bytes())?))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if !to_out {
        show(&logs, &unreadable, out, width.clamp(NARROWEST, WIDEST), Ink { colour }).or_else(enough)?;
    }
    Ok(if !unreadable.is_empty() {
        Exit::WrongUsage
    } else if logs.iter().all(|log| log.summary.has_no_ticks()) {
        Exit::NotMeasured
    } else {
        Exit::Met
    })
}

fn read(word: &Path, tick_rate_hz: Option<f64>) -> io::Result<Log> {
    // A path that is no text is a plain one.
    let (form, path) = word.to_str().map_or((TickForm::Seconds, word.to_owned()), tick_file);
    // A device may be endless.
    let mut file = files::open(&path, Accepts::FilesAndPipes)?;
    let mut reader = TickLogReader::of(form, tick_rate_hz).without_distributions();
    let mut seconds = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => reader.push(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // Taken incrementally: their histograms would fill the memory for a day-long log.
        seconds.extend(reader.take_seconds().into_iter().map(|second| second.counts));
    }
    reader.finish();
    seconds.extend(reader.take_seconds().into_iter().map(|second| second.counts));
    Ok(Log { path, label: String::new(), summary: reader.summary().clone(), seconds })
}

/// Labels are file names, with as many folders before them as it takes to tell each from all others.
fn name_apart(logs: &mut [Log]) {
    let label = |path: &Path, depth: usize| {
        let parts: Vec<_> = path.iter().rev().take(depth).collect();
        clean(&parts.into_iter().rev().collect::<PathBuf>())
    };
    for index in 0..logs.len() {
        let path = logs[index].path.clone();
        let is_alone = |depth: usize| {
            let others = logs.iter().enumerate().filter(|&(other, _)| other != index);
            others.into_iter().all(|(_, other)| label(&other.path, depth) != label(&path, depth))
        };
        let most = path.iter().count();
        let depth = (1..most).find(|&depth| is_alone(depth)).unwrap_or(most);
        logs[index].label = label(&path, depth);
    }
}

/// Who reads through a pipe may close it when he has seen enough.
fn enough(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

fn show(
    logs: &[Log],
    unreadable: &[(&PathBuf, io::Error)],
    out: &mut impl Write,
    width: usize,
    ink: Ink,
) -> io::Result<()> {
    let (with_ticks, without): (Vec<&Log>, Vec<&Log>) =
        logs.iter().partition(|log| !log.summary.has_no_ticks());
    if !with_ticks.is_empty() {
        writeln!(out)?;
        picture::late_shares(&with_ticks, out, width, ink)?;
        writeln!(out)?;
        figures::table(&with_ticks, out, width, ink)?;
        picture::distributions(&with_ticks, out, width, ink)?;
        picture::seconds(&with_ticks, out, width, ink)?;
    }
    for log in &without {
        let summary = &log.summary;
        let what = match (summary.lines, summary.malformed) {
            (0, _) => "it is empty".to_owned(),
            (lines, malformed) if lines == malformed => {
                "none of its lines is one of a tick log (of a file with a line per tick: jsonl=FILE, csv=FILE)".to_owned()
            }
            (lines, _) => format!("none of its lines ({}) is about ticks", grouped(lines)),
        };
        say(out, &ink.bad("!"), &format!("{} tells of no ticks: {what}", log.label), width)?;
    }
    for log in logs {
        for warning in warnings(&log.summary) {
            say(out, &ink.bad("!"), &format!("{}: {}", log.label, plain(warning)), width)?;
        }
    }
    for (path, error) in unreadable {
        let text = format!("cannot read {} ({}); give the path of a tick log", clean(path), plain(error));
        say(out, &ink.bad("✗"), &text, width)?;
    }
    Ok(())
}

/// A paragraph after a mark, wrapped at words.
fn say(out: &mut impl Write, mark: &str, text: &str, width: usize) -> io::Result<()> {
    let (mut line, mut lines) = (String::new(), Vec::new());
    for word in text.split(' ') {
        if !line.is_empty() && 2 + line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    writeln!(out, "\n{mark} {}", lines.join("\n  "))
}

/// What keeps the figures from being the whole truth, each with what to do.
fn warnings(summary: &TickLogSummary) -> Vec<String> {
    let mut warnings = Vec::new();
    let and_more = |count: u64, shown: usize| match count - shown as u64 {
        0 => String::new(),
        more => format!(" and {} more", grouped(more)),
    };
    if summary.mixed_runs > 0 {
        let places: Vec<String> = summary
            .mixed_examples
            .iter()
            .map(|mixed| format!("from line {} on: {}", mixed.line, mixed.reason))
            .collect();
        let more = and_more(summary.mixed_runs, places.len());
        warnings.push(format!(
            "holds more than one run ({}{more}); its sums describe neither, so give each run a file of its own",
            places.join("; ")
        ));
    }
    if summary.malformed > 0 {
        let places: Vec<String> = summary
            .malformed_examples
            .iter()
            .map(|malformed| format!("line {}: {}", malformed.line, malformed.reason))
            .collect();
        let more = and_more(summary.malformed, places.len());
        let count = match summary.malformed {
            1 => "1 line".to_owned(),
            count => format!("{} lines", grouped(count)),
        };
        warnings.push(format!("{count} could not be read and are left out ({}{more})", places.join("; ")));
    }
    if let Some(disagreement) = summary.disagreement() {
        warnings.push(contradiction(&disagreement));
    }
    warnings
}

fn contradiction(of: &Disagreement) -> String {
    let (counted, histogram) = (&of.counted, &of.histogram);
    let differences: Vec<String> = [
        ("on time", counted.on_time, histogram.on_time),
        ("over", counted.over, histogram.over),
        ("under", counted.under, histogram.under),
        ("in all", counted.due, histogram.due),
    ]
    .iter()
    .filter(|(_, counted, histogram)| counted != histogram)
    .map(|(class, counted, histogram)| format!("{class} {} and {}", grouped(*counted), grouped(*histogram)))
    .collect();
    format!(
        "its counters and its histogram contradict each other ({}); classes and late share are the counters', the \
         distribution is the histogram's",
        differences.join(", ")
    )
}

/// A path for people. File names and log texts are not ours: what would steer a terminal is left out.
fn clean(path: &Path) -> String {
    plain(path.display())
}

fn plain(text: impl ToString) -> String {
    text.to_string().chars().filter(|c| !c.is_control()).collect()
}
