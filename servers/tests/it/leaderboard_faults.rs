//! Planted faults of the leaderboard service: each does what its name says.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use crate::leaderboard_client::{Player, at, start_with_faults};

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
