//! What the leaderboard service keeps on disk: restarts, crashes, torn and damaged files.

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use servers::ServeError;
use servers::leaderboard_service::{self, Options};

use crate::client::{Client, Running};
use crate::leaderboard_client::{Player, at, options, request, start};

const DIRECTORY: &str = "STEPLADDER_TEST_DATA";
const FAULTS: &str = "STEPLADDER_TEST_FAULTS";
const SERVER: &str = "leaderboard_log::the_server_that_is_killed";

fn keeping(directory: &Path) -> Options {
    Options { data: Some(directory.to_owned()), ..options() }
}

/// All boards with all their rows.
fn state(running: &Running) -> Vec<(Value, Value)> {
    let mut player = Player::of(running);
    let boards = player.done("GET", "/leaderboards", "");
    let rows = |board: &Value| {
        let name = board["name"].as_str().unwrap();
        player.done("GET", &format!("/leaderboards/{name}/range?limit=1000"), "")
    };
    let boards = boards["leaderboards"].as_array().unwrap().clone();
    boards.iter().map(rows).zip(boards.clone()).map(|(rows, board)| (board, rows)).collect()
}

/// The only file of this kind.
fn file(directory: &Path, kind: &str) -> PathBuf {
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(kind);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(named).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

fn refusal(directory: &Path) -> ServeError {
    leaderboard_service::run(keeping(directory), |_| ()).unwrap_err()
}

#[test]
fn a_restart_finds_everything_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let running = start(keeping(directory.path()));
    let mut player = Player::of(&running);
    player.done("POST", "/leaderboards", r#"{"name":"week","direction":"ascending","ties":"last"}"#);
    player.done("POST", "/leaderboards", r#"{"name":"gone"}"#);
    for number in 0..40 {
        player.update("PATCH", &format!("m{}", number % 20), "7");
        player.done("PUT", &format!("/leaderboards/week/members/m{number}?score={}", number / 4), "");
        player.done("PUT", &format!("/leaderboards/gone/members/m{number}?score=1"), "");
    }
    player.update("PUT", "large", &"9".repeat(1000));
    player.update("PATCH", "large", &"9".repeat(1000));
    player.done("DELETE", "/leaderboards/main/members/m3", "");
    player.update("PATCH", "m3", "1");
    player.done("DELETE", "/leaderboards/week/members/m7", "");
    assert_eq!(player.ask("DELETE", "/leaderboards/gone", "").status, 204);
    player.done("POST", "/leaderboards", r#"{"name":"gone","ties":"first"}"#);
    let before = state(&running);
    running.end().unwrap();
    for _ in 0..2 {
        let running = start(keeping(directory.path()));
        assert_eq!(state(&running), before);
        running.end().unwrap();
    }
    // From the snapshot that the restart has made and what came after it.
    let running = start(keeping(directory.path()));
    Player::of(&running).update("PATCH", "m5", "1");
    let before = state(&running);
    running.end().unwrap();
    let running = start(keeping(directory.path()));
    assert_eq!(state(&running), before);
    assert!(matches!(refusal(directory.path()), ServeError::DataInUse { .. }));
    running.end().unwrap();
}

#[test]
fn a_torn_tail_is_dropped_and_damage_in_the_middle_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let running = start(keeping(directory.path()));
    let mut player = Player::of(&running);
    for number in 1..=10 {
        assert_eq!(player.update("PATCH", "ann", "1"), at(number, 1));
    }
    running.end().unwrap();
    let log = file(directory.path(), "log-");
    let whole = std::fs::read(&log).unwrap();
    let snapshot = file(directory.path(), "snapshot-");
    let kept = std::fs::read(&snapshot).unwrap();

    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let message = refusal(directory.path()).to_string();
    assert!(message.contains(&format!("{}: damaged at byte 28,", log.display())), "{message}");

    let mut damaged = kept.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&log, &whole).unwrap();
    std::fs::write(&snapshot, &damaged).unwrap();
    assert!(matches!(refusal(directory.path()), ServeError::DataCorrupt { offset: 28, .. }));
    std::fs::write(&snapshot, &kept).unwrap();

    std::fs::write(&log, &whole[..whole.len() - 3]).unwrap();
    let running = start(keeping(directory.path()));
    assert_eq!(Player::of(&running).standing("ann"), at(9, 1));
    assert_eq!(Player::of(&running).update("PATCH", "ann", "1"), at(10, 1));
    running.end().unwrap();
    let running = start(keeping(directory.path()));
    assert_eq!(Player::of(&running).standing("ann"), at(10, 1));
    running.end().unwrap();
}

#[test]
fn snapshots_under_load_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let running = start(Options { snapshot_every: 4_000, ..keeping(directory.path()) });
    let increments =
        |member: usize| request("PATCH", &format!("/leaderboards/main/members/m{member}?score=1"), "");
    std::thread::scope(|scope| {
        for connection in 0..4 {
            let running = &running;
            scope.spawn(move || {
                let mut player = Player::of(running);
                for round in 0..25 {
                    let many: String =
                        (0..20).map(|number| increments((connection + round + number) % 30)).collect();
                    player.0.write(many.as_bytes());
                    (0..20).for_each(|_| assert_eq!(player.0.answer().status, 200));
                }
            });
        }
    });
    let before = state(&running);
    running.end().unwrap();
    let newest = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).max();
    assert!(newest.unwrap().to_str().unwrap() > "snapshot-00000000000000000001");
    let running = start(keeping(directory.path()));
    assert_eq!(state(&running), before);
    let rows = before[0].1["rows"].as_array().unwrap();
    let sum: u64 = rows.iter().map(|row| row["score"].as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 4 * 25 * 20);
    running.end().unwrap();
}

#[test]
#[ignore = "runs until it is killed; another test starts it"]
fn the_server_that_is_killed() {
    let directory = std::env::var(DIRECTORY).expect("the other test says where");
    let faults = std::env::var(FAULTS).unwrap_or_default();
    let faults = faults.split_whitespace().map(|text| text.parse().unwrap()).collect();
    let options = Options { snapshot_every: 10_000, faults, ..keeping(Path::new(&directory)) };
    leaderboard_service::run(options, |started| println!("listening {}", started.address)).unwrap();
}

/// A service in a process of its own, which needs someone to hold the other end of its output.
pub fn start_process(directory: &Path) -> (Child, SocketAddr, Lines<BufReader<ChildStdout>>) {
    start_process_with(directory, "")
}

/// As `start_process`, with these faults, separated by spaces.
pub fn start_process_with(
    directory: &Path,
    faults: &str,
) -> (Child, SocketAddr, Lines<BufReader<ChildStdout>>) {
    // The test harness has a thread that SIGTERM would kill; a program's threads all have it blocked.
    let block = || {
        // SAFETY: the set is valid for the calls, which a child may make before it runs the program.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        Ok(())
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([SERVER, "--exact", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(FAULTS, faults)
        .stdout(Stdio::piped());
    // SAFETY: `block` only makes calls that are allowed there.
    let mut child = unsafe { command.pre_exec(block) }.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = loop {
        let line = out.next().expect("the server listens").unwrap();
        if let Some((_, address)) = line.split_once("listening ") {
            break address.trim().parse().unwrap();
        }
    };
    (child, address, out)
}

/// Sends SIGTERM to a child that is not reaped yet.
pub fn terminate(child: &Child) {
    // SAFETY: a plain call; the id is that child's until it is reaped.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
}

#[test]
fn sigterm_ends_the_process_in_order_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, address, _out) = start_process(directory.path());
    let mut player = Player(Client::silent(address));
    assert_eq!(player.update("PATCH", "ann", "1"), at(1, 1));
    terminate(&child);
    assert!(child.wait().unwrap().success());
    let running = start(keeping(directory.path()));
    assert_eq!(Player::of(&running).standing("ann"), at(1, 1));
    running.end().unwrap();
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_bulks_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, address, _out) = start_process(directory.path());
    let bulk = r#"{"leaderboards":[{"leaderboard":"main","scores":[
        {"member":"left","score":"1","mode":"increment"},{"member":"right","score":"1","mode":"increment"}]}]}"#;
    let asked = request("POST", "/bulk", bulk);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::silent(address);
                loop {
                    use std::io::{Read, Write};
                    let mut answer = [0; 1024];
                    let written = client.stream.write_all(asked.as_bytes());
                    match written.and_then(|()| client.stream.read(&mut answer)) {
                        Ok(count) if count > 0 => {
                            assert!(answer.starts_with(b"HTTP/1.1 200 "));
                            acknowledged.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => return,
                    }
                }
            });
        }
        while acknowledged.load(Ordering::Relaxed) < 400 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    });
    let running = start(keeping(directory.path()));
    let mut player = Player::of(&running);
    let (left, right) = (player.standing("left").0, player.standing("right").0);
    assert_eq!(left, right);
    let (kept, acknowledged) = (left.parse::<u64>().unwrap(), acknowledged.load(Ordering::Relaxed));
    assert!((acknowledged..=acknowledged + 4).contains(&kept), "{acknowledged} acknowledged, {kept} kept");
    running.end().unwrap();
}
