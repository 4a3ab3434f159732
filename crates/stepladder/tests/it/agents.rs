//! `agent` and `climb --agents`: shares that add up to the whole across network namespaces, agents that are lost, and a broker that
//! is not what it should be.
//!
//! They need nats-server; without it they print NOT RUN. Without the right to make network namespaces agents run beside the server.
//! Other tests run beside these, so a load that lost an agent for want of a core is held again, and the last hold of a load counts.

mod brokers;
mod examples;
mod limits;
mod watching;

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::main_job::{assert_valid, checked_run};
use crate::place::{Place, Ran, Running, eventually, free_port, url_of};

/// Two tests at a time, each with names and addresses of its own: more would disturb each other's loads.
static SLOTS: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Two namespaces that are made at once disturb each other's mounts.
static MAKING: Mutex<()> = Mutex::new(());

/// One of them and its number, once it is free.
fn slot() -> (usize, MutexGuard<'static, ()>) {
    let slot = NEXT.fetch_add(1, Relaxed) % SLOTS.len();
    (slot, SLOTS[slot].lock().unwrap_or_else(PoisonError::into_inner))
}

/// Two machines beside this one, as network namespaces, each with a cable to it.
pub struct Islands {
    pub names: Vec<String>,
    slot: (usize, MutexGuard<'static, ()>),
}

impl Islands {
    /// Without the right to make them there are none.
    pub fn new() -> Islands {
        let mut islands = Islands { names: Vec::new(), slot: slot() };
        for index in 0..2 {
            if !islands.add(index) {
                eprintln!("NOT RUN across namespaces: this needs root and iproute2");
                islands.remove();
                break;
            }
        }
        islands
    }

    /// The last part of the address of an island's cable here; there it is one more.
    fn host(&self, index: usize) -> usize {
        4 * (2 * self.slot.0 + index) + 1
    }

    fn add(&mut self, index: usize) -> bool {
        let (pid, net, number) = (std::process::id(), subnet(), 2 * self.slot.0 + index);
        let (name, ours, theirs) =
            (format!("slt{pid}x{number}"), format!("slo{pid}x{number}"), format!("sl{pid}x{number}"));
        let (here, there) = (self.host(index), self.host(index) + 1);
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_made = ip(&format!("netns add {name}"));
        drop(making);
        if !is_made {
            return false;
        }
        self.names.push(name.clone());
        [
            format!("link add {ours} type veth peer name {theirs}"),
            format!("link set {theirs} netns {name}"),
            format!("addr add {net}.{here}/30 dev {ours}"),
            format!("link set {ours} up"),
            format!("-n {name} addr add {net}.{there}/30 dev {theirs}"),
            format!("-n {name} link set {theirs} up"),
            format!("-n {name} link set lo up"),
            format!("-n {name} route add default via {net}.{here}"),
        ]
        .iter()
        .all(|words| ip(words))
    }

    /// Where servers of this machine listen, so that all reach them.
    pub fn address(&self) -> String {
        if self.names.is_empty() { "127.0.0.1".to_owned() } else { format!("{}.{}", subnet(), self.host(0)) }
    }

    fn agent(&self, place: &Place, broker: &str, index: usize) -> Running {
        let name = ["a", "b"][index];
        let own = place.command(["agent", "--nats", broker, "--name", name, "--cores", "2"]);
        let mut agent = place.start_command(self.there(place, own, index));
        agent.wait_for("waits at");
        agent
    }

    /// The same command on one of the machines; without them on this one.
    pub fn there(&self, place: &Place, own: Command, index: usize) -> Command {
        let Some(namespace) = self.names.get(index) else { return own };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(own.get_program()).args(own.get_args());
        command.current_dir(place.path("")).stdin(Stdio::null()).env("STEPLADDER_LOCK", "");
        command
    }

    /// Where servers of one of the machines listen.
    pub fn address_of(&self, index: usize) -> String {
        if self.names.is_empty() {
            "127.0.0.1".to_owned()
        } else {
            format!("{}.{}", subnet(), self.host(index) + 1)
        }
    }

    fn remove(&mut self) {
        for name in self.names.drain(..) {
            // First the cable, which else goes some time after its namespace: the next test's has the same name.
            ip(&format!("link del {}", name.replacen("slt", "slo", 1)));
            ip(&format!("netns del {name}"));
        }
    }
}

impl Drop for Islands {
    fn drop(&mut self) {
        self.remove();
    }
}

fn subnet() -> String {
    format!("10.213.{}", std::process::id() % 250)
}

fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A broker with these options; `None`, said once, where there is no nats-server.
pub fn broker(place: &Place, address: &str, options: &[&str]) -> Option<(Running, String)> {
    let program = ["/usr/sbin/nats-server", "/usr/local/bin/nats-server"].map(PathBuf::from);
    let Some(program) = program.into_iter().find(|path| path.exists()) else {
        eprintln!("NOT RUN: there is no nats-server");
        return None;
    };
    let port = free_port();
    let mut command = Command::new(program);
    command.args(["--addr", address, "--port", &port.to_string()]).args(options).stdin(Stdio::null());
    command.arg("--store_dir").arg(place.path(&format!("js{port}")));
    let running = place.start_command(command);
    let url = format!("nats://{address}:{port}");
    eventually("the broker to listen", || TcpStream::connect((address, port)).ok());
    Some((running, url))
}

/// A chat whose clients speak often, played by two agents; the load follows.
fn chat_by_two(broker: &str) -> [&str; 9] {
    ["chat", "--gap", "50ms..100ms", "--nats", broker, "--agents", "2", "--json", "run.json"]
}

/// The last hold of each load.
fn last_holds(run: &Value) -> Vec<&Value> {
    let rungs = run["rungs"].as_array().expect("rungs");
    let is_last = |(index, rung): &(usize, &Value)| {
        !rungs[index + 1..].iter().any(|later| later["load"] == rung["load"])
    };
    rungs.iter().enumerate().filter(is_last).map(|(_, rung)| rung).collect()
}

fn climb(place: &Place, words: &[&str], agents: &[&str], own: &[&str]) -> (Ran, Value) {
    let ran = place.climb(&[words, agents, &["--json", "run.json"], own].concat());
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(place);
    (ran, run)
}

#[test]
fn agents_on_other_machines_offer_what_one_machine_does_and_their_books_are_one() {
    let (place, islands) = (Place::new(), Islands::new());
    let address = islands.address();
    let Some((_broker, url)) = broker(&place, &address, &["--jetstream"]) else { return };
    let _agents = [0, 1].map(|index| islands.agent(&place, &url, index));
    let agents = ["--nats", &url, "--agents", "2"];
    let mut server =
        place.start(["serve", "null", "--protocol", "http", "--listen", &format!("{address}:0")]);
    let target = url_of(&server.wait_for_out("listening on"));
    let words = [&target, "--rate", "300,600", "--arrivals", "even", "--workers", "4", "--hold", "3s"];
    let whole = climb(&place, &words, &[], &[]).1;
    let (ran, parts) = climb(&place, &words, &agents, &[]);
    for (one, other) in last_holds(&whole).into_iter().zip(last_holds(&parts)) {
        let hold = |rung: &Value| (rung["hold_s"].as_f64(), rung["offered"].as_u64());
        // A disturbed hold goes on, and offers so many more in each further second.
        let per_second =
            |rung: &Value| hold(rung).1.map(|offered| offered as f64 / hold(rung).0.unwrap_or(0.0));
        assert_eq!(per_second(one), per_second(other), "{ran:#?}");
        let names: Vec<&Value> =
            other["agents"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        assert_eq!(names, ["a", "b"], "{other:#}");
        assert_eq!(one.get("agents"), None, "this process made the load");
    }
    // Every line that one agent's clients say is owed to those of the other.
    let crowd = ["chat", "--rungs", "40", "--gap", "50ms..100ms", "--hold", "3s"];
    let (ran, run) = climb(&place, &crowd, &agents, &["--", "--listen", &format!("{address}:0")]);
    let rung = last_holds(&run)[0];
    let deliveries = &rung["deliveries"];
    assert_eq!((&deliveries["residual"], &deliveries["lost"]), (&json!(0), &json!(0)), "{ran:#?}");
    assert_eq!(
        (&deliveries["delivered"], &deliveries["duplicated"]),
        (&deliveries["owed"], &json!(0)),
        "{deliveries:#}"
    );
    assert!(deliveries["owed"].as_u64() >= Some(39 * 1_200), "{deliveries:#}");
    let bots: Vec<&Value> = rung["agents"].as_array().into_iter().flatten().map(|one| &one["bots"]).collect();
    assert_eq!(bots, [20, 20], "{rung:#}");
    let page = place.run(["show", run["run"]["id"].as_str().expect("an id"), "--all"]).out;
    assert!(page.contains("2 agents made the load of 40 clients: 20 bots each"), "{page}");
    assert!(page.contains("Agents under 40 clients\n"), "{page}");
    // Pairs are whole, though two machines let players in.
    let (ran, run) = climb(
        &place,
        &["arena", "--rungs", "20", "--hold", "3s"],
        &agents,
        &["--", "--listen", &format!("{address}:0")],
    );
    let rung = last_holds(&run)[0];
    assert_eq!((&rung["connections"]["asked"], &rung["lost"]), (&json!(40), &json!(0)), "{ran:#?}");
    assert_eq!(rung["errors"]["the server paired us with another time"], Value::Null, "{rung:#}");
}

#[test]
fn a_load_whose_agent_is_killed_proves_nothing_and_is_held_again_with_those_left() {
    let (place, islands) = (Place::new(), Islands::new());
    let address = islands.address();
    let Some((_broker, url)) = broker(&place, &address, &["--jetstream"]) else { return };
    let [mut kept, lost] = [0, 1].map(|index| islands.agent(&place, &url, index));
    let listen = format!("{address}:0");
    let load = ["--rungs", "20", "--hold", "4s", "--", "--listen", &listen];
    let mut climb = place.start_climb(&[&chat_by_two(&url)[..], &load].concat());
    climb.wait_for("hold ·");
    // The lease is held.
    place
        .run(["climb", "arena", "--nats", &url, "--agents", "1"])
        .refused(2, &["another climb uses the agents"]);
    lost.signal(libc::SIGKILL);
    let ran = climb.finish();
    let run = place.json("run.json");
    assert_valid(&run);
    let rungs = run["rungs"].as_array().expect("rungs");
    let first = &rungs[0];
    assert_eq!((&first["verdict"], &first["signal"]), (&json!("INVALID"), &json!("agent lost")), "{ran:#?}");
    let reason = first["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("agent lost: b (1 of 2 left): nothing was heard of it for 5 s"), "{reason}");
    assert_eq!(first["agents"][1]["lost"], json!("nothing was heard of it for 5 s"), "{first:#}");
    assert!(rungs.len() >= 2, "it was held again: {ran:#?}");
    let again = &rungs[1];
    assert_eq!(
        (&again["load"], again["agents"].as_array().map(Vec::len)),
        (&first["load"], Some(1)),
        "{again:#}"
    );
    assert_eq!(again["agents"][0]["bots"], json!(20), "the one that is left plays the whole load");
    kept.wait_for("the climb has ended");
    // An agent that its user ends says so, and is not asked again; one that comes later takes its place at the next load.
    let mut ended = islands.agent(&place, &url, 1);
    let load = ["--rungs", "20,30", "--hold", "3s", "--", "--listen", &listen];
    let mut climb = place.start_climb(&[&chat_by_two(&url)[..], &load].concat());
    climb.wait_for("hold ·");
    ended.signal(libc::SIGTERM);
    climb.wait_for("INVALID");
    let mut later = islands.agent(&place, &url, 1);
    let ran = climb.finish();
    let run = place.json("run.json");
    let rungs = run["rungs"].as_array().expect("rungs");
    let reason = rungs[0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("agent lost: b (1 of 2 left): its user ended it"), "{reason}");
    let agents = rungs.last().and_then(|rung| rung["agents"].as_array()).map(Vec::len);
    assert_eq!(agents, Some(2), "{ran:#?}");
    assert!(ran.err.contains("agent b has joined: 2 of 2 agents"), "{ran:#?}");
    ended.wait_for("joined a climb");
    later.wait_for("the climb has ended");
    // A coordinator that is killed: its agents end by themselves, and play for the one that goes on behind it, once its lease is over.
    let mut climb = place.start_climb(&[
        "chat", "--rungs", "10,20", "--hold", "4s", "--nats", &url, "--agents", "1", "--", "--listen",
        &listen,
    ]);
    climb.wait_for("rung 20 clients · hold");
    climb.signal(libc::SIGKILL);
    kept.wait_for("nothing was heard of the coordinator for 5 s");
    let words = [
        "again",
        "chat",
        "--resume",
        "--nats",
        &url,
        "--agents",
        "1",
        "--allow-start",
        "--json",
        "rest.json",
    ];
    let ran = place.run(words);
    let rest = place.json("rest.json");
    assert_valid(&rest);
    let loads: Vec<&Value> = last_holds(&rest).iter().map(|rung| &rung["load"]).collect();
    assert_eq!(loads, [&json!(10.0), &json!(20.0)], "{ran:#?}");
    let last = rest["rungs"].as_array().and_then(|rungs| rungs.last()).expect("rungs");
    assert_ne!(last["verdict"], "INVALID", "{ran:#?}");
    assert_eq!(last["agents"].as_array().map(Vec::len), Some(1), "{ran:#?}");
}

#[test]
fn a_broker_that_is_none_or_agents_that_are_too_few_are_said_with_what_to_do() {
    let (place, islands) = (Place::new(), Islands::new());
    let Some((_plain, plain)) = broker(&place, "127.0.0.1", &[]) else { return };
    let Some((_closed, closed)) =
        broker(&place, "127.0.0.1", &["--jetstream", "--user", "u", "--pass", "secret"])
    else {
        return;
    };
    let open = closed.replace("nats://", "nats://u:secret@");
    let wrong = closed.replace("nats://", "nats://u:wrong@");
    let nowhere = format!("nats://127.0.0.1:{}", free_port());
    for (url, more, code, said) in [
        (&nowhere, &["1"][..], 2, "no broker answers at"),
        (&plain, &["1"], 2, "JetStream is off there"),
        (&wrong, &["1"], 2, "refuses these credentials"),
        (
            &open,
            &["2", "--agents-within", "1"],
            2,
            "0 of 2 agents are there; start more with stepladder agent",
        ),
        (&open, &["0"], 2, "--agents 0: from 1 to 1000"),
        (&"http://127.0.0.1".to_owned(), &["1"], 2, "http:// is no scheme of NATS"),
        (&"nats://${NO_SUCH_NAME}@127.0.0.1".to_owned(), &["1"], 2, "environment variable NO_SUCH_NAME"),
    ] {
        let ran = place.run([&["climb", "arena", "--nats", url, "--agents"], more].concat());
        ran.fails(code, &[said]);
        assert!(!ran.err.contains("secret") && !ran.err.contains("wrong@"), "no password is shown: {ran:#?}");
    }
    // An agent has limits of its own.
    let mut agent = place.start(["agent", "--nats", &open, "--max-bots", "10"]);
    agent.wait_for("waits at");
    let ran = place.run(["climb", "chat", "--rungs", "5,20", "--nats", &open, "--agents", "1"]);
    ran.fails(2, &["rung 20: agent", "plays at most 10 bots (--max-bots), and its share is 20"]);
    if !islands.names.is_empty() {
        let (_broker, url) = broker(&place, &islands.address(), &["--jetstream"]).expect("there is one");
        let _agent = islands.agent(&place, &url, 0);
        let ran =
            place.run(["climb", "chat", "--rungs", "5", "--no-calibration", "--nats", &url, "--agents", "1"]);
        ran.fails(2, &["which agent a on", "cannot reach"]);
    }
}
