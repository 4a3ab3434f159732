//! `climb ws://LOBBY`: players on two nodes of the arena that a lobby sends them to, over a real NATS server.
//!
//! Where that is absent the tests say NOT RUN and pass (Debian: nats-server).

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;

use crate::credentials::{Server, start as start_server};
use crate::main_job::{assert_balanced, assert_valid};
use crate::place::{Place, Ran, Running, free_port};

struct Cluster {
    place: Place,
    lobby: Running,
    nodes: [Running; 2],
    url: String,
    _broker: Server,
}

fn cluster() -> Option<Cluster> {
    let place = Place::new();
    let port = free_port();
    let broker = start_server("nats-server", port, &["-a", "127.0.0.1", "-p", &port.to_string()])?;
    let nats = format!("nats://127.0.0.1:{port}");
    let lobby_port = free_port();
    let listen = format!("127.0.0.1:{lobby_port}");
    let words = ["serve", "arena-lobby", "--nats", &nats, "--listen", &listen, "--tick-log", "nodes.log"];
    let mut lobby = place.start(words);
    lobby.wait_for_out("arena-lobby listening on");
    let node = |name: &str| {
        let own =
            ["serve", "arena", "--threads", "1", "--listen", "127.0.0.1:0", "--nats", &nats, "--node", name];
        let mut node = place.start(own);
        node.wait_for_out("arena listening on");
        node
    };
    let nodes = ["one", "two"].map(node);
    for name in ["one", "two"] {
        lobby.wait_for_out(&format!("node {name} is there"));
    }
    Some(Cluster { place, lobby, nodes, url: format!("ws://{listen}"), _broker: broker })
}

impl Cluster {
    fn climb<'a>(&'a self, hold: &'a str) -> Vec<&'a str> {
        let load = ["climb", &self.url, "--bots", "arena", "--rungs", "6", "--hold", hold, "--settle", "1s"];
        let usual = ["--ticks", "log=nodes.log", "--no-calibration", "--json", "run.json"];
        [&load[..], &usual].concat()
    }

    /// The rung of a run that is done.
    fn rung(&self, ran: &Ran) -> Value {
        assert!(self.place.path("run.json").exists(), "{ran:#?}");
        let run = self.place.json("run.json");
        assert_valid(&run);
        assert_balanced(&run);
        run["rungs"][0].clone()
    }

    /// Ticks that were due on each node, in the lobby's log.
    fn due(&self) -> [u64; 2] {
        let log = std::fs::read_to_string(self.place.path("nodes.log")).expect("a log");
        let lines: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).expect("a line of the log")).collect();
        ["one", "two"].map(|name| {
            let of = |line: &Value| line[format!("ticks_due@{name}")].as_u64().unwrap_or(0);
            lines.iter().map(of).sum()
        })
    }
}

#[test]
fn players_who_are_redirected_play_on_both_nodes_and_are_judged_by_the_ticks_of_both() {
    let Some(cluster) = cluster() else { return };
    // A busy machine may make ticks late, and no error.
    let ran = cluster.place.run([&cluster.climb("4s")[..], &["--objective", "errors == 0"]].concat());
    let rung = cluster.rung(&ran);
    assert!(["PASS", "GENERATOR_LIMITED"].iter().any(|verdict| rung["verdict"] == **verdict), "{ran:#?}");
    // Three games on each at 60 Hz; or four and two, where a player took longer than 200 ms to reach its node.
    let [one, two] = cluster.due();
    assert!(one.min(two) * 4 > one + two, "{one} and {two} ticks");
    let ticks = &rung["ticks"];
    let owed = 6.0 * 60.0 * 4.0;
    let due = ticks["due"].as_f64().unwrap();
    assert!(ticks["source"] == "log" && (0.8 * owed..1.3 * owed).contains(&due), "{ticks:#}");
    assert_eq!(rung["errors"], serde_json::json!({}), "{ran:#?}");
    drop((cluster.lobby, cluster.nodes));
}

#[test]
fn a_rung_in_which_a_node_dies_fails_although_the_other_one_ticks_on() {
    let Some(mut cluster) = cluster() else { return };
    let mut climb = cluster.place.start(cluster.climb("10s"));
    climb.wait_for("hold");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let [one, _two] = &cluster.nodes;
    one.signal(libc::SIGKILL);
    cluster.lobby.wait_for_out("node one was not heard for 3 s");
    let ran = climb.finish();
    let rung = cluster.rung(&ran);
    ran.failed_or_disturbed(&rung);
    let ticks = rung["extra"]["subject_counters"].clone();
    let of = |name: &str| ticks[format!("{name}@one")].as_f64().unwrap_or(0.0);
    let share = of("ticks_late") / of("ticks_due");
    assert!((0.25..1.0).contains(&share), "it ticked for 3 s and then owed its ticks: {ticks:#}");
    let remark = rung["remark"].as_str().unwrap_or_default();
    assert!(remark.contains("node one is judged, where "), "{ran:#?}");
    // Its players came back through the lobby within the hold.
    assert!(rung["extra"]["counters"]["handshake_redirects"].as_u64() >= Some(6), "{rung:#}");
}

#[test]
fn a_redirect_to_a_host_that_may_not_be_loaded_is_refused_before_any_load() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    // It lives as long as the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let answer = "HTTP/1.1 307 Temporary Redirect\r\nLocation: ws://192.0.2.7:81/\r\nContent-Length: 0\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let usual = ["--bots", "arena", "--rungs", "2", "--hold", "2s", "--no-calibration", "--json", "run.json"];
    let ran = place.run([&["climb", url.as_str()][..], &usual].concat());
    ran.refused(2, &["redirected to \"ws://192.0.2.7:81/\"", "say --i-may-load 192.0.2.7"]);
    assert!(!place.path("run.json").exists());
}
