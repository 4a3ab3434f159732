//! Tick logs: files of the command line, followed while they grow, and files that are dropped on the page.
//!
//! Only the files that were named at the start are ever opened; what is dropped is parsed from memory and forgotten.
//! A followed file is read on from where it was; one that was replaced or cut is read anew.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use measure::TickCounts;
use measure::ticklog::{LoggedSecond, TickLogReader};
use watch::{open_tick_log, to_read_now};

use crate::archive::POINTS;
use crate::decimate::decimate;
use crate::shape::{Series, TickFile};

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
    open: Option<Open>,
    error: Option<String>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// device and inode: another file under the same name is another log
    identity: (u64, u64),
    read_bytes: u64,
    log: Log,
}

#[derive(Debug)]
struct Log {
    reader: TickLogReader,
    seconds: Vec<(u64, u64, TickCounts)>,
}

impl TickFiles {
    /// Those files and no others.
    pub fn new(paths: &[PathBuf]) -> Self {
        let files = paths.iter().enumerate().map(|(at, path)| Followed {
            path: path.clone(),
            name: named_apart(paths, at),
            open: None,
            error: None,
        });
        TickFiles { files: files.collect(), revision: 0 }
    }

    /// True when there is anything to follow.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads on. Returns a number that changes when a file did, whoever had it read on.
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
                self.open = None;
                self.error = Some(error.to_string());
                self.error != before
            }
        }
    }

    fn try_read_on(&mut self) -> std::io::Result<bool> {
        let found = std::fs::metadata(&self.path)?;
        let identity = (found.dev(), found.ino());
        let stays = |open: &Open| open.identity == identity && found.len() >= open.read_bytes;
        if !self.open.as_ref().is_some_and(stays) {
            let file = open_tick_log(&self.path)?;
            self.open = Some(Open { file, identity, read_bytes: 0, log: Log::new() });
        }
        let Some(open) = &mut self.open else { return Ok(false) };
        let mut chunk = vec![0; 64 << 10];
        let before = open.log.seconds.len();
        let mut read_bytes = 0;
        let most = to_read_now(found.len(), open.read_bytes);
        loop {
            let left = chunk.len().min((most - read_bytes) as usize);
            let count = open.file.read(&mut chunk[..left])?;
            if count == 0 {
                break;
            }
            open.log.push(&chunk[..count]);
            read_bytes += count as u64;
        }
        open.read_bytes += read_bytes;
        open.log.close_old_second();
        Ok(read_bytes > 0 || open.log.seconds.len() > before)
    }

    fn told(&self) -> TickFile {
        let mut file = match &self.open {
            Some(open) => open.log.told(&self.name),
            None => Log::new().told(&self.name),
        };
        file.error = self.error.clone();
        file
    }
}

impl Log {
    fn new() -> Self {
        Log { reader: TickLogReader::new(ASSUMED_RATE_HZ), seconds: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
        self.take_seconds();
    }

    /// Their histograms would fill the memory of a long log; the sums have them.
    fn take_seconds(&mut self) {
        let kept = |second: LoggedSecond| (second.from_ms, second.to_ms, second.counts);
        self.seconds.extend(self.reader.take_seconds().into_iter().map(kept));
    }

    /// The last second of a file that nobody writes any more.
    fn close_old_second(&mut self) {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        self.reader.close_before(now_ms);
        self.take_seconds();
    }

    fn told(&self, name: &str) -> TickFile {
        let summary = self.reader.summary();
        TickFile {
            name: name.to_owned(),
            figures: summary.figures(),
            series: decimate(self.series(), POINTS).0,
            error: None,
        }
    }

    fn series(&self) -> Series {
        let Some(&(first_ms, ..)) = self.seconds.first() else { return Series::default() };
        let column =
            |of: fn(&TickCounts) -> Option<f64>| self.seconds.iter().map(|(.., counts)| of(counts)).collect();
        let t = self.seconds.iter().map(|(from_ms, ..)| Some(from_ms.saturating_sub(first_ms) as f64 / 1e3));
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
    let mut log = Log::new();
    log.push(bytes);
    log.reader.finish();
    log.take_seconds();
    let summary = log.reader.summary();
    if summary.has_no_ticks() {
        let lines = summary.lines;
        return Err(match summary.malformed {
            _ if lines == 0 => "it is empty".to_owned(),
            malformed if malformed == lines => "none of its lines is one of a tick log".to_owned(),
            _ => format!("none of its lines ({lines}) is about ticks"),
        });
    }
    Ok(log.told(name))
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
        assert_eq!(files.all()[0].error.as_deref(), Some("it is not a regular file"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        files.read_on();
        assert_eq!(files.all()[0].error.as_deref(), Some("it is not a regular file"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        files.read_on();
        assert_eq!(files.all()[0].error, None, "a log that came back is read");
    }
}
