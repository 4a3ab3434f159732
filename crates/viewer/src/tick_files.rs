//! Tick logs: files from the command line, followed while they grow, and files that are dropped on the page.
//!
//! Only files named at the start are ever opened; dropped ones are parsed from memory and discarded.
//! A followed file is read on from its last position; one that was replaced or truncated is read from the start.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use measure::TickCounts;
use measure::ticklog::{LoggedSecond, TickLogReader, TickLogSummary};
use watch::TickLog;

use crate::api::{Series, TickFile};
use crate::archive::POINTS;
use crate::decimate::decimate;

/// The tick rate of a log that does not tell its own.
const ASSUMED_RATE_HZ: f64 = 60.0;

/// The files of the command line.
#[derive(Debug, Default)]
pub(crate) struct TickFiles {
    files: Vec<Followed>,
    /// grows whenever a file did
    revision: u64,
}

#[derive(Debug)]
struct Followed {
    path: PathBuf,
    name: String,
    log: Option<(TickLog, Seconds)>,
    error: Option<String>,
}

/// The seconds of a log, without their histograms, which would fill the memory of a long one; its sums have them.
#[derive(Debug, Default)]
struct Seconds(Vec<(u64, u64, TickCounts)>);

impl TickFiles {
    /// Those files and no others.
    pub fn new(paths: &[PathBuf]) -> Self {
        let files = paths.iter().enumerate().map(|(at, path)| Followed {
            path: path.clone(),
            name: named_apart(paths, at),
            log: None,
            error: None,
        });
        TickFiles { files: files.collect(), revision: 0 }
    }

    /// True when there is anything to follow.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads on. Returns a number that changes when a file did, whoever called it.
    pub fn read_on(&mut self) -> u64 {
        let changed = self.files.iter_mut().map(Followed::read_on).filter(|changed| *changed).count();
        self.revision += changed as u64;
        self.revision
    }

    /// All files as they stand.
    pub fn all(&self) -> Vec<TickFile> {
        self.files.iter().map(Followed::told).collect()
    }
}

impl Followed {
    fn read_on(&mut self) -> bool {
        let before = self.error.clone();
        match self.try_read_on() {
            Ok(changed) => {
                self.error = None;
                changed || before.is_some()
            }
            Err(error) => {
                self.log = None;
                self.error = Some(error.to_string());
                self.error != before
            }
        }
    }

    fn try_read_on(&mut self) -> std::io::Result<bool> {
        // `TickLog` waits for a missing file; the page reports that it is missing.
        std::fs::metadata(&self.path)?;
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let mut changed = false;
        // A log that replaces the one before is read at once, and a third one the next time.
        for _ in 0..2 {
            let (log, seconds) = self.log.get_or_insert_with(|| {
                (TickLog::from_begin(&self.path, ASSUMED_RATE_HZ), Seconds::default())
            });
            let read = |log: &TickLog, seconds: &Seconds| (log.summary().lines, seconds.0.len());
            let before = read(log, seconds);
            seconds.extend(log.poll(now_ms)?);
            changed |= read(log, seconds) != before;
            if log.take_notices().is_empty() {
                return Ok(changed);
            }
            // What was read is no longer in the file.
            (self.log, changed) = (None, true);
        }
        Ok(changed)
    }

    fn told(&self) -> TickFile {
        let error = self.error.clone();
        match &self.log {
            Some((log, seconds)) => TickFile { error, ..seconds.told(&self.name, log.summary()) },
            None => {
                let nothing = TickLogReader::new(ASSUMED_RATE_HZ);
                TickFile { error, ..Seconds::default().told(&self.name, nothing.summary()) }
            }
        }
    }
}

impl Seconds {
    fn extend(&mut self, seconds: Vec<LoggedSecond>) {
        self.0.extend(seconds.into_iter().map(|second| (second.from_ms, second.to_ms, second.counts)));
    }

    fn told(&self, name: &str, summary: &TickLogSummary) -> TickFile {
        TickFile {
            name: name.to_owned(),
            figures: summary.figures(),
            series: decimate(self.series(), POINTS).0,
            error: None,
        }
    }

    fn series(&self) -> Series {
        let Some(&(first_ms, ..)) = self.0.first() else { return Series::default() };
        let column =
            |of: fn(&TickCounts) -> Option<f64>| self.0.iter().map(|(.., counts)| of(counts)).collect();
        let t = self.0.iter().map(|(from_ms, ..)| Some(from_ms.saturating_sub(first_ms) as f64 / 1e3));
        let mut columns: Vec<(&'static str, Vec<Option<f64>>)> = vec![
            ("t", t.collect()),
            ("ticks_due", column(|counts| Some(counts.due as f64))),
            ("ticks_on_time", column(|counts| Some(counts.on_time as f64))),
            ("ticks_over", column(|counts| Some(counts.over as f64))),
            ("ticks_under", column(|counts| Some(counts.under as f64))),
            ("ticks_missed", column(|counts| Some(counts.missed as f64))),
        ];
        columns.push(("late_share", column(TickCounts::late_share)));
        Series { columns }
    }
}

/// Parses a file that was dropped. Errors: it tells of no ticks, in words.
pub(crate) fn dropped(name: &str, bytes: &[u8]) -> Result<TickFile, String> {
    let (mut reader, mut seconds) = (TickLogReader::new(ASSUMED_RATE_HZ), Seconds::default());
    reader.push(bytes);
    reader.finish();
    seconds.extend(reader.take_seconds());
    let summary = reader.summary();
    if summary.has_no_ticks() {
        let lines = summary.lines;
        return Err(match summary.malformed {
            _ if lines == 0 => "it is empty".to_owned(),
            malformed if malformed == lines => "none of its lines is one of a tick log".to_owned(),
            _ => format!("none of its lines ({lines}) is about ticks"),
        });
    }
    Ok(seconds.told(name, summary))
}

/// The file's name, with as many folders before it as it takes to tell it from the others.
fn named_apart(paths: &[PathBuf], at: usize) -> String {
    let label = |path: &Path, depth: usize| {
        let parts: Vec<_> = path.iter().rev().take(depth).collect();
        parts.into_iter().rev().collect::<PathBuf>().display().to_string()
    };
    let most = paths[at].iter().count();
    let is_alone = |depth: usize| {
        let others = paths.iter().enumerate().filter(|&(other, _)| other != at);
        others.into_iter().all(|(_, other)| label(other, depth) != label(&paths[at], depth))
    };
    label(&paths[at], (1..most).find(|&depth| is_alone(depth)).unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_and_a_device_are_no_logs_and_nothing_waits_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        std::fs::write(&path, "").unwrap();
        let mut files = TickFiles::new(std::slice::from_ref(&path));
        files.read_on();
        assert_eq!(files.all()[0].error, None);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        files.read_on();
        assert_eq!(files.all()[0].error.as_deref(), Some("it is a pipe; name a regular file"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        files.read_on();
        assert_eq!(files.all()[0].error.as_deref(), Some("it is a device; name a regular file"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        files.read_on();
        assert_eq!(files.all()[0].error, None, "a log that came back is read");
    }
}
