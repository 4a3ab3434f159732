//! Leaderboards with a thread each, when the system refuses to start another.

use serde_json::Value;

use crate::adversary::process::Process;
use crate::adversary::{SERVER, WHICH};
use crate::client::Client;
use crate::leaderboard_client::Player;

#[test]
fn a_leaderboard_for_which_no_thread_can_be_started_is_refused_and_the_others_go_on() {
    let server = Process::start(SERVER, &[(WHICH, "leaderboard-actor")]);
    let mut player = Player(Client::silent(server.address));
    player.update("PUT", "ann", "5");
    let mut created = Vec::new();
    let refused = loop {
        assert!(created.len() < 10_000, "there is no end of threads");
        let answer = player.ask("POST", "/leaderboards", "{}");
        if answer.status != 201 {
            break answer;
        }
        let board: Value = serde_json::from_str(&answer.body).unwrap();
        created.push(board["name"].as_str().unwrap().to_owned());
    };
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("no thread can be started"), "{refused:?}");
    assert_eq!(player.standing("ann").0, "5");
    for name in &created {
        assert_eq!(player.ask("DELETE", &format!("/leaderboards/{name}"), "").status, 204);
    }
    assert_eq!(player.ask("POST", "/leaderboards", "{}").status, 201);
}
