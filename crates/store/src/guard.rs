//! Triggers that protect stored data: no row is edited except a label's value, none is deleted except with its whole
//! run.
//!
//! They live in the file, so they also stop a person at an SQLite shell. `DELETE FROM run WHERE run = 'master-3'`
//! deletes everything of that run, whether the shell enforces foreign keys or not: the run's own row goes first, and a
//! row whose run is gone may follow. A row that was packed may go too.

use std::collections::BTreeMap;

use crate::entries::PACKED;
use crate::row::Table;
use crate::tables::TABLES;

/// The triggers as SQL.
pub(crate) fn triggers() -> String {
    let mut sql = String::new();
    let names = || TABLES.iter().map(|table| table.name);
    for table in names().chain(["used_id"]) {
        sql += &format!(
            "CREATE TRIGGER {table}_is_never_edited BEFORE UPDATE ON {table} BEGIN \
             SELECT RAISE(ABORT, 'rows of {table} are never edited, only superseded'); END;\n"
        );
    }
    sql += "CREATE TRIGGER label_keeps_its_key BEFORE UPDATE OF run, key ON label BEGIN \
            SELECT RAISE(ABORT, 'only the value of a label may be edited'); END;\n";
    sql += "CREATE TRIGGER used_id_is_kept BEFORE DELETE ON used_id BEGIN \
            SELECT RAISE(ABORT, 'an id that was given is never given again'); END;\n";
    let but_packed: BTreeMap<&str, String> =
        PACKED.iter().map(|table| (table.name, unless_packed(table))).collect();
    for table in names().chain(["label"]).filter(|table| *table != "run") {
        let but_packed = but_packed.get(table).map_or("", String::as_str);
        sql += &format!(
            "CREATE TRIGGER {table}_goes_with_its_run BEFORE DELETE ON {table} \
             WHEN EXISTS (SELECT 1 FROM run WHERE run = OLD.run){but_packed} BEGIN \
             SELECT RAISE(ABORT, 'only whole runs are deleted: DELETE FROM run WHERE run = …'); END;\n"
        );
    }
    // Children before parents: they come later in the list.
    let children: String = TABLES
        .iter()
        .rev()
        .map(|table| table.name)
        .chain(["label"])
        .filter(|table| *table != "run")
        .map(|table| format!("DELETE FROM {table} WHERE run = OLD.run; "))
        .collect();
    sql += &format!("CREATE TRIGGER run_goes_whole AFTER DELETE ON run BEGIN {children}END;\n");
    sql
}

/// More of a condition: the old row of `table` is in no pack. No pack before it: there is none.
fn unless_packed(table: &Table) -> String {
    let key = table.columns[0].name;
    format!(
        " AND coalesce(OLD.{key} > (SELECT last FROM pack WHERE run = OLD.run AND trial = OLD.trial \
         AND of_table = '{}' AND first <= OLD.{key} ORDER BY first DESC LIMIT 1), 1)",
        table.name
    )
}
