//! `climb tcp://A,B`: bots on both nodes of a chat whose rooms span them, over a real NATS server.
//!
//! Where that is absent the tests say NOT RUN and pass (Debian: nats-server).

use serde_json::Value;

use crate::credentials::{Server, start as start_server};
use crate::main_job::{assert_balanced, assert_valid};
use crate::place::{Place, Ran, Running, free_port};

struct Nodes {
    place: Place,
    ports: [u16; 2],
    nodes: [Running; 2],
    _broker: Server,
}

/// Two nodes, the second with these options besides.
fn nodes(of_second: &[&str]) -> Option<Nodes> {
    let place = Place::new();
    let [broker_port, one, two] = [(); 3].map(|()| free_port());
    let broker =
        start_server("nats-server", broker_port, &["-a", "127.0.0.1", "-p", &broker_port.to_string()])?;
    let url = format!("nats://127.0.0.1:{broker_port}");
    let node = |name: &str, port: u16, more: &[&str]| {
        let listen = format!("127.0.0.1:{port}");
        let own = ["serve", "chat", "--threads", "1", "--nats", &url, "--node", name, "--listen", &listen];
        let mut node = place.start([&own[..], more].concat());
        node.wait_for_out(&format!("node {name} is connected to {url}"));
        node
    };
    let nodes = [node("one", one, &[]), node("two", two, of_second)];
    Some(Nodes { place, ports: [one, two], nodes, _broker: broker })
}

impl Nodes {
    fn url(&self) -> String {
        let [one, two] = self.ports;
        format!("tcp://127.0.0.1:{one},127.0.0.1:{two}")
    }

    fn climb(&self, clients: &str) -> (Ran, Value) {
        let url = self.url();
        let of_load = ["--rungs", clients, "--gap", "50ms..100ms", "--hold", "4s", "--settle", "1s"];
        let usual = ["--no-calibration", "--json", "run.json", "--objective", "deliveries.lost == 0"];
        let ran = self.place.run([&["climb", &url][..], &of_load, &usual].concat());
        assert!(self.place.path("run.json").exists(), "{ran:#?}");
        let run = self.place.json("run.json");
        assert_valid(&run);
        assert_balanced(&run);
        (ran, run)
    }

    /// The closing books of both: `books: owed 12 …`.
    fn owed(self) -> [u64; 2] {
        self.nodes.map(|node| {
            node.signal(libc::SIGTERM);
            let ended = node.finish();
            let books = ended.out.lines().find_map(|line| line.strip_prefix("books: owed "));
            let owed = books.and_then(|books| books.split(' ').next()).and_then(|owed| owed.parse().ok());
            owed.unwrap_or_else(|| panic!("{ended:#?}"))
        })
    }
}

fn count(deliveries: &Value, name: &str) -> u64 {
    deliveries[name].as_u64().unwrap_or_else(|| panic!("{name} in {deliveries:#}"))
}

fn answered(run: &Value) -> String {
    run["conclusions"].to_string()
}

#[test]
fn bots_on_two_nodes_hear_each_other_and_the_books_of_both_balance() {
    let Some(nodes) = nodes(&[]) else { return };
    let (ran, run) = nodes.climb("40");
    let deliveries = &run["rungs"][0]["deliveries"];
    assert_eq!(run["rungs"][0]["verdict"], "PASS", "{ran:#?}");
    let owed = count(deliveries, "owed");
    assert!(owed > 39 * 1_500 && owed.is_multiple_of(39), "a line is owed to the 39 others: {owed}");
    assert_eq!((count(deliveries, "delivered"), count(deliveries, "residual")), (owed, 0), "{ran:#?}");
    assert!(answered(&run).contains("The load was divided evenly between 2 nodes."), "{ran:#?}");
    assert!(ran.err.contains(&format!("2 nodes, to which bots go in turn: {}", nodes.url())), "{ran:#?}");
    // Each node owes the lines of all to its own half.
    let [one, two] = nodes.owed();
    assert!(one + two >= owed && one.abs_diff(two) * 10 < owed, "{one} and {two} of {owed}");
}

#[test]
fn lines_that_do_not_reach_a_node_are_lost_for_its_clients_and_for_nobody_else() {
    let Some(nodes) = nodes(&["--fault", "lose-linked@6s"]) else { return };
    let (ran, run) = nodes.climb("20");
    let deliveries = &run["rungs"][0]["deliveries"];
    let told = nodes.nodes[1].out();
    let missing =
        told.lines().find_map(|line| line.split_once(" of node one in room lobby did not reach this node"));
    let missing: u64 = missing.and_then(|(lines, _)| lines.split(' ').next()?.parse().ok()).expect(&told);
    assert!(missing > 0, "{told}");
    // To each of the ten clients of the second node; the server has said so, and the books balance.
    assert_eq!(count(deliveries, "lost"), 10 * missing, "{deliveries:#}");
    assert_eq!((count(deliveries, "dropped"), count(deliveries, "residual")), (10 * missing, 0));
    ran.failed_or_disturbed(&run["rungs"][0]);
}

#[test]
fn a_node_that_is_not_there_is_named_before_any_load() {
    let Some(nodes) = nodes(&[]) else { return };
    let absent = format!("tcp://127.0.0.1:{}", free_port());
    let url = format!("{},{}", nodes.url(), absent.trim_start_matches("tcp://"));
    let ran = nodes.place.run(["climb", &url, "--rungs", "10", "--hold", "2s", "--no-calibration"]);
    ran.refused(2, &[&format!("cannot reach {absent}")]);
    nodes.place.write("player.ts", "export default async function player(bot) { bot.ready(); }\n");
    let script = nodes.place.run(["climb", "player.ts", "--target", &nodes.url(), "--rungs", "10"]);
    script.refused(3, &["the URL names several nodes, but script bots go to one server"]);
}

#[test]
fn three_leaderboards_behind_one_store_are_climbed_as_one_service() {
    let place = Place::new();
    let store = free_port();
    let words = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &store.to_string()];
    let Some(_store) = start_server("redis-server", store, &words) else { return };
    let url = format!("redis://127.0.0.1:{store}");
    let nodes = [(); 3].map(|()| {
        let listen = format!("127.0.0.1:{}", free_port());
        let own = ["serve", "leaderboard", "--threads", "1", "--store", &url, "--listen", &listen];
        let mut node = place.start(own);
        node.wait_for_out("listening on");
        (listen, node)
    });
    let addresses = nodes.each_ref().map(|(listen, _)| listen.as_str()).join(",");
    let of_load = ["--bots", "leaderboard", "--members", "300", "--rate", "200", "--hold", "3s"];
    let usual = ["--settle", "500ms", "--no-calibration", "--json", "run.json"];
    let ran = place.run([&["climb", &format!("http://{addresses}")][..], &of_load, &usual].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let run = place.json("run.json");
    assert_valid(&run);
    assert!(answered(&run).contains("The load was divided evenly between 3 nodes."), "{ran:#?}");
    // Each node was asked, and what all of them acknowledged is there.
    for (listen, _) in &nodes {
        let figures = crate::viewing::get(&format!("http://{listen}/"), "metrics");
        let answered = figures.lines().filter(|line| line.starts_with("leaderboard_requests_total{"));
        let answered: f64 = answered.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        assert!(answered >= 100.0, "{listen}: {figures}");
    }
}
