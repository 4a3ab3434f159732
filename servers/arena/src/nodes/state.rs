//! What a node tells its lobbies once a second through the broker, as JSON. Pure.
//!
//! What anything else publishes there is not understood, and changes nothing. Counts are of the second up to `to_ms`.

use std::net::Ipv6Addr;

use serde_json::{Map, Value, json};
use servers_shared::host_port;
use servers_shared::nats::{NodeId, is_node_name};
use servers_shared::ticks::TickTally;

use super::ticket::{Key, Seat};

/// Where nodes tell their state.
pub const NODES: &str = "stepladder-arena.nodes";

/// Games with one player that are told, at most.
pub const WAITING_MAX: usize = 256;
/// Counters that are believed of a node, and the length of their names.
const FIGURES_MAX: usize = 32;
const FIGURE_BYTES_MAX: usize = 32;
/// Players, and anything that is counted in a second, are fewer.
const COUNT_MAX: u64 = 1 << 40;

/// No instant is later, ms: the year 2100.
const LATEST_MS: u64 = 4_102_444_800_000;

/// How a node is, and what its loop did in a second.
pub struct State {
    /// Who it is.
    pub node: NodeId,
    /// As its people call it.
    pub name: String,
    /// Where players find it: `HOST:PORT`.
    pub address: String,
    /// What its tickets are signed with.
    pub key: Key,
    /// Players that it can still take.
    pub free: u64,
    /// Games in which one player waits for the other, and the seat that is free.
    pub waiting: Vec<(u64, Seat)>,
    /// The end of its second, ms since the epoch by its clock.
    pub to_ms: u64,
    /// Hz
    pub tick_rate: u32,
    /// Its ticks in that second.
    pub ticks: TickTally,
    /// Its other counters: those of its tick log.
    pub figures: Vec<(String, u64)>,
}

/// What is said on the subject of nodes.
pub enum Said {
    /// A node is there.
    Here(Box<State>),
    /// It ends.
    Leaving(NodeId),
}

/// The last words of a node.
pub(crate) fn farewell(node: NodeId) -> String {
    json!({ "node": node.to_string(), "leaving": true }).to_string()
}

impl State {
    /// A counter by its name; 0 where the node does not tell it.
    pub fn figure(&self, name: &str) -> u64 {
        self.figures.iter().find(|(known, _)| known == name).map_or(0, |(_, figure)| *figure)
    }

    /// As it is published.
    pub fn written(&self) -> String {
        let figures: Map<String, Value> =
            self.figures.iter().map(|(name, figure)| (name.clone(), (*figure).into())).collect();
        let waiting: Value = self.waiting.iter().map(|(game, seat)| json!([game, seat.number()])).collect();
        json!({
            "node": self.node.to_string(), "name": self.name, "address": self.address, "key": self.key.to_text(),
            "free": self.free, "waiting": waiting, "to_ms": self.to_ms, "tick_rate": self.tick_rate,
            "figures": figures, "ticks": self.ticks.to_json(),
        })
        .to_string()
    }
}

/// What a message says; `None` for what no node says.
pub fn read(payload: &[u8]) -> Option<Said> {
    let said: Value = serde_json::from_slice(payload).ok()?;
    let text = |name: &str| said[name].as_str();
    let count = |value: &Value| value.as_u64().filter(|count| *count <= COUNT_MAX);
    let node = NodeId(id(text("node")?)?);
    if said["leaving"] == true {
        return Some(Said::Leaving(node));
    }
    let waiting = said["waiting"].as_array().filter(|games| games.len() <= WAITING_MAX)?;
    let waiting: Option<Vec<(u64, Seat)>> = waiting
        .iter()
        .map(|game| Some((game.get(0)?.as_u64()?, Seat::of_number(game.get(1)?.as_u64()?)?)))
        .collect();
    let figures = said["figures"].as_object().filter(|figures| figures.len() <= FIGURES_MAX)?;
    let figures: Option<Vec<(String, u64)>> = figures
        .iter()
        .map(|(name, figure)| is_figure(name).then_some((name.clone(), count(figure)?)))
        .collect();
    Some(Said::Here(Box::new(State {
        node,
        name: text("name").filter(|name| is_node_name(name))?.to_owned(),
        address: text("address").filter(|address| is_address(address))?.to_owned(),
        key: Key::from_text(text("key")?)?,
        free: count(&said["free"])?,
        waiting: waiting?,
        to_ms: said["to_ms"].as_u64().filter(|ms| *ms <= LATEST_MS)?,
        tick_rate: said["tick_rate"].as_u64().filter(|rate| (1..=1000).contains(rate))? as u32,
        ticks: TickTally::from_json(&said["ticks"])?,
        figures: figures?,
    })))
}

fn id(text: &str) -> Option<u64> {
    let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn is_figure(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=FIGURE_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter)
}

/// Whether it can stand in a URL as the place of a server: `HOST:PORT`.
pub fn is_address(text: &str) -> bool {
    let is_name = |host: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        (1..=253).contains(&host.len()) && host.bytes().all(is_letter)
    };
    match host_port::split(text) {
        Some((host, Some(port))) if host_port::port(port).is_some() => {
            if text.starts_with('[') {
                host.parse::<Ipv6Addr>().is_ok()
            } else {
                is_name(host)
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut ticks = TickTally::new();
        ticks.miss(3);
        State {
            node: NodeId(7),
            name: "a.b-1".to_owned(),
            address: "[::1]:42069".to_owned(),
            key: Key::from_text(&"5a".repeat(32)).unwrap(),
            free: 9,
            waiting: vec![(u64::MAX, Seat::Two)],
            to_ms: 1_795_230_436_000,
            tick_rate: 60,
            ticks,
            figures: vec![("games".to_owned(), 2), ("sockets".to_owned(), 5)],
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_the_rest_is_not_understood() {
        let written = state().written();
        let Some(Said::Here(read_again)) = read(written.as_bytes()) else { panic!("{written}") };
        assert_eq!(read_again.written(), written);
        assert_eq!((read_again.figure("sockets"), read_again.figure("shots")), (5, 0));
        assert!(matches!(read(farewell(NodeId(u64::MAX)).as_bytes()), Some(Said::Leaving(NodeId(u64::MAX)))));
        for (field, wrong) in [
            ("node", json!("7")),
            ("name", json!("a\u{1b}[2J")),
            ("address", json!("evil.example:1/?")),
            ("key", json!("5a")),
            ("free", json!(-1)),
            ("waiting", json!([[1, 3]])),
            ("waiting", json!(vec![[1, 1]; WAITING_MAX + 1])),
            ("to_ms", json!(u64::MAX)),
            ("tick_rate", json!(0)),
            ("figures", json!({ "Due!": 1 })),
            ("figures", json!({ "due": u64::MAX })),
            ("ticks", json!({})),
        ] {
            let mut said: Value = serde_json::from_str(&written).unwrap();
            said[field] = wrong;
            assert!(read(said.to_string().as_bytes()).is_none(), "{field}: {}", said[field]);
        }
        assert!(read(b"\xff").is_none() && read(b"{}").is_none());
    }

    #[test]
    fn an_address_is_one_that_can_stand_in_a_url() {
        for good in ["127.0.0.1:1", "[::1]:65535", "game-1.example.org:80", "localhost:42069"] {
            assert!(is_address(good), "{good}");
        }
        for bad in
            ["", ":1", "a", "a:0", "a:70000", "a:1/x", "a b:1", "::1:80", "[::1", "u@h:1", "a:1\r\n", "[a]:1"]
        {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
