//! The writer: one plain thread that owns the connection through which a run is recorded.
//!
//! A batch of entries is one transaction: a second is handed over as a whole, and a kill at any moment leaves whole
//! seconds. Committed data goes on to the subscriber, so what is shown is what is stored.
//! After the first error nothing more is written; the next call returns the reason, and everything before stays
//! readable.
//! One second with five distributions of 62,000 values is 25 KB and commits in 0.7 to 0.8 ms (median of 60), in 4 ms
//! (worst 10) while compilers fill both cores: `tests/it/speed.rs`, release, ext4 on a virtual disk, two cores.
//! Another process may add marks to the open trial (`mark.rs`): each transaction looks for them first and counts on behind them.
//! Not here: when things happened (times are arguments), the rows of an entry (`entries::keep`).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use measure::{Entry, TrialHead};
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::entries::{RowWriter, Unpacked, keep};
use crate::error::StoreError;
use crate::live::Live;
use crate::row::{Row, Table};
use crate::run::{RunEnd, RunHead, RunId, StoredLine, StoredVerdict};
use crate::tables::{self, ARTIFACT, EVENT, LINE, RUN, RUN_END, TABLES, TRIAL, TRIAL_END, USED_ID, VERDICT};

/// How many batches may wait for the disk before `append` blocks: a minute's, some 30 MB at most.
const QUEUE_BATCHES: usize = 64;

/// What was committed: from here on it survives a crash, and only such things are shown.
#[derive(Debug)]
pub struct Committed {
    /// the run
    pub run: RunId,
    /// number of the trial within the run
    pub trial: u32,
    /// one batch, as it was handed over
    pub entries: Vec<Entry>,
}

/// Records one run. Dropping it without `end_run` commits what waits and leaves the run as cut off.
#[derive(Debug)]
pub struct RunWriter {
    entries: EntrySender,
    thread: Option<JoinHandle<()>>,
}

/// Hands entries to the writer from any plain thread; as many as there are sources.
#[derive(Clone, Debug)]
pub struct EntrySender {
    run: RunId,
    letters: SyncSender<Letter>,
    failure: Arc<OnceLock<Arc<StoreError>>>,
}

#[derive(Debug)]
enum Request {
    Entries(Vec<Entry>),
    BeginTrial { head: TrialHead, started_unix_ms: u64 },
    EndTrial { ended_unix_ms: u64 },
    Verdict { trial: u32, verdict: StoredVerdict },
    Artifact { name: String, content: Vec<u8> },
    Line(StoredLine),
    EndRun(RunEnd),
    Close,
}

/// A request and, where its caller waits for the commit, whom to tell.
type Letter = (Request, Option<SyncSender<()>>);

/// Stores the head of a run, and the first trials of another where it goes on behind these, and starts its writer.
pub(crate) fn begin(
    path: &Path,
    mut connection: Connection,
    head: &RunHead,
    taken: Option<(&RunId, u32)>,
    committed: Option<Sender<Committed>>,
) -> Result<RunWriter, StoreError> {
    json("the plan", &head.plan)?;
    json("the environment", &head.environment)?;
    let file = identity(path);
    let (run, live, parts) = begin_run(path, &mut connection, head, taken)?;
    let (letters, waiting) = sync_channel(QUEUE_BATCHES);
    let failure = Arc::new(OnceLock::new());
    let entries = EntrySender { run: run.clone(), letters, failure: failure.clone() };
    let desk = Desk {
        path: path.to_owned(),
        file,
        connection,
        run,
        trial: None,
        unpacked: Unpacked::default(),
        next_trial: taken.map_or(0, |(_, trials)| trials),
        lines: 0,
        parts,
        committed,
    };
    let work = move || desk.work(waiting, live, &failure);
    let thread = std::thread::Builder::new().name("store".to_owned()).spawn(work).map_err(|error| {
        StoreError::CannotOpen { path: path.to_owned(), detail: format!("no thread for its writer: {error}") }
    })?;
    Ok(RunWriter { entries, thread: Some(thread) })
}

impl RunWriter {
    /// The id of the run being recorded.
    pub fn id(&self) -> &RunId {
        &self.entries.run
    }

    /// A handle through which a source hands over its entries.
    pub fn sender(&self) -> EntrySender {
        self.entries.clone()
    }

    /// Hands over a batch; see [`EntrySender::append`].
    pub fn append(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        self.entries.append(entries)
    }

    /// Begins the next trial; `head.seq` counts from 0. Returns when it is committed.
    pub fn begin_trial(&self, head: &TrialHead, started_unix_ms: u64) -> Result<(), StoreError> {
        self.entries.wait(Request::BeginTrial { head: head.clone(), started_unix_ms })
    }

    /// Ends the trial: everything handed over before is committed when it returns, and nothing may follow.
    pub fn end_trial(&self, ended_unix_ms: u64) -> Result<(), StoreError> {
        self.entries.wait(Request::EndTrial { ended_unix_ms })
    }

    /// Keeps what a judge said of a trial of this run. A later verdict of the same judge supersedes an earlier one.
    pub fn verdict(&self, trial: u32, verdict: StoredVerdict) -> Result<(), StoreError> {
        json("a verdict's evidence", &verdict.evidence)?;
        self.entries.wait(Request::Verdict { trial, verdict })
    }

    /// Keeps a file that belongs to the run; each name once.
    pub fn artifact(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.entries.wait(Request::Artifact { name: name.to_owned(), content: content.to_owned() })
    }

    /// Keeps a line of a bench run, in a transaction of its own. Returns before it is committed.
    ///
    /// Errors: `Unstorable` where it is not JSON, `WriterStopped` with what went wrong with an earlier one.
    pub fn line(&self, line: StoredLine) -> Result<(), StoreError> {
        json("a line of a client", &line.text)?;
        self.entries.letters.send((Request::Line(line), None)).map_err(|_| self.entries.stopped())
    }

    /// Ends the run; it may have a trial that did not end. When it returns, the one file holds everything.
    pub fn end_run(self, end: RunEnd) -> Result<(), StoreError> {
        if let Some(climb) = &end.climb {
            json("the climb", climb)?;
        }
        self.entries.wait(Request::EndRun(end))
    }

    /// What stopped the writer, if something did; for loops that hand over nothing for a while.
    pub fn failure(&self) -> Option<Arc<StoreError>> {
        self.entries.failure.get().cloned()
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        // Other handles keep the channel open, so the thread gets a message; a stopped one does not need it.
        let _ = self.entries.letters.send((Request::Close, None));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl EntrySender {
    /// Hands over a batch for the trial that is open; it becomes one transaction, so give a whole second at once.
    ///
    /// Returns before it is committed and blocks only when the disk is a minute behind.
    /// Errors: `WriterStopped`, with what went wrong with an earlier batch.
    pub fn append(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        self.letters.send((Request::Entries(entries), None)).map_err(|_| self.stopped())
    }

    fn wait(&self, request: Request) -> Result<(), StoreError> {
        let (done, finished) = sync_channel(1);
        self.letters.send((request, Some(done))).map_err(|_| self.stopped())?;
        finished.recv().map_err(|_| self.stopped())
    }

    fn stopped(&self) -> StoreError {
        let run = self.run.clone();
        match self.failure.get() {
            Some(cause) => StoreError::WriterStopped { run, cause: cause.clone() },
            None => StoreError::OutOfOrder {
                run,
                what: "its writer has ended, so nothing more is kept".to_owned(),
            },
        }
    }
}

/// What the writer's thread has before it.
struct Desk {
    path: PathBuf,
    /// which file stood there when the run began
    file: Option<(u64, u64)>,
    connection: Connection,
    run: RunId,
    /// the open trial and the position of its next entry
    trial: Option<(TrialHead, u64)>,
    unpacked: Unpacked,
    next_trial: u32,
    /// lines so far
    lines: u64,
    /// rows of `trial`, `trial_end`, `verdict`, `artifact` and `line` so far
    parts: u64,
    committed: Option<Sender<Committed>>,
}

impl Desk {
    /// Works until the run ends, its writer is dropped or something fails.
    fn work(mut self, letters: Receiver<Letter>, live: Live, failure: &OnceLock<Arc<StoreError>>) {
        for (request, done) in &letters {
            let last = matches!(request, Request::EndRun(_) | Request::Close);
            if let Err(error) = self.act(request) {
                // Before `done` and the channel are dropped, so that a caller that finds them gone finds the reason.
                let _ = failure.set(Arc::new(error));
                return;
            }
            if last {
                // Before the caller is told: it then finds a single closed file and no lock beside it.
                drop((self, live));
                done.map(|done| done.send(()));
                return;
            }
            // The caller may have given up waiting; its request is executed anyway.
            done.map(|done| done.send(()));
        }
    }

    fn act(&mut self, request: Request) -> Result<(), StoreError> {
        match request {
            Request::Entries(entries) => self.append(entries),
            Request::BeginTrial { head, started_unix_ms } => self.begin_trial(head, started_unix_ms),
            Request::EndTrial { ended_unix_ms } => self.end_trial(ended_unix_ms),
            Request::Verdict { trial, verdict } => self.verdict(trial, verdict),
            Request::Artifact { name, content } => {
                self.insert(&ARTIFACT, tables::artifact::values(&(name.as_str(), content.as_slice()))?)
            }
            Request::Line(line) => {
                self.lines += 1;
                self.insert(&LINE, tables::line::values(&(self.lines - 1, &line))?)
            }
            Request::EndRun(end) => self.end_run(end),
            Request::Close => Ok(()),
        }
    }

    fn append(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let Some((head, position)) = &mut self.trial else {
            return Err(out_of_order(&self.run, "entries came while no trial was open"));
        };
        let transaction = begin_immediate(&self.path, &mut self.connection)?;
        let mut stored = marked(&self.path, &transaction, &self.run, head.seq, position)?;
        let keeper = RowWriter { path: &self.path, connection: &transaction, run: &self.run, head };
        for entry in &entries {
            keep(&keeper, *position, entry)?;
            if let Entry::Interval(second) = entry {
                self.unpacked.add(second.index, *position);
            }
            *position += 1;
        }
        commit(&self.path, transaction)?;
        let seq = head.seq;
        stored.extend(entries);
        self.told(seq, stored);
        self.pack(seq)
    }

    /// Passes on what was committed of a trial. A subscriber that is gone does not end the run.
    fn told(&self, trial: u32, entries: Vec<Entry>) {
        if let Some(committed) = self.committed.as_ref().filter(|_| !entries.is_empty()) {
            let _ = committed.send(Committed { run: self.run.clone(), trial, entries });
        }
    }

    /// Packs old seconds of the open trial, a transaction for some of them at a time.
    fn pack(&mut self, trial: u32) -> Result<(), StoreError> {
        while self.unpacked.is_due() {
            let transaction = begin_immediate(&self.path, &mut self.connection)?;
            let packed = self.unpacked.pack(&transaction, &self.run, trial);
            packed.map_err(|error| error.into_store(&self.path))?;
            commit(&self.path, transaction)?;
        }
        Ok(())
    }

    fn begin_trial(&mut self, head: TrialHead, started_unix_ms: u64) -> Result<(), StoreError> {
        if let Some((open, _)) = &self.trial {
            let what = format!("trial {} was to begin while trial {} was open", head.seq, open.seq);
            return Err(out_of_order(&self.run, &what));
        }
        if head.seq != self.next_trial {
            let what = format!("trial {} was to begin where trial {} is next", head.seq, self.next_trial);
            return Err(out_of_order(&self.run, &what));
        }
        let names = &head.metric_names;
        for names in [&names.ops, &names.errors, &names.counters, &names.connect_failures] {
            let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            if let Some((_, name)) = twice {
                let what = format!("the metric_names of trial {} has `{name}` twice", head.seq);
                return Err(out_of_order(&self.run, &what));
            }
        }
        let row = tables::trial::values(&(&head, started_unix_ms))?;
        self.insert(&TRIAL, row)?;
        self.next_trial += 1;
        self.trial = Some((head, 0));
        self.unpacked = Unpacked::default();
        Ok(())
    }

    /// Errors: another file has this path, or none: SQLite keeps writing to a file that no longer has a name.
    fn must_be_there(&self) -> Result<(), StoreError> {
        if identity(&self.path) == self.file {
            Ok(())
        } else {
            Err(StoreError::Removed { path: self.path.clone() })
        }
    }

    fn end_trial(&mut self, ended_unix_ms: u64) -> Result<(), StoreError> {
        self.must_be_there()?;
        let Some((head, mut position)) = self.trial.take() else {
            return Err(out_of_order(&self.run, "a trial was to end while none was open"));
        };
        // In one transaction: a mark comes before it and is counted, or finds that the trial has ended.
        let transaction = begin_immediate(&self.path, &mut self.connection)?;
        let marks = marked(&self.path, &transaction, &self.run, head.seq, &mut position)?;
        let row = tables::trial_end::values(&(position, ended_unix_ms))?;
        TRIAL_END
            .insert_in_trial(&transaction, self.run.as_str(), head.seq, row)
            .map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        commit(&self.path, transaction)?;
        self.parts += 1;
        self.told(head.seq, marks);
        Ok(())
    }

    fn verdict(&mut self, trial: u32, verdict: StoredVerdict) -> Result<(), StoreError> {
        let transaction = begin_immediate(&self.path, &mut self.connection)?;
        let next = "SELECT coalesce(max(number) + 1, 0) FROM verdict WHERE run = ?1 AND trial = ?2";
        let number = transaction
            .query_row(next, params![self.run.as_str(), trial], |row| row.get::<_, i64>(0))
            .map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        let row = tables::verdict::values(&(number.unsigned_abs(), &verdict))?;
        VERDICT
            .insert_in_trial(&transaction, self.run.as_str(), trial, row)
            .map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        self.parts += 1;
        commit(&self.path, transaction)
    }

    fn end_run(&mut self, end: RunEnd) -> Result<(), StoreError> {
        self.must_be_there()?;
        let row = tables::run_end::values(&(&end, self.parts))?;
        self.insert(&RUN_END, row)?;
        // So that copying the single file copies everything. An active reader may prevent it, which does no harm.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(())
    }

    /// One row of the run, one transaction.
    fn insert(&mut self, table: &Table, row: Vec<Value>) -> Result<(), StoreError> {
        self.parts += 1;
        table
            .insert(&self.connection, self.run.as_str(), row)
            .map_err(|error| StoreError::from_sqlite(&self.path, error))
    }
}

/// What other processes added to the open trial since the last look; `position` moves behind it.
fn marked(
    path: &Path,
    transaction: &Transaction<'_>,
    run: &RunId,
    trial: u32,
    position: &mut u64,
) -> Result<Vec<Entry>, StoreError> {
    let mut marks = Vec::new();
    let behind = "run = ?1 AND trial = ?2 AND position >= ?3";
    // Positions come from a 64-bit signed column.
    let read = EVENT.for_each(transaction, behind, params![run.as_str(), trial, *position as i64], |row| {
        let (found, event) = tables::event::read(&row)?;
        *position = found.saturating_add(1);
        marks.push(Entry::Event(event));
        Ok(())
    });
    read.map_err(|error| error.into_store(path))?;
    Ok(marks)
}

/// Device and number of the file at a path. Asked by name: opening and closing it would drop SQLite's locks.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// The run, its lock, and how many rows of `parts` it has.
fn begin_run(
    path: &Path,
    connection: &mut Connection,
    head: &RunHead,
    taken: Option<(&RunId, u32)>,
) -> Result<(RunId, Live, u64), StoreError> {
    let told = |error| StoreError::from_sqlite(path, error);
    let stem = head.stem();
    let transaction = begin_immediate(path, connection)?;
    let next = |sql: &str| transaction.query_row(sql, [&stem], |row| row.get::<_, i64>(0)).map_err(told);
    let counted = next("SELECT coalesce(max(count), 0) + 1 FROM used_id WHERE stem = ?1")?;
    let number = next("SELECT coalesce(max(number), 0) + 1 FROM used_id WHERE ?1 IS NOT NULL")?;
    let run = RunId(format!("{stem}-{counted}"));
    // Locked before anyone can see the run, so that it is not mistaken for a dead one.
    let live = Live::begin(path, &run).map_err(|error| StoreError::CannotOpen {
        path: path.to_owned(),
        detail: format!("no lock file beside it: {error}"),
    })?;
    let id = tables::used_id::values(&(stem.as_str(), counted.unsigned_abs(), number.unsigned_abs()))?;
    USED_ID.insert(&transaction, run.as_str(), id).map_err(told)?;
    RUN.insert(&transaction, run.as_str(), tables::run::values(head)?).map_err(told)?;
    let parts = taken.map_or(Ok(0), |(old, trials)| take_over(path, &transaction, &run, old, trials))?;
    commit(path, transaction)?;
    Ok((run, live, parts))
}

/// Copies the first trials of a run into another, each row checked. Returns how many rows of `parts` that are.
fn take_over(
    path: &Path,
    transaction: &Transaction<'_>,
    run: &RunId,
    old: &RunId,
    trials: u32,
) -> Result<u64, StoreError> {
    let (mut begun, mut ended, mut judged) = (0, 0, 0);
    for table in TABLES.into_iter().filter(|table| table.is_of_trials()) {
        let keep = |mut row: Row| {
            row.values[0] = Value::Text(run.as_str().to_owned());
            table.insert_row(transaction, row.values)?;
            match table.name {
                "trial" => begun += 1,
                "trial_end" => ended += 1,
                "verdict" => judged += 1,
                _ => {}
            }
            Ok(())
        };
        let read =
            table.for_each(transaction, "run = ?1 AND trial < ?2", params![old.as_str(), trials], keep);
        read.map_err(|error| error.into_store(path))?;
    }
    if begun != trials || ended != trials {
        return Err(out_of_order(
            run,
            &format!("it was to begin with {trials} trials of run {old}, of which {ended} have ended"),
        ));
    }
    Ok(u64::from(begun) + u64::from(ended) + judged)
}

fn begin_immediate<'c>(path: &Path, connection: &'c mut Connection) -> Result<Transaction<'c>, StoreError> {
    connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| StoreError::from_sqlite(path, error))
}

fn commit(path: &Path, transaction: Transaction<'_>) -> Result<(), StoreError> {
    transaction.commit().map_err(|error| StoreError::from_sqlite(path, error))
}

fn out_of_order(run: &RunId, what: &str) -> StoreError {
    StoreError::OutOfOrder { run: run.clone(), what: what.to_owned() }
}

/// Refuses what is not JSON while the caller is still there to be told, rather than in the writer's thread.
fn json(what: &str, text: &str) -> Result<(), StoreError> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(StoreError::Unstorable { what: what.to_owned(), detail: format!("it is not JSON: {error}") })
        }
    }
}

#[cfg(test)]
mod tests;
