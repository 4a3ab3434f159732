//! The tick log: what a server of the arena's family writes about its own ticks, once per second, as JSON lines.
//!
//! Bytes in, facts out. Besides it, files that tell of every tick are read (`frames`). Two dialects of the log may share a file: the original's (`tickInterval` with a histogram in whole ms, and
//! the counters `tickOnTime`, `tickIntervalOverrun`, `tickIntervalUnderrun`, `games-played`) and our reference server's
//! one line per second (`"title":"stepladder"`). The lines of one second are gathered before they become a
//! `LoggedSecond`, so a second written in both dialects is counted once.
//! Invariant: nothing is dropped silently. An unreadable line is counted and named, an unknown title is counted, and a
//! file that holds two runs is reported as such, since its sums describe neither of them.
//! Units: `_ms` is the realtime clock of the server, whole ms since the epoch. Not here: files (`watch::tick_log`).

mod frames;
mod line;
mod openmetrics;
mod second;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use frames::{TickForm, TimeUnit};
pub use line::Line;
pub use openmetrics::{MetricReader, Notice};
pub use second::LoggedSecond;
pub use summary::{Disagreement, IntervalMs, Malformed, MixedRun, TickLogFigures, TickLogSummary};

use frames::{Frames, Taken};
use second::Batch;

/// Counters of a server's own line that readers know; all others are kept by name and shown as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCounter {
    /// games that were played to their end
    GamesPlayed,
    /// shots that reached it
    Shots,
    /// of these, those that it took
    ShotsAccepted,
    /// frames that it drew
    Frames,
    /// frames that were due
    FramesDue,
    /// ticks that count as late and may be on time: the buckets of a histogram do not tell
    TicksUnclear,
}

impl ServerCounter {
    /// Its name in the line.
    pub fn name(self) -> &'static str {
        match self {
            ServerCounter::GamesPlayed => "games_played",
            ServerCounter::Shots => "shots",
            ServerCounter::ShotsAccepted => "shots_accepted",
            ServerCounter::Frames => "frames",
            ServerCounter::FramesDue => "frames_due",
            ServerCounter::TicksUnclear => "ticks_unclear",
        }
    }

    /// What these counters say of it.
    pub fn of(self, counters: &[(String, u64)]) -> Option<u64> {
        counters.iter().find(|(name, _)| name == self.name()).map(|&(_, count)| count)
    }
}

/// Before the name of a node: counters of its ticks that were due, and of those that were late or missed, in the log of a server
/// of several nodes.
pub const NODE_DUE: &str = "ticks_due@";
/// See `NODE_DUE`.
pub const NODE_LATE: &str = "ticks_late@";

/// How many malformed lines and mixed runs are kept word for word; all are counted.
pub const KEPT_EXAMPLES: usize = 5;
/// A line longer than this is not one of a tick log; reading on would only fill the memory.
const LONGEST_LINE_BYTES: usize = 1 << 20;
/// Of a log that does not tell its rate, and of nobody who knows it: the original's.
pub const USUAL_RATE_HZ: f64 = 60.0;
/// Lines of one second lie within a few ms of each other, the next second's a whole second later.
const SAME_SECOND_MS: u64 = 250;
/// Most titles and counters, and most processes, that are kept of one log: a hostile server may write it, and must not fill
/// the memory.
const NAMES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 200;
/// A clock that is set back by less than this is an adjustment, not another run.
const BACKWARDS_MS: u64 = 1_000;

/// Reads a tick log in chunks that may be cut anywhere, and sums it up.
///
/// `push` the bytes as they come, `take_seconds` in between when following, `finish` at the end of the file.
#[derive(Debug)]
pub struct TickLogReader {
    /// bytes of a last line that has no end yet
    partial: Vec<u8>,
    /// inside a line that is too long; skip to its end
    skipping: bool,
    line_number: u64,
    /// of a file that tells of every tick; the rest is for logs of whole seconds
    frames: Option<Frames>,
    batch: Option<Batch>,
    previous_to_ms: Option<u64>,
    processes: BTreeSet<(String, String)>,
    /// titles and counters that it told
    names: BTreeSet<String>,
    last_time_ms: Option<u64>,
    ready: Vec<LoggedSecond>,
    summary: TickLogSummary,
    said_unreadable: bool,
}

impl TickLogReader {
    /// A reader at the start of a log. `tick_rate_hz` (> 0) gives the classes if the log does not report its rate.
    pub fn new(tick_rate_hz: f64) -> Self {
        Self::of(TickForm::Seconds, Some(tick_rate_hz))
    }

    /// A reader at the start of a file of this form. `tick_rate_hz` (> 0) gives the classes if the file does not report its
    /// rate; without one, 60 Hz in logs of seconds, and in the other forms what the intervals show.
    pub fn of(form: TickForm, tick_rate_hz: Option<f64>) -> Self {
        TickLogReader {
            partial: Vec::new(),
            skipping: false,
            line_number: 0,
            frames: Frames::of(form, tick_rate_hz),
            batch: None,
            previous_to_ms: None,
            processes: BTreeSet::new(),
            names: BTreeSet::new(),
            last_time_ms: None,
            ready: Vec::new(),
            summary: TickLogSummary::new(tick_rate_hz.unwrap_or(USUAL_RATE_HZ)),
            said_unreadable: false,
        }
    }

    /// A follower reads at this realtime: ticks without a time of their own are of this instant.
    pub fn read_at(&mut self, realtime_ms: u64) {
        if let Some(frames) = &mut self.frames {
            frames.read_at(realtime_ms);
        }
    }

    /// Of files with a line per tick the seconds hold counts only, which is much faster; the summary has all of them.
    pub fn without_distributions(mut self) -> Self {
        if let Some(frames) = &mut self.frames {
            frames.without_distributions();
        }
        self
    }

    /// Whether rows mean nothing to it before it has read the header of its table.
    pub fn awaits_header(&self) -> bool {
        self.frames.as_ref().is_some_and(Frames::awaits_header)
    }

    /// Reads on. The chunk may begin and end in the middle of a line.
    pub fn push(&mut self, mut chunk: &[u8]) {
        while let Some(end) = chunk.iter().position(|&byte| byte == b'\n') {
            let (head, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            self.line_number += 1;
            if self.partial.is_empty() {
                self.take_line(head);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(head);
                self.take_line(&line);
                line.clear();
                self.partial = line;
            }
        }
        if self.skipping {
            return;
        }
        self.partial.extend_from_slice(chunk);
        if self.partial.len() > LONGEST_LINE_BYTES {
            self.partial = Vec::new();
            self.skipping = true;
            self.line_number += 1;
            self.summary.malformed(self.line_number, too_long());
        }
    }

    /// Closes the second that is being gathered once nothing more can come for it.
    ///
    /// A follower of a growing log calls this with the present realtime; otherwise a second would only be known when
    /// the next one begins. At `u64::MAX` a trial ends.
    pub fn close_before(&mut self, realtime_ms: u64) {
        if let Some(frames) = &mut self.frames {
            if realtime_ms == u64::MAX {
                frames.end_trial(&mut self.summary);
            }
            frames.close_before(realtime_ms.saturating_sub(2 * SAME_SECOND_MS), &mut self.summary);
            self.take_frames();
        }
        if self.batch.as_ref().is_some_and(|batch| batch.time_ms + 2 * SAME_SECOND_MS <= realtime_ms) {
            self.close_batch();
        }
    }

    /// The rate that gives the classes, Hz; `None`: it was not given, and is not found yet.
    pub fn rate_hz(&self) -> Option<f64> {
        self.frames.as_ref().map_or(Some(self.summary.tick_rate_hz()), Frames::rate_hz)
    }

    /// A period that is not known yet is found from ticks that come from now on.
    pub fn forget_waiting(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.forget_waiting();
        }
    }

    /// The log ends here: a last line without an end is read too, and the last second is closed.
    pub fn finish(&mut self) {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line_number += 1;
            self.take_line(&last);
        }
        self.skipping = false;
        if let Some(frames) = &mut self.frames {
            frames.finish(&mut self.summary);
            self.take_frames();
        }
        self.close_batch();
    }

    /// The seconds completed since the last call, in the order of the log.
    pub fn take_seconds(&mut self) -> Vec<LoggedSecond> {
        std::mem::take(&mut self.ready)
    }

    /// The first line that could not be read, once.
    pub fn take_unreadable(&mut self) -> Option<Malformed> {
        let first = self.summary.malformed_examples.first().filter(|_| !self.said_unreadable).cloned();
        self.said_unreadable |= first.is_some();
        first
    }

    /// Everything read so far, without the second that is still being gathered.
    pub fn summary(&self) -> &TickLogSummary {
        &self.summary
    }

    fn take_line(&mut self, bytes: &[u8]) {
        if bytes.len() > LONGEST_LINE_BYTES {
            self.summary.malformed(self.line_number, too_long());
            return;
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.summary.lines += 1;
        if let Some(frames) = &mut self.frames {
            match frames.line(bytes, &mut self.summary) {
                Ok(Taken::Tick) => self.take_frames(),
                Ok(Taken::Other) => self.summary.messages += 1,
                Err(reason) => self.summary.malformed(self.line_number, reason),
            }
            return;
        }
        match Line::parse(bytes) {
            Ok(line) => match self.remember_names(&line) {
                Ok(()) => self.gather(line),
                Err(reason) => self.summary.malformed(self.line_number, reason),
            },
            Err(reason) => self.summary.malformed(self.line_number, reason),
        }
    }

    /// Errors: it names more than is remembered.
    fn remember_names(&mut self, line: &Line) -> Result<(), String> {
        let process = line.process.iter().flat_map(|(pid, hostname)| [pid, hostname]);
        let mut names = line.names().chain(process.map(String::as_str));
        if names.any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(format!("a name of more than {NAME_BYTES_MAX} bytes"));
        }
        for name in line.names() {
            if !self.names.contains(name) {
                if self.names.len() >= NAMES_MAX {
                    return Err(format!("a log with more than {NAMES_MAX} titles and counters"));
                }
                self.names.insert(name.to_owned());
            }
        }
        Ok(())
    }

    fn gather(&mut self, line: Line) {
        self.look_for_another_run(&line);
        let Some(title) = line.title.as_deref() else {
            self.summary.messages += 1;
            return;
        };
        if line.is_told() {
            // Our own line is the last of its second, and exact about it. A line with a different time belongs to the
            // next second, which a server that writes several times a second begins at once.
            let other_second = self.batch.as_ref().is_some_and(|batch| {
                batch.has(title)
                    || line.time_ms.abs_diff(batch.time_ms) > SAME_SECOND_MS
                    || (batch.has(line::OWN) && line.time_ms != batch.time_ms)
            });
            if other_second {
                self.close_batch();
            }
        } else {
            *self.summary.other_titles.entry(title.to_owned()).or_default() += 1;
            if self.batch.is_none() {
                // An unknown counter, between two seconds: nothing to add it to.
                return;
            }
        }
        self.batch.get_or_insert_with(|| Batch::new(line.time_ms)).add(line);
    }

    /// Another process, a clock that goes back, another tick rate: the file holds more than one run.
    fn look_for_another_run(&mut self, line: &Line) {
        let mut reasons = Vec::new();
        if let Some((pid, hostname)) = line.process.clone()
            && !self.processes.contains(&(pid.clone(), hostname.clone()))
        {
            if let Some((before_pid, before_host)) = self.processes.last() {
                if *before_pid != pid {
                    reasons.push(format!("process {pid} after process {before_pid}"));
                }
                if *before_host != hostname {
                    reasons.push(format!("host {hostname} after host {before_host}"));
                }
            }
            if self.processes.len() < NAMES_MAX {
                self.processes.insert((pid, hostname));
            }
        }
        if let Some(before_ms) = self.last_time_ms
            && line.time_ms + BACKWARDS_MS < before_ms
        {
            reasons.push(format!("the time goes back by {:.1} s", (before_ms - line.time_ms) as f64 / 1e3));
        }
        self.last_time_ms = Some(line.time_ms);
        if let Some(rate_hz) = line.tick_rate_hz()
            && let Some(before_hz) = self.summary.told_rate_hz.replace(rate_hz)
            && before_hz != rate_hz
        {
            reasons.push(format!("{rate_hz} Hz after {before_hz} Hz"));
        }
        if !reasons.is_empty() {
            // The batch so far belongs to the previous run.
            self.close_batch();
            self.previous_to_ms = None;
            self.summary.mixed_run(self.line_number, reasons.join(", "));
        }
    }

    /// The seconds that a file of single ticks came to.
    fn take_frames(&mut self) {
        let Some(frames) = &mut self.frames else { return };
        let done = frames.take_done();
        if done.is_empty() {
            return;
        }
        self.summary.told_rate_hz = frames.rate_hz();
        self.ready.extend(done);
    }

    fn close_batch(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        self.summary.add(&batch);
        let classes = self.summary.counted.is_none().then(|| self.summary.classes());
        let second = batch.into_second(self.previous_to_ms, classes);
        self.previous_to_ms = Some(second.to_ms);
        self.ready.push(second);
    }
}

fn too_long() -> String {
    format!("longer than {} KiB", LONGEST_LINE_BYTES >> 10)
}
