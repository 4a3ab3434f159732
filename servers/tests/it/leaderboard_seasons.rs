//! Metadata of members, archived seasons and their schedule over HTTP, with restarts.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use servers::leaderboard_service::Options;

use crate::client::Running;
use crate::leaderboard_client::{Player, options, request, start};

fn keeping(directory: &Path) -> Running {
    start(Options { data: Some(directory.to_owned()), ..options() })
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

const BOARD: &str = "/leaderboards/main";

#[test]
fn metadata_is_attached_shown_and_taken_off_and_survives_updates_and_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    let ann = format!("{BOARD}/members/ann");
    let metadata = format!("{ann}/metadata");
    player.refused(404, "PUT", &metadata, r#"{"metadata":"blue"}"#);
    player.update("PATCH", "ann", "1");
    player.update("PATCH", "bob", "2");
    assert_eq!(player.done("GET", &metadata, ""), json!({ "member": "ann", "metadata": null }));
    let set = player.done("PUT", &metadata, r#"{"metadata":"blue \"1\""}"#);
    assert_eq!(set, json!({ "member": "ann", "metadata": "blue \"1\"" }));
    player.refused(422, "PUT", &metadata, &format!(r#"{{"metadata":"{}"}}"#, "x".repeat(1_025)));
    player.refused(422, "PUT", &metadata, r#"{"metadata":7}"#);
    player.update("PATCH", "ann", "1");
    running.end().unwrap();

    for _ in 0..2 {
        let running = keeping(directory.path());
        let mut player = Player::of(&running);
        assert_eq!(player.done("GET", &ann, "")["metadata"], "blue \"1\"");
        let rows = player.done("GET", &format!("{BOARD}/top"), "")["rows"].clone();
        let metadata = rows.as_array().unwrap().iter().map(|row| row.get("metadata")).collect::<Vec<_>>();
        assert_eq!(metadata.iter().flatten().collect::<Vec<_>>(), [&&json!("blue \"1\"")]);
        running.end().unwrap();
    }
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    assert_eq!(player.ask("DELETE", &metadata, "").status, 204);
    assert_eq!(player.done("GET", &ann, "").get("metadata"), None);
    running.end().unwrap();
    let running = keeping(directory.path());
    assert_eq!(Player::of(&running).done("GET", &ann, "").get("metadata"), None);
    running.end().unwrap();
}

#[test]
fn a_season_ends_is_archived_and_can_be_read_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    for (member, score) in [("ann", "5"), ("bob", "7"), ("a/b", "6")] {
        player.update("PUT", &member.replace('/', "%2F"), score);
    }
    player.done("PUT", &format!("{BOARD}/members/bob/metadata"), r#"{"metadata":"blue"}"#);
    let seasons = format!("{BOARD}/seasons");
    let ended = player.done("POST", &seasons, r#"{"name":"spring 1"}"#);
    assert_eq!((&ended["name"], &ended["members"]), (&json!("spring 1"), &json!(3)));
    assert!(ended["ended_at_s"].as_u64().unwrap().abs_diff(now_s()) < 60);
    player.refused(409, "POST", &seasons, r#"{"name":"spring 1"}"#);
    player.refused(422, "POST", &seasons, r#"{"name":""}"#);
    player.refused(404, "POST", "/leaderboards/none/seasons", r#"{"name":"x"}"#);
    player.refused(404, "GET", &format!("{BOARD}/members/bob"), "");
    player.update("PUT", "bob", "1");
    player.done("POST", &seasons, r#"{"name":"summer"}"#);
    player.update("PUT", "cid", "3");
    running.end().unwrap();

    for _ in 0..2 {
        let running = keeping(directory.path());
        let mut player = Player::of(&running);
        let listed = player.done("GET", &seasons, "")["seasons"].clone();
        let names: Vec<_> = listed.as_array().unwrap().iter().map(|season| season["name"].clone()).collect();
        assert_eq!((names, &listed[0]), (vec![json!("spring 1"), json!("summer")], &ended));
        let spring = format!("{seasons}/spring%201");
        let page = player.done("GET", &format!("{spring}?first=1&limit=2"), "");
        let bob = json!({ "member": "bob", "score": "7", "rank": 1, "metadata": "blue" });
        let second = json!({ "member": "a/b", "score": "6", "rank": 2 });
        assert_eq!(page, json!({ "members": 3, "rows": [bob, second], "next": 3 }));
        let found = player.done("GET", &format!("{spring}/members/a%2Fb"), "");
        assert_eq!(found, json!({ "member": "a/b", "score": "6", "rank": 2 }));
        player.refused(404, "GET", &format!("{spring}/members/cid"), "");
        player.refused(404, "GET", &format!("{seasons}/winter"), "");
        assert_eq!(player.standing("cid"), ("3".to_owned(), 1));
        running.end().unwrap();
    }
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    assert_eq!(player.ask("DELETE", &format!("{seasons}/spring%201"), "").status, 204);
    player.refused(404, "DELETE", &format!("{seasons}/spring%201"), "");
    running.end().unwrap();
    let running = keeping(directory.path());
    let seasons = Player::of(&running).done("GET", &seasons, "")["seasons"].clone();
    assert_eq!((seasons.as_array().unwrap().len(), &seasons[0]["name"]), (1, &json!("summer")));
    running.end().unwrap();
}

#[test]
fn a_scheduled_season_ends_by_itself_and_the_schedule_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    let schedule = format!("{BOARD}/schedule");
    player.refused(404, "GET", &schedule, "");
    player.refused(422, "PUT", &schedule, r#"{"next_end_s":1,"every_s":60}"#);
    player.refused(422, "PUT", &schedule, &format!(r#"{{"next_end_s":{},"every_s":0}}"#, now_s() + 9));
    player.update("PUT", "ann", "5");
    let end_s = now_s() + 2;
    let body = json!({ "next_end_s": end_s, "every_s": 1_000_000 });
    assert_eq!(player.done("PUT", &schedule, &body.to_string()), body);
    running.end().unwrap();

    // It is due soon, or became due while nothing ran.
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    let seasons = format!("{BOARD}/seasons");
    let season = loop {
        let listed = player.done("GET", &seasons, "")["seasons"].clone();
        if let Some(season) = listed.as_array().unwrap().first() {
            break season.clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!((&season["name"], &season["members"]), (&json!(end_s.to_string()), &json!(1)));
    assert!(season["ended_at_s"].as_u64().unwrap() >= end_s);
    let next = json!({ "next_end_s": end_s + 1_000_000, "every_s": 1_000_000 });
    assert_eq!(player.done("GET", &schedule, ""), next);
    player.refused(404, "GET", &format!("{BOARD}/members/ann"), "");
    running.end().unwrap();
    let running = keeping(directory.path());
    let mut player = Player::of(&running);
    assert_eq!(player.done("GET", &schedule, ""), next);
    assert_eq!(player.ask("DELETE", &schedule, "").status, 204);
    player.refused(404, "DELETE", &schedule, "");
    running.end().unwrap();
}

#[test]
fn members_are_listed_from_the_last_rank_as_well() {
    let running = start(options());
    let mut player = Player::of(&running);
    (1..=5).for_each(|number| drop(player.update("PUT", &format!("m{number}"), &number.to_string())));
    let mut page = |query: &str| {
        let page = player.done("GET", &format!("{BOARD}/range?{query}"), "");
        let ranks: Vec<u64> =
            page["rows"].as_array().unwrap().iter().map(|row| row["rank"].as_u64().unwrap()).collect();
        (ranks, page["next"].as_u64())
    };
    assert_eq!(page("from=last&limit=2"), (vec![5, 4], Some(3)));
    assert_eq!(page("from=last&limit=2&first=3"), (vec![3, 2], Some(5)));
    assert_eq!(page("from=last&limit=2&first=5"), (vec![1], None));
    assert_eq!(page("from=last&first=6"), (vec![], None));
    assert_eq!(page("from=first&limit=2"), (vec![1, 2], Some(3)));
    player.refused(422, "GET", &format!("{BOARD}/range?from=middle"), "");
    running.end().unwrap();
}

#[test]
fn a_repetition_after_a_restart_gets_the_first_answer_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let asked = request("PATCH", &format!("{BOARD}/members/ann?score=5"), "");
    let asked = asked.replacen("\r\n", "\r\nIdempotency-Key: k1\r\n", 1);
    let mut first = None;
    for _ in 0..3 {
        let running = keeping(directory.path());
        let mut player = Player::of(&running);
        let answer = player.0.ask(&asked);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(*first.get_or_insert_with(|| answer.body.clone()), answer.body);
        assert_eq!(player.standing("ann"), ("5".to_owned(), 1));
        running.end().unwrap();
    }
}
