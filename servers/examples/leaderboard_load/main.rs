//! How many updates per second the leaderboard service takes over loopback, and what they cost it.
//!
//! `cargo run --release -p stepladder-servers --example leaderboard_load -- [CONNECTIONS] [ITEMS] [SECONDS] [MEMBERS] [IN_FLIGHT]
//! [-- OPTIONS]`
//! ITEMS 1: one PATCH per request; more: bulks of that many increments. All MEMBERS are there before, with random scores.
//! Closed loop: every connection has one request under way, and one thread asks and reads for all of them in turn; the
//! requests are made before. OPTIONS are those of `serve leaderboard`; with `--data` the service is killed at the end,
//! and it is timed how long it takes until it is started again and /healthz is answered. SECONDS 0: only that.
//! IN_FLIGHT: turns of HTTP and of WebSocket with that many requests of ITEMS updates under way on each connection follow
//! each other, on the same service; the ratio is the median of the rounds'.
//! The service is a process of its own, so that its CPU time is measured separately from the load's. Both share the machine.
//! With `--store redis://…` the CPU time of the store is read from its `INFO`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod websocket;

use clap::{Args, FromArgMatches};
use servers::leaderboard_service::{self, Options};

/// Of HTTP and WebSocket in turn.
const ROUNDS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--serve") {
        return serve(&arguments[1..]);
    }
    let end = arguments.iter().position(|each| each == "--").unwrap_or(arguments.len());
    let number = |at: usize, absent: usize| {
        arguments[..end].get(at).map_or(absent, |text| text.parse().expect("a whole number"))
    };
    let (connections, items, seconds, members, in_flight) =
        (number(0, 64), number(1, 1), number(2, 10), number(3, 1_000_000), number(4, 0));
    let options = arguments.get(end + 1..).unwrap_or_default();
    let (mut service, address) = start(options);
    fill(address, members);
    let mut load = Load::new(address, connections, items, members);
    let store = options.iter().find_map(|option| option.strip_prefix("--store=redis://"));
    let process = service.id();
    let measured = |name: &str, items, load: &mut dyn FnMut(Duration) -> (usize, Vec<u32>)| -> f64 {
        load(Duration::from_secs(1));
        let store_before_s = store.map(store_cpu_s);
        let both_s = || (cpu_s(process), cpu_s(std::process::id()));
        let (before_s, began) = (both_s(), Instant::now());
        let (requests, mut latencies_us) = load(Duration::from_secs(seconds as u64));
        let (took_s, after_s) = (began.elapsed().as_secs_f64(), both_s());
        let (cpu_s, load_s) = (after_s.0 - before_s.0, after_s.1 - before_s.1);
        let store_s =
            store.map(store_cpu_s).zip(store_before_s).map(|(after_s, before_s)| after_s - before_s);
        latencies_us.sort_unstable();
        let quantile = |share: f64| latencies_us[(latencies_us.len() as f64 * share) as usize];
        let updates = (requests * items) as f64;
        println!(
            "{name}, {connections} connections, {items} items per request: {:.0} requests/s, {:.0} updates/s, \
             service {:.2} CPU-s per s, {:.3} CPU-µs per update, load {:.2} CPU-s per s; round trip p50 {} p99 {} µs",
            requests as f64 / took_s,
            updates / took_s,
            cpu_s / took_s,
            cpu_s * 1e6 / updates,
            load_s / took_s,
            quantile(0.5),
            quantile(0.99),
        );
        if let Some(store_s) = store_s {
            println!(
                "store {:.2} CPU-s per s, {:.2} CPU-µs per update",
                store_s / took_s,
                store_s * 1e6 / updates
            );
        }
        updates / cpu_s
    };
    if seconds == 0 {
        println!("{members} members");
    } else if in_flight == 0 {
        measured("HTTP", items, &mut |time| load.run_for(time));
    } else {
        let mut socket = websocket::Load::new(address, connections, in_flight, items, members);
        let mut ratios: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let http = measured("HTTP", items, &mut |time| load.run_for(time));
                measured("WebSocket", items, &mut |time| socket.run_for(time)) / http
            })
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        println!(
            "updates per CPU-second of the service, WebSocket to HTTP: {:.2} ({:.2} to {:.2})",
            ratios[ROUNDS / 2],
            ratios[0],
            ratios[ROUNDS - 1],
        );
    }
    if options.iter().any(|option| option.starts_with("--data")) {
        service.kill().expect("our child");
        service.wait().expect("our child");
        let began = Instant::now();
        let (again, address) = start(options);
        service = again;
        ask_health(address);
        let (took_s, cpu_s) = (began.elapsed().as_secs_f64(), cpu_s(service.id()));
        println!("started again after a kill in {took_s:.2} s, {cpu_s:.2} s of CPU");
    }
    // SAFETY: a plain call; the process is our child and not reaped yet.
    unsafe { libc::kill(service.id() as i32, libc::SIGTERM) };
    let status = service.wait().expect("our child");
    assert!(status.success(), "{status}");
}

/// The service in a process of its own, and where it listens.
fn start(options: &[String]) -> (Child, SocketAddr) {
    let mut service = Command::new(std::env::current_exe().expect("this program has a path"))
        .args([&["--serve".to_owned(), "--listen=127.0.0.1:0".to_owned()], options].concat())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut line = String::new();
    BufReader::new(service.stdout.take().expect("it was piped")).read_line(&mut line).expect("it says where");
    (service, line.trim().parse().expect("an address"))
}

/// Waits until the service says that it is well.
fn ask_health(address: SocketAddr) {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the service reads");
    read_answer(&mut stream, &mut [0; 1024]);
}

/// Gives all members random scores.
fn fill(address: SocketAddr, members: usize) {
    let mut random = fastrand::Rng::with_seed(2);
    let (mut stream, mut buffer) =
        (TcpStream::connect(address).expect("the service listens"), vec![0; 1 << 20]);
    let numbers: Vec<usize> = (0..members).collect();
    for some in numbers.chunks(1_000) {
        let request = bulk(some.iter().copied(), "replace", || random.u32(..1_000_000_000));
        stream.write_all(&request).expect("the service reads");
        read_answer(&mut stream, &mut buffer);
    }
}

/// A request that changes the scores of these members.
fn bulk(members: impl Iterator<Item = usize>, mode: &str, mut score: impl FnMut() -> u32) -> Vec<u8> {
    let item = |member| format!(r#"{{"member":"player-{member}","score":"{}","mode":"{mode}"}}"#, score());
    let items: Vec<String> = members.map(item).collect();
    let scores = items.join(",");
    let body = format!(r#"{{"leaderboards":[{{"leaderboard":"main","scores":[{scores}]}}]}}"#);
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    format!("POST /bulk HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n{body}").into_bytes()
}

/// How many requests of so many updates are made before.
fn requests(items: usize) -> usize {
    const REQUESTS: usize = 500;
    const UPDATES: usize = 300_000;
    (UPDATES / items).max(REQUESTS)
}

fn serve(arguments: &[String]) {
    let command = Options::augment_args(clap::Command::new("serve").no_binary_name(true));
    let options = Options::from_arg_matches(&command.get_matches_from(arguments)).expect("checked by clap");
    leaderboard_service::run(options, |started| println!("{}", started.address)).expect("the service runs");
}

/// User and system time of a process, s.
fn cpu_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> =
        stat.rsplit_once(") ").expect("its name is in parentheses").1.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("clock ticks");
    // SAFETY: a plain call.
    (ticks(11) + ticks(12)) / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// User and system time of the Redis at `address`, s.
fn store_cpu_s(address: &str) -> f64 {
    let mut stream = TcpStream::connect(address).expect("the store listens");
    stream.write_all(b"INFO cpu\r\nQUIT\r\n").expect("the store reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the store answers");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("it says its CPU time");
        line.parse::<f64>().expect("seconds")
    };
    value("used_cpu_sys:") + value("used_cpu_user:")
}

struct Load {
    connections: Vec<(TcpStream, Instant)>,
    random: fastrand::Rng,
    requests: Vec<Vec<u8>>,
}

impl Load {
    fn new(address: SocketAddr, connections: usize, items: usize, members: usize) -> Load {
        let connect = |_| {
            let stream = TcpStream::connect(address).expect("the service listens");
            stream.set_nodelay(true).expect("a socket of ours");
            (stream, Instant::now())
        };
        let connections = (0..connections).map(connect).collect();
        let mut random = fastrand::Rng::with_seed(1);
        let request = |_| {
            if items > 1 {
                let members: Vec<usize> = (0..items).map(|_| random.usize(..members)).collect();
                return bulk(members.into_iter(), "increment", || 7);
            }
            let target = format!("/leaderboards/main/members/player-{}?score=7", random.usize(..members));
            format!("PATCH {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
        };
        let requests = (0..self::requests(items)).map(request).collect();
        let mut load = Load { connections, random, requests };
        (0..load.connections.len()).for_each(|at| load.ask(at));
        load
    }

    /// Requests that were answered, and their round trips in µs.
    fn run_for(&mut self, time: Duration) -> (usize, Vec<u32>) {
        let began = Instant::now();
        let (mut requests, mut latencies_us) = (0, Vec::new());
        let mut buffer = vec![0; 256 * 1024];
        while began.elapsed() < time {
            for at in 0..self.connections.len() {
                let (stream, asked) = &mut self.connections[at];
                read_answer(stream, &mut buffer);
                latencies_us.push(asked.elapsed().as_micros() as u32);
                requests += 1;
                self.ask(at);
            }
        }
        (requests, latencies_us)
    }

    fn ask(&mut self, at: usize) {
        let request = &self.requests[self.random.usize(..self.requests.len())];
        let (stream, asked) = &mut self.connections[at];
        *asked = Instant::now();
        stream.write_all(request).expect("the service reads");
    }
}

/// Reads one whole answer, which must say that all is well.
fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) {
    let (mut filled, mut whole) = (0, usize::MAX);
    while filled < whole {
        let count = stream.read(&mut buffer[filled..]).expect("the service answers");
        assert!(count > 0, "the service has closed a connection");
        filled += count;
        if whole == usize::MAX
            && let Some(end) = memchr::memmem::find(&buffer[..filled], b"\r\n\r\n")
        {
            let head = std::str::from_utf8(&buffer[..end]).expect("a head is text");
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            let length = head.split("Content-Length: ").nth(1).expect("it says its length");
            whole = end
                + 4
                + length.split("\r\n").next().and_then(|l| l.parse::<usize>().ok()).expect("a number");
        }
    }
}
