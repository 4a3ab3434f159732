//! What ends a climb early: the server, the user, the system. Everything measured is kept.

use serde_json::Value;

use crate::main_job::{assert_valid, exit_code_of};
use crate::place::{Place, eventually, is_gone, parse, send};

const TWO_RUNGS: [&str; 7] = ["arena", "--rungs", "2,4", "--hold", "3s", "--json", "run.json"];

fn verdicts(run: &Value) -> Vec<&str> {
    run["rungs"].as_array().expect("rungs").iter().filter_map(|rung| rung["verdict"].as_str()).collect()
}

#[test]
fn a_server_that_is_killed_fails_its_rung_and_earlier_rungs_stand() {
    let place = Place::new();
    let mut climb = place.start_climb(&TWO_RUNGS);
    climb.wait_for("rung 4 games · hold");
    send(climb.subject(), libc::SIGKILL);
    let ran = climb.finish();
    assert_eq!(ran.code, 1, "{ran:#?}");
    let run = place.json("run.json");
    assert_valid(&run);
    assert_eq!(verdicts(&run).len(), 2, "the rung before stands");
    assert_eq!((&run["rungs"][1]["verdict"], &run["verdict"]), (&"FAIL".into(), &"FAIL".into()));
    let reason = run["rungs"][1]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("server exited") && reason.contains("SIGKILL"), "{reason}");
    assert_eq!(run["capacity"]["upper_bound"], 4.0);
    assert!(ran.out.contains("server exited"), "{ran:#?}");
}

#[test]
fn ctrl_c_saves_what_there_is_and_marks_it() {
    let place = Place::new();
    let mut climb = place.start_climb(&TWO_RUNGS);
    climb.wait_for("rung 2 games · hold");
    let subject = climb.subject();
    climb.signal(libc::SIGINT);
    let ran = climb.finish();
    assert_eq!(ran.code, 130, "{ran:#?}");
    let run = place.json("run.json");
    assert_valid(&run);
    assert_eq!(verdicts(&run), ["INVALID"], "the rung that was cut, and none after it");
    assert!(
        run["rungs"][0]["reason"].as_str().is_some_and(|reason| reason.contains("interrupted")),
        "{run:#}"
    );
    assert!(ran.out.contains("INVALID"), "{ran:#?}");
    assert!(ran.out.contains("stepladder again arena-1 --resume"), "{ran:#?}");
    assert!(is_gone(subject), "the server was stopped");
    let runs = place.run(["runs"]);
    assert!(runs.out.contains("interrupted"), "{runs:#?}");
    assert_eq!(parse(&place.run(["show", "arena", "--json", "-"]).out), run);
}

#[test]
fn ctrl_c_before_the_first_rung_leaves_no_empty_result() {
    let place = Place::new();
    let mut climb = place.start([&["climb"][..], &TWO_RUNGS, &["--settle", "200ms"]].concat());
    climb.wait_for("calibration latency 64 clients · hold");
    climb.signal(libc::SIGINT);
    let ran = climb.finish();
    assert_eq!((ran.code, ran.out.as_str()), (130, ""), "{ran:#?}");
    assert!(ran.err.contains("run arena-1 was interrupted before its first rung"), "{ran:#?}");
    assert!(!place.path("run.json").exists(), "an empty file is no JSON");
    place.run(["show", "arena", "--json", "-"]).refused(2, &["run arena-1 holds no rung"]);
    assert!(place.run(["runs"]).out.contains("interrupted"));
}

#[test]
fn a_second_ctrl_c_ends_it_at_once_and_the_store_stays_readable() {
    let place = Place::new();
    let mut climb = place.start_climb(&TWO_RUNGS);
    climb.wait_for("rung 2 games · hold");
    let subject = climb.subject();
    climb.signal(libc::SIGINT);
    // The first signal must be taken before the second is sent, or the kernel merges them.
    climb.wait_for("rung 2 games · drain");
    climb.signal(libc::SIGINT);
    let ran = climb.finish();
    assert_eq!(ran.code, 130, "{ran:#?}");
    assert!(ran.err.contains("ended at once"), "{ran:#?}");
    eventually("the server has ended too", || is_gone(subject).then_some(()));
    assert_eq!(place.files_ending(".ticklog"), [""; 0], "its temporary tick log is gone with it");
    let runs = place.run(["runs"]);
    assert_eq!(runs.code, 0, "{runs:#?}");
    assert!(runs.out.contains("interrupted"), "{runs:#?}");
    assert_eq!(place.run(["show", "arena"]).code, 0);
}

#[test]
fn a_climb_that_is_killed_says_how_far_it_came_and_leaves_no_server_behind() {
    let place = Place::new();
    let mut climb = place.start_climb(&["arena", "--rungs", "2,4", "--hold", "8s"]);
    climb.wait_for("rung 4 games · hold");
    let subject = climb.subject();
    eventually("a second of this hold has been committed", || {
        let shown = place.run(["show", "arena", "--json", "-"]);
        let run = (shown.code == 0).then(|| parse(&shown.out))?;
        (run["rungs"][1]["sent"].as_u64() > Some(0)).then_some(())
    });
    climb.signal(libc::SIGKILL);
    assert_eq!(climb.finish().code, 137);
    eventually("the server has ended too", || is_gone(subject).then_some(()));
    let runs = place.run(["runs"]);
    assert_eq!(runs.code, 0, "{runs:#?}");
    assert!(runs.out.contains("was interrupted at 0:0") && runs.out.contains("of rung 4"), "{runs:#?}");
    let shown = place.run(["show", "arena", "--json", "-"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert!(shown.err.contains("was interrupted at 0:0") && shown.err.contains("of rung 4"), "{shown:#?}");
    let run = parse(&shown.out);
    assert_valid(&run);
    assert_eq!(run["rungs"].as_array().map(Vec::len), Some(2));
    assert_eq!(run["rungs"][1]["verdict"], "INVALID");
    assert!(run["rungs"][1]["sent"].as_u64() > Some(0), "its seconds are intact: {run:#}");
    assert_ne!(run["rungs"][0]["verdict"], "INVALID");
    // Another goes on behind it.
    let ran = place.run(["again", "arena-1", "--resume", "--json", "rest.json"]);
    let rest = place.json("rest.json");
    assert_valid(&rest);
    assert_eq!(ran.code, exit_code_of(&rest["verdict"]), "{ran:#?}");
    assert_eq!(rest["rungs"][0], run["rungs"][0], "it is the same load, held once");
    assert_eq!(verdicts(&rest).len(), 2, "{ran:#?}");
    assert_eq!(rest["rungs"][1]["load"], 4.0);
    assert_ne!(rest["rungs"][1]["verdict"], "INVALID", "{ran:#?}");
    let said = rest["conclusions"].to_string();
    assert!(said.contains("The first load was held earlier, by run arena-1, which ended early."), "{said}");
    place.run(["again", "arena-2", "--resume"]).refused(2, &["run arena-2 is whole"]);
}

#[test]
fn a_limit_of_file_sizes_ends_a_climb_with_words_and_not_by_a_signal() {
    let place = Place::new();
    let mut command = std::process::Command::new("/bin/sh");
    // 40 KiB: less than a newly created store.
    let line = "ulimit -f 80; exec \"$0\" climb arena --rungs 2 --hold 2s --no-calibration";
    command.args(["-c", line, env!("CARGO_BIN_EXE_stepladder")]).current_dir(place.path(""));
    let ran = place.start_command(command).finish();
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.err.contains("stepladder.db") && !ran.err.contains("panicked"), "{ran:#?}");
}
