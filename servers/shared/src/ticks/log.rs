//! The tick log: JSON lines, every second or more often, readable by the original's viewer.
//!
//! The original's lines (`tickInterval`, `tickOnTime`, `tickIntervalOverrun`, `tickIntervalUnderrun`, `games-played`)
//! come first and are omitted if zero. Then, always, one line titled `stepladder` with everything, so that a second
//! without ticks can be told from a server that stalled. It also carries a server's other counters, by name
//! (`figures`).
//! `due` = `on_time` + `over` + `under` + `missed` in every line; histograms are HDR V2, uncompressed, base64.
//! Durations in ns and instants in ms since the epoch, as the names say.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::TickTally;
use super::tally::encoded;
use crate::ServeError;

/// The file that a loop's ticks are logged to, a line a second.
pub struct TickLog {
    path: PathBuf,
    file: File,
    hostname: String,
    lines: String,
}

/// Which stretch of time a line tells.
#[derive(Clone, Copy, Debug)]
pub struct Second {
    /// Beginning of the second, ms since 1970.
    pub from_ms: u64,
    /// Its end, ms since 1970.
    pub to_ms: u64,
    /// Asked for, Hz.
    pub tick_rate: u32,
}

impl TickLog {
    /// Creates the file, or refuses one that is there already unless `append`.
    pub fn open(path: &Path, append: bool) -> Result<TickLog, ServeError> {
        let mut how = OpenOptions::new();
        let opened =
            if append { how.append(true).create(true) } else { how.write(true).create_new(true) }.open(path);
        match opened {
            Ok(file) => {
                let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
                Ok(TickLog { path: path.to_owned(), file, hostname, lines: String::new() })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(ServeError::TickLogExists { path: path.to_owned() })
            }
            Err(source) => Err(ServeError::TickLog { path: path.to_owned(), source }),
        }
    }

    /// Opens the requested log, if any.
    pub fn open_if(path: Option<&Path>, append: bool) -> Result<Option<TickLog>, ServeError> {
        path.map(|path| TickLog::open(path, append)).transpose()
    }

    /// Writes one second, whole lines in one write. `figures` is everything that the server counts besides its ticks.
    pub fn write(
        &mut self,
        second: Second,
        ticks: &TickTally,
        games_played: u64,
        figures: &[(&str, u64)],
    ) -> Result<(), ServeError> {
        self.lines.clear();
        self.compose(second, ticks, games_played, figures);
        let written = self.file.write_all(self.lines.as_bytes());
        written.map_err(|source| ServeError::TickLog { path: self.path.clone(), source })
    }

    fn compose(&mut self, second: Second, ticks: &TickTally, games_played: u64, figures: &[(&str, u64)]) {
        let counts = ticks.counts;
        let points: Map<String, Value> =
            ticks.interval_ms().map(|(ms, count)| (ms.to_string(), count.into())).collect();
        if !points.is_empty() {
            self.line(second.to_ms, "tickInterval", json!({ "pointSet": points }));
        }
        for (title, count) in [
            ("games-played", games_played),
            ("tickOnTime", counts.on_time),
            ("tickIntervalOverrun", counts.over),
            ("tickIntervalUnderrun", counts.under),
        ] {
            if count > 0 {
                self.line(second.to_ms, title, json!({ "count": count }));
            }
        }
        let mut all = json!({
            "from_ms": second.from_ms,
            "to_ms": second.to_ms,
            "tick_rate": second.tick_rate,
            "due": counts.due,
            "on_time": counts.on_time,
            "over": counts.over,
            "under": counts.under,
            "missed": counts.missed,
        });
        for (name, figure) in figures {
            all[*name] = (*figure).into();
        }
        all["isr_numerator_ns"] = counts.isr_numerator_ns.into();
        for (name, histogram) in [
            ("interval_ns", &ticks.interval_ns),
            ("busy_ns", &ticks.busy_ns),
            ("lateness_ns", &ticks.lateness_ns),
        ] {
            all[name] = encoded(histogram).into();
        }
        self.line(second.to_ms, "stepladder", all);
    }

    fn line(&mut self, time_ms: u64, title: &str, more: Value) {
        let mut line = json!({
            "level": 40,
            "time": time_ms,
            "pid": std::process::id(),
            "hostname": self.hostname,
            "title": title,
        });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        self.lines.push_str(&line.to_string());
        self.lines.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Tick;
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;

    const SECOND: Second = Second { from_ms: 1_795_230_436_402, to_ms: 1_795_230_437_402, tick_rate: 60 };
    const FIGURES: [(&str, u64); 2] = [("games_played", 2), ("sockets", 7)];

    fn lines(tally: &TickTally, games_played: u64) -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        TickLog::open(&path, false).unwrap().write(SECOND, tally, games_played, &FIGURES).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_second_is_written_as_the_original_does_and_once_more_in_full() {
        let mut tally = TickTally::new();
        for (interval_ms, missed) in [(16, 0), (17, 0), (17, 0), (33, 1)] {
            let interval_ns = interval_ms * 1_000_000;
            tally.enter(
                &Tick {
                    n: 1,
                    missed,
                    scheduled_ns: 5,
                    started_ns: 7,
                    interval_ns,
                    interval_ms,
                    unsteadiness_ns: 0,
                },
                900,
                60,
            );
        }
        let lines = lines(&tally, 2);
        let titles: Vec<&str> = lines.iter().map(|line| line["title"].as_str().unwrap()).collect();
        assert_eq!(
            titles,
            ["tickInterval", "games-played", "tickOnTime", "tickIntervalOverrun", "stepladder"]
        );
        assert_eq!(lines[0]["pointSet"].to_string(), r#"{"16":1,"17":2,"33":1}"#);
        assert_eq!(lines[2]["count"], 3);
        let head = format!(r#"{{"level":40,"time":{},"pid":{},"#, SECOND.to_ms, std::process::id());
        assert!(lines[0].to_string().starts_with(&head));
        let all = &lines[4];
        assert_eq!((&all["due"], &all["missed"], &all["sockets"]), (&json!(5), &json!(1), &json!(7)));
        let bytes = STANDARD.decode(all["interval_ns"].as_str().unwrap()).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(histogram, tally.interval_ns);
    }

    #[test]
    fn a_second_without_ticks_still_has_its_line() {
        let lines = lines(&TickTally::new(), 0);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["due"], 0);
    }

    #[test]
    fn an_existing_log_is_refused_with_a_remedy_and_appended_to_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        TickLog::open(&path, false).unwrap().write(SECOND, &TickTally::new(), 0, &FIGURES).unwrap();
        let error = TickLog::open(&path, false).err().unwrap().to_string();
        assert!(error.contains("game.log") && error.contains("--append"), "{error}");
        TickLog::open(&path, true).unwrap().write(SECOND, &TickTally::new(), 0, &FIGURES).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
