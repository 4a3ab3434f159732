//! A run as the store keeps it: its header, its labels, how it ended, and what is reported for one that was cut off.

use std::collections::BTreeMap;
use std::fmt;
use strum::{IntoStaticStr, VariantArray};

use measure::{Purpose, TrialHead};

/// The id of a run: `master-3` is the third run named `master`, `arena-7` the seventh nameless climb of the arena.
///
/// Never given twice within a store, not even after the run was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub(crate) String);

impl RunId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// An id as found in a file, which may have been written by others. `None`: the store never generates it, and as
    /// part of a path (`live.rs`, exports) it could lead anywhere.
    pub(crate) fn read(text: &str) -> Option<RunId> {
        let (stem, count) = text.rsplit_once('-')?;
        let is_count = !count.is_empty()
            && count.len() <= COUNT_LENGTH_MAX
            && !count.starts_with('0')
            && count.bytes().all(|byte| byte.is_ascii_digit());
        let is_letter = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let is_stem = !stem.is_empty()
            && stem.len() <= STEM_LENGTH_MAX
            && stem.bytes().all(is_letter)
            && !stem.starts_with(['-', '.'])
            && !stem.ends_with(['-', '.']);
        (is_count && is_stem).then(|| RunId(text.to_owned()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What was measured, and so where the figures of a run are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunKind {
    /// One server under rising loads: trials.
    #[default]
    Climb,
    /// Client libraries as processes on one server: their lines.
    Bench,
    /// Two servers under the same loads: trials of both.
    Duel,
}

impl RunKind {
    /// Its name in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Who wrote a line of a bench run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LineSource {
    /// The program that started the processes.
    Bench,
    /// A client library's process.
    Client,
}

impl LineSource {
    /// Its name in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A line of a bench run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLine {
    /// which process of the run it belongs to, from 0
    pub process: u32,
    /// who wrote it
    pub source: LineSource,
    /// one JSON object, as it was written
    pub text: String,
}

/// What is known of a run before it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHead {
    /// where its figures are
    pub kind: RunKind,
    /// as the user gave it (`--name`)
    pub name: Option<String>,
    /// what was climbed, as the user wrote it: `arena`, `ws://…`; a nameless run's id begins with it
    pub subject: String,
    /// path of the scenario file
    pub scenario: Option<String>,
    /// everything random comes from it
    pub seed: u64,
    /// `poisson`, `even`, `burst`, `closed`
    pub arrivals: String,
    /// the command line
    pub command: String,
    /// commit of the folder the run was started in
    pub git: Option<String>,
    /// version of Stepladder
    pub stepladder: String,
    /// when it began
    pub started_unix_ms: u64,
    /// generator and server share cores
    pub shared_cores: bool,
    /// the whole plan as JSON text
    pub plan: String,
    /// the machine as JSON text
    pub environment: String,
}

impl RunHead {
    /// What the run's id begins with: the name or else the subject, reduced to `a-z 0-9 . _ -`.
    pub(crate) fn stem(&self) -> String {
        let whole = self.name.as_deref().unwrap_or(&self.subject);
        // For `ws://127.0.0.1:9001` or `dist/server.js` the last part is the distinctive one.
        let text = if self.name.is_some() {
            whole
        } else {
            whole.rsplit('/').find(|part| !part.is_empty()).unwrap_or("")
        };
        let mut stem = String::new();
        for letter in text.chars().map(|letter| letter.to_ascii_lowercase()) {
            match letter {
                'a'..='z' | '0'..='9' | '.' | '_' => stem.push(letter),
                _ if stem.is_empty() || stem.ends_with('-') => {}
                _ => stem.push('-'),
            }
            if stem.len() >= STEM_LENGTH_MAX {
                break;
            }
        }
        let stem = stem.trim_matches(['-', '.']);
        if stem.is_empty() { "run".to_owned() } else { stem.to_owned() }
    }
}

/// Ids are typed by hand and name a file beside the store.
const STEM_LENGTH_MAX: usize = 32;
/// Digits of the largest integer that SQLite holds.
const COUNT_LENGTH_MAX: usize = 19;

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The schedule ended by itself.
    Finished,
    /// The user ended it; what was measured is kept.
    Interrupted,
    /// It could not go on; the reason says why.
    Broken,
}

impl Outcome {
    /// Its name in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The last thing that is stored of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// how
    pub outcome: Outcome,
    /// why, for people
    pub reason: Option<String>,
    /// when
    pub ended_unix_ms: u64,
    /// the three answers as JSON text, where there are any
    pub climb: Option<String>,
}

/// A run as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// its id
    pub id: RunId,
    /// the how-manieth run of this store, from 1: the order in which runs began, whatever the clock said
    pub number: u64,
    /// what was known before
    pub head: RunHead,
    /// where it is
    pub state: RunState,
    /// what people wrote on it
    pub labels: BTreeMap<String, String>,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// A living process records it.
    Recording,
    /// It ended in order.
    Ended(RunEnd),
    /// Its process ended without a word: killed, out of memory, power cut.
    CutOff(CutOff),
}

/// How far a run came whose process ended without a word. `Display` says it in one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOff {
    /// which run
    pub run: RunId,
    /// the trial that was under way; `None` between two trials and before the first
    pub within: Option<CutOffTrial>,
    /// trials that had ended, the last one's purpose and load
    pub after: Option<(Purpose, f64)>,
    /// of a bench run: how many of its lines are there; `None` of a climb
    pub lines: Option<u64>,
}

/// The trial that was under way.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOffTrial {
    /// number within the run
    pub seq: u32,
    /// `rung`, …
    pub purpose: Purpose,
    /// in its unit
    pub load: f64,
    /// whole seconds that are intact
    pub whole_s: u32,
}

impl fmt::Display for CutOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = &self.run;
        if let Some(lines) = self.lines {
            return write!(
                formatter,
                "run {run} was interrupted; the {lines} lines that its clients had written are intact"
            );
        }
        match (&self.within, &self.after) {
            (Some(trial), _) => {
                let CutOffTrial { purpose, load, whole_s, .. } = trial;
                let (minutes, seconds) = (whole_s / 60, whole_s % 60);
                write!(
                    formatter,
                    "run {run} was interrupted at {minutes}:{seconds:02} of {purpose} {load}; "
                )?;
                match whole_s {
                    0 => write!(formatter, "no whole second of it was measured"),
                    _ => write!(
                        formatter,
                        "the {whole_s} s before are intact and shown as INVALID(interrupted)"
                    ),
                }
            }
            (None, Some((purpose, load))) => {
                write!(
                    formatter,
                    "run {run} was interrupted after {purpose} {load}; everything up to there is intact"
                )
            }
            (None, None) => {
                write!(formatter, "run {run} was interrupted before its first trial; nothing was measured")
            }
        }
    }
}

/// A trial as stored, without its entries.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// what it was asked to be
    pub head: TrialHead,
    /// when it began
    pub started_unix_ms: u64,
    /// when everything of it was handed over; `None` while it runs and when it was cut off
    pub ended_unix_ms: Option<u64>,
    /// whole seconds of the bots that were committed
    pub whole_s: u32,
}

/// What a judge says of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredVerdict {
    /// who judges; a later verdict of the same judge supersedes an earlier one
    pub judge: String,
    /// `PASS`, `FAIL`, `GENERATOR_LIMITED`, `INCONCLUSIVE`, `INVALID`
    pub verdict: String,
    /// why, in words
    pub reason: Option<String>,
    /// seconds of the hold that the judge left out as warm-up
    pub cut_s: u32,
    /// the figures it rests on, as JSON text
    pub evidence: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_with_the_name_or_the_subject_in_plain_letters() {
        let check = |name: Option<&str>, subject: &str, expected: &str| {
            let head =
                RunHead { name: name.map(str::to_owned), subject: subject.to_owned(), ..RunHead::default() };
            assert_eq!(head.stem(), expected);
            assert!(RunId::read(&format!("{expected}-1")).is_some(), "what is given can be read");
        };
        check(Some("master"), "arena", "master");
        check(Some("Feature/Fast path!"), "arena", "feature-fast-path");
        check(Some("../../etc"), "arena", "etc");
        check(Some("…"), "arena", "run");
        check(None, "arena", "arena");
        check(None, "ws://127.0.0.1:9001", "127.0.0.1-9001");
        check(None, "ws://host/path/", "path");
    }

    #[test]
    fn only_ids_that_a_store_gives_are_read() {
        let longest = format!("{}-{}", "a".repeat(STEM_LENGTH_MAX), i64::MAX);
        for good in ["arena-1", "127.0.0.1-9001-12", "_-1", "a.b_c-d-20", longest.as_str()] {
            assert_eq!(RunId::read(good).as_ref().map(RunId::as_str), Some(good));
        }
        let too_long = format!("{}-1", "a".repeat(STEM_LENGTH_MAX + 1));
        for bad in [
            "",
            "arena",
            "-1",
            "arena-",
            "arena-0",
            "arena-01",
            "arena-1 ",
            "arena-+1",
            "arena-99999999999999999999",
            "x/../victim-1",
            "..-1",
            ".hidden-1",
            "a\\b-1",
            "a\0b-1",
            "Arena-1",
            "\u{1b}[2J-1",
            "é-1",
            too_long.as_str(),
        ] {
            assert_eq!(RunId::read(bad), None, "{bad:?}");
        }
    }
}
