//! A store that somebody sent along, or in an unsuitable place: its contents lead to no file but its own, and its
//! location is no reason to block, to write or to lose a run silently.

use std::path::Path;

use rusqlite::Connection;
use store::Store;

use crate::given::{self, Given};

/// A store with one run of ours and one row for each of these ids, as an SQLite shell writes them.
fn with_ids(ids: &[&str]) -> Given {
    let given = given::store();
    given.store.begin_run(&given::run_head(None), None).unwrap().end_run(given::finished()).unwrap();
    let shell = Connection::open(&given.path).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF; CREATE TEMP TABLE one AS SELECT * FROM run;").unwrap();
    for id in ids {
        shell.execute("UPDATE one SET run = ?1", [id]).unwrap();
        shell.execute("INSERT INTO run SELECT * FROM one", []).unwrap();
    }
    given
}

fn beside(given: &Given, end: &str) -> std::path::PathBuf {
    let mut path = given.path.clone().into_os_string();
    path.push(end);
    path.into()
}

#[test]
fn an_id_that_is_a_path_removes_no_file() {
    let given = with_ids(&["x/../victim.txt", "x/../victim-1"]);
    // With this folder the two paths lead outside the store's own names.
    std::fs::create_dir(beside(&given, "-live-x")).unwrap();
    let victims = ["victim.txt", "victim-1"].map(|name| given.path.with_file_name(name));
    victims.iter().for_each(|path| std::fs::write(path, "dear").unwrap());
    let list = given.store.runs().unwrap();
    assert_eq!(list.runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["arena-1"]);
    let said: Vec<String> = list.damaged.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.contains("\"x/../victim.txt\" is no id that Stepladder gives")),
        "{said:?}"
    );
    for id in ["x/../victim.txt", "x/../victim-1"] {
        assert!(given.store.find_run(id).is_err(), "{id}");
    }
    let damage = given.store.check().unwrap();
    assert!(damage.iter().any(|text| text.contains("victim-1")), "{damage:?}");
    for path in victims {
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear", "{}", path.display());
    }
}

#[test]
fn a_name_that_leads_to_a_path_is_no_run() {
    let given = with_ids(&["x/../victim-1"]);
    let shell = Connection::open(&given.path).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF;").unwrap();
    let copied = "INSERT INTO used_id SELECT 'x/../victim-1', 'gift', 1, 99, crc FROM used_id LIMIT 1";
    shell.execute(copied, []).unwrap();
    let said = given.store.find_run("gift").unwrap_err().to_string();
    assert!(said.contains("is no id that Stepladder gives"), "{said}");
}

#[test]
fn an_id_of_any_length_or_letter_is_said_in_one_short_line() {
    let long = "é\n".repeat(100_000);
    let given = with_ids(&[&long, "\u{1b}[2J-1"]);
    for error in given.store.runs().unwrap().damaged {
        let text = error.to_string();
        assert!(text.len() < 500 && !text.contains(['\n', '\u{1b}']), "{text:?}");
    }
}

#[test]
fn a_reader_takes_no_file_away_that_it_did_not_make() {
    let given = with_ids(&[]);
    let lock = beside(&given, "-live-arena-1");
    std::fs::write(&lock, "").unwrap();
    let look = |path: &Path| Store::open(path).unwrap().runs().unwrap().runs.len();
    assert_eq!(look(&given.path), 1);
    assert!(lock.exists());
}

#[test]
fn a_fifo_or_a_device_is_no_store_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.db");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo.as_path(), Path::new("/dev/zero")] {
        for opened in [Store::open(path), Store::open_or_create(path)] {
            let said = opened.unwrap_err().to_string();
            assert!(said.contains("it is not a regular file"), "{said}");
        }
    }
}

#[test]
fn a_store_that_is_removed_or_replaced_under_a_run_is_said_and_not_taken_for_recorded() {
    let remove = |path: &Path| std::fs::remove_file(path).unwrap();
    let replace = |path: &Path| {
        let other = path.with_extension("other");
        std::fs::write(&other, "").unwrap();
        std::fs::rename(other, path).unwrap();
    };
    for harm in [&remove as &dyn Fn(&Path), &replace] {
        let given = given::store();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        writer.begin_trial(&given::trial_head(0, 1.0), 1).unwrap();
        harm(&given.path);
        let said = writer.end_trial(2).unwrap_err().to_string();
        assert!(said.contains("was removed or replaced while a run was recorded"), "{said}");
        assert!(writer.end_run(given::finished()).is_err());
    }
}

/// In a place without write access, as on read-only media. A process that may write everywhere is not stopped by
/// permissions: this one then switches to another user for the check.
#[test]
fn a_store_in_a_folder_that_takes_no_files_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let given = with_ids(&[]);
    let folder = given.path.parent().unwrap();
    let allow =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let Given { path, store, .. } = &given;
    assert_eq!(store.runs().unwrap().runs.len(), 1);
    let copy = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let read_only = copy.path().join("a store?.db");
    std::fs::copy(path, &read_only).unwrap();
    allow(&read_only, 0o444);
    allow(copy.path(), 0o555);
    let me = user();
    let seen = std::thread::scope(|scope| {
        let look = || {
            become_nobody(me);
            Store::open(&read_only).and_then(|store| Ok((store.runs()?.runs.len(), store.check()?)))
        };
        scope.spawn(look).join().unwrap()
    });
    allow(copy.path(), 0o755);
    assert_eq!(seen.unwrap(), (1, vec![]));
}

fn user() -> u32 {
    // SAFETY: it only asks.
    unsafe { libc::geteuid() }
}

/// Of this thread alone: the system call knows nothing of the others, as the function of the C library would.
fn become_nobody(me: u32) {
    const NOBODY: libc::c_long = 65_534;
    if me == 0 {
        // SAFETY: a plain system call with three numbers.
        let status = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        assert_eq!(status, 0, "a thread of root may become somebody else");
    }
}
