//! The leaderboard service over a Redis server: the same answers as from memory, and 503 where the store is gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use servers::ServeError;
use servers::leaderboard_service::{self, Options};

use crate::client::Running;
use crate::http_client::Answer;
use crate::leaderboard_client::{Player, at, options, request, start, update_in_every_mode};
use crate::redis_server::RedisServer;

pub fn with_store(url: &str) -> Options {
    Options { store: Some(url.parse().unwrap()), ..options() }
}

/// A store and a service over it; None where no such server is installed.
fn stored() -> Option<(RedisServer, Running)> {
    let store = RedisServer::start()?;
    let running = start(Options { store_timeout: Duration::from_secs(20), ..with_store(&store.url()) });
    Some((store, running))
}

/// Asks until the status is this one.
#[track_caller]
pub fn until(status: u16, player: &mut Player, method: &str, target: &str) -> Answer {
    let by = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = player.ask(method, target, "");
        if answer.status == status {
            return answer;
        }
        assert!(Instant::now() < by, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn members_are_updated_read_listed_and_deleted_in_a_store() {
    let Some((_store, running)) = stored() else { return };
    let mut player = Player::of(&running);
    let answer = player.ask("PUT", "/leaderboards/main/members/ann?score=10", "");
    assert_eq!(answer.body, r#"{"member":"ann","score":"10","rank":1,"members":1}"#);
    update_in_every_mode(&mut player);
    assert_eq!(player.update("PUT", "a%2F%22%C3%BC%0A", "1"), at(1, 3));
    let top = player.done("GET", "/leaderboards/main/top?limit=2", "");
    let rows =
        json!([{"member": "bob", "score": "7", "rank": 1}, {"member": "ann", "score": "2", "rank": 2}]);
    assert_eq!(top, json!({"members": 3, "rows": rows, "next": 3}));
    let last = player.done("GET", "/leaderboards/main/range?first=3", "");
    assert_eq!((&last["rows"][0]["member"], &last["next"]), (&json!("a/\"ü\n"), &Value::Null));
    let around = player.done("GET", "/leaderboards/main/around/ann?each_side=1", "");
    assert_eq!(around["rows"].as_array().unwrap().len(), 3);
    let standings = player.done("POST", "/leaderboards/main/ranks", r#"{"members":["bob","nobody"]}"#);
    assert_eq!(standings["standings"], json!([{"member": "bob", "score": "7", "rank": 1}, null]));
    let deleted = player.done("DELETE", "/leaderboards/main/members/ann", "");
    assert_eq!(deleted, json!({"member": "ann", "score": "2", "members": 2}));
    for (method, target) in [("GET", "members/ann"), ("DELETE", "members/ann"), ("GET", "around/ann")] {
        player.refused(404, method, &format!("/leaderboards/main/{target}"), "");
    }
    player.refused(422, "PATCH", "/leaderboards/main/members/ann?score=x", "");
    player.refused(422, "GET", "/leaderboards/main/top?limit=1001", "");
    player.refused(404, "GET", "/nothing", "");
    running.end().unwrap();
}

#[test]
fn boards_of_a_store_are_shared_by_services_and_outlive_them() {
    let Some((store, first)) = stored() else { return };
    let second = start(with_store(&store.url()));
    let (mut one, mut other) = (Player::of(&first), Player::of(&second));
    let week = json!({"name": "week", "direction": "ascending", "ties": "first", "members": 0});
    let answer =
        one.ask("POST", "/leaderboards", r#"{"name":"week","direction":"ascending","ties":"first"}"#);
    assert_eq!((answer.status, serde_json::from_str::<Value>(&answer.body).unwrap()), (201, week.clone()));
    assert_eq!(other.done("GET", "/leaderboards/week", ""), week);
    other.refused(409, "POST", "/leaderboards", r#"{"name":"week"}"#);
    other.refused(422, "POST", "/leaderboards", r#"{"name":""}"#);
    assert_eq!(other.done("POST", "/leaderboards", "{}")["name"].as_str().unwrap().len(), 32);
    for (player, member) in [(&mut one, "slow"), (&mut other, "same")] {
        player.done("PUT", &format!("/leaderboards/week/members/{member}?score=20"), "");
    }
    assert_eq!(one.done("PUT", "/leaderboards/week/members/fast?score=10", "")["rank"], 1);
    assert_eq!(other.done("GET", "/leaderboards/week/members/same", "")["rank"], 3, "the second to reach it");
    first.end().unwrap();
    let third = start(with_store(&store.url()));
    let mut player = Player::of(&third);
    assert_eq!(player.done("GET", "/leaderboards/week", "")["members"], 3);
    let listed = player.done("GET", "/leaderboards?limit=2", "");
    let rest = player.done("GET", &format!("/leaderboards?after={}", listed["next"].as_str().unwrap()), "");
    assert_eq!((rest["leaderboards"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    assert_eq!(player.ask("DELETE", "/leaderboards/week", "").status, 204);
    for (method, target) in [("GET", ""), ("DELETE", ""), ("GET", "/top"), ("GET", "/members/slow")] {
        other.refused(404, method, &format!("/leaderboards/week{target}"), "");
    }
    other.refused(404, "PUT", "/leaderboards/week/members/ann?score=1", "");
    for running in [second, third] {
        running.end().unwrap();
    }
}

#[test]
fn a_bulk_in_a_store_is_applied_whole_or_not_at_all() {
    let Some((_store, running)) = stored() else { return };
    let mut player = Player::of(&running);
    player.done("POST", "/leaderboards", r#"{"name":"week"}"#);
    let body = |last: &str| {
        format!(
            r#"{{"leaderboards":[
            {{"leaderboard":"main","scores":[{{"member":"ann","score":"10","mode":"increment"}},
                {{"member":"bob","score":20,"mode":"replace"}},{{"member":"ann","score":"-1","mode":"increment"}}]}},
            {{"leaderboard":"week","scores":[{{"member":"ann","score":"5","mode":"best"}}{last}]}}]}}"#
        )
    };
    let answer = player.ask("POST", "/bulk", &body(""));
    assert_eq!(
        answer.body,
        concat!(
            r#"{"leaderboards":[{"leaderboard":"main","scores":[{"member":"ann","score":"10","rank":1},"#,
            r#"{"member":"bob","score":"20","rank":1},{"member":"ann","score":"9","rank":2}]},"#,
            r#"{"leaderboard":"week","scores":[{"member":"ann","score":"5","rank":1}]}]}"#,
        )
    );
    // Only the script can detect this one: the sum of the two is beyond the limit.
    let sum = r#",{"member":"x","score":"9007199254740992","mode":"increment"},
        {"member":"x","score":"1","mode":"increment"}"#;
    for (last, item) in [
        (sum, 2),
        (r#",{"member":"x","score":"9007199254740993","mode":"increment"}"#, 1),
        (r#",{"member":"x","score":"y","mode":"increment"}"#, 1),
    ] {
        let problem = player.refused(422, "POST", "/bulk", &body(last));
        assert_eq!((&problem["leaderboard"], &problem["item"]), (&json!(1), &json!(item)), "{problem}");
    }
    let elsewhere = body("").replace("week", "nowhere");
    assert_eq!(player.refused(404, "POST", "/bulk", &elsewhere)["leaderboard"], 1);
    assert_eq!(player.standing("ann"), at(9, 2), "nothing of the refused ones was applied");
    running.end().unwrap();
}

#[test]
fn scores_beyond_53_bits_are_refused_and_never_rounded() {
    let Some((_store, running)) = stored() else { return };
    let mut player = Player::of(&running);
    let most = 1_i64 << 53;
    let member = |score: &str| format!("/leaderboards/main/members/ann?score={score}");
    for sign in [1, -1] {
        let (most, step) = (sign * most, sign.to_string());
        assert_eq!(player.update("PUT", "ann", &most.to_string()), at(most, 1));
        let problem = player.refused(422, "PATCH", &member(&step), "");
        assert!(
            problem["detail"].as_str().unwrap().contains("-9007199254740992 to 9007199254740992"),
            "{problem}"
        );
        assert_eq!(player.update("PATCH", "ann", &(-sign).to_string()), at(most - sign, 1));
        assert_eq!(player.update("PATCH", "ann", &step), at(most, 1));
        player.refused(422, "PUT", &member(&(most + sign).to_string()), "");
        player.refused(422, "PUT", &member(&"9".repeat(40)), "");
    }
    assert_eq!(player.standing("ann"), at(-most, 1));
    running.end().unwrap();
}

#[test]
fn requests_sent_together_are_answered_in_their_order() {
    let Some((_store, running)) = stored() else { return };
    let mut player = Player::of(&running);
    let update = request("PATCH", "/leaderboards/main/members/ann?score=1", "");
    let wrong = request("GET", "/nothing", "");
    let rounds = 300;
    player.0.write([update.as_str(), wrong.as_str()].concat().repeat(rounds).as_bytes());
    for round in 1..=rounds as i64 {
        let answer = player.0.answer();
        assert!(answer.body.contains(&format!("\"score\":\"{round}\"")), "{round}: {}", answer.body);
        assert_eq!(player.0.answer().status, 404);
    }
    running.end().unwrap();
}

#[test]
fn a_store_that_forgets_its_scripts_learns_them_again_unnoticed() {
    let Some((store, running)) = stored() else { return };
    let mut player = Player::of(&running);
    for round in 1..=5 {
        assert_eq!(store.ask("SCRIPT FLUSH"), "+OK\r\n");
        assert_eq!(player.update("PATCH", "ann", "1"), at(round, 1));
        assert_eq!(player.standing("ann"), at(round, 1));
    }
    running.end().unwrap();
}

#[test]
fn a_repetition_with_an_idempotency_key_changes_nothing_on_another_service_either() {
    let Some((store, first)) = stored() else { return };
    let second = start(with_store(&store.url()));
    let (mut one, mut other) = (Player::of(&first), Player::of(&second));
    let keyed = |score: &str, key: &str| {
        let request = request("PATCH", &format!("/leaderboards/main/members/ann?score={score}"), "");
        request.replacen("Host: x\r\n", &format!("Host: x\r\nIdempotency-Key: {key}\r\n"), 1)
    };
    let answer = one.0.ask(&keyed("1", "a"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(other.0.ask(&keyed("1", "a")), answer);
    assert_eq!(one.standing("ann"), at(1, 1));
    assert_eq!(other.0.ask(&keyed("2", "a")).status, 409, "another request");
    assert_eq!(other.0.ask(&keyed("9007199254740992", "b")).status, 422, "beyond the limit");
    assert_eq!(other.0.ask(&keyed("1", "c")).status, 200);
    assert_eq!(one.standing("ann"), at(2, 1));
    first.end().unwrap();
    second.end().unwrap();
}

#[test]
fn without_its_store_the_service_says_so_and_comes_back_with_it() {
    let Some(mut store) = RedisServer::start() else { return };
    let running = start(with_store(&store.url()));
    let mut player = Player::of(&running);
    player.update("PUT", "ann", "1");
    assert_eq!(player.done("GET", "/healthz", ""), json!({"status": "ok"}));
    store.kill();
    let answer = until(503, &mut player, "PATCH", "/leaderboards/main/members/ann?score=1");
    assert!(answer.head.contains("Retry-After: 1\r\n"), "{}", answer.head);
    assert_eq!(player.ask("GET", "/leaderboards/main/top", "").status, 503);
    assert_eq!(player.ask("GET", "/healthz", "").status, 503);
    let metrics = player.ask("GET", "/metrics", "");
    assert!(metrics.body.contains("leaderboard_store_losses_total "), "{}", metrics.body);
    let port = store.port;
    drop(store);
    let _again = RedisServer::start_on(port).unwrap();
    until(200, &mut player, "GET", "/healthz");
    // Nothing was kept on disk, so the board is gone as well; it is created when a service starts.
    player.refused(404, "PATCH", "/leaderboards/main/members/ann?score=1", "");
    assert_eq!(player.ask("POST", "/leaderboards", r#"{"name":"main"}"#).status, 201);
    assert_eq!(player.update("PATCH", "ann", "1"), at(1, 1));
    running.end().unwrap();
}

#[test]
fn an_update_that_a_silent_store_does_not_answer_is_unknown_and_not_reported_as_applied() {
    let Some(store) = RedisServer::start() else { return };
    let running = start(Options { store_timeout: Duration::from_millis(300), ..with_store(&store.url()) });
    let mut player = Player::of(&running);
    player.update("PUT", "ann", "1");
    store.signal(libc::SIGSTOP);
    let began = Instant::now();
    let problem = player.refused(503, "PATCH", "/leaderboards/main/members/ann?score=1", "");
    assert!(
        problem["detail"].as_str().unwrap().contains("it is unknown whether the change was made"),
        "{problem}"
    );
    assert!(began.elapsed() >= Duration::from_millis(300) && began.elapsed() < Duration::from_secs(10));
    // The next ones do not wait for it: there is no connection.
    let problem = player.refused(503, "PATCH", "/leaderboards/main/members/ann?score=1", "");
    assert!(problem["detail"].as_str().unwrap().contains("nothing was changed"), "{problem}");
    assert_eq!(player.ask("GET", "/healthz", "").status, 503);
    store.signal(libc::SIGCONT);
    until(200, &mut player, "GET", "/healthz");
    let (score, _) = player.standing("ann");
    assert!(["1", "2"].contains(&&*score), "the first was made or not, the second was not: {score}");
    running.end().unwrap();
}

#[test]
fn a_store_that_cannot_be_used_is_refused_at_the_start() {
    let error = |options: Options| leaderboard_service::run(options, |_| ()).unwrap_err();
    let refused = error(with_store("redis://127.0.0.1:1"));
    assert!(
        refused.to_string().starts_with("cannot use the store redis://127.0.0.1:1/0 (Connection refused"),
        "{refused}"
    );
    let both = Options { data: Some("/nowhere".into()), ..with_store("redis://127.0.0.1:1") };
    assert!(matches!(error(both), ServeError::StoreAndData));
    let falsified =
        Options { faults: vec!["twice:50%".parse().unwrap()], ..with_store("redis://127.0.0.1:1") };
    let refused = error(falsified).to_string();
    assert_eq!(refused, "--fault twice is out of range: with --store updates cannot be falsified");
    let Some(store) = RedisServer::start() else { return };
    let refused = error(with_store(&format!("{}/99", store.url())));
    assert!(refused.to_string().contains("DB index is out of range"), "{refused}");
    let refused = error(with_store(&format!("redis://:secret@127.0.0.1:{}", store.port)));
    assert!(refused.to_string().contains("AUTH") && !refused.to_string().contains("secret"), "{refused}");
}
