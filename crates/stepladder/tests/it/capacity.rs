//! `climb --search`, `--repeat`, `--from-above` and `--gate`: bounds, exit codes, and servers that must not pass.
//!
//! poll-loop refuses what does not fit into its queue of 14, whatever the machine does: a limit that noise cannot move.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::main_job::{assert_balanced, assert_valid};
use crate::place::Place;

const POLL_LOOP: [&str; 7] =
    ["poll-loop", "--services", "root", "--views", "background", "--objective", "errors == 0"];

fn bounds(climb: &Value) -> (Value, Value) {
    (climb["capacity"]["lower_bound"].clone(), climb["capacity"]["upper_bound"].clone())
}

fn loads(climb: &Value) -> Vec<u64> {
    let rungs = climb["rungs"].as_array().expect("rungs");
    rungs.iter().map(|rung| rung["load"].as_f64().expect("a load") as u64).collect()
}

#[test]
fn a_search_finds_the_queue_of_the_poll_loop_and_says_what_it_did() {
    let place = Place::new();
    let options = ["--requesters", "12,18", "--hold", "3s", "--search", "quick", "--json", "found.json"];
    let goal = ["--goal", "response.p50 < 5s"];
    let ran = place.climb(&[&POLL_LOOP[..], &options, &goal].concat());
    assert_eq!(ran.code, 0, "a search that finds the limit is no failure: {ran:#?}");
    assert!(ran.err.contains("search (RFC 9971): between 12 and 18 requesters"), "{ran:#?}");
    assert!(ran.out.contains("14 requesters held, 15 requesters did not"), "{ran:#?}");
    let climb = place.json("found.json");
    assert_valid(&climb);
    assert_balanced(&climb);
    assert_eq!(bounds(&climb), (json!(14.0), json!(15.0)));
    assert_eq!(
        (&climb["verdict"], &climb["capacity"]["first_failing_signal"]),
        (&json!("PASS"), &json!("errors"))
    );
    // A goal without an errors objective is met by all loads, from the same trials.
    let goal = &climb["capacity"]["goals"][0];
    assert_eq!(goal["objectives"], json!(["response.p50 < 5s"]));
    assert_eq!(bounds(goal), (json!(18.0), Value::Null));
    let page = place.run(["show", climb["run"]["id"].as_str().expect("an id"), "--all"]).out;
    assert!(page.contains("With response.p50 < 5s: 18 requesters held, and nothing failed."), "{page}");
    let search = &climb["capacity"]["search"];
    assert_eq!((&search["final_trial_s"], &search["width_goal"]), (&json!(3.0), &json!(0.1)));
    assert_eq!(search["trials"], json!(climb["rungs"].as_array().unwrap().len()));
    assert!(loads(&climb).iter().all(|load| (12..=18).contains(load)), "{:?}", loads(&climb));
    // Replaying the store asks for the same trials, and so finds the same.
    let shown = place.run(["show", climb["run"]["id"].as_str().unwrap(), "--json", "shown.json"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert_eq!(place.json("shown.json")["capacity"], climb["capacity"]);
}

#[test]
fn multiples_of_the_capacity_are_held_and_their_goodput_is_said() {
    let place = Place::new();
    let options = ["--requesters", "12,18", "--hold", "3s", "--settle", "500ms", "--no-calibration"];
    let asked = ["--overload", "2,1.25", "--json", "found.json"];
    let ran = place.climb(&[&POLL_LOOP[..], &options, &asked].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    let climb = place.json("found.json");
    assert_valid(&climb);
    assert_eq!(loads(&climb), [12, 18, 15, 24]);
    let conclusions = climb["conclusions"].as_array().expect("conclusions");
    let found = conclusions.iter().find(|one| one["id"] == "overload").expect("an overload");
    assert_eq!(
        (&found["evidence"]["held"]["load"], &found["evidence"]["limit_ns"]),
        (&json!(12.0), &Value::Null)
    );
    let page = place.run(["show", climb["run"]["id"].as_str().expect("an id"), "--all"]).out;
    assert!(page.contains("Goodput (right answers): "), "{page}");
    // What does not fit into the queue is refused at once, so no backlog is left when the overload ends.
    for rung in climb["rungs"].as_array().expect("rungs").iter().skip(2) {
        let recovery = &rung["extra"]["recovery"];
        assert_eq!(recovery["load"], json!(9.0), "{recovery}");
        assert_recovered_after(recovery, 0);
    }
    let text = found["text"].as_str().expect("a text");
    assert!(text.contains("Recovery (objectives met again, for 5 s in a row, at 9 requesters): "), "{text}");
    let shown = place.run(["show", climb["run"]["id"].as_str().unwrap(), "--json", "shown.json"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert_eq!(place.json("shown.json")["conclusions"], climb["conclusions"]);
}

/// Answers the first requests rightly, and then holds its connections and says nothing.
fn falls_silent_after(answers: u32) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let left = Arc::new(AtomicU32::new(answers));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let left = left.clone();
            std::thread::spawn(move || answer(stream, &left));
        }
    });
    port
}

fn answer(mut stream: TcpStream, left: &AtomicU32) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
        let may_answer =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if may_answer && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn a_server_that_falls_silent_has_no_capacity() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/", falls_silent_after(5));
    let options = [
        "--rate",
        "20,40",
        "--search",
        "quick",
        "--hold",
        "3s",
        "--patience",
        "200ms",
        "--json",
        "dead.json",
    ];
    let ran = place.climb(&[&[url.as_str()][..], &options].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    let climb = place.json("dead.json");
    assert_eq!((bounds(&climb), &climb["verdict"]), ((Value::Null, json!(20.0)), &json!("FAIL")));
    assert!(ran.out.contains("Fewer than 20 req/s: that load did not hold; start lower."), "{ran:#?}");
}

#[test]
fn repeats_give_the_capacity_a_confidence_and_gates_decide_the_exit_code() {
    let place = Place::new();
    let options = ["--requesters", "10,16", "--hold", "2s", "--repeat", "3", "--json", "repeated.json"];
    let gates = ["--gate", "capacity >= 10", "--gate", "errors at 10 == 0"];
    let ran = place.climb(&[&POLL_LOOP[..], &options, &gates].concat());
    assert_eq!(ran.code, 0, "the limit was found, and the gates are met: {ran:#?}");
    assert!(ran.out.contains("gate capacity >= 10: met (10 held, 16 did not)"), "{ran:#?}");
    let climb = place.json("repeated.json");
    assert_valid(&climb);
    assert_eq!((&climb["verdict"], climb["gates"][1]["met"].as_bool()), (&json!("FAIL"), Some(true)));
    let mut held = loads(&climb);
    assert_eq!(held[..2], [10, 16]);
    held.sort_unstable();
    assert_eq!(held, [10, 10, 10, 16, 16, 16]);
    let confidence = climb["capacity"]["confidence"].as_f64().expect("three holds of either bound");
    assert!((0.5..1.0).contains(&confidence), "{confidence}");
    let once = ["--requesters", "10,16", "--hold", "2s"];
    for (gate, code) in [("capacity >= 16", 1), ("capacity >= 12", 2), ("errors at 16 == 0", 1)] {
        let ran = place.climb(&[&POLL_LOOP[..], &once, &["--gate", gate]].concat());
        assert_eq!(ran.code, code, "{gate}: {ran:#?}");
    }
}

#[test]
fn what_could_never_be_told_is_refused_before_any_load() {
    let place = Place::new();
    place.climb(&["arena", "--gate", "capacity == 5"]).refused(3, &["--gate:", "between two bounds"]);
    place
        .climb(&["arena", "--search", "--budget", "10s"])
        .refused(3, &["--budget:", "are too few", "need up to"]);
    place.run(["climb", "--search", "arena"]).refused(3, &["--search:", "the subject goes first"]);
}

/// The text of the conclusion on the way down.
fn from_above(climb: &Value) -> &str {
    let conclusions = climb["conclusions"].as_array().expect("conclusions");
    let found = conclusions.iter().find(|one| one["id"] == "from_above").expect("what came from above");
    found["text"].as_str().expect("a text")
}

#[test]
fn a_load_is_held_again_after_a_higher_one_and_a_server_that_forgets_gives_the_same() {
    let place = Place::new();
    let options = ["--requesters", "10,16", "--hold", "1s", "--settle", "500ms", "--no-calibration"];
    let ran = place.climb(&[&POLL_LOOP[..], &options, &["--from-above", "--json", "down.json"]].concat());
    assert_eq!(ran.code, 1, "16 requesters do not fit into the queue: {ran:#?}");
    let climb = place.json("down.json");
    assert_valid(&climb);
    assert_eq!(loads(&climb), [10, 16, 10]);
    assert_eq!(bounds(&climb), (json!(10.0), json!(16.0)));
    assert_eq!(
        from_above(&climb),
        "The load that was held both ways gave the same verdict on the way down as on the way up."
    );
    let id = climb["run"]["id"].as_str().expect("an id");
    let page = place.run(["show", id, "--all"]).out;
    assert!(page.contains("From above"), "{page}");
    // Replaying the store gives the same.
    let shown = place.run(["show", climb["run"]["id"].as_str().unwrap(), "--json", "shown.json"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert_eq!(from_above(&place.json("shown.json")), from_above(&climb));
}

/// That a server recovered, after so many seconds at least. On a machine that stood still meanwhile that may be unknown, with
/// that reason.
fn assert_recovered_after(recovery: &Value, least_s: u64) {
    match recovery["outcome"].as_str() {
        Some("recovered") => assert!(recovery["recovery_s"].as_u64() >= Some(least_s), "{recovery}"),
        Some("unknown") => {
            let why = recovery["why"].as_str().expect("a reason");
            assert!(why.contains("something else took CPU"), "{recovery}");
        }
        _ => panic!("it did not recover: {recovery}"),
    }
}

/// Answers rightly, but with an error for so long after more than `OVERLOADED_PER_S` requests came within a second.
fn errs_after_overload(for_s: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let began = std::time::Instant::now();
    let (window, errs_until_ms) = (Arc::new(Mutex::new(VecDeque::new())), Arc::new(AtomicU64::new(0)));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (window, errs_until_ms) = (window.clone(), errs_until_ms.clone());
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    let now_ms = began.elapsed().as_millis() as u64;
                    let mut window = window.lock().expect("nobody panicked");
                    window.push_back(now_ms);
                    window.retain(|at_ms| at_ms + 1_000 > now_ms);
                    if window.len() > OVERLOADED_PER_S {
                        errs_until_ms.store(now_ms + for_s * 1_000, Ordering::SeqCst);
                    }
                    drop(window);
                    let is_well = errs_until_ms.load(Ordering::SeqCst) <= now_ms;
                    let status = if is_well { "200 OK" } else { "503 Service Unavailable" };
                    let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
                    if stream.write_all(reply.as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

/// Far above the 16 req/s with which it recovers: what piles up while the machine is stalled is no overload.
const OVERLOADED_PER_S: usize = 100;

#[test]
fn a_server_that_errs_for_some_seconds_after_an_overload_recovers_after_these() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/", errs_after_overload(3));
    let options = ["--rate", "20,200", "--connections", "4", "--hold", "1s", "--settle", "500ms"];
    let asked = ["--objective", "errors == 0", "--no-calibration", "--overload", "8", "--json", "found.json"];
    let ran = place.climb(&[&[url.as_str()][..], &options, &asked].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    let climb = place.json("found.json");
    assert_valid(&climb);
    assert_eq!(loads(&climb), [20, 200, 160]);
    let recovery = &climb["rungs"][2]["extra"]["recovery"];
    assert_eq!(recovery["load"], json!(16.0), "{ran:#?}");
    // "not met, disturbed" where the host took the CPU away meanwhile.
    let first = recovery["seconds"][0].as_str();
    assert!(matches!(first, Some("not met" | "not met, disturbed")), "{ran:#?}");
    assert_recovered_after(recovery, 3);
}

/// Answers every request rightly until three connections were open at once, and from then on with an error.
fn never_recovers() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (open, broken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (open, broken) = (open.clone(), broken.clone());
            std::thread::spawn(move || {
                if open.fetch_add(1, Ordering::SeqCst) + 1 >= 3 {
                    broken.store(1, Ordering::SeqCst);
                }
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    let is_broken = broken.load(Ordering::SeqCst) > 0;
                    let status = if is_broken { "503 Service Unavailable" } else { "200 OK" };
                    let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
                    if stream.write_all(reply.as_bytes()).is_err() {
                        break;
                    }
                    // Three requesters in a closed loop would otherwise saturate the machine.
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    port
}

#[test]
fn a_server_that_never_recovers_is_named_and_holds_nothing() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/", never_recovers());
    let options = ["--requesters", "1,3", "--hold", "1s", "--settle", "500ms", "--no-calibration"];
    let asked = ["--objective", "errors == 0", "--from-above", "--json", "down.json"];
    let ran = place.climb(&[&[url.as_str()][..], &options, &asked].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    let climb = place.json("down.json");
    assert_valid(&climb);
    assert_eq!(loads(&climb), [1, 3, 1]);
    assert_eq!(bounds(&climb), (Value::Null, json!(1.0)));
    let text = from_above(&climb);
    assert!(
        text.contains("1 requester passed on the way up and failed on the way down, after 3: "),
        "{text}"
    );
}
