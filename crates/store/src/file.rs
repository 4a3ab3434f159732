//! The file: whether it is ours, how it is created, how connections to it are set up.
//!
//! All access goes through SQLite, never by opening the file separately: POSIX drops all of a process's locks on a file
//! as soon as the process closes *any* descriptor of it, so a reader would unlock our own writer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{PATIENCE_S, StoreError};
use crate::schema::{self, Limits};
use crate::{guard, tables};

/// `STLD`: says in the header of the file whose it is.
const APPLICATION_ID: i64 = 0x5354_4C44;
/// The only version of the tables that this code reads and writes. 2 added the books of deliveries,
/// 3 the cell of a trial, 5 the kind of a run and the lines of client libraries' processes,
/// 6 the kind `duel`.
pub const VERSION: i64 = 8;

/// Opens an existing store. Errors: any reason why it is not one; the file is left untouched.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(StoreError::NoStore { path: path.to_owned() });
    }
    let ours = |(connection, owner)| match owner {
        Owner::Ours => Ok(connection),
        // Empty: a store is being created, or never was.
        Owner::None => Err(StoreError::NoStore { path: path.to_owned() }),
    };
    match connect(path, OpenFlags::empty()).and_then(ours) {
        Err(StoreError::CannotOpen { .. }) if is_at_rest(path) => ours(connect_at_rest(path)?),
        other => other,
    }
}

/// Whether everything of the store is in its one file, so that it can be read where nothing may be written beside it.
fn is_at_rest(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    path.is_file() && !Path::new(&log).metadata().is_ok_and(|log| log.len() > 0)
}

/// Opens a store on read-only media, or in a read-only folder: SQLite's own way of reading needs a file beside the
/// store.
fn connect_at_rest(path: &Path) -> Result<(Connection, Owner), StoreError> {
    let told = |error| StoreError::from_sqlite(path, error);
    let mut uri = String::from("file:");
    for byte in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte))
            }
            other => uri += &format!("%{other:02X}"),
        }
    }
    uri += "?immutable=1";
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    look(path, Connection::open_with_flags(uri, flags).map_err(told)?)
}

/// trusted_schema: a foreign store must not run its own functions.
const SETTINGS: &str = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; \
                        PRAGMA cell_size_check = ON;";

/// Opens a store that exists and lets nothing be written through this connection.
///
/// Not with SQLite's read-only flag: such a connection, when it is the last to close, leaves the WAL beside the store.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let connection = open(path)?;
    connection
        .execute_batch("PRAGMA query_only = ON;")
        .map_err(|error| StoreError::from_sqlite(path, error))?;
    Ok(connection)
}

/// Opens a store or makes it. An empty file has no owner and becomes one.
pub(crate) fn open_or_create(path: &Path) -> Result<Connection, StoreError> {
    let (mut connection, owner) = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    if let Owner::None = owner {
        create(path, &mut connection)?;
    }
    Ok(connection)
}

enum Owner {
    Ours,
    None,
}

fn connect(path: &Path, more: OpenFlags) -> Result<(Connection, Owner), StoreError> {
    // Opening a FIFO would wait for its peer, and a device has no pages.
    if path.metadata().is_ok_and(|file| !file.is_file() && !file.is_dir()) {
        let detail = "it is not a regular file".to_owned();
        return Err(StoreError::CannotOpen { path: path.to_owned(), detail });
    }
    let told = |error| StoreError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags).map_err(told)?;
    connection.busy_timeout(Duration::from_secs(PATIENCE_S)).map_err(told)?;
    connection.set_prepared_statement_cache_capacity(64);
    look(path, connection)
}

/// Finds out whose the file is, before a statement could run SQL of the file, and sets the connection up.
fn look(path: &Path, mut connection: Connection) -> Result<(Connection, Owner), StoreError> {
    let told = |error| StoreError::from_sqlite(path, error);
    Limits::OfUnknown.set(&mut connection).map_err(told)?;
    // In one transaction: another process may be creating the store right now.
    let moment = connection.unchecked_transaction().map_err(told)?;
    let owner = owner(path, &moment)?;
    drop(moment);
    Limits::OfOurs.set(&mut connection).map_err(told)?;
    connection.execute_batch(SETTINGS).map_err(told)?;
    Ok((connection, owner))
}

/// Call it inside a transaction. `quick_check` has no part in it: it would evaluate the constraints of unknown tables.
fn owner(path: &Path, connection: &Connection) -> Result<Owner, StoreError> {
    // The marks come first: neither PRAGMA reads the schema, which may be any other program's.
    let mark = |pragma| {
        let asked = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        asked.map_err(|error| StoreError::from_sqlite(path, error))
    };
    let (application_id, found) = (mark("application_id")?, mark("user_version")?);
    let path = path.to_owned();
    match (application_id, found) {
        (0, 0) => match schema::is_empty(connection) {
            Ok(true) => Ok(Owner::None),
            Err(error) if !schema::is_beyond_limits(&error) => Err(unread(path, error)),
            _ => Err(StoreError::Foreign { path, application_id }),
        },
        (APPLICATION_ID, VERSION) => match schema::difference(connection) {
            Ok(None) => Ok(Owner::Ours),
            Ok(Some(what)) => Err(StoreError::OtherTables { path, what }),
            Err(error) => Err(unread(path, error)),
        },
        (APPLICATION_ID, newer) if newer > VERSION => Err(StoreError::Newer { path, found, ours: VERSION }),
        (APPLICATION_ID, _) => Err(StoreError::Older { path, found, ours: VERSION }),
        _ => Err(StoreError::Foreign { path, application_id }),
    }
}

/// The schema could not be read.
fn unread(path: PathBuf, error: rusqlite::Error) -> StoreError {
    if schema::is_beyond_limits(&error) {
        let what = "a definition is too long, or there are too many".to_owned();
        return StoreError::OtherTables { path, what };
    }
    match StoreError::from_sqlite(&path, error) {
        // It repeats names of the file.
        StoreError::Damaged { path, what } => StoreError::Damaged { path, what: schema::shown(&what) },
        other => other,
    }
}

fn create(path: &Path, connection: &mut Connection) -> Result<(), StoreError> {
    let told = |error| StoreError::from_sqlite(path, error);
    // Before the first table, or it has no effect: a deleted run then returns its pages to the disk.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;").map_err(told)?;
    let making = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(told)?;
    // Another process may have created it while we waited for the lock.
    if let Owner::None = owner(path, &making)? {
        making.execute_batch(&tables::schema()).map_err(told)?;
        making.execute_batch(&guard::triggers()).map_err(told)?;
        making.pragma_update(None, "application_id", APPLICATION_ID).map_err(told)?;
        making.pragma_update(None, "user_version", VERSION).map_err(told)?;
    }
    making.commit().map_err(told)
}

/// What SQLite's own check finds first, where the error says that the file is damaged.
pub(crate) fn damage_in_words(path: &Path, connection: &Connection, error: rusqlite::Error) -> StoreError {
    let said = StoreError::from_sqlite(path, error);
    let StoreError::Damaged { path, what } = said else { return said };
    // Bounded, because checking a large file would delay the message; the first finding is enough.
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match found {
        Ok(finding) if finding != "ok" => StoreError::Damaged { path, what: format!("{what}: {finding}") },
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            StoreError::NotSqlite { path }
        }
        _ => StoreError::Damaged { path, what },
    }
}
