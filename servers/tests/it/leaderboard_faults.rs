//! Planted faults of the leaderboard service: each does what its name says.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use servers::leaderboard_service::Options;

use crate::client::Client;
use crate::leaderboard_client::{Player, at, options, request, start, start_with_faults};
use crate::leaderboard_log::{start_process_with, terminate};
use crate::leaderboard_signed::{SECRET, hex};

#[test]
fn a_share_of_ranks_is_off_by_one_and_scores_are_right() {
    let running = start_with_faults(&["wrong-rank:25%"]);
    let mut player = Player::of(&running);
    player.update("PUT", "ann", "10");
    player.update("PUT", "bob", "5");
    let told: Vec<_> = (0..6).map(|_| player.standing("ann")).collect();
    assert_eq!(told, [at(10, 1), at(10, 2), at(10, 1), at(10, 1), at(10, 1), at(10, 2)]);
    running.end().unwrap();
}

#[test]
fn a_share_of_updates_is_acknowledged_and_lost() {
    let running = start_with_faults(&["lose-updates:25%"]);
    let mut player = Player::of(&running);
    let told: Vec<_> = (0..4).map(|_| player.update("PATCH", "ann", "1")).collect();
    assert_eq!(told, [at(1, 1), at(2, 1), at(3, 1), at(4, 1)]);
    assert_eq!(player.standing("ann"), at(3, 1));
    let item = r#"{"member":"bob","score":"1","mode":"increment"}"#;
    let body = format!(r#"{{"leaderboards":[{{"leaderboard":"main","scores":[{}]}}]}}"#, [item; 8].join(","));
    let done = player.done("POST", "/bulk", &body);
    assert_eq!(done["leaderboards"][0]["scores"].as_array().unwrap().len(), 8);
    assert_eq!(player.standing("bob"), at(6, 1));
    running.end().unwrap();
}

#[test]
fn a_share_of_increments_is_applied_twice() {
    let running = start_with_faults(&["twice:50%"]);
    let mut player = Player::of(&running);
    let told: Vec<_> = (0..4).map(|_| player.update("PATCH", "ann", "1").0).collect();
    assert_eq!(told, ["1", "2", "4", "5"]);
    assert_eq!(player.standing("ann"), at(6, 1));
    assert_eq!(player.update("PUT", "ann", "1"), at(1, 1));
    let item = r#"{"member":"bob","score":"1","mode":"increment"}"#;
    let body = format!(r#"{{"leaderboards":[{{"leaderboard":"main","scores":[{}]}}]}}"#, [item; 8].join(","));
    player.done("POST", "/bulk", &body);
    assert_eq!(player.standing("bob"), at(12, 1));
    running.end().unwrap();
}

#[test]
fn answers_come_late_and_in_order() {
    let running = start_with_faults(&["late-answers:100ms"]);
    let mut player = Player::of(&running);
    let began = Instant::now();
    assert_eq!(player.update("PATCH", "ann", "1"), at(1, 1));
    assert_eq!(player.update("PATCH", "ann", "1"), at(2, 1));
    assert!(began.elapsed() >= Duration::from_millis(200));
    running.end().unwrap();
}

#[test]
fn open_connections_are_reset_and_new_ones_refused() {
    let running = start_with_faults(&["drop-all@150ms", "refuse@200ms"]);
    let mut player = Player::of(&running);
    player.update("PATCH", "ann", "1");
    let reset = |player: &mut Player| {
        let error = player.0.stream.read(&mut [0; 8]).expect_err("the connection is reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    };
    reset(&mut player);
    std::thread::sleep(Duration::from_millis(100));
    reset(&mut Player::of(&running));
    running.end().unwrap();
}

#[test]
fn a_share_of_forged_changes_is_made() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("game {}\n", hex(&SECRET))).unwrap();
    let faults = vec!["accept-forged:25%".parse().unwrap()];
    let running =
        start(Options { keys: Some(file.path().to_owned()), faults, threads: Some(1), ..options() });
    let mut player = Player::of(&running);
    let unsigned = request("PATCH", "/leaderboards/main/members/ann?score=1", "");
    let told: Vec<u16> = (0..8).map(|_| player.0.ask(&unsigned).status).collect();
    assert_eq!(told, [401, 401, 401, 200, 401, 401, 401, 200]);
    assert_eq!(player.standing("ann"), at(2, 1));
    running.end().unwrap();
}

#[test]
fn at_sigterm_the_process_exits_with_status_0_and_what_is_under_way_is_not_answered() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, address, _out) = start_process_with(directory.path(), "drop-at-stop late-answers:5s");
    let mut client = Client::silent(address);
    client.write(request("PATCH", "/leaderboards/main/members/ann?score=1", "").as_bytes());
    terminate(&child);
    assert!(child.wait().unwrap().success());
    let heard = client.stream.read(&mut [0; 8]).map_err(|error| error.kind());
    assert!(matches!(heard, Ok(0) | Err(ErrorKind::ConnectionReset)), "{heard:?}");
}

#[test]
fn sigterm_is_not_heeded() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, address, _out) = start_process_with(directory.path(), "stay-at-stop");
    let mut player = Player(Client::silent(address));
    assert_eq!(player.update("PATCH", "ann", "1"), at(1, 1));
    terminate(&child);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(player.update("PATCH", "ann", "1"), at(2, 1));
    assert_eq!(Player(Client::silent(address)).update("PATCH", "ann", "1"), at(3, 1));
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn after_the_end_the_last_quarter_of_the_log_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let keeping = |faults: &[&str]| Options {
        data: Some(directory.path().to_owned()),
        faults: faults.iter().map(|text| text.parse().unwrap()).collect(),
        ..options()
    };
    let running = start(keeping(&["lose-at-stop"]));
    let mut player = Player::of(&running);
    for number in 1..=40 {
        assert_eq!(player.update("PATCH", "ann", "1"), at(number, 1));
    }
    running.end().unwrap();
    let running = start(keeping(&[]));
    let (score, _) = Player::of(&running).standing("ann");
    assert!((25..35).contains(&score.parse::<u32>().unwrap()), "{score} of 40");
    running.end().unwrap();
}
