//! A client of the leaderboard service, and a service on a thread of its own.

use serde_json::Value;
use servers::fault::Fault;
use servers::leaderboard_service::{self, Options};

use crate::client::{Client, Running};
use crate::http_client::{Answer, connect};

pub fn options() -> Options {
    Options { listen: "127.0.0.1:0".parse().unwrap(), threads: Some(2), ..Options::default() }
}

pub fn start(options: Options) -> Running {
    Running::start(move |shutdown, tell| {
        leaderboard_service::run(Options { shutdown: Some(shutdown), ..options }, |started| {
            tell(started.address)
        })
    })
}

pub fn start_with_faults(faults: &[&str]) -> Running {
    let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
    start(Options { faults, threads: Some(1), ..options() })
}

pub fn request(method: &str, target: &str, body: &str) -> String {
    let fields = match body {
        "" => String::new(),
        body => format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()),
    };
    format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n{body}")
}

/// One connection to a service.
pub struct Player(pub Client);

impl Player {
    pub fn of(running: &Running) -> Player {
        Player(connect(running.address))
    }

    pub fn ask(&mut self, method: &str, target: &str, body: &str) -> Answer {
        self.0.ask(&request(method, target, body))
    }

    /// Asks for something that is refused with this status.
    #[track_caller]
    pub fn refused(&mut self, status: u16, method: &str, target: &str, body: &str) -> Value {
        let answer = self.ask(method, target, body);
        assert_eq!(answer.status, status, "{method} {target} {body}: {}", answer.body);
        assert!(answer.head.contains("Content-Type: application/problem+json\r\n"), "{}", answer.head);
        let problem: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem["status"], status);
        problem
    }

    /// Asks for something that is done.
    #[track_caller]
    pub fn done(&mut self, method: &str, target: &str, body: &str) -> Value {
        let answer = self.ask(method, target, body);
        assert!(answer.status == 200 || answer.status == 201, "{method} {target} {body}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    }

    /// The score and rank of an update of this member of the first board.
    #[track_caller]
    pub fn update(&mut self, method: &str, member: &str, score: &str) -> (String, u64) {
        let target = format!("/leaderboards/main/members/{member}?score={score}");
        told(&self.done(method, &target, ""))
    }

    #[track_caller]
    pub fn standing(&mut self, member: &str) -> (String, u64) {
        told(&self.done("GET", &format!("/leaderboards/main/members/{member}"), ""))
    }
}

fn told(answer: &Value) -> (String, u64) {
    (answer["score"].as_str().unwrap().to_owned(), answer["rank"].as_u64().unwrap())
}

/// From a board on which `ann` alone has 10: every mode of updating; in the end `bob` has 7 and `ann` 2.
pub fn update_in_every_mode(player: &mut Player) {
    assert_eq!(player.update("PATCH", "ann", "5"), at(15, 1));
    assert_eq!(player.update("PATCH", "ann", "-20"), at(-5, 1));
    assert_eq!(player.update("PATCH", "bob", "7"), at(7, 1));
    assert_eq!(player.standing("ann"), at(-5, 2));
    assert_eq!(player.update("PUT", "ann", "3&mode=best"), at(3, 2));
    assert_eq!(player.update("PUT", "ann", "2&mode=best"), at(3, 2));
    assert_eq!(player.update("PATCH", "ann", "1&mode=decrement"), at(2, 2));
}

pub fn at(score: i64, rank: u64) -> (String, u64) {
    (score.to_string(), rank)
}
