//! How many updates per second the leaderboard service takes over loopback, and what they cost it.
//!
//! `cargo run --release -p servers --example leaderboard_load -- [CONNECTIONS] [ITEMS] [SECONDS] [MEMBERS] [IN_FLIGHT]
//! [-- OPTIONS]`
//! ITEMS 1: one PATCH per request; more: bulks of that many increments. Closed loop: every connection has one request
//! under way, and one thread asks and reads for all of them in turn. OPTIONS are those of `serve leaderboard`.
//! IN_FLIGHT: turns of HTTP and of WebSocket with that many updates under way on each connection follow each other, on the
//! same service; the ratio is the median of the rounds'.
//! The service is a process of its own, so that its CPU time is measured separately from the load's. Both share the machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
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
        (number(0, 64), number(1, 1), number(2, 10), number(3, 100_000), number(4, 0));
    let options = arguments.get(end + 1..).unwrap_or_default();
    let mut service = Command::new(std::env::current_exe().expect("this program has a path"))
        .args([&["--serve".to_owned(), "--listen=127.0.0.1:0".to_owned()], options].concat())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut line = String::new();
    BufReader::new(service.stdout.take().expect("it was piped")).read_line(&mut line).expect("it says where");
    let address: SocketAddr = line.trim().parse().expect("an address");

    let mut load = Load::new(address, connections, items, members);
    let measured = |name: &str, items, load: &mut dyn FnMut(Duration) -> (usize, Vec<u32>)| -> f64 {
        load(Duration::from_secs(1));
        let (cpu_before_s, began) = (cpu_s(service.id()), Instant::now());
        let (requests, mut latencies_us) = load(Duration::from_secs(seconds as u64));
        let (took_s, cpu_s) = (began.elapsed().as_secs_f64(), cpu_s(service.id()) - cpu_before_s);
        latencies_us.sort_unstable();
        let quantile = |share: f64| latencies_us[(latencies_us.len() as f64 * share) as usize];
        let updates = (requests * items) as f64;
        println!(
            "{name}, {connections} connections, {items} items per request: {:.0} requests/s, {:.0} updates/s, \
                 service {:.2} CPU-s per s, {:.2} CPU-µs per update; round trip p50 {} p99 {} µs",
            requests as f64 / took_s,
            updates / took_s,
            cpu_s / took_s,
            cpu_s * 1e6 / updates,
            quantile(0.5),
            quantile(0.99),
        );
        updates / cpu_s
    };
    if in_flight == 0 {
        measured("HTTP", items, &mut |time| load.run_for(time));
    } else {
        let mut socket = websocket::Load::new(address, connections, in_flight, members);
        let mut ratios: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let http = measured("HTTP", items, &mut |time| load.run_for(time));
                measured("WebSocket", 1, &mut |time| socket.run_for(time)) / http
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
    // SAFETY: a plain call; the process is our child and not reaped yet.
    unsafe { libc::kill(service.id() as i32, libc::SIGTERM) };
    let status = service.wait().expect("our child");
    assert!(status.success(), "{status}");
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

struct Load {
    connections: Vec<(TcpStream, Instant)>,
    items: usize,
    members: usize,
    random: fastrand::Rng,
    request: Vec<u8>,
}

impl Load {
    fn new(address: SocketAddr, connections: usize, items: usize, members: usize) -> Load {
        let connect = |_| {
            let stream = TcpStream::connect(address).expect("the service listens");
            stream.set_nodelay(true).expect("a socket of ours");
            (stream, Instant::now())
        };
        let connections = (0..connections).map(connect).collect();
        let mut load =
            Load { connections, items, members, random: fastrand::Rng::with_seed(1), request: Vec::new() };
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
        let (request, random) = (&mut self.request, &mut self.random);
        request.clear();
        let mut member = || random.usize(..self.members);
        // Writing to a vector cannot fail.
        let _ = if self.items == 1 {
            let target = format!("/leaderboards/main/members/player-{}?score=7", member());
            write!(request, "PATCH {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        } else {
            let item = |_| format!(r#"{{"member":"player-{}","score":"7","mode":"increment"}}"#, member());
            let items: Vec<String> = (0..self.items).map(item).collect();
            let scores = items.join(",");
            let body = format!(r#"{{"leaderboards":[{{"leaderboard":"main","scores":[{scores}]}}]}}"#);
            let fields = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
            write!(request, "POST /bulk HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n{body}")
        };
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
