//! The poll loop over real sockets: when answers come, who is refused, and how it ends.
//!
//! Pages contain the tick at which they were built: that, and not a stopwatch, shows what was answered when.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use servers::ServeError;
use servers::poll_loop::{self, Beyond, Locality, Options, Priority, SERVICES};

use crate::client::{Client, Running};
use crate::http_client::{Answer, get};

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        poll_loop::run(Options { listen, shutdown: Some(shutdown), ..options }, listening)
    })
}

/// So many ticks that no time has to be waited for.
fn quick() -> Options {
    Options { tick_rate: 1_000, cost_scale: 0.0, ..Options::default() }
}

/// So few that whatever is said after an answer is said before the next.
fn slow() -> Options {
    Options { tick_rate: 1, ..Options::default() }
}

/// The tick that a root page was made at.
fn tick(answer: &Answer) -> u64 {
    let (_, after) = answer.body.split_once("<h1>Tick").unwrap();
    after.split_once('<').unwrap().0.trim().parse().unwrap()
}

fn request(client: &mut Client, target: &str) {
    client.write(get(target).as_bytes());
}

#[test]
fn one_requester_gets_one_answer_per_tick_and_thirty_per_second() {
    let server = start(Options::default());
    let mut client = Client::silent(server.address);
    let first = tick(&client.ask(&get("/")));
    let began = Instant::now();
    let mut last = first;
    for _ in 0..30 {
        let next = tick(&client.ask(&get("/")));
        assert!(next > last, "two answers in one tick");
        last = next;
    }
    let (ticks, took_s) = (last - first, began.elapsed().as_secs_f64());
    // A busy machine may make the client miss a tick, but never gives it an extra one.
    assert!((30..45).contains(&ticks), "{ticks} ticks for 30 requests");
    assert!((took_s - ticks as f64 / 30.0).abs() < 1.0 / 30.0, "{ticks} ticks in {took_s} s");
    server.end().unwrap();
}

#[test]
fn a_tick_answers_ten_and_the_rest_goes_on_waiting_in_order() {
    let server = start(Options { queue: None, ..slow() });
    let mut clients: Vec<Client> = (0..24).map(|_| Client::silent(server.address)).collect();
    clients[0].ask(&get("/"));
    for client in &mut clients {
        request(client, "/");
        // One after the other, so that they arrive in the order of sending.
        std::thread::sleep(Duration::from_millis(3));
    }
    let ticks: Vec<u64> = clients.iter_mut().map(|client| tick(&client.answer())).collect();
    assert!(ticks.is_sorted(), "{ticks:?}");
    for tick in &ticks {
        assert!(ticks.iter().filter(|other| *other == tick).count() <= 10, "{ticks:?}");
    }
    server.end().unwrap();
}

#[test]
fn fourteen_requesters_are_never_refused_and_fifteen_are() {
    for (requesters, any_refused) in [(14, false), (15, true)] {
        let server = start(Options::default());
        let address = server.address;
        let threads: Vec<_> = (0..requesters)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = Client::silent(address);
                    let mut refused = 0;
                    for _ in 0..12 {
                        while client.ask(&get("/")).status == 503 {
                            refused += 1;
                            std::thread::sleep(Duration::from_millis(5));
                        }
                    }
                    refused
                })
            })
            .collect();
        let refused: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(refused > 0, any_refused, "{requesters} requesters, {refused} refused");
        server.end().unwrap();
    }
}

#[test]
fn beyond_the_queue_requests_are_refused_at_once_and_the_connection_stays() {
    let server = start(Options { queue: Some(3), slots: 1, ..slow() });
    let mut clients: Vec<Client> = (0..30).map(|_| Client::silent(server.address)).collect();
    clients[0].ask(&get("/"));
    let began = Instant::now();
    clients.iter_mut().for_each(|client| request(client, "/"));
    let answers: Vec<Answer> = clients.iter_mut().rev().map(Client::answer).collect();
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 503).collect();
    // Three are admitted, and one more for every tick that has passed meanwhile.
    assert_eq!(answers.len() - refused.len(), 3, "after {:?}", began.elapsed());
    for answer in refused {
        assert!(answer.head.contains("\r\nRetry-After: 1\r\n"), "{}", answer.head);
        assert!(!answer.head.contains("Connection: close"), "{}", answer.head);
    }
    assert_eq!(clients[29].ask(&get("/")).status, 200);
    server.end().unwrap();
}

#[test]
fn beyond_the_queue_connections_are_reset_where_that_is_wanted() {
    let server = start(Options { queue: Some(1), beyond: Beyond::Reset, ..slow() });
    let mut first = Client::silent(server.address);
    first.ask(&get("/"));
    request(&mut first, "/");
    std::thread::sleep(Duration::from_millis(20));
    let mut second = Client::silent(server.address);
    request(&mut second, "/");
    let error = std::io::Read::read(&mut second.stream, &mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(first.answer().status, 200);
    server.end().unwrap();
}

#[test]
fn requests_that_come_at_once_are_answered_in_order_one_per_tick() {
    let server = start(quick());
    let mut client = Client::silent(server.address);
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let all = request.repeat(40);
    // In pieces that end anywhere.
    for piece in all.as_bytes().chunks(17) {
        client.write(piece);
    }
    let ticks: Vec<u64> = (0..40).map(|_| tick(&client.answer())).collect();
    assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
    server.end().unwrap();
}

#[test]
fn every_service_answers_with_the_bytes_of_the_table() {
    for locality in [Locality::None, Locality::Moderate, Locality::High] {
        let server = start(Options { locality, ..quick() });
        let mut client = Client::silent(server.address);
        for service in &SERVICES {
            let answer = client.ask(&get(service.path));
            assert_eq!(answer.status, 200);
            let bytes = service.bytes + service.bytes_per_object * locality.objects();
            assert_eq!(answer.body.len(), bytes, "{}", service.name);
            assert!(answer.head.contains(&format!("\r\nContent-Type: {}\r\n", service.content_type)));
        }
        let script: Value = serde_json::from_str(&client.ask(&get("/script/objects")).body).unwrap();
        assert_eq!(script["objects"].as_array().unwrap().len(), locality.objects());
        server.end().unwrap();
    }
}

#[test]
fn an_edit_is_seen_by_others_and_nonsense_is_answered_as_such() {
    let server = start(quick());
    let (mut one, mut two) = (Client::silent(server.address), Client::silent(server.address));
    assert_eq!(one.ask(&get("/force-field?force=250")).body, "force   250\n");
    assert_eq!(two.ask(&get("/force-field")).body, "force   250\n");
    one.write(b"POST /force-field HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nforce=-9");
    assert_eq!(one.answer().body, "force    -9\n");
    for (target, status) in [("/force-field?force=x", 400), ("/object?id=401", 404), ("/nothing", 404)] {
        assert_eq!(two.ask(&get(target)).status, status, "{target}");
    }
    one.write(b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(one.answer().status, 405);
    one.write(b"HEAD /pilot HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(one.read_until(b"\r\n\r\n").contains("\r\nContent-Length: 153\r\n"));
    assert_eq!(one.ask(&get("/")).status, 200, "no body came after the head");
    server.end().unwrap();
}

#[test]
fn who_asks_for_the_end_gets_it_with_the_answer() {
    let server = start(quick());
    for request in ["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"] {
        let mut client = Client::silent(server.address);
        client.write(request.as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("\r\nConnection: close\r\n"));
        assert!(client.is_at_the_end());
    }
    // A client that shuts down its sending side has sent all its requests, and gets the answer.
    let mut client = Client::silent(server.address);
    request(&mut client, "/");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.answer().status, 200);
    assert!(client.is_at_the_end());
    server.end().unwrap();
}

#[test]
fn requests_of_clients_that_have_gone_or_send_nothing_more_delay_nobody_and_the_books_add_up() {
    const LEAVING: usize = 100;
    for resets in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop.log");
        let tick_log = Some(path.clone());
        let server = start(Options { queue: None, slots: 1, tick_rate: 25, tick_log, ..Options::default() });
        let mut clients: Vec<Client> = (0..=LEAVING).map(|_| Client::silent(server.address)).collect();
        let mut last = clients.pop().unwrap();
        let asked = tick(&last.ask(&get("/")));
        clients.iter_mut().for_each(|client| request(client, "/"));
        for client in &clients {
            if resets {
                socket2::SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).unwrap();
            } else {
                client.stream.shutdown(std::net::Shutdown::Write).unwrap();
            }
        }
        // In the order of arrival a hundred ticks, four seconds, would come first.
        if resets {
            drop(clients);
            let waited = tick(&last.ask(&get("/"))) - asked;
            assert!(waited < LEAVING as u64 / 2, "{waited} ticks");
        } else {
            let answered = tick(&last.ask(&get("/")));
            let theirs: Vec<u64> = clients.iter_mut().map(|client| tick(&client.answer())).collect();
            let before = theirs.iter().filter(|tick| **tick < answered).count();
            assert!(before < LEAVING / 2, "{before} went first");
            assert!(theirs.is_sorted(), "{theirs:?}");
        }
        drop(last);
        server.end().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum = |name: &str| lines.iter().filter_map(|line| line[name].as_u64()).sum::<u64>();
        assert_eq!(sum("requests"), LEAVING as u64 + 2);
        assert_eq!(sum("requests"), sum("answers") + sum("dropped"), "{text}");
        assert_eq!(sum("dropped") > LEAVING as u64 / 2, resets, "{text}");
    }
}

#[test]
fn what_is_no_request_is_refused_and_the_connection_ends() {
    let server = start(quick());
    let head_bomb = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "a".repeat(17_000));
    for (bytes, status) in [
        ("hello\r\n\r\n", 400),
        ("\u{16}\u{3}\u{1}\u{2}", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (&head_bomb, 431),
    ] {
        let mut client = Client::silent(server.address);
        client.write(bytes.as_bytes());
        assert_eq!(client.answer().status, status, "{:.40}", bytes);
        assert!(client.is_at_the_end());
    }
    // The good ones before a bad one are answered before the error.
    let mut client = Client::silent(server.address);
    client.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n");
    assert_eq!((client.answer().status, client.answer().status), (200, 400));
    assert!(client.is_at_the_end());
    server.end().unwrap();
}

#[test]
fn a_request_that_is_not_completed_in_time_is_cut_off_and_silence_is_not() {
    let server = start(Options { request_timeout: Duration::from_millis(50), ..quick() });
    let mut silent = Client::silent(server.address);
    let mut slow = Client::silent(server.address);
    slow.write(b"GET / HTTP/1.1\r\nHo");
    assert!(slow.is_at_the_end());
    assert_eq!(silent.ask(&get("/")).status, 200);
    server.end().unwrap();
}

#[test]
fn who_does_not_take_its_answers_is_cut_off_and_delays_nobody() {
    let options = Options { locality: Locality::High, answer_timeout: Duration::from_millis(300), ..quick() };
    let server = start(options);
    let mut stalled = Client::with_little_room(server.address);
    stalled.write("GET /objects HTTP/1.1\r\nHost: x\r\n\r\n".repeat(200).as_bytes());
    let mut other = Client::silent(server.address);
    let began = Instant::now();
    let mut answered = 0;
    while began.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(other.ask(&get("/")).status, 200);
        answered += 1;
    }
    assert!(answered > 100, "{answered}");
    let mut bytes = 0;
    let mut buffer = [0; 65_536];
    while let Ok(count) = std::io::Read::read(&mut stalled.stream, &mut buffer) {
        bytes += count;
        if count == 0 {
            break;
        }
    }
    assert!(bytes < 100 * 35_293, "{bytes} bytes, of which the server held too many");
    server.end().unwrap();
}

#[test]
fn whoever_comes_on_top_of_the_limit_is_refused() {
    let server = start(Options { max_connections: 2, ..quick() });
    let mut clients: Vec<Client> = (0..2).map(|_| Client::silent(server.address)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.ask(&get("/")).status, 200));
    let mut third = Client::silent(server.address);
    request(&mut third, "/");
    assert_eq!(third.answer().status, 503);
    assert!(third.is_at_the_end());
    drop(clients);
    server.end().unwrap();
}

#[test]
fn the_end_answers_what_waits_refuses_what_comes_and_takes_no_connection() {
    let server = start(slow());
    let (mut waiting, mut late) = (Client::silent(server.address), Client::silent(server.address));
    late.ask(&get("/"));
    request(&mut waiting, "/");
    std::thread::sleep(Duration::from_millis(50));
    server.shutdown.trigger();
    while TcpStream::connect(server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    request(&mut late, "/");
    let refused = late.answer();
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("\r\nConnection: close\r\n"), "{}", refused.head);
    assert!(late.is_at_the_end());
    let answer = waiting.answer();
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("\r\nConnection: close\r\n"), "{}", answer.head);
    assert!(waiting.is_at_the_end());
    drop((waiting, late));
    server.end().unwrap();
}

#[test]
fn the_tick_log_tells_requests_answers_refusals_and_frames_and_they_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.log");
    let server = start(Options {
        tick_log: Some(path.clone()),
        tick_log_every: Duration::from_millis(20),
        tick_rate: 100,
        queue: Some(1),
        ..Options::default()
    });
    let mut clients: Vec<Client> = (0..6).map(|_| Client::silent(server.address)).collect();
    let mut refused = 0;
    for _ in 0..20 {
        clients.iter_mut().for_each(|client| request(client, "/object"));
        refused +=
            clients.iter_mut().map(Client::answer).filter(|answer| answer.status == 503).count() as u64;
    }
    drop(clients);
    server.end().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let own: Vec<&Value> = lines.iter().filter(|line| line["title"] == "stepladder").collect();
    let sum = |name: &str| own.iter().map(|line| line[name].as_u64().unwrap()).sum::<u64>();
    assert!(own.len() > 5);
    assert!(own.windows(2).all(|pair| pair[0]["to_ms"] == pair[1]["from_ms"]));
    assert!(own.iter().all(|line| line["tick_rate"] == 100 && line["games"] == 1));
    assert_eq!((sum("requests"), sum("refused"), sum("dropped")), (120, refused, 0));
    assert_eq!(sum("answers"), 120 - refused);
    assert_eq!(sum("due"), sum("on_time") + sum("over") + sum("under") + sum("missed"));
    assert!(sum("answers") <= sum("due"), "a queue of one lets one in per tick");
    assert_eq!(sum("frames_due"), sum("due"));
    let frames = sum("frames") + sum("frames_skipped");
    assert!((frames..=frames + 2).contains(&sum("frames_due")));
    let last = own.last().unwrap();
    assert_eq!((&last["waiting"], &last["sockets"]), (&Value::from(0), &Value::from(0)));

    let again =
        Options { tick_log: Some(path), listen: "127.0.0.1:0".parse().unwrap(), ..Options::default() };
    assert!(matches!(poll_loop::run(again, |_| ()), Err(ServeError::TickLogExists { .. })));
}

#[test]
fn below_normal_priority_the_process_is_nice() {
    let (tell, told) = std::sync::mpsc::channel();
    let server = Running::start(move |shutdown, listening| {
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            shutdown: Some(shutdown),
            priority: Priority::BelowNormal,
            ..quick()
        };
        poll_loop::run(options, |address| {
            // SAFETY: a plain call without pointers; 0 is the calling thread.
            tell.send(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }).unwrap();
            listening(address);
        })
    });
    assert_eq!(told.recv().unwrap(), 10);
    assert_eq!(Client::silent(server.address).ask(&get("/")).status, 200);
    server.end().unwrap();
}
