//! The oracle over real sockets. Only lower bounds on times are asserted, where the distribution is exact whatever the
//! machine does.

use std::io::Read;
use std::time::{Duration, Instant};

use servers::oracle::{self, Faults, Law, Options};

use crate::client::{Client, Running};
use crate::http_client::{connect, get, status};

const MS: Duration = Duration::from_millis(1);

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        oracle::run(Options { listen, shutdown: Some(shutdown), ..options }, listening)
    })
}

/// All that comes for this request until the server closes.
fn all_of(client: &mut Client, path: &str) -> Vec<u8> {
    client.write(get(path).as_bytes());
    let mut all = Vec::new();
    client.stream.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn well_mannered_pages_are_what_they_say_one_after_the_other_on_one_connection() {
    let server = start(Options::default());
    let mut client = connect(server.address);
    for (path, status, body) in [
        ("/", 200, "ok"),
        ("/json", 200, r#"{"ok":true,"items":[1,2,3]}"#),
        ("/status/503", 503, "503"),
        ("/status/204", 204, ""),
        ("/status/99", 400, ""),
        ("/redirect-loop", 302, ""),
        ("/redirect-elsewhere", 302, ""),
    ] {
        let answer = client.ask(&get(path));
        assert_eq!((answer.status, &answer.body[..]), (status, body), "{path}");
    }
    let echo = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nsay again";
    assert_eq!(client.ask(echo).body, "say again");
    client.write(get("/chunked").as_bytes());
    assert!(client.answer_head().contains("\r\nTransfer-Encoding: chunked\r\n"));
    assert_eq!(client.read_until(b"0\r\n\r\n"), "1\r\no\r\n1\r\nk\r\n0\r\n\r\n");
    client.write(b"HEAD /json HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(client.answer_head().contains("\r\nContent-Length: 27\r\n"));
    let last = client.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(last.head.contains("\r\nConnection: close\r\n"));
    assert!(client.is_at_the_end());
    server.end().unwrap();
}

#[test]
fn ill_mannered_pages_are_broken_as_they_say_on_the_wire() {
    let server = start(Options::default());
    let connected = || connect(server.address);
    assert_eq!(all_of(&mut connected(), "/close"), b"");
    assert!(all_of(&mut connected(), "/length-lie").ends_with(b"Content-Length: 100\r\n\r\nok"));
    let until_close = all_of(&mut connected(), "/until-close");
    assert_eq!(until_close, b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nok");

    let mut reset = connected();
    reset.write(get("/reset").as_bytes());
    let error = reset.stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);

    let mut garbage = connected();
    garbage.write(get("/garbage").as_bytes());
    let mut bytes = [0; 64];
    garbage.stream.read_exact(&mut bytes).unwrap();
    assert!(bytes.iter().copied().eq(0x80..0xc0));

    let mut unasked = connected();
    assert_eq!(unasked.ask(&get("/unasked")).body, "ok");
    assert_eq!(unasked.answer().body, "unasked");
    assert_eq!(unasked.ask(&get("/")).body, "ok");
    server.end().unwrap();
}

#[test]
fn answers_without_an_end_go_on_while_others_are_answered_and_end_with_their_client() {
    let server = start(Options::default());
    let mut bomb = connect(server.address);
    bomb.write(get("/header-bomb").as_bytes());
    let mut endless = connect(server.address);
    endless.write(get("/endless").as_bytes());
    endless.answer_head();
    let mut other = connect(server.address);
    for _ in 0..20 {
        assert_eq!(endless.read_until(b"\r\n.\r\n"), "1\r\n.\r\n");
        assert_eq!(other.ask(&get("/")).body, "ok");
    }
    assert!(!bomb.read_bytes(200_000).contains("\r\n\r\n"));
    // Neither reads any more, nor closes: the server holds one piece for each and carries on.
    std::thread::sleep(50 * MS);
    assert_eq!(other.ask(&get("/")).body, "ok");
    drop((bomb, endless));
    assert_eq!(other.ask(&get("/")).body, "ok");
    server.end().unwrap();
}

#[test]
fn faults_fall_on_exactly_every_nth_plain_request_whatever_connection_it_comes_from() {
    let faults = Faults {
        status: Some(503),
        one_in: Some(5),
        wrong_body_one_in: Some(3),
        no_answer_one_in: Some(1_000_000),
    };
    let server = start(Options { faults, ..Options::default() });
    let mut clients = [connect(server.address), connect(server.address), connect(server.address)];
    for number in 1..=300 {
        let client = &mut clients[number % 3];
        assert_eq!(client.ask(&get("/json")).status, 200, "pages of their own are not counted");
        let answer = client.ask(&get("/"));
        let expected = match () {
            () if number % 5 == 0 => (503, ""),
            () if number % 3 == 0 => (200, "no"),
            () => (200, "ok"),
        };
        assert_eq!((answer.status, &answer.body[..]), expected, "{number}");
    }
    server.end().unwrap();
}

#[test]
fn a_request_without_an_answer_mutes_its_connection_and_no_other() {
    let faults = Faults { no_answer_one_in: Some(4), ..Faults::default() };
    let server = start(Options { faults, ..Options::default() });
    let mut muted = connect(server.address);
    muted.write(get("/").repeat(6).as_bytes());
    for _ in 0..3 {
        assert_eq!(muted.answer().body, "ok");
    }
    // The two after it were not counted: the next is number 5.
    let mut other = connect(server.address);
    for _ in 5..=7 {
        assert_eq!(other.ask(&get("/")).body, "ok");
    }
    muted.write(get("/json").as_bytes());
    muted.stream.set_read_timeout(Some(100 * MS)).unwrap();
    let error = muted.stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "open, and silent");
    server.end().unwrap();
}

#[test]
fn one_server_takes_its_time_for_each_request_of_all_connections() {
    let server = start(Options { service: Law::Fixed, mean: 5 * MS, ..Options::default() });
    let mut clients: Vec<Client> = (0..4).map(|_| connect(server.address)).collect();
    let began = Instant::now();
    clients.iter_mut().for_each(|client| client.write(get("/").repeat(10).as_bytes()));
    for (i, client) in clients.iter_mut().enumerate() {
        (0..10).for_each(|_| assert_eq!(client.answer().body, "ok"));
        if i == 3 {
            assert!(began.elapsed() >= 40 * 5 * MS, "{:?}", began.elapsed());
        }
    }
    // A hundred on one connection are more than may be pending at once: the rest is read later.
    let began = Instant::now();
    clients[0].write(get("/").repeat(100).as_bytes());
    (0..100).for_each(|_| assert_eq!(clients[0].answer().body, "ok"));
    assert!(began.elapsed() >= 100 * 5 * MS);
    server.end().unwrap();
}

#[test]
fn exponential_service_takes_as_long_as_its_seed_says_in_every_run() {
    let options = Options { service: Law::Exponential, mean: 2 * MS, seed: 42, ..Options::default() };
    let run = || {
        let server = start(options.clone());
        let mut client = connect(server.address);
        let took: Vec<Duration> = (0..60)
            .map(|_| {
                let began = Instant::now();
                assert_eq!(client.ask(&get("/")).body, "ok");
                began.elapsed()
            })
            .collect();
        server.end().unwrap();
        took
    };
    // A delay that the machine adds in one run is unlikely for the same request in all three.
    let runs = [run(), run(), run()];
    let least: Vec<Duration> = (0..60).map(|i| runs.iter().map(|run| run[i]).min().unwrap()).collect();
    let total: Duration = least.iter().sum();
    assert!((60 * MS..600 * MS).contains(&total), "{total:?} for 60 requests of 2 ms on average");
    assert!(least.iter().max() > Some(&(6 * MS)) && least.iter().min() < Some(&MS), "{least:?}");
}

#[test]
fn nothing_is_answered_or_read_while_the_server_is_frozen() {
    let (freeze, every) = (Some(400 * MS), Some(1_000 * MS));
    let server = start(Options { freeze, every, ..Options::default() });
    let began = Instant::now();
    let mut client = connect(server.address);
    // Within the very first stall, unless the machine took 400 ms to get here.
    assert_eq!(client.ask(&get("/")).body, "ok");
    let mut answered = vec![began.elapsed()];
    while began.elapsed() < 3_300 * MS {
        assert_eq!(client.ask(&get("/")).body, "ok");
        answered.push(began.elapsed());
    }
    // Each pause between two answers is a stall, or the machine's own: at least three have the length.
    let pauses = answered.windows(2).map(|pair| pair[1] - pair[0]).filter(|pause| *pause >= 395 * MS).count();
    assert!(pauses >= 3, "{pauses} pauses among {} answers", answered.len());
    server.end().unwrap();
}

#[test]
fn a_frozen_server_ends_when_it_is_told_to() {
    let (freeze, every) = (Some(Duration::from_secs(3_000)), Some(Duration::from_secs(3_600)));
    let server = start(Options { freeze, every, ..Options::default() });
    let mut client = connect(server.address);
    client.write(get("/").as_bytes());
    let began = Instant::now();
    server.end().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn bad_requests_get_their_status_after_the_answers_that_are_due_and_dripping_ones_are_cut() {
    let options =
        Options { service: Law::Fixed, mean: 5 * MS, request_timeout: 50 * MS, ..Options::default() };
    let server = start(options);
    let mut client = connect(server.address);
    client.write((get("/") + "bad\r\n\r\n" + &get("/")).as_bytes());
    assert_eq!(client.answer().body, "ok");
    assert_eq!(status(&client.answer_head()), 400);
    assert!(client.is_at_the_end());
    let mut slow = connect(server.address);
    slow.write(b"GET / HTTP/1.1\r\n");
    assert!(slow.is_at_the_end());
    let mut half_closed = connect(server.address);
    half_closed.write(get("/").as_bytes());
    half_closed.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(half_closed.answer().body, "ok");
    assert!(half_closed.is_at_the_end());
    server.end().unwrap();
}

#[test]
fn an_echo_that_is_not_taken_holds_nobody_up_and_is_whole_later() {
    let server = start(Options::default());
    let mut lazy = connect(server.address);
    let body = "0123456789abcdef".repeat(4_000);
    let request = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut writer = lazy.stream.try_clone().unwrap();
    let all = request.repeat(200);
    let writing = std::thread::spawn(move || std::io::Write::write_all(&mut writer, all.as_bytes()));
    let mut other = connect(server.address);
    for _ in 0..50 {
        assert_eq!(other.ask(&get("/")).body, "ok");
    }
    for _ in 0..200 {
        assert_eq!(lazy.answer().body, body);
    }
    writing.join().unwrap().unwrap();
    server.end().unwrap();
}
