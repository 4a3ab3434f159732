//! What can go wrong with a store, in messages that say what to do.
//!
//! Nothing here ever overwrites or repairs a file: a store that cannot be trusted is reported and left unchanged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use measure::Imbalance;
use measure::ledger::BooksImbalance;
use rusqlite::ErrorCode;

use crate::run::RunId;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file at that path. Remedy: another path, or climb first.
    #[error("there is no store at {}; a climb makes one, or name another file with --store FILE", path.display())]
    NoStore {
        /// as given
        path: PathBuf,
    },
    /// The file is something else altogether. Remedy: another path.
    #[error("{} is not an SQLite file and was left untouched; name another file with --store FILE", path.display())]
    NotSqlite {
        /// as given
        path: PathBuf,
    },
    /// The file is another program's database. Remedy: another path.
    #[error(
        "{} is an SQLite database of another program (application id {application_id}) and was left untouched; \
         name another file with --store FILE", path.display()
    )]
    Foreign {
        /// as given
        path: PathBuf,
        /// what its header says; 0 when it says nothing
        application_id: i64,
    },
    /// A later Stepladder wrote it. Remedy: update, or keep a file per version.
    #[error(
        "{} was written by a newer Stepladder (store version {found}, this one reads {ours}) and was left untouched; \
         update Stepladder or name another file with --store FILE", path.display()
    )]
    Newer {
        /// as given
        path: PathBuf,
        /// its version
        found: i64,
        /// the only one we read
        ours: i64,
    },
    /// An earlier Stepladder wrote it. Remedy: that version reads it; a new file for new runs.
    #[error(
        "{} was written by an older Stepladder (store version {found}, this one reads {ours}) and was left untouched; \
         export its runs with that version, or name a new file with --store FILE", path.display()
    )]
    Older {
        /// as given
        path: PathBuf,
        /// its version
        found: i64,
        /// the only one we read
        ours: i64,
    },
    /// Its tables, views, indexes or triggers are not those of this version. Remedy: another path; views of one's own belong
    /// into a database that attaches the store.
    #[error(
        "{} does not have the tables and triggers that Stepladder makes ({what}) and was left untouched; \
         name another file with --store FILE", path.display()
    )]
    OtherTables {
        /// as given
        path: PathBuf,
        /// the first that differs
        what: String,
    },
    /// Bytes of the file are not what was written. Remedy: the other trials and runs are readable; keep a copy.
    #[error("{} is damaged: {what}; nothing was changed, and whatever else is intact can still be read", path.display())]
    Damaged {
        /// as given
        path: PathBuf,
        /// where and how
        what: String,
    },
    /// The disk is full. Remedy: make room; whatever was committed before is intact.
    #[error(
        "the disk that holds {} is full; what was committed before is intact and readable; make room and run again",
        path.display()
    )]
    DiskFull {
        /// as given
        path: PathBuf,
    },
    /// The disk refused to write or to sync. Remedy: look at the disk; whatever was committed before is readable.
    #[error(
        "the disk failed under {} ({detail}); what was committed before is readable; check the disk, and the limit of a \
         file's size (ulimit -f)", path.display()
    )]
    DiskFailed {
        /// as given
        path: PathBuf,
        /// SQLite's words
        detail: String,
    },
    /// Another process holds the file. Remedy: wait for it or end it.
    #[error("{} is being written by another process that did not let go for {waited_s} s; try again", path.display())]
    Busy {
        /// as given
        path: PathBuf,
        /// how long we waited
        waited_s: u64,
    },
    /// The path cannot be opened or written. Remedy: permissions, another path.
    #[error("cannot open {} ({detail}); check that the folder exists and may be written", path.display())]
    CannotOpen {
        /// as given
        path: PathBuf,
        /// the system's or SQLite's words
        detail: String,
    },
    /// The file was removed or replaced while a run was recorded. Remedy: run again; what was measured is lost.
    #[error(
        "{} was removed or replaced while a run was recorded into it, so the run is not there; run again", path.display()
    )]
    Removed {
        /// as given
        path: PathBuf,
    },
    /// Anything else that SQLite says: a bug of ours.
    #[error("{}: {detail}", path.display())]
    Sqlite {
        /// as given
        path: PathBuf,
        /// SQLite's words
        detail: String,
    },
    /// No run has this id, prefix or name. Remedy: `stepladder runs`.
    #[error("{}: there is no run `{text}`{}; `stepladder runs` lists all", path.display(), did_you_mean(nearest))]
    UnknownRun {
        /// as given
        path: PathBuf,
        /// what was looked for
        text: String,
        /// ids and names that look alike, nearest first
        nearest: Vec<String>,
    },
    /// Several runs have an id that begins so. Remedy: write more of it.
    #[error("{}: `{text}` may be {}; write one of them", path.display(), listed(candidates))]
    AmbiguousRun {
        /// as given
        path: PathBuf,
        /// what was looked for
        text: String,
        /// all that begin so, oldest first
        candidates: Vec<RunId>,
    },
    /// The run has no trial of this number.
    #[error("run {run} has no trial {trial}")]
    UnknownTrial {
        /// the run
        run: RunId,
        /// what was looked for
        trial: u32,
    },
    /// A run that is being recorded cannot be deleted. Remedy: end it first.
    #[error("run {run} is being recorded at this moment; end it before deleting it")]
    StillRecorded {
        /// the run
        run: RunId,
    },
    /// No process is recording the run, so nothing can be added to it. Remedy: mark a run that is in progress.
    #[error(
        "run {run} is not being recorded, so nothing can be marked in it; stepladder runs lists those that are"
    )]
    NotRecorded {
        /// the run
        run: RunId,
    },
    /// A second whose books do not add up is never stored: a bug of ours.
    #[error("run {run}, trial {trial}: second {second} does not balance and was not stored: {imbalance}")]
    Unbalanced {
        /// the run
        run: RunId,
        /// its trial
        trial: u32,
        /// since the start of the trial
        second: u32,
        /// which law it breaks
        imbalance: Imbalance,
    },
    /// Books of deliveries that contradict themselves are never stored: a bug of ours.
    #[error(
        "run {run}, trial {trial}: the books of its deliveries do not balance and were not stored: {imbalance}"
    )]
    UnbalancedBooks {
        /// the run
        run: RunId,
        /// its trial
        trial: u32,
        /// which law they break
        imbalance: BooksImbalance,
    },
    /// The caller did things out of order: a bug of ours.
    #[error("run {run}: {what}")]
    OutOfOrder {
        /// the run
        run: RunId,
        /// what is out of order
        what: String,
    },
    /// A value that the store cannot hold: a bug of ours.
    #[error("{what} cannot be stored: {detail}")]
    Unstorable {
        /// which value
        what: String,
        /// why
        detail: String,
    },
    /// The writer stopped earlier; the source says why. Everything committed before is readable.
    #[error("run {run} is no longer recorded: {cause}")]
    WriterStopped {
        /// the run
        run: RunId,
        /// what stopped it
        cause: Arc<StoreError>,
    },
    /// A comparison of client libraries has lines of its own, and no seconds. Remedy: the export of its rows.
    #[error(
        "run {run} compared client libraries and has no seconds; stepladder export {run} writes its rows"
    )]
    NoSeconds {
        /// which
        run: RunId,
    },
    /// An export could not be written where it was to go.
    #[error("cannot write the export {to}: {detail}")]
    Output {
        /// a path, or `to its stream`
        to: String,
        /// the system's words
        detail: String,
    },
}

/// How long a statement waits for another process, s. Commits take milliseconds; only a stuck disk takes this long.
pub(crate) const PATIENCE_S: u64 = 10;

impl StoreError {
    /// Gives SQLite's error the place where it happened and the remedy.
    pub(crate) fn from_sqlite(path: &Path, error: rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let detail = error.to_string();
        // We write every column with one type; a value of another type was not written by us.
        if let rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) = error
        {
            return StoreError::Damaged { path, what: detail };
        }
        let code = match &error {
            rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
            other => other.sqlite_error_code(),
        };
        match code {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull { path },
            Some(ErrorCode::SystemIoFailure) => StoreError::DiskFailed { path, detail },
            // Our statements are fixed and tested; if SQLite cannot execute one, the tables are damaged.
            Some(ErrorCode::Unknown) => {
                StoreError::Damaged { path, what: format!("its tables are not as they were made ({detail})") }
            }
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, what: detail },
            Some(ErrorCode::NotADatabase) => StoreError::NotSqlite { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Busy { path, waited_s: PATIENCE_S }
            }
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StoreError::CannotOpen { path, detail }
            }
            _ => StoreError::Sqlite { path, detail },
        }
    }

    /// True when bytes of the file are not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, StoreError::Damaged { .. })
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; the nearest are {}", names.join(", ")),
    }
}

fn listed(candidates: &[RunId]) -> String {
    candidates.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ")
}
