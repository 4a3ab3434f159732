//! The chat's memory when many clients stall: bounded meanwhile, and returned afterwards.
//!
//! The chat has its own process, so that its memory can be measured: this program, started again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use servers::chat::{self, News, Options};

use crate::adversary::process::Process;
use crate::chat_client::Talker;

const SERVER: &str = "chat_memory::the_chat_that_the_other_test_starts";

const MB: u64 = 1 << 20;
const PAIRS: usize = 40;
const CAP: u64 = 8 * MB;

#[test]
#[ignore = "runs until it is killed; another test starts it"]
fn the_chat_that_the_other_test_starts() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = Options {
        listen,
        threads: Some(2),
        total_backlog: CAP as usize,
        report_every: Duration::ZERO,
        ..Options::default()
    };
    let listening = |news| {
        if let News::Listening { address, .. } = news {
            println!("listening {address}");
        }
    };
    chat::run(options, listening).unwrap();
}

/// In a room of its own, a client that never reads and one that says 4 MB to it.
fn stalled_pair(address: SocketAddr, room: usize) -> [TcpStream; 2] {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(1024).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut deaf = TcpStream::from(socket);
    let mut speaker = Talker::at(address);
    deaf.write_all(format!("/join room-{room}\n").as_bytes()).unwrap();
    speaker.say(&format!("/join room-{room}"));
    speaker.hear_until("* joined");
    while speaker.hear_who() < 2 {}
    speaker.write(format!("{}\n", "x".repeat(4000)).repeat(1000).as_bytes());
    // Its answer arrives when all of that was read.
    speaker.say("/who");
    speaker.hear_until("* 2 in ");
    [deaf, speaker.stream]
}

/// Reads all that has waited for this client, up to the answer to a question.
fn read_out(mut deaf: &TcpStream) {
    deaf.write_all(b"/who\n").unwrap();
    let (mut heard, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    while !heard.windows(7).any(|window| window == b"* 2 in ") {
        let count = deaf.read(&mut piece).unwrap();
        assert!(count > 0, "the chat has ended the connection");
        heard.drain(..heard.len().saturating_sub(6));
        heard.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn stalled_clients_take_bounded_memory_honest_ones_miss_nothing_and_all_of_it_is_given_back_when_they_go() {
    check(drop);
}

#[test]
fn all_of_it_is_given_back_when_stalled_clients_read_on_and_stay() {
    check(|pairs| {
        pairs.iter().for_each(|[deaf, _]| read_out(deaf));
        pairs
    });
}

/// What stalled pairs take comes back after `end`, whose result is kept meanwhile.
fn check<T>(end: impl FnOnce(Vec<[TcpStream; 2]>) -> T) {
    let server = Process::start(SERVER, &[]);
    let address = server.address;
    let (mut one, mut two) = (Talker::at(address), Talker::at(address));
    let mut exchange = |line: &str| {
        one.say(line);
        assert_eq!(two.hear(), line);
    };
    (0..100).for_each(|_| exchange("before"));
    let idle = server.resident_bytes();
    let mut pairs = Vec::new();
    let mut most = 0;
    for room in 0..PAIRS {
        pairs.push(stalled_pair(address, room));
        exchange("meanwhile");
        most = most.max(server.resident_bytes());
    }
    // Without the cap it is the backlog of each: 40 times up to 4 MB.
    assert!(most < idle + CAP + 24 * MB, "{} MB of {} MB when idle", most / MB, idle / MB);
    let (_, [owed, delivered, dropped, waiting]) = two.books();
    assert_eq!((owed, dropped, waiting), (delivered, 0, 0), "who reads misses nothing");
    let _kept = end(pairs);
    let began = Instant::now();
    while server.resident_bytes() > 2 * idle {
        let now = server.resident_bytes();
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{} kB of {} kB when idle",
            now / 1024,
            idle / 1024
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    println!(
        "idle {} kB, with {PAIRS} stalled pairs {} kB, back within {:.1} s",
        idle / 1024,
        most / 1024,
        began.elapsed().as_secs_f64()
    );
    two.say("after");
    assert_eq!(one.hear(), "after");
}
