//! User mistakes: refused before anything is started, with what to do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::place::{Place, words_of};

#[track_caller]
fn check(words: &[&str], code: i32, fragments: &[&str]) {
    let place = Place::new();
    place.climb(words).refused(code, fragments);
    assert!(!place.path("stepladder.db").exists(), "nothing was begun");
}

#[test]
fn an_unknown_subject_is_refused_with_the_nearest_one() {
    check(&["arenaa"], 3, &["unknown subject \"arenaa\"", "did you mean arena?", "climb arena"]);
    check(&[], 3, &["which server", "climb arena"]);
    check(&["echo"], 3, &["no server for echo bots is built in", "ws://"]);
}

#[test]
fn an_unknown_flag_is_refused_with_the_nearest_one() {
    check(&["arena", "--rungz", "10"], 3, &["--rungz", "--rungs"]);
    Place::new().run(["clim", "arena"]).refused(3, &["clim", "climb"]);
}

#[test]
fn rungs_that_are_no_loads_are_refused_with_an_example() {
    let example = "--rungs 500,1000,2000";
    check(&["arena", "--rungs", ""], 3, &["--rungs", "no rung", example]);
    check(&["arena", "--rungs", "0"], 3, &["--rungs", "zero", example]);
    check(&["arena", "--rungs", "10,-5"], 3, &["--rungs", "\"-5\" is negative", example]);
    check(
        &["arena", "--rungs", "ten,many"],
        3,
        &["\"ten\" is not a number", "\"many\" is not a number", example],
    );
}

#[test]
fn other_values_are_refused_by_name() {
    check(&["arena", "--hold", "3"], 3, &["--hold", "60s"]);
    check(
        &["arena", "--objective", "ticks.late_shar < 3%"],
        3,
        &["ticks.late_shar", "did you mean ticks.late_share?"],
    );
    check(&["http://127.0.0.1:1", "--bots", "arena"], 3, &["http", "ws"]);
    check(&["arena", "--seed", "x"], 3, &["--seed"]);
}

#[test]
fn mistakes_in_a_chat_are_refused_all_at_once() {
    check(
        &["chat", "--gap", "100us", "--line", "5", "--room", "#lobby", "--misbehave", "slwo-reader=5%"],
        3,
        &[
            "--gap: 100us asks each bot for 10000 lines/s",
            "--line: must be between 15 and 4096, got 5",
            "--room: \"#lobby\" is no name for a room",
            "did you mean slow-reader?",
            "--misbehave slow-reader=5%",
        ],
    );
    check(
        &["chat", "--misbehave", "stalled=60%", "--misbehave", "slow-reader=50%"],
        3,
        &["add up to 110%, but there is only 100%"],
    );
    check(
        &["irc://127.0.0.1", "--line", "15..500"],
        3,
        &["a line of 500 bytes does not fit into IRC", "399"],
    );
    check(&["ws://127.0.0.1:1", "--bots", "chat"], 3, &["chat bots do not speak over ws://", "tcp://"]);
    check(&["arena", "--talkers", "5"], 3, &["talkers is for chat bots; these are arena bots"]);
    check(&["arena", "--objective", "deliveries.lost == 0"], 3, &["these bots send no broadcasts"]);
}

#[test]
fn a_ledger_larger_than_the_memory_is_named_before_any_load_with_a_remedy() {
    check(
        &["tcp://127.0.0.1:1", "--rungs", "1000000"],
        2,
        &["rung 1000000", "takes 8006 GB of memory", "available", "take fewer clients", "--talkers N"],
    );
}

#[test]
fn options_of_the_built_in_server_are_read_before_it_is_started() {
    check(&["arena", "--", "--nope"], 3, &["options after --", "--nope", "stepladder serve arena --help"]);
    check(&["arena", "--", "--tick-rate", "0"], 3, &["options after --", "tick-rate 30"]);
    check(&["arena", "--", "--ticker", "lazy"], 3, &["options after --", "lazy", "steady"]);
}

#[test]
fn an_unknown_key_in_a_scenario_is_refused_with_its_line_the_nearest_key_and_an_example() {
    let place = Place::new();
    place.write("game.yaml", "subject: arena\nbots: arena\nladder:\n  rngs: [10]\n");
    place
        .climb(&["game.yaml"])
        .refused(3, &["game.yaml:4:", "\"rngs\"", "did you mean rungs?", "rungs: [500, 1000, 2000]"]);
    assert!(!place.path("stepladder.db").exists(), "nothing was begun");
}

#[test]
fn a_scenario_that_is_not_there_is_refused() {
    check(&["missing.yaml"], 3, &["missing.yaml", "cannot be read", "check the path"]);
}

#[test]
fn a_scenario_that_is_no_regular_file_or_has_no_end_is_refused_at_once() {
    let place = Place::new();
    let fifo = place.path("pipe.yaml");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.yaml")).expect("a link");
    fs::create_dir(place.path("folder.yaml")).expect("a folder");
    place.write("long.yaml", &"# x\n".repeat((4 << 20) / 4 + 1));
    for (name, what) in [
        ("pipe.yaml", "it is a pipe; name a regular file"),
        ("zero.yaml", "it is a device; name a regular file"),
        ("folder.yaml", "it is a folder; name a regular file"),
        ("long.yaml", "it is longer than 4 MiB, which is the most that is read; shorten it"),
    ] {
        place.climb(&[name]).refused(3, &[name, what]);
    }
    place.run(["ticks", "/dev/zero"]).fails(3, &[]);
    assert!(!place.path("stepladder.db").exists(), "nothing was begun");
}

#[test]
fn an_argument_that_is_not_utf8_is_taken_where_it_is_a_path() {
    let place = Place::new();
    let store = OsStr::from_bytes(b"\xff.db");
    let words = ["climb", "arena", "--rungs", "1", "--hold", "1s", "--settle", "100ms", "--store"];
    let ran = place.run(words.into_iter().map(OsStr::new).chain([store]));
    // Whatever a second measures on a busy machine; a panic is 101.
    assert!((0..=2).contains(&ran.code) && !ran.err.contains("panicked"), "{ran:#?}");
    let runs = place.run([OsStr::new("runs"), OsStr::new("--store"), store]);
    assert_eq!(runs.code, 0, "{runs:#?}");
}

#[test]
fn a_result_that_could_not_be_written_is_known_before_the_climb() {
    check(
        &["arena", "--rungs", "2", "--json", "no/such/folder/run.json"],
        3,
        &["--json no/such/folder/run.json", "cannot be written"],
    );
}

#[test]
fn a_file_that_is_no_store_is_named_and_left_as_it_is() {
    let place = Place::new();
    place.write(
        "notes.txt",
        "shopping list, not a database, and longer than a header of SQLite would be at all",
    );
    rusqlite::Connection::open(place.path("other.db"))
        .and_then(|file| file.execute_batch("PRAGMA application_id = 77; CREATE TABLE t(x);"))
        .expect("another program's database");
    for (file, fragment) in [("notes.txt", "is not an SQLite file"), ("other.db", "application id 77")] {
        let before = fs::read(place.path(file)).expect("the file");
        let fragments = [file, fragment, "left untouched", "--store FILE"];
        place.climb(&["arena", "--rungs", "2", "--store", file]).refused(3, &fragments);
        place.run(["runs", "--store", file]).refused(3, &fragments);
        place.run(["show", "x", "--store", file]).refused(3, &fragments);
        assert_eq!(fs::read(place.path(file)).expect("the file"), before);
    }
    place
        .run(["runs", "--store", "none.db"])
        .refused(3, &["there is no store at none.db", "a climb makes one"]);
}

#[test]
fn a_store_of_another_version_is_named_with_both_versions() {
    let place = Place::new();
    // A climb that is refused for its target has created the store already; otherwise this test would cost a climb.
    place.climb(&["ws://127.0.0.1:1", "--bots", "arena", "--rungs", "2"]).refused(2, &["cannot reach"]);
    rusqlite::Connection::open(place.path("stepladder.db"))
        .and_then(|file| file.pragma_update(None, "user_version", 999))
        .expect("the store of the future");
    for command in
        [vec!["runs"], vec!["show", "x"], vec!["again", "x"], vec!["climb", "arena", "--rungs", "2"]]
    {
        place.run(command).refused(3, &["newer Stepladder", "store version 999", "left untouched"]);
    }
}

#[test]
fn too_few_descriptors_are_named_before_any_load_with_a_remedy() {
    let place = Place::new();
    let mut command =
        place.command(["climb", "arena", "--rungs", "10,500", "--workers", "1", "--json", "run.json"]);
    // SAFETY: between fork and exec only a system call is made.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 300, rlim_max: 300 };
            match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    place.start_command(command).finish().refused(
        2,
        &["rung 500", "1000 connections over 1 workers", "300 per table", "--workers", "ulimit -Hn"],
    );
    assert!(!place.path("stepladder.db").exists() && !place.path("run.json").exists(), "nothing was begun");
}

#[test]
fn a_taken_port_is_named_whoever_wants_it() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let serve = place.run(["serve", "arena", "--listen", &address]);
    serve.refused(2, &["cannot listen on", &address, "choose another address with --listen"]);
    assert_eq!(serve.err.matches("os error").count(), 1, "the system's words are said once: {}", serve.err);
    place
        .climb(&["arena", "--rungs", "2", "--", "--listen", &address])
        .refused(2, &["ended before it was ready", "cannot listen on", &address]);
    let url = format!("ws://{address}");
    place
        .climb(&[&url, "--bots", "arena", "--rungs", "2", "--start", "sleep 60"])
        .refused(2, &["something listens on", &address, "leaving out --start"]);
}

#[test]
fn a_tick_log_that_exists_is_refused_unless_it_may_be_appended_to() {
    let place = Place::new();
    place.write("old.log", "{\"msg\":\"an earlier run\"}\n");
    let fragments = ["old.log", "exists already", "name another file"];
    place
        .run(["serve", "arena", "--listen", "127.0.0.1:0", "--tick-log", "old.log"])
        .refused(2, &["--append"]);
    place.climb(&["arena", "--rungs", "2", "--", "--tick-log", "old.log"]).refused(2, &fragments);
    place.climb(&["arena", "--rungs", "2", "--ticks", "log=old.log"]).refused(2, &fragments);
    assert_eq!(fs::read_to_string(place.path("old.log")).expect("the log"), "{\"msg\":\"an earlier run\"}\n");
    let ran = place.climb(&words_of("arena --rungs 2 --json run.json -- --tick-log old.log --append"));
    let rung = &place.json("run.json")["rungs"][0];
    assert!(rung["ticks"]["due"].as_u64() > Some(0), "{ran:#?}");
}

#[test]
fn public_addresses_are_refused_without_a_word_for_them_and_metadata_services_always() {
    let arena = ["--bots", "arena", "--rungs", "2"];
    let with = |words: &[&'static str]| [words, &arena].concat();
    check(
        &with(&["ws://8.8.8.8:80"]),
        3,
        &["8.8.8.8", "outside loopback and private ranges", "--i-may-load 8.8.8.8"],
    );
    check(&with(&["ws://8.8.8.8:80", "--i-may-load", "8.8.4.4"]), 3, &["--i-may-load 8.8.8.8"]);
    for metadata in ["ws://169.254.169.254", "ws://[::ffff:169.254.169.254]:80"] {
        check(&with(&[metadata]), 3, &["169.254.169.254", "metadata service", "never"]);
        check(&with(&[metadata, "--i-may-load", "169.254.169.254"]), 3, &["never loaded"]);
    }
}
