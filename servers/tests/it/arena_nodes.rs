//! Games placed over nodes of the arena by a lobby, over a real NATS server: who is sent where, and who is let in.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use servers::{arena, arena_lobby};

use crate::client::{Client, Running, request};
use crate::nats_server::NatsServer;

const START: &str = r#"{"type":"start"}"#;

fn node(broker: &NatsServer, name: &str) -> Running {
    let (nats, node) = (Some(broker.url().parse().unwrap()), Some(name.to_owned()));
    Running::start(move |shutdown, listening| {
        let options = arena::Options {
            listen: ([127, 0, 0, 1], 0).into(),
            threads: Some(1),
            // No game ends by itself.
            bullet_speed: 1,
            close_timeout: Duration::from_millis(100),
            nats,
            node,
            shutdown: Some(shutdown),
            ..arena::Options::default()
        };
        arena::run(options, listening, |_| ())
    })
}

/// What a handshake is answered with, to the end of the connection.
fn asked(address: SocketAddr, path: &str) -> String {
    let mut client = Client::silent(address);
    client.write(request(path).as_bytes());
    let mut answer = String::new();
    client.stream.read_to_string(&mut answer).unwrap();
    answer
}

struct Lobby {
    running: Running,
    said: Receiver<String>,
}

impl Lobby {
    fn start(broker: &NatsServer, tick_log: Option<std::path::PathBuf>) -> Lobby {
        let (tell, said) = channel();
        let options =
            arena_lobby::Options { tick_log, ..arena_lobby::Options::new(broker.url().parse().unwrap()) };
        let running = Running::start(move |shutdown, listening| {
            let options = arena_lobby::Options { shutdown: Some(shutdown), ..options };
            arena_lobby::run(options, listening, move |sentence| drop(tell.send(sentence)))
        });
        Lobby { running, said }
    }

    /// Waits for a sentence that contains each of these, in any order.
    #[track_caller]
    fn says<const N: usize>(&self, parts: [&str; N]) {
        let by = Instant::now() + Duration::from_secs(20);
        let mut said = String::new();
        while parts.iter().any(|part| !said.contains(part)) {
            let next = self.said.recv_timeout(by.saturating_duration_since(Instant::now()));
            said += &next.unwrap_or_else(|_| panic!("it does not say {parts:?}, but {said}"));
            said.push('\n');
        }
    }

    /// What the lobby answers to a handshake.
    fn ask(&self, path: &str) -> String {
        asked(self.running.address, path)
    }

    /// Where a player is sent: the node's address, and path and query there.
    fn sent(&self, path: &str) -> (SocketAddr, String) {
        let answer = self.ask(path);
        assert!(answer.starts_with("HTTP/1.1 307 Temporary Redirect\r\n"), "{answer}");
        let url = answer.split_once("Location: ws://").unwrap().1.split_once("\r\n").unwrap().0;
        let (address, target) = url.split_once('/').unwrap();
        (address.parse().unwrap(), format!("/{target}"))
    }
}

/// What a node answers to a player whom it does not let in.
#[track_caller]
fn check_denied(node: SocketAddr, path: &str, words: &str) {
    let answer = asked(node, path);
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && answer.contains(words), "{answer}");
}

#[test]
fn two_players_of_a_game_meet_on_one_node_and_the_next_game_begins_on_the_other() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let lobby = Lobby::start(&broker, None);
    let answer = lobby.ask("/");
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("no node of the arena is there"),
        "{answer}"
    );
    let [one, two] = ["one", "two"].map(|name| node(&broker, name));
    lobby.says(["node one is there", "node two is there"]);
    let sent: Vec<(SocketAddr, String)> = (0..4).map(|_| lobby.sent("/play?snapshots=1")).collect();
    assert_eq!((sent[0].0, sent[2].0), (sent[1].0, sent[3].0));
    let mut nodes = [sent[0].0, sent[2].0];
    nodes.sort_unstable();
    let mut expected = [one.address, two.address];
    expected.sort_unstable();
    assert_eq!(nodes, expected);
    assert!(sent[0].1.starts_with("/play?snapshots=1&ticket="), "{}", sent[0].1);
    // The second arrives first, and players of both games mixed: tickets pair them.
    let mut players: Vec<Client> =
        [3, 1, 0, 2].map(|player| Client::open(sent[player].0, &sent[player].1)).into();
    for player in &mut players {
        assert_eq!(player.hear_text(), START);
    }
    // Whoever had seat one is the left player, wherever the arrivals crossed.
    let x = |client: &mut Client| loop {
        let text: Value = serde_json::from_str(&client.hear_text()).unwrap();
        if text["type"] == "stop" {
            return text["x"].as_i64().unwrap();
        }
    };
    one.end().unwrap();
    two.end().unwrap();
    let sides: Vec<i64> = players.iter_mut().map(x).collect();
    assert_eq!(sides, [1000, 1000, -1000, -1000]);
    lobby.says(["node one has ended", "node two has ended"]);
    lobby.running.end().unwrap();
}

#[test]
fn a_node_lets_in_whom_its_lobby_sends_and_each_ticket_once() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let lobby = Lobby::start(&broker, None);
    let node = node(&broker, "one");
    lobby.says(["node one is there"]);
    let (address, path) = lobby.sent("/");
    check_denied(address, "/", "this node takes players whom its lobby sends");
    check_denied(address, "/?ticket=", "this node takes players whom its lobby sends");
    check_denied(address, &path.replace("-1-", "-2-"), "the ticket is not one of this node");
    let _player = Client::open(address, &path);
    check_denied(address, &path, "the ticket was used before");
    lobby.running.end().unwrap();
    node.end().unwrap();
}

#[test]
fn players_go_to_the_nodes_that_are_left_and_the_dead_one_owes_its_ticks() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("ticks.jsonl");
    let lobby = Lobby::start(&broker, Some(log.clone()));
    let [_one, two] = ["one", "two"].map(|name| node(&broker, name));
    lobby.says(["node one is there", "node two is there"]);
    let mut players = Vec::new();
    for _ in 0..4 {
        let (address, path) = lobby.sent("/");
        players.push(Client::open(address, &path));
    }
    let by = Instant::now() + Duration::from_secs(20);
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["title"] == "stepladder").collect()
    };
    let wait_for = |what: &str, is_it: &dyn Fn(&Value) -> bool| loop {
        if let Some(line) = lines().into_iter().find(|line| is_it(line)) {
            return line;
        }
        assert!(Instant::now() < by, "no line {what}: {:#?}", lines().last());
        std::thread::sleep(Duration::from_millis(100));
    };
    let both =
        wait_for("with the ticks of both", &|line| line["games"] == 2 && line["due"].as_u64() > Some(100));
    assert_eq!(both["due"].as_u64().unwrap(), due(&both, "one") + due(&both, "two"), "{both:#}");
    assert_eq!(both["to_ms"].as_u64().unwrap() - both["from_ms"].as_u64().unwrap(), 1000);
    broker.signal(libc::SIGSTOP);
    lobby.says(["node one was not heard for 3 s and had 2 players", "node two was not heard"]);
    let answer = lobby.ask("/");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let dead = wait_for("of dead nodes", &|line| line["nodes"] == 0 && line["missed"].as_u64() > Some(0));
    assert_eq!(dead["missed"].as_u64().unwrap() % 60, 0, "{dead:#}");
    broker.signal(libc::SIGCONT);
    lobby.says(["node one is heard again", "node two is heard again"]);
    two.end().unwrap();
    lobby.says(["node two has ended"]);
    let (address, path) = lobby.sent("/");
    let _player = Client::open(address, &path);
    lobby.running.end().unwrap();
}

fn due(line: &Value, node: &str) -> u64 {
    line[format!("ticks_due@{node}")].as_u64().unwrap()
}
