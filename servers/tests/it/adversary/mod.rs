//! Malicious clients against every reference server, with an honest one beside them.
//!
//! Each server has its own process. All behaviours of its table run concurrently; each checks the server's reaction.
//! Meanwhile an honest client keeps sending requests, and gets right answers; afterwards the server holds no more
//! descriptors than before, and little more memory.

mod connections;
mod http;
mod http2;
pub mod process;
mod resp;
mod websocket;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use servers::chat::{self, News};
use servers::leaderboard::Implementation;
use servers::null::Protocol;
use servers::{arena, leaderboard_service, null, poll_loop, redis};

use crate::chat_client::Talker;
use crate::client::{Client, Frame, frame};
use crate::http_client::get;
use crate::redis::Asker;
use process::Process;

pub const SERVER: &str = "adversary::the_server_that_the_other_tests_start";
pub const WHICH: &str = "STEPLADDER_TEST_SERVER";

/// How long a server lets requests and lines go on without an end, where that can be chosen.
const CUT_AFTER: Duration = Duration::from_millis(400);

/// How long anything may take. Long, because the machine may be busy; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Behaviours at once.
const AT_ONCE: usize = 8;

/// What the allocator may keep of the busiest instant.
const KEPT_BYTES_MAX: u64 = 48 << 20;

#[test]
#[ignore = "runs until it is killed; the other tests start it"]
fn the_server_that_the_other_tests_start() {
    let which = std::env::var(WHICH).expect("the other tests say which server");
    let listen = "127.0.0.1:0".parse().unwrap();
    let threads = Some(2);
    let told = |address: SocketAddr| println!("listening {address}");
    let null = |protocol| {
        let options =
            null::Options { listen, threads, protocol, handshake_timeout: CUT_AFTER, ..Default::default() };
        null::run(options, told)
    };
    match which.as_str() {
        "null-http" => null(Protocol::Http).unwrap(),
        "null-lines" => null(Protocol::Lines).unwrap(),
        "null-websocket" => null(Protocol::WebSocket).unwrap(),
        "arena" => {
            let options =
                arena::Options { listen, threads, handshake_timeout: CUT_AFTER, ..Default::default() };
            arena::run(options, told, |_| ()).unwrap();
        }
        "poll-loop" => {
            let options = poll_loop::Options {
                listen,
                request_timeout: CUT_AFTER,
                tick_rate: 1000,
                cost_scale: 0.0,
                queue: None,
                ..Default::default()
            };
            poll_loop::run(options, told).unwrap();
        }
        "leaderboard" => {
            let options = leaderboard_service::Options { listen, threads, ..Default::default() };
            leaderboard_service::run(options, |started| told(started.address)).unwrap();
        }
        "leaderboard-actor" => {
            let implementation = Implementation::Actor;
            let options =
                leaderboard_service::Options { listen, threads, implementation, ..Default::default() };
            leaderboard_service::run(options, |started| {
                leave_little_room_for_threads();
                told(started.address);
            })
            .unwrap();
        }
        "redis" => {
            let options = redis::Options {
                listen,
                command_timeout: CUT_AFTER,
                memory_bytes: 200_000_000,
                ..Default::default()
            };
            redis::run(options, told).unwrap();
        }
        "chat" => {
            let options = chat::Options {
                listen,
                threads,
                line_timeout: CUT_AFTER,
                half_closed: CUT_AFTER,
                report_every: Duration::ZERO,
                ..Default::default()
            };
            let listening = |news| {
                if let News::Listening { address, .. } = news {
                    told(address);
                }
            };
            chat::run(options, listening).unwrap();
        }
        other => panic!("there is no server {other:?}"),
    }
}

/// From now on the process gets no more than 256 MB of addresses, of which each thread needs 2 MB for its stack.
fn leave_little_room_for_threads() {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split_whitespace().next().unwrap().parse().unwrap();
    let most = pages * 4096 + (256 << 20);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is valid for the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// One behaviour; it panics where the server does not do what it must.
pub struct Case {
    name: &'static str,
    act: Box<dyn Fn(SocketAddr) + Send + Sync>,
}

impl Case {
    fn new(name: &'static str, act: impl Fn(SocketAddr) + Send + Sync + 'static) -> Case {
        Case { name, act: Box::new(act) }
    }
}

/// A connection that is used without regard to what comes back.
struct Evil {
    stream: TcpStream,
}

impl Evil {
    fn connect(address: SocketAddr) -> Evil {
        Evil::from(TcpStream::connect(address).unwrap())
    }

    fn with_little_room(address: SocketAddr) -> Evil {
        Evil::from(Client::with_little_room(address).stream)
    }

    fn from(stream: TcpStream) -> Evil {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server that does not read is not waited for.
        stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        Evil { stream }
    }

    /// Sends as much as is taken.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Closes with a reset.
    fn reset(&mut self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Everything until the end, which has to come.
    fn read_out(&mut self) -> Vec<u8> {
        let mut heard = Vec::new();
        match self.stream.read_to_end(&mut heard) {
            Ok(_) => heard,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => heard,
            Err(error) => panic!("the connection does not end: {error}"),
        }
    }

    fn read_some(&mut self) {
        self.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let _ = self.stream.read(&mut [0; 16]);
    }

    /// What comes within a fifth of a second.
    fn read_for_a_while(&mut self) -> Vec<u8> {
        self.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut heard = Vec::new();
        let _ = self.stream.read_to_end(&mut heard);
        heard
    }

    /// What comes until these words are in it, or nothing more does.
    fn read_until(&mut self, words: &str) -> String {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&heard).into_owned();
            if text.contains(words) {
                return text;
            }
            match self.stream.read(&mut piece) {
                Ok(count @ 1..) => heard.extend(&piece[..count]),
                _ => return text,
            }
        }
    }

    /// The status of the answer, behind which the connection has to end.
    fn status(&mut self) -> u16 {
        let heard = self.read_out();
        let heard = String::from_utf8_lossy(&heard);
        let status = heard
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no answer: {heard:?}"))
    }

    /// Sends the same again and again until the server has ended the connection.
    fn is_cut_while_it_sends(&mut self, drip: &[u8]) {
        let until = Instant::now() + PATIENCE;
        self.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        loop {
            match self.stream.read(&mut [0; 512]) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
            assert!(Instant::now() < until, "it is not cut");
            self.send(drip);
        }
    }
}

/// Carries out all cases with the honest client beside them, and looks at what is left.
fn attack<H>(
    which: &str,
    least: usize,
    cases: Vec<Case>,
    connect: impl Fn(SocketAddr) -> H,
    ask: impl Fn(&mut H) + Sync,
) where
    H: Send,
{
    assert!(cases.len() >= least, "{} behaviours", cases.len());
    let server = Process::start(SERVER, &[(WHICH, which)]);
    let address = server.address;
    let mut honest = connect(address);
    (0..50).for_each(|_| ask(&mut honest));
    let (descriptors, resident) = (server.descriptors(), server.resident_bytes());
    let began = Instant::now();
    let (next, over, asked) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let (honest, ask, over, asked) = (&mut honest, &ask, &over, &asked);
        let asking = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                ask(honest);
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let evil = || {
            let mut failed = Vec::new();
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                if catch_unwind(AssertUnwindSafe(|| (case.act)(address))).is_err() {
                    failed.push(case.name);
                }
            }
            failed
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(evil)).collect();
        let failed = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        asking.join().expect("the honest client gets right answers");
        failed
    });
    assert_eq!(failed, Vec::<&str>::new(), "{which}");
    let asked = asked.into_inner();
    assert!(asked > 0, "the honest client was not answered");
    let until = Instant::now() + PATIENCE;
    while server.descriptors() > descriptors {
        assert!(Instant::now() < until, "{} descriptors, {descriptors} before", server.descriptors());
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = began.elapsed();
    // Clients' memory is returned when the server has found twice, a second apart, that they are gone.
    while server.resident_bytes() >= resident + KEPT_BYTES_MAX && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = server.resident_bytes();
    println!(
        "{which}: {} behaviours in {:.1} s, {asked} honest answers, memory {} kB before and {} kB after",
        cases.len(),
        took.as_secs_f64(),
        resident / 1024,
        after / 1024
    );
    assert!(after < resident + KEPT_BYTES_MAX, "{after} bytes of memory, {resident} before");
    ask(&mut honest);
    ask(&mut connect(address));
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn the_null_server_withstands_evil_http_clients() {
    let large = b"GET /bytes/100000 HTTP/1.1\r\nHost: x\r\n\r\n";
    let cases = [http::slow(), http::cases(), connections::cases(GET, large)].into_iter().flatten().collect();
    attack("null-http", 65, cases, Client::silent, |client| {
        assert_eq!(client.ask(&get("/bytes/1000")).body, "x".repeat(1000));
    });
}

#[test]
fn the_null_server_withstands_evil_clients_that_send_lines() {
    let cases = connections::cases(b"hello there\n", b"hello there\n");
    attack("null-lines", 15, cases, Client::silent, |client| {
        client.write(b"honest\n");
        assert_eq!(client.read_bytes(7), "honest\n");
    });
}

fn is_ponged(client: &mut Client) {
    client.write(&frame(0x89, b"there?"));
    loop {
        match client.hear() {
            Frame::Pong(payload) => return assert_eq!(payload, b"there?"),
            Frame::Text(_) | Frame::Binary(_) => {}
            other => panic!("{other:?} instead of a pong"),
        }
    }
}

/// An upgrade and a ping.
const UPGRADE: &[u8] =
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x89\x80\0\0\0\0";

fn over_websocket(path: &'static str) -> Vec<Case> {
    let cases = [websocket::slow(path), websocket::cases(path), connections::cases(UPGRADE, UPGRADE)];
    cases.into_iter().flatten().collect()
}

#[test]
fn the_null_server_withstands_evil_websocket_clients() {
    let connect = |address| Client::open(address, "/");
    attack("null-websocket", 60, over_websocket("/"), connect, |client| {
        client.say("honest");
        assert_eq!(client.hear_text(), "honest");
        is_ponged(client);
    });
}

/// A new player pings and hears the pong. One whose opponent leaves is closed, and tries again.
fn player_is_ponged(address: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut player = Client::open(address, "/");
        socket2::SockRef::from(&player.stream).set_linger(Some(Duration::ZERO)).unwrap();
        player.write(&frame(0x89, b"there?"));
        let heard = loop {
            match player.hear() {
                Frame::Text(_) | Frame::Binary(_) => {}
                other => break other,
            }
        };
        match heard {
            Frame::Pong(payload) => return assert_eq!(payload, b"there?"),
            // Its opponent was a malicious one.
            _ => assert!(Instant::now() < until, "only closes"),
        }
    }
}

#[test]
fn the_arena_withstands_evil_clients() {
    let ask = |address: &mut SocketAddr| {
        player_is_ponged(*address);
        std::thread::sleep(Duration::from_millis(5));
    };
    attack("arena", 60, over_websocket("/"), |address| address, ask);
}

#[test]
fn the_poll_loop_withstands_evil_clients() {
    let large = b"GET /object HTTP/1.1\r\nHost: x\r\n\r\n";
    let cases = [http::slow(), http::cases(), connections::cases(GET, large)].into_iter().flatten().collect();
    attack("poll-loop", 65, cases, Client::silent, |client| {
        let answer = client.ask(&get("/force-field"));
        assert_eq!((answer.status, answer.body.as_str()), (200, "force     0\n"));
    });
}

#[test]
fn the_leaderboard_withstands_evil_clients_of_all_its_protocols() {
    // Those disconnected after ten seconds begin first.
    let slow = [http::slow(), websocket::slow("/ws")];
    let rest = [http::cases(), websocket::cases("/ws"), http2::cases(), connections::cases(GET, GET)];
    let cases = slow.into_iter().chain(rest).flatten().collect();
    let connect = |address| (Client::silent(address), 0);
    attack("leaderboard", 130, cases, connect, |(client, score)| {
        *score += 1;
        let set = format!("PUT /leaderboards/main/members/honest?score={score} HTTP/1.1\r\nHost: x\r\n\r\n");
        let answer = client.ask(&set);
        assert!(answer.status < 300 && answer.body.contains(&format!("\"score\":\"{score}\"")), "{answer:?}");
    });
}

#[test]
fn the_key_value_store_withstands_evil_clients() {
    let get: &[u8] = b"*2\r\n$3\r\nGET\r\n$6\r\nhonest\r\n";
    let cases = [resp::slow(), resp::cases(), connections::cases(get, get)].into_iter().flatten().collect();
    let connect = |address| (Asker::connect(address), 0);
    attack("redis", 40, cases, connect, |(asker, count)| {
        *count += 1;
        assert_eq!(asker.ask(&format!("SET honest {count}")), "+OK\r\n");
        let text = count.to_string();
        assert_eq!(asker.ask("GET honest"), format!("${}\r\n{text}\r\n", text.len()));
    });
}

#[test]
fn the_chat_withstands_evil_clients() {
    let mut cases = connections::cases(b"hello\n", b"/help\n");
    let flood = |name, line: fn(usize) -> String| {
        Case::new(name, move |address| {
            let mut evil = Evil::connect(address);
            (0..3000).for_each(|i| evil.send(line(i).as_bytes()));
            evil.reset();
        })
    };
    cases.push(flood("a thousand rooms", |i| format!("/join room-{i}\n")));
    cases.push(flood("a thousand names", |i| format!("/nick name-{i}\n")));
    cases.push(flood("books without end", |_| "/books\n".to_owned()));
    cases.push(flood("a flood of empty lines", |_| "\n".repeat(1000)));
    cases.push(flood("lines that are no text", |_| String::from("\0\0\n")));
    cases.push(Case::new("a line that does not end", |address| {
        let mut evil = Evil::connect(address);
        evil.send(b"begun");
        evil.is_cut_while_it_sends(b"x");
    }));
    cases.push(Case::new("a line of a megabyte", |address| {
        let mut evil = Evil::connect(address);
        evil.is_cut_while_it_sends(&[b'x'; 10_000]);
    }));
    let connect = |address| {
        let mut pair = [Talker::at(address), Talker::at(address)];
        for talker in &mut pair {
            talker.say("/join honest");
            talker.hear_until("* joined honest");
        }
        pair
    };
    attack("chat", 22, cases, connect, |[one, two]| {
        one.say("hello");
        assert_eq!(two.hear(), "hello");
    });
}
