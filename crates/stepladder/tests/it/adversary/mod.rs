//! Servers that are dead, that lie or that attack, one row each: what a climb of them reports and costs.
//!
//! Every row is a server of a few lines and one climb of it. Checked for all: the verdict, part of the reason shown to
//! the user, the matching exit code, termination in time, and the program's memory. Rows that pass say in their names
//! why they may. On a busy machine the judge may decline to judge the server; such a row then shows only that nothing
//! passed that must not.
//! With `STEPLADDER_ADVERSARY=FILE` all rows run, and each result is appended to the file, separated by tabs
//! (`bench/adversary/run`); otherwise only the quick ones run.

mod arena;
mod grpc;
mod hazelcast;
mod http1;
mod http2;
mod irc;
mod json;
mod leaderboard;
mod lines;
mod mqtt;
mod nats;
mod ordinary;
mod peer;
mod protobuf;
mod redis;
mod script;
mod secrets;
mod stalled;
mod stamps;
mod tls;
mod websocket;

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::main_job::{assert_balanced, assert_valid, exit_code_of};
use crate::place::{Place, Ran};
use peer::{Peer, Shared};

/// What the program may take in all, kB.
const MEMORY_KB_MAX: u64 = 64 << 10;
/// Hold and settling take 1.1 s; a handshake times out after 5 s, clients that cannot get in after 10 s, and what is
/// owed is waited for. Some servers cause all of it, on a machine that runs other tests at the same time.
const WITHIN: Duration = Duration::from_secs(40);
/// Concurrent climbs. They mostly wait, and other tests run beside them.
const AT_ONCE: usize = 4;
const LOAD: &str = "--settle 100ms --no-calibration --workers 1 --json run.json";
/// Unless a row says another one.
const HOLD: [&str; 2] = ["--hold", "1s"];

/// The expected result of a climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// the server did as it should: exit code 0
    Passes,
    /// judged, and did not hold the load: exit code 1
    Fails,
    /// refused before any load, or nothing can be said of the server: exit code 2
    Unmeasured,
}
use Expected::{Fails, Passes, Unmeasured};

/// Of a server that lets the climb's first client in, and out again before any load.
const ENDS_FIRST: &str = "ends the connection of the first client";

/// How a protocol is loaded.
struct Load {
    protocol: &'static str,
    /// of the climb, with `PORT` where the port stands
    words: &'static str,
    /// files that they name, and their contents for a port
    files: fn(u16) -> Vec<(&'static str, String)>,
}

impl Load {
    const fn new(protocol: &'static str, words: &'static str) -> Load {
        Load { protocol, words, files: |_| Vec::new() }
    }

    const fn with_files(self, files: fn(u16) -> Vec<(&'static str, String)>) -> Load {
        Load { files, ..self }
    }
}

type Serves = Arc<dyn Fn(&mut Peer) -> io::Result<()> + Send + Sync>;

struct Row {
    name: &'static str,
    expected: Expected,
    /// part of the reason, or the name of an error, or several separated by `|` of which one is enough; empty if it
    /// passes
    reason: &'static str,
    options: &'static [&'static str],
    is_long: bool,
    /// serves one connection; when it returns the connection is closed
    serves: Serves,
}

fn row(
    name: &'static str,
    expected: Expected,
    reason: &'static str,
    serves: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> Row {
    Row { name, expected, reason, options: &[], is_long: false, serves: Arc::new(serves) }
}

/// A row for `bench/adversary/run` alone: it takes ten seconds, or another row comes close to it.
fn long(
    name: &'static str,
    expected: Expected,
    reason: &'static str,
    serves: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> Row {
    Row { is_long: true, ..row(name, expected, reason, serves) }
}

impl Row {
    fn with(self, options: &'static [&'static str]) -> Row {
        Row { options, ..self }
    }
}

/// What came of a row.
struct Outcome {
    code: i32,
    verdict: String,
    /// reason and errors of the rung, or the message on standard error
    reason: String,
    took: Duration,
    memory_kb: u64,
}

/// Serves each connection on a separate thread, as long as the test runs.
fn serve(serves: Serves) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        let shared = Arc::new(Shared::default());
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let (serves, shared) = (serves.clone(), shared.clone());
            thread::spawn(move || {
                // Every row ends with the client leaving.
                let _ = Peer::new(stream, number, shared).and_then(|mut peer| serves(&mut peer));
            });
        }
    });
    port
}

/// The most memory that a process took until now, kB; `None` once it has ended.
fn memory_kb(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // Until exec, the memory is that of this test.
    if !text.starts_with("Name:\tstepladder\n") {
        return Some(0);
    }
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

fn climb(load: &Load, row: &Row) -> (Outcome, Ran) {
    let place = Place::new();
    let port = serve(row.serves.clone());
    for (name, text) in (load.files)(port) {
        place.write(name, &text);
    }
    let mut words = vec!["climb".to_owned()];
    words.extend(load.words.replace("PORT", &port.to_string()).split(' ').map(str::to_owned));
    let hold = if row.options.contains(&HOLD[0]) { &[][..] } else { &HOLD };
    words.extend(LOAD.split(' ').chain(hold.iter().chain(row.options).copied()).map(str::to_owned));
    let begin = Instant::now();
    let running = place.start(words);
    let pid = running.pid();
    let watching = thread::spawn(move || {
        let mut most = 0;
        while let Some(kb) = memory_kb(pid) {
            most = most.max(kb);
            thread::sleep(Duration::from_millis(10));
        }
        most
    });
    let ran = running.finish();
    let took = begin.elapsed();
    let memory_kb = watching.join().expect("it only reads");
    let has_run = place.path("run.json").exists();
    let (verdict, reason) = if has_run { judged(&place.json("run.json")) } else { refused(&ran) };
    (Outcome { code: ran.code, verdict, reason, took, memory_kb }, ran)
}

/// Verdict and reason of the only rung; its errors belong to the reason.
fn judged(run: &Value) -> (String, String) {
    assert_valid(run);
    assert_balanced(run);
    let rung = &run["rungs"][0];
    let mut reason = rung["reason"].as_str().unwrap_or_default().to_owned();
    for (cause, count) in rung["errors"].as_object().into_iter().flatten() {
        let _ = write!(reason, " [{cause} {count}]");
    }
    for (cause, count) in rung["connections"]["failed"].as_object().into_iter().flatten() {
        let _ = write!(reason, " [{cause} {count}]");
    }
    (run["verdict"].as_str().unwrap_or_default().to_owned(), reason)
}

/// The error message, if nothing was measured.
fn refused(ran: &Ran) -> (String, String) {
    let said = ran.err.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    ("refused".to_owned(), said.to_owned())
}

/// What is wrong with an outcome; nothing where it is as it must be.
fn faults(row: &Row, outcome: &Outcome, ran: &Ran) -> Vec<String> {
    let mut faults = Vec::new();
    // On a busy machine the judge may decline to judge the server: it does not pass, and the reason is a different one.
    // Clients that were repeatedly thrown out reconnect once a second, which may miss a hold of one second.
    let is_machine = ["INCONCLUSIVE", "GENERATOR_LIMITED"].contains(&outcome.verdict.as_str())
        && ["this machine", "disturbed", "the bots had no time to read", "nothing was asked in the hold"]
            .iter()
            .any(|words| outcome.reason.contains(words));
    let is_as_expected = match row.expected {
        Passes => outcome.verdict == "PASS" || is_machine && !outcome.reason.contains('['),
        Fails => outcome.verdict == "FAIL" || is_machine,
        Unmeasured => outcome.code == 2,
    };
    if !is_as_expected {
        faults.push(format!("{} instead of {:?}", outcome.verdict, row.expected));
    }
    if outcome.code != exit_code_of(&Value::from(outcome.verdict.as_str())) {
        faults.push(format!("exit code {} for {}", outcome.code, outcome.verdict));
    }
    if row.expected != Passes
        && !is_machine
        && !row.reason.split('|').any(|piece| !piece.is_empty() && outcome.reason.contains(piece))
    {
        faults.push(format!("`{}` is not in the reason", row.reason));
    }
    if ran.err.contains("panicked") {
        faults.push("it panicked".to_owned());
    }
    if outcome.took > WITHIN {
        faults.push(format!("it took {:?}", outcome.took));
    }
    if outcome.memory_kb > MEMORY_KB_MAX {
        faults.push(format!("{} kB", outcome.memory_kb));
    }
    faults
}

/// Runs all rows, some at once, and reports all that are not as they must be.
fn check(load: &Load, rows: &[Row]) {
    let is_all = std::env::var_os("STEPLADDER_ADVERSARY").is_some();
    let rows: Vec<&Row> = rows.iter().filter(|row| is_all || !row.is_long).collect();
    let (next, wrong) = (AtomicUsize::new(0), std::sync::Mutex::new(String::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (outcome, ran) = climb(load, row);
                    note(load, row, &outcome);
                    let faults = faults(row, &outcome, &ran);
                    if !faults.is_empty() {
                        let mut wrong = wrong.lock().expect("no panic while it is held");
                        let _ = writeln!(
                            wrong,
                            "{}: {}: {}\n    {} {}\n    {}",
                            load.protocol,
                            row.name,
                            faults.join("; "),
                            outcome.verdict,
                            outcome.reason,
                            ran.err.trim().replace('\n', "\n    ")
                        );
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic while it is held");
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Appends what came of a row to the file that the environment names.
fn note(load: &Load, row: &Row, outcome: &Outcome) {
    let Some(path) = std::env::var_os("STEPLADDER_ADVERSARY") else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file can be written");
    // A single write, so that lines of several tests do not mix. A port differs from run to run.
    let port = |text: &str| text.split_inclusive("127.0.0.1:").map(without_digits).collect::<String>();
    let line = format!(
        "{}\t{}\t{}\t{}\t{:.1}\t{:.1}\n",
        load.protocol,
        row.name,
        outcome.verdict,
        port(&outcome.reason),
        outcome.took.as_secs_f64(),
        outcome.memory_kb as f64 / 1024.0
    );
    file.write_all(line.as_bytes()).expect("the file can be written");
}

fn without_digits(piece: &str) -> String {
    let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
    // A port has five digits here; a shorter number begins a sentence.
    if digits == 5 { format!("PORT{}", &piece[digits..]) } else { piece.to_owned() }
}
