//! The key-value store byte by byte, and beside a real Redis where one is installed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use servers::redis::{self, Options};
use servers::{ServeError, Shutdown};

use crate::redis_server::RedisServer;

pub struct Store {
    pub address: SocketAddr,
    shutdown: Shutdown,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Store {
    pub fn start(options: Options) -> Store {
        let shutdown = Shutdown::new().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = Options { listen, shutdown: Some(shutdown.clone()), ..options };
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || redis::run(options, |address| tell.send(address).unwrap()));
        Store { address: told.recv().unwrap(), shutdown, thread: Some(thread) }
    }

    pub fn with_faults(faults: &[&str]) -> Store {
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        Store::start(Options { faults, ..Options::default() })
    }

    pub fn connect(&self) -> Asker {
        Asker::connect(self.address)
    }

    pub fn end(&mut self) {
        self.shutdown.trigger();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shutdown.trigger();
    }
}

/// A connection that knows how long a reply is.
pub struct Asker {
    pub stream: TcpStream,
    heard: Vec<u8>,
}

impl Asker {
    pub fn connect(address: SocketAddr) -> Asker {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Asker { stream, heard: Vec::new() }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The bytes of the next reply.
    #[track_caller]
    pub fn reply(&mut self) -> String {
        loop {
            if let Some(length) = reply_length(&self.heard) {
                let reply: Vec<u8> = self.heard.drain(..length).collect();
                return String::from_utf8_lossy(&reply).into_owned();
            }
            let mut part = [0; 65536];
            let count = self.stream.read(&mut part).expect("a reply");
            assert!(count > 0, "the connection ended after {:?}", String::from_utf8_lossy(&self.heard));
            self.heard.extend_from_slice(&part[..count]);
        }
    }

    /// The reply to a line of words.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.write(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// All until the end of the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.heard);
        self.stream.read_to_end(&mut rest).unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// The length of the reply at the beginning, with all that belongs to it; None while it is incomplete.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let number = || std::str::from_utf8(&bytes[1..end]).unwrap().parse::<i64>().unwrap();
    let mut at = end + 2;
    let parts = match bytes[0] {
        b'$' | b'=' if number() >= 0 => {
            at += number() as usize + 2;
            0
        }
        b'*' => number().max(0),
        b'%' => 2 * number(),
        _ => 0,
    };
    for _ in 0..parts {
        at += reply_length(bytes.get(at..)?)?;
    }
    (bytes.len() >= at).then_some(at)
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend([word, &b"\r\n"[..]].concat());
    }
    bytes
}

/// What is asked of both, in this order on one connection. Replies must be the same, byte for byte.
const LIKE_REDIS: &[&str] = &[
    "PING",
    "ping hello",
    "PING a b",
    "ECHO \"a b\"",
    "ECHO",
    "SELECT 0",
    "SELECT 99",
    "SELECT x",
    "GET k",
    "SET k v",
    "GET k",
    "get k extra",
    "SET k",
    "SET k w NX",
    "SET k w XX",
    "SET other w XX",
    "SET k2 w NX GET",
    "SET k x GET",
    "SET k x NX XX",
    "SET k x EX",
    "SET k x EX 0",
    "SET k x EX -1",
    "SET k x EX abc",
    "SET k x EX 10 PX 10",
    "SET k x EX 9223372036854775807",
    "SET k v PX 18446744073710",
    "SET k v EX 4611686018427387",
    "GET k",
    "SET k x BLUB",
    "SET k x EX 100",
    "TTL k",
    "SET k y KEEPTTL",
    "TTL k",
    "SET k z",
    "TTL k",
    "PTTL k",
    "TTL nothing",
    "EXPIRE k 1000",
    "TTL k",
    "EXPIRE nothing 1000",
    "EXPIRE k abc",
    "PEXPIRE k 100000",
    "TTL k",
    "EXPIRE k 0",
    "EXISTS k",
    "SETEX k 100 v",
    "SETEX k 0 v",
    "SETEX k x v",
    "PSETEX k 100000 v",
    "PSETEX k -1 v",
    "TTL k",
    "GETDEL k",
    "GETDEL k",
    "MSET a 1 b 2 a 3",
    "MSET a",
    "MSET a 1 b",
    "MGET a nothing b",
    "EXISTS a a b nothing",
    "DEL a a b nothing",
    "UNLINK a",
    "DEL",
    "INCR n",
    "INCR n",
    "SET n 9223372036854775807",
    "INCR n",
    "SET n 01",
    "INCR n",
    "SET n -7",
    "INCR n",
    "SET n ''",
    "INCR n",
    "STRLEN n",
    "STRLEN nothing",
    "TYPE n",
    "TYPE nothing",
    "DBSIZE",
    "FLUSHALL NOW",
    "FLUSHDB ASYNC",
    "DBSIZE",
    "NOSUCH a b",
    "CLIENT SETNAME tester",
    "CLIENT GETNAME",
    "CLIENT SETNAME 'a b'",
    "CONFIG GET save",
    "CONFIG GET appendonly",
    "HELLO 9",
    "HELLO 2 FOO",
    "AUTH x",
];

#[test]
fn replies_are_those_of_a_real_redis_byte_for_byte() {
    let Some(real) = RedisServer::start() else { return };
    let store = Store::start(Options::default());
    let mut ours = store.connect();
    let mut theirs = Asker::connect(([127, 0, 0, 1], real.port).into());
    theirs.ask("CONFIG SET save ''");
    let differ: Vec<_> = LIKE_REDIS
        .iter()
        .map(|line| (line, ours.ask(line), theirs.ask(line)))
        .filter(|(_, ours, theirs)| ours != theirs)
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
    for asker in [&mut ours, &mut theirs] {
        asker.ask("HELLO 3");
    }
    for line in
        ["GET nothing", "MGET nothing", "SET k v NX GET", "SET k v NX", "CONFIG GET save", "CLIENT GETNAME"]
    {
        assert_eq!(ours.ask(line), theirs.ask(line), "{line} after HELLO 3");
    }
    for asker in [&mut ours, &mut theirs] {
        asker.write(b"QUIT\r\nPING\r\n");
        assert_eq!(asker.rest(), "+OK\r\n");
    }
    for broken in ["*1\r\n:5\r\n", "*1\r\n$-1\r\n", "GET \"k\r\n", "*x\r\n", "*1\r\n*1\r\n"] {
        let told = [store.address, ([127, 0, 0, 1], real.port).into()].map(|address| {
            let mut asker = Asker::connect(address);
            asker.write(format!("PING\r\n{broken}").as_bytes());
            asker.rest()
        });
        assert_eq!(told[0], told[1], "{broken:?}");
    }
}

#[test]
fn hello_tells_who_answers_in_the_protocol_that_was_asked_for() {
    let store = Store::start(Options::default());
    let mut asker = store.connect();
    assert!(asker.ask("HELLO").starts_with("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    let three = asker.ask("HELLO 3 SETNAME me");
    assert!(three.starts_with("%7\r\n") && three.contains("$5\r\nproto\r\n:3\r\n"), "{three}");
    assert_eq!(asker.ask("CLIENT GETNAME"), "$2\r\nme\r\n");
    assert!(asker.ask("INFO").starts_with('='));
    assert_eq!(asker.ask("RESET"), "+RESET\r\n");
    assert_eq!(asker.ask("GET nothing"), "$-1\r\n");
}

#[test]
fn pipelined_commands_are_answered_in_their_order_however_they_are_cut() {
    let store = Store::start(Options::default());
    let mut asker = store.connect();
    let mut bytes = Vec::new();
    for n in 0..2_000 {
        bytes.extend(command(&[b"SET", format!("k{n}").as_bytes(), format!("v{n}").as_bytes()]));
        bytes.extend(command(&[b"GET", format!("k{n}").as_bytes()]));
    }
    let mut random = fastrand::Rng::with_seed(3);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(random.usize(1..=rest.len().min(5_000)));
        asker.write(piece);
        rest = behind;
    }
    for n in 0..2_000 {
        assert_eq!(asker.reply(), "+OK\r\n");
        let value = format!("v{n}");
        assert_eq!(asker.reply(), format!("${}\r\n{value}\r\n", value.len()));
    }
    assert!(asker.ask("INFO commandstats").contains("cmdstat_get:calls=2000\r\n"));
}

#[test]
fn large_values_come_back_whole_to_one_who_reads_late_and_while_they_are_replaced() {
    let store = Store::start(Options::default());
    let mut asker = store.connect();
    for bytes in [16_383, 16_384, 5_000_000] {
        let value: Vec<u8> = (0..bytes).map(|n| b'a' + (n % 23) as u8).collect();
        asker.write(&command(&[b"SET", b"large", &value]));
        assert_eq!(asker.reply(), "+OK\r\n");
        let mut late = store.connect();
        late.write(
            &[command(&[b"GET", b"large"]), command(&[b"GET", b"large"]), b"PING\r\n".to_vec()].concat(),
        );
        // The first of them is being sent before the value is replaced.
        let mut first = [0; 1];
        late.stream.read_exact(&mut first).unwrap();
        late.heard.extend(first);
        asker.write(&command(&[b"SET", b"large", b"small"]));
        assert_eq!(asker.reply(), "+OK\r\n");
        let expected = format!("${bytes}\r\n{}\r\n", String::from_utf8(value).unwrap());
        assert!(late.reply() == expected, "{bytes}");
        let second = late.reply();
        assert!(second == expected || second == "$5\r\nsmall\r\n", "{bytes}");
        assert_eq!(late.reply(), "+PONG\r\n");
    }
}

/// A client that does not read its answers and then sends this: whether it is disconnected.
#[track_caller]
fn check_patience(behind: &[u8], is_together: bool, is_cut: bool) {
    let timeout = Duration::from_millis(300);
    let store = Store::start(Options { command_timeout: timeout, ..Options::default() });
    let mut other = store.connect();
    let value = vec![b'v'; 1_000_000];
    other.write(&command(&[b"SET", b"k", &value]));
    assert_eq!(other.reply(), "+OK\r\n");
    // More than the buffers of two sockets take, so that most answers wait in the server.
    let mut late = store.connect();
    assert_eq!(late.ask("PING"), "+PONG\r\n");
    let gets = b"GET k\r\n".repeat(40);
    if is_together {
        late.write(&[&gets, behind].concat());
    } else {
        late.write(&gets);
        assert_eq!(other.ask("PING"), "+PONG\r\n");
        late.write(behind);
    }
    let by = Instant::now() + if is_cut { Duration::from_secs(20) } else { 4 * timeout };
    let is_there = |other: &mut Asker| other.ask("INFO clients").contains("connected_clients:2\r\n");
    while is_there(&mut other) && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(is_there(&mut other), !is_cut, "{:?}", String::from_utf8_lossy(behind));
    if !is_cut {
        late.write(b"PING last\r\n");
        for _ in 0..40 {
            assert_eq!(late.reply().len(), value.len() + 12);
        }
        let rest: Vec<String> = (0..2).map(|_| late.reply()).collect();
        assert_eq!(rest, ["+PONG\r\n", "$4\r\nlast\r\n"]);
    }
}

#[test]
fn half_a_command_is_cut_off_in_time_even_behind_answers_that_are_not_read() {
    check_patience(b"*2\r\n$3\r\nGET\r\n", true, true);
    check_patience(b"*2\r\n$3\r\nGET\r\n", false, true);
    check_patience(b"*2\r\n$3\r\nSET\r\n$9000000\r\nhalf", true, true);
    check_patience(b"PIN", false, true);
}

#[test]
fn who_has_sent_whole_commands_may_read_the_answers_as_late_as_it_likes() {
    check_patience(b"PING\r\n", true, false);
    check_patience(&command(&[b"PING"]), false, false);
}

#[test]
fn what_expires_is_gone_without_being_asked_for() {
    let store = Store::start(Options::default());
    let mut asker = store.connect();
    for n in 0..100 {
        asker.ask(&format!("SET k{n} v PX {}", 10 + n));
    }
    asker.ask("SET stays v");
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while asker.ask("DBSIZE") != ":1\r\n" {
        assert!(std::time::Instant::now() < until, "it does not expire");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(asker.ask("INFO stats").contains("expired_keys:100\r\n"));
}

#[test]
fn what_exceeds_the_memory_is_refused_and_the_rest_goes_on() {
    let store = Store::start(Options { memory_bytes: 10_000_000, ..Options::default() });
    let mut asker = store.connect();
    let value = "x".repeat(1_000_000);
    let set = |asker: &mut Asker, n: usize| {
        asker.write(&command(&[b"SET", format!("k{n}").as_bytes(), value.as_bytes()]));
        asker.reply()
    };
    let stored = (0..20).take_while(|n| set(&mut asker, *n) == "+OK\r\n").count();
    assert!((6..=9).contains(&stored), "{stored}");
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    assert_eq!(set(&mut asker, 50), oom);
    assert_eq!((asker.ask("SET small v"), asker.ask("EXISTS k0")), ("+OK\r\n".into(), ":1\r\n".into()));
    // A command longer than the remaining memory is refused before all of it has arrived.
    let mut greedy = store.connect();
    let _ = greedy.stream.write_all(&command(&[b"ECHO", "x".repeat(30_000_000).as_bytes()])[..20_000_000]);
    assert!(greedy.reply().starts_with("-OOM "));
    assert_eq!(asker.ask("FLUSHALL"), "+OK\r\n");
    assert_eq!(set(&mut asker, 0), "+OK\r\n");
}

#[test]
fn one_connection_too_many_is_told_so() {
    let store = Store::start(Options { max_connections: 2, ..Options::default() });
    let mut two = [store.connect(), store.connect()];
    two.iter_mut().for_each(|asker| assert_eq!(asker.ask("PING"), "+PONG\r\n"));
    assert_eq!(store.connect().rest(), "-ERR max number of clients reached\r\n");
    assert!(two[0].ask("INFO stats").contains("rejected_connections:1\r\n"));
}

#[test]
fn at_the_end_what_has_come_is_answered_and_connections_close_in_order() {
    let mut store = Store::start(Options::default());
    let mut asker = store.connect();
    assert_eq!(asker.ask("SET k v"), "+OK\r\n");
    asker.write(b"GET k\r\nGET k\r\n");
    store.end();
    assert_eq!(asker.rest(), "$1\r\nv\r\n$1\r\nv\r\n");
    assert!(TcpStream::connect(store.address).is_err());
}

/// Replies to so many GETs of `k`, each awaited, and how many are `right`.
#[track_caller]
fn check_share(fault: &str, sets: &[&str], ask: &str, wrong: &str, wrong_count: usize) {
    let store = Store::with_faults(&[fault]);
    let mut asker = store.connect();
    for set in sets {
        asker.ask(set);
    }
    let replies: Vec<String> = (0..40).map(|_| asker.ask(ask)).collect();
    assert_eq!(replies.iter().filter(|reply| *reply == wrong).count(), wrong_count, "{fault}: {replies:?}");
}

#[test]
fn planted_faults_fall_on_exactly_their_share_of_reads() {
    let sets = ["SET k old", "SET k new"];
    check_share("wrong-answers:10%", &sets, "GET k", "$3\r\nne#\r\n", 4);
    check_share("truncate:10%", &sets, "GET k", "$2\r\nne\r\n", 4);
    check_share("stale:10%", &sets, "GET k", "$3\r\nold\r\n", 4);
    check_share("miss:10%", &sets, "GET k", "$-1\r\n", 4);
    check_share("refusals:50%", &[], "GET k", "-ERR a planted refusal\r\n", 20);
    check_share("lose-updates:100%", &["SET k v"], "GET k", "$-1\r\n", 40);
    check_share("ignore-expiry", &["SET k v EX 100"], "TTL k", ":-1\r\n", 40);
    check_share("miss:10%", &sets, "PING", "+PONG\r\n", 40);
}

#[test]
fn planted_faults_lose_swap_and_double_replies() {
    let heard = |fault: &str| {
        let store = Store::with_faults(&[fault]);
        let mut asker = store.connect();
        let lines: String = (0..8).map(|n| format!("ECHO {n}\r\n")).collect();
        asker.write(lines.as_bytes());
        asker.write(b"QUIT\r\n");
        let rest = asker.rest();
        rest.lines().filter(|line| line.len() == 1).collect::<String>()
    };
    assert_eq!(heard("lose:50%"), "0246");
    assert_eq!(heard("duplicate:50%"), "011233455677");
    assert_eq!(heard("swap:50%"), "02143657");
    assert_eq!(heard("stop-answers@0s"), "");
}

#[test]
fn late_answers_are_late_and_come_in_their_order() {
    let store = Store::with_faults(&["late-answers:100ms"]);
    let mut asker = store.connect();
    let began = std::time::Instant::now();
    asker.write(b"ECHO a\r\nECHO b\r\n");
    assert_eq!((asker.reply(), asker.reply()), ("$1\r\na\r\n".into(), "$1\r\nb\r\n".into()));
    assert!(began.elapsed() >= Duration::from_millis(100));
}
