//! Many clients without the token, beside the one with it: counted from the clients' side, by what is still open.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::given::{self, Client};

/// As many as `connections` seats.
const STRANGERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects and sends so much, and waits for nothing.
fn begun(address: SocketAddr, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    // A connection that was closed meanwhile cannot be written to.
    let _ = stream.write_all(words.as_bytes());
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Whether the other side has left it open; what it says is passed over.
fn is_open(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 4_096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Waits until at most so many are open. Fails where more stay.
#[track_caller]
fn shrink(streams: &mut [TcpStream], most: usize) {
    let began = Instant::now();
    loop {
        let open = streams.iter_mut().filter_map(|stream| is_open(stream).then_some(())).count();
        if open <= most {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{open} of {} are open", streams.len());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A whole request and its answer, in so much time.
#[track_caller]
fn asked(client: &Client) -> Duration {
    let began = Instant::now();
    let answer = client.get("/api/runs");
    assert_eq!(answer.status, 200, "{answer:?}");
    began.elapsed()
}

/// Each stream is a descriptor of this process, too.
fn allow_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn half_sent_heads_by_the_thousand_keep_neither_the_owner_out_nor_descriptors() {
    allow_descriptors();
    let (given, writer, run, viewer) = given::growing();
    let client = Client::of(&viewer);
    let mut events = client.follow(&format!("/api/runs/{run}/live"), None);
    events.until(|kind, _| kind == "run");
    let half = format!("GET / HTTP/1.1\r\nHost: {}\r\nX-Slow: ", viewer.address());
    let mut takes = Vec::new();
    let mut strangers = Vec::new();
    for _ in 0..15 {
        strangers.extend((0..100).map(|_| begun(viewer.address(), &half)));
        takes.push(asked(&client));
    }
    takes.sort();
    // The median, since the machine may be busy; without room for the owner there would be no answer at all.
    assert!(takes[takes.len() / 2] < Duration::from_secs(1), "{takes:?}");
    shrink(&mut strangers, STRANGERS);
    // The page's connection was there before them, and stays.
    writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
    events.until(|kind, _| kind == "trial");
    writer.append(vec![given::second(0, 500.0, 0).0]).unwrap();
    events.until(|kind, data| kind == "second" && data["t"] == 0);
    // The last ones are closed too, although no new ones come.
    shrink(&mut strangers, 0);
    asked(&client);
    drop((given, writer));
}

#[test]
fn whoever_says_nothing_or_drips_or_reads_nothing_is_closed_too() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let address = viewer.address();
    let whole = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut strangers = vec![
        begun(address, ""),
        // Answered without its body, which never comes.
        begun(address, &format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000000\r\n\r\n")),
        begun(
            address,
            &format!("POST / HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"),
        ),
        // An anonymous client gets a single answer per connection.
        begun(address, &whole.repeat(1_000)),
    ];
    let mut dripping = begun(address, &whole[..whole.len() - 2]);
    let began = Instant::now();
    let mut drips = 0;
    while is_open(&mut dripping) {
        assert!(began.elapsed() < PATIENCE, "it goes on after {drips} headers");
        let _ = dripping.write_all(b"X: y\r\n");
        drips += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    shrink(&mut strangers, 0);
    asked(&Client::of(&viewer));
}

#[test]
fn a_head_that_is_too_large_is_refused_and_one_with_many_cookies_is_not() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    // Of every server on 127.0.0.1, whatever its port.
    let with = |bytes: usize| {
        let head = client.head("GET", "/api/runs") + &format!("Cookie: a={}\r\n", "x".repeat(bytes));
        let mut stream = TcpStream::connect(client.address).unwrap();
        let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
        let mut answer = Vec::new();
        // A client that is refused while sending may see only a reset.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(with(32_000), "HTTP/1.1 200 OK");
    let refused = with(200_000);
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431"), "{refused}");
}

#[test]
fn strangers_do_not_hold_up_the_end() {
    // Waiting for them would delay it by 2 s each time.
    let takes = (0..3).map(|_| {
        let given = given::store();
        let viewer = given::serve(&given, Vec::new());
        let mut strangers: Vec<_> = (0..10).map(|_| begun(viewer.address(), "GET / HT")).collect();
        asked(&Client::of(&viewer));
        let began = Instant::now();
        drop(viewer);
        let took = began.elapsed();
        shrink(&mut strangers, 0);
        took
    });
    let fastest = takes.min().unwrap();
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
}
