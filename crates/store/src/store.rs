//! A store: what is in the file, and the two things that users may change in it, labels and whole runs.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use rusqlite::{Connection, Transaction, params};

use crate::entries::{ends, visit, whole_seconds};
use crate::error::StoreError;
use crate::file;
use crate::live::is_live;
use crate::row::{ReadError, Row, Table};
use crate::run::{
    CutOff, CutOffTrial, RunEnd, RunHead, RunId, RunKind, RunRecord, RunState, StoredLine, StoredVerdict,
    TrialRecord,
};
use crate::tables::{self, ARTIFACT, LINE, RUN, RUN_END, TRIAL, TRIAL_END, USED_ID, VERDICT};
use crate::writer::{self, Committed, RunWriter};

/// An open store. Any number may be open on one file, in any process, while runs are recorded into it.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

/// The runs of a store, and what could not be read.
#[derive(Debug, Default)]
pub struct RunList {
    /// in the order they began
    pub runs: Vec<RunRecord>,
    /// one error for each run that is damaged; the others stand
    pub damaged: Vec<StoreError>,
}

impl Store {
    /// Opens a store that exists.
    ///
    /// Errors: `NoStore`, `NotSqlite`, `Foreign`, `Newer`, `Older`, `OtherTables`, `Damaged`, `CannotOpen`; the file stays
    /// untouched.
    pub fn open(path: impl Into<PathBuf>) -> Result<Store, StoreError> {
        let path = path.into();
        let connection = file::open(&path)?;
        Ok(Store { path, connection })
    }

    /// Opens a store that exists, to be read and nothing else. Errors: as `open`, and `Sqlite` where something is written.
    pub fn open_to_read(path: impl Into<PathBuf>) -> Result<Store, StoreError> {
        let path = path.into();
        let connection = file::open_to_read(&path)?;
        Ok(Store { path, connection })
    }

    /// Opens a store or creates it. Errors: as `open`, except `NoStore`; only an empty file is turned into a store.
    pub fn open_or_create(path: impl Into<PathBuf>) -> Result<Store, StoreError> {
        let path = path.into();
        let connection = file::open_or_create(&path)?;
        Ok(Store { path, connection })
    }

    /// Where it is, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to record a run, through a connection and a thread of its own.
    ///
    /// `committed` receives every batch after its commit. Errors: `Unstorable`, `CannotOpen` or what the disk says.
    pub fn begin_run(
        &self,
        head: &RunHead,
        committed: Option<Sender<Committed>>,
    ) -> Result<RunWriter, StoreError> {
        writer::begin(&self.path, file::open(&self.path)?, head, None, committed)
    }

    /// The same, where the new run begins with the first `trials` of `old`: copies of them and of their verdicts.
    ///
    /// Errors: as `begin_run`, and `Damaged`; `OutOfOrder` where one of those trials has not ended. Then there is no new run.
    pub fn begin_run_after(
        &self,
        head: &RunHead,
        (old, trials): (&RunId, u32),
        committed: Option<Sender<Committed>>,
    ) -> Result<RunWriter, StoreError> {
        writer::begin(&self.path, file::open(&self.path)?, head, Some((old, trials)), committed)
    }

    /// All runs in the order they began. Errors: only when not even their ids can be read.
    pub fn runs(&self) -> Result<RunList, StoreError> {
        let mut list = RunList::default();
        // A run whose row is lost in a damaged page would otherwise be missing silently.
        list.damaged.extend(self.sound(&USED_ID).err());
        let sound = self.sound(&RUN);
        let ids = self.ids()?;
        list.damaged.extend(ids.not_given.iter().map(|text| self.not_given(text)));
        let ends = Soundness::default();
        for id in ids.given {
            match self.run_of(&id, &ends) {
                Ok(run) => list.runs.push(run),
                // Deleted between two queries.
                Err(StoreError::UnknownRun { .. }) => {}
                Err(error) => list.damaged.push(error),
            }
        }
        if list.damaged.is_empty() {
            list.damaged.extend(sound.err());
        }
        Ok(list)
    }

    /// The run that `text` means: an id, else the newest run that was given that name (afterwards or when it began), else the
    /// one id that begins so.
    ///
    /// Errors: `UnknownRun` with the nearest names, `AmbiguousRun` with the candidates.
    pub fn find_run(&self, text: &str) -> Result<RunId, StoreError> {
        let ids = self.ids()?.given;
        if let Some(id) = ids.iter().find(|id| id.as_str() == text) {
            return Ok(id.clone());
        }
        // A stem is a name too: `arena` is the newest of arena-1, arena-2 … A name given by the user takes precedence.
        let newest = "SELECT run.run FROM run JOIN used_id USING (run) \
                      LEFT JOIN label ON label.run = run.run AND label.key = 'name' \
                      WHERE label.value = ?1 OR name = ?1 OR stem = ?1 \
                      ORDER BY label.value IS ?1 DESC, number DESC LIMIT 1";
        let named = self.connection.prepare_cached(newest).and_then(|mut statement| {
            let mut rows = statement.query([text])?;
            rows.next()?.map(|row| row.get::<_, String>(0)).transpose()
        });
        if let Some(id) = named.map_err(|error| self.told(error))? {
            return RunId::read(&id).ok_or_else(|| self.not_given(&id));
        }
        let candidates: Vec<RunId> =
            ids.iter().filter(|id| !text.is_empty() && id.as_str().starts_with(text)).cloned().collect();
        match candidates.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(self.unknown(text)),
            _ => Err(StoreError::AmbiguousRun { path: self.path.clone(), text: text.to_owned(), candidates }),
        }
    }

    /// One run as stored. Errors: `UnknownRun`, `Damaged`.
    pub fn run(&self, id: &RunId) -> Result<RunRecord, StoreError> {
        self.run_of(id, &Soundness::default())
    }

    /// The same for a caller that asks for many.
    fn run_of(&self, id: &RunId, ends: &Soundness) -> Result<RunRecord, StoreError> {
        // Checked before the rows: a run that ends in between then has its last row, and none is mistaken for a dead
        // one.
        let live = is_live(&self.path, id);
        let rows =
            RUN.select(&self.connection, "run = ?1", [id.as_str()]).map_err(|error| self.read(error))?;
        let row = rows.first().ok_or_else(|| self.unknown(id.as_str()))?;
        let head = tables::run::read(row).map_err(|error| self.read(error))?;
        let number = USED_ID
            .select(&self.connection, "run = ?1", [id.as_str()])
            .and_then(|rows| match rows.first() {
                Some(row) => tables::used_id::read(row).map(|(_, _, number)| number),
                None => Err(ReadError::Damaged(format!("used_id does not know run {id}"))),
            })
            .map_err(|error| self.read(error))?;
        let state = match self.run_end(id)? {
            Some(end) => RunState::Ended(end),
            None if live => RunState::Recording,
            None => {
                self.ends_are_sound(ends)?;
                RunState::CutOff(self.cut_off(id, head.kind)?)
            }
        };
        Ok(RunRecord { id: id.clone(), number, head, state, labels: self.labels(id)? })
    }

    /// The trials of a run in their order, those under way and cut off too, without their entries.
    pub fn trials(&self, run: &RunId) -> Result<Vec<TrialRecord>, StoreError> {
        let _moment = self.moment()?;
        let read = || {
            let ends = ends(&self.connection, run)?;
            let mut trials = Vec::new();
            TRIAL.for_each(&self.connection, "run = ?1", [run.as_str()], |row| {
                let (head, started_unix_ms) = tables::trial::read(&row)?;
                let ended_unix_ms = ends.get(&head.seq).map(|(_, ended_unix_ms)| *ended_unix_ms);
                trials.push(TrialRecord { started_unix_ms, ended_unix_ms, whole_s: 0, head });
                Ok(())
            })?;
            let numbers = trials.iter().map(|trial| trial.head.seq);
            let whole_s = whole_seconds(&self.connection, run, numbers, &ends)?;
            for trial in &mut trials {
                trial.whole_s = whole_s.get(&trial.head.seq).copied().unwrap_or(0);
            }
            Ok(trials)
        };
        let trials = read().map_err(|error| self.read(error))?;
        if !self.parts_are_there(run)? {
            self.sound(&TRIAL)?;
            self.sound(&TRIAL_END)?;
        }
        Ok(trials)
    }

    /// The verdicts on a trial, oldest first: the last of each judge is valid.
    pub fn verdicts(&self, run: &RunId, seq: u32) -> Result<Vec<StoredVerdict>, StoreError> {
        Ok(self.all_verdicts(run)?.remove(&seq).unwrap_or_default())
    }

    /// The same of all trials of a run, by their numbers. Who wants those of many trials reads the table once with it:
    /// `verdicts` reads all of the run for each, so that a row whose key is damaged is seen and not just missing.
    pub fn all_verdicts(&self, run: &RunId) -> Result<BTreeMap<u32, Vec<StoredVerdict>>, StoreError> {
        let mut verdicts: BTreeMap<u32, Vec<StoredVerdict>> = BTreeMap::new();
        let keep = |row: Row| {
            let (_, said) = tables::verdict::read(&row)?;
            verdicts.entry(row.trial()?).or_default().push(said);
            Ok(())
        };
        let read = VERDICT.for_each(&self.connection, "run = ?1", [run.as_str()], keep);
        read.map_err(|error| self.read(error))?;
        self.parts_are_there(run)?;
        Ok(verdicts)
    }

    /// The file of that name which belongs to the run.
    pub fn artifact(&self, run: &RunId, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut content = None;
        let keep = |row: Row| {
            let (found, bytes) = tables::artifact::read(&row)?;
            if found == name {
                content = Some(bytes);
            }
            Ok(())
        };
        let read = ARTIFACT.for_each(&self.connection, "run = ?1", [run.as_str()], keep);
        read.map_err(|error| self.read(error))?;
        self.parts_are_there(run)?;
        Ok(content)
    }

    /// The lines of a bench run, in the order in which they came; none of a climb.
    ///
    /// Of one moment, also while they grow. Errors: `Damaged` (never a wrong or a missing line).
    pub fn lines(&self, run: &RunId) -> Result<Vec<StoredLine>, StoreError> {
        self.lines_behind(run, 0)
    }

    /// The same after the first `known` lines, for a reader that has them.
    pub fn lines_behind(&self, run: &RunId, known: u64) -> Result<Vec<StoredLine>, StoreError> {
        let _moment = self.moment()?;
        let mut lines = Vec::new();
        let keep = |row: Row| {
            let (position, line) = tables::line::read(&row)?;
            let expected = known + lines.len() as u64;
            if position != expected {
                return Err(ReadError::Damaged(format!("line {expected} of run {run} is missing")));
            }
            lines.push(line);
            Ok(())
        };
        // A number that the database cannot hold is beyond every line.
        let known = i64::try_from(known).unwrap_or(i64::MAX);
        let condition = "run = ?1 AND position >= ?2";
        let read = LINE.for_each(&self.connection, condition, params![run.as_str(), known], keep);
        read.map_err(|error| self.read(error))?;
        self.parts_are_there(run)?;
        Ok(lines)
    }

    /// Writes a label, or takes it away with `None`.
    pub fn set_label(&self, run: &RunId, key: &str, value: Option<&str>) -> Result<(), StoreError> {
        self.must_exist(run)?;
        if key.is_empty() {
            let detail = "its key is empty".to_owned();
            return Err(StoreError::Unstorable { what: "a label".to_owned(), detail });
        }
        let sql = "INSERT INTO label (run, key, value) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (run, key) DO UPDATE SET value = excluded.value";
        let done = self.connection.execute(sql, params![run.as_str(), key, value]);
        done.map(|_| ()).map_err(|error| self.told(error))
    }

    /// Deletes a run with everything of it; its id is never given again. Errors: `StillRecorded`, `UnknownRun`.
    pub fn delete_run(&self, run: &RunId) -> Result<(), StoreError> {
        self.must_exist(run)?;
        if is_live(&self.path, run) {
            return Err(StoreError::StillRecorded { run: run.clone() });
        }
        let sql = "DELETE FROM run WHERE run = ?1";
        self.connection.execute(sql, [run.as_str()]).map_err(|error| self.told(error))?;
        // Returns the pages to the disk; an active reader may postpone that to the next time.
        let _ = self.give_room_back();
        Ok(())
    }

    /// Looks at every page and every row; returns what is damaged, in words. Takes seconds on a large store.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut damage = Vec::new();
        let pages = self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        match pages.map_err(|error| self.told(error)) {
            Ok(finding) if finding == "ok" => {}
            Ok(finding) => damage.push(finding),
            Err(error) => damage.push(error.to_string()),
        }
        let ids = self.ids()?;
        damage.extend(ids.not_given.iter().map(|text| self.not_given(text).to_string()));
        let ends = Soundness::default();
        for id in ids.given {
            damage.extend(self.check_run_of(&id, &ends).err().map(|error| error.to_string()));
        }
        Ok(damage)
    }

    /// Reads everything of a run, which fails where something is damaged.
    pub(crate) fn check_run(&self, id: &RunId) -> Result<(), StoreError> {
        self.check_run_of(id, &Soundness::default())
    }

    fn check_run_of(&self, id: &RunId, ends: &Soundness) -> Result<(), StoreError> {
        self.run_of(id, ends)?;
        for trial in self.trials(id)? {
            let moment = self.moment()?;
            visit(&moment, id, &trial.head, |_, _| {}).map_err(|error| self.read(error))?;
        }
        self.all_verdicts(id)?;
        ARTIFACT
            .for_each(&self.connection, "run = ?1", [id.as_str()], |_| Ok(()))
            .map_err(|error| self.read(error))?;
        self.lines(id).map(|_| ())
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn labels(&self, run: &RunId) -> Result<BTreeMap<String, String>, StoreError> {
        let sql = "SELECT key, value FROM label WHERE run = ?1 AND value IS NOT NULL ORDER BY key";
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let labels = statement.query_map([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            labels.collect::<Result<_, _>>()
        };
        read().map_err(|error| self.told(error))
    }

    pub(crate) fn read(&self, error: ReadError) -> StoreError {
        match error {
            ReadError::Sqlite(error) => self.told(error),
            ReadError::Damaged(_) => error.into_store(&self.path),
        }
    }

    pub(crate) fn told(&self, error: rusqlite::Error) -> StoreError {
        file::damage_in_words(&self.path, &self.connection, error)
    }

    /// One read transaction: all tables as they were at one moment, while the writer goes on.
    pub(crate) fn moment(&self) -> Result<Transaction<'_>, StoreError> {
        self.connection.unchecked_transaction().map_err(|error| self.told(error))
    }

    /// The ids of its runs, in the order they began.
    pub(crate) fn given_ids(&self) -> Result<Vec<RunId>, StoreError> {
        Ok(self.ids()?.given)
    }

    fn ids(&self) -> Result<Ids, StoreError> {
        let sql = "SELECT run FROM run LEFT JOIN used_id USING (run) ORDER BY number";
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut ids = Ids::default();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let text: String = row.get(0)?;
                match RunId::read(&text) {
                    Some(id) => ids.given.push(id),
                    None => ids.not_given.push(text),
                }
            }
            Ok(ids)
        };
        read().map_err(|error| self.told(error))
    }

    fn not_given(&self, text: &str) -> StoreError {
        let shown: String = text.chars().take(ID_SHOWN_MAX).collect();
        let what = format!("{shown:?} is no id that Stepladder gives, and that run is left out");
        StoreError::Damaged { path: self.path.clone(), what }
    }

    fn run_end(&self, id: &RunId) -> Result<Option<RunEnd>, StoreError> {
        let rows = RUN_END.select(&self.connection, "run = ?1", [id.as_str()]);
        let end = |row: &Row| tables::run_end::read(row).map(|(end, _)| end);
        rows.and_then(|rows| rows.first().map(end).transpose()).map_err(|error| self.read(error))
    }

    /// Errors: `Damaged` when rows of the run's trials, verdicts, artifacts and lines went missing.
    ///
    /// Only a run that ended says how many it has; of any other it returns false.
    fn parts_are_there(&self, run: &RunId) -> Result<bool, StoreError> {
        let tables = [&TRIAL, &TRIAL_END, &VERDICT, &ARTIFACT, &LINE];
        let counts: Vec<String> = tables
            .iter()
            .map(|table| format!("(SELECT count(*) FROM {} WHERE run = ?1)", table.name))
            .collect();
        // One statement, so that a run which is being deleted does not look damaged.
        let sql = format!("SELECT parts, {} FROM run_end WHERE run = ?1", counts.join(" + "));
        let counted = self.connection.prepare_cached(&sql).and_then(|mut statement| {
            let mut rows = statement.query([run.as_str()])?;
            rows.next()?.map(|row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).transpose()
        });
        match counted.map_err(|error| self.told(error))? {
            None => Ok(false),
            Some((expected, found)) if expected == found => Ok(true),
            Some((expected, found)) => Err(StoreError::Damaged {
                path: self.path.clone(),
                what: format!(
                    "run {run} should have {expected} trials, verdicts, artifacts and lines but {found} are there"
                ),
            }),
        }
    }

    /// Errors: `Damaged` when the pages or any row of a (small) table are not what was written, so that a row which is
    /// not found may be there all the same.
    fn sound(&self, table: &'static Table) -> Result<(), StoreError> {
        let check = format!("PRAGMA quick_check({})", table.name);
        let found = self.connection.query_row(&check, [], |row| row.get::<_, String>(0));
        let finding = found.map_err(|error| self.told(error))?;
        if finding != "ok" {
            let what = format!("{}: {finding}", table.name);
            return Err(StoreError::Damaged { path: self.path.clone(), what });
        }
        table.for_each(&self.connection, "1", [], |_| Ok(())).map_err(|error| self.read(error))
    }

    /// `sound` of `run_end`, once for all runs that ask with the same `known`.
    fn ends_are_sound(&self, known: &Soundness) -> Result<(), StoreError> {
        match known.get() {
            Some(None) => Ok(()),
            Some(Some(what)) => Err(StoreError::Damaged { path: self.path.clone(), what: what.clone() }),
            None => {
                let found = self.sound(&RUN_END);
                // Another error may be gone by the next time.
                let _ = match &found {
                    Ok(()) => known.set(None),
                    Err(StoreError::Damaged { what, .. }) => known.set(Some(what.clone())),
                    Err(_) => Ok(()),
                };
                found
            }
        }
    }

    fn cut_off(&self, id: &RunId, kind: RunKind) -> Result<CutOff, StoreError> {
        let trials = self.trials(id)?;
        let ended = trials.iter().rfind(|trial| trial.ended_unix_ms.is_some());
        let after = ended.map(|trial| (trial.head.purpose, trial.head.load));
        let within = trials.last().filter(|trial| trial.ended_unix_ms.is_none()).map(|trial| CutOffTrial {
            seq: trial.head.seq,
            purpose: trial.head.purpose,
            load: trial.head.load,
            whole_s: trial.whole_s,
        });
        let lines = match kind {
            RunKind::Climb | RunKind::Duel => None,
            RunKind::Bench => Some(self.lines(id)?.len() as u64),
        };
        Ok(CutOff { run: id.clone(), within, after, lines })
    }

    fn give_room_back(&self) -> rusqlite::Result<()> {
        let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum")?;
        // It frees one page per step, however few rows it returns.
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        Ok(())
    }

    fn must_exist(&self, run: &RunId) -> Result<(), StoreError> {
        if self.ids()?.given.contains(run) { Ok(()) } else { Err(self.unknown(run.as_str())) }
    }

    fn unknown(&self, text: &str) -> StoreError {
        let sql = "SELECT run FROM run UNION SELECT name FROM run WHERE name IS NOT NULL \
                   UNION SELECT value FROM label WHERE key = 'name' AND value IS NOT NULL";
        let names = self.connection.prepare_cached(sql).and_then(|mut statement| {
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            names.collect::<Result<Vec<_>, _>>()
        });
        // This error is about the name; a file that cannot list its names has already been reported elsewhere.
        let mut alike: Vec<(f64, String)> = names
            .unwrap_or_default()
            .into_iter()
            .map(|name| (strsim::jaro_winkler(text, &name), name))
            .filter(|(likeness, _)| *likeness > ALIKE)
            .collect();
        alike.sort_by(|one, other| other.0.total_cmp(&one.0));
        let nearest = alike.into_iter().take(3).map(|(_, name)| name).collect();
        StoreError::UnknownRun { path: self.path.clone(), text: text.to_owned(), nearest }
    }
}

/// Whether `run_end` is sound, once that is known: what is damaged of it, if anything.
type Soundness = OnceCell<Option<String>>;

/// The ids in a file that others may have written.
#[derive(Default)]
struct Ids {
    given: Vec<RunId>,
    /// what no store gives as an id
    not_given: Vec<String>,
}

/// Letters of what is no id that an error repeats.
const ID_SHOWN_MAX: usize = 60;

/// Jaro-Winkler likeness, in [0, 1], from which a name is worth suggesting.
const ALIKE: f64 = 0.7;

#[cfg(test)]
mod tests;
