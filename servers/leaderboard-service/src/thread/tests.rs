use super::super::Options;
use super::super::grpc::PREFACE;
use super::super::grpc::tests::{ended, frame, head, message};
use super::*;
use crate::protobuf::put_bytes;
use servers_shared::testing::UPGRADE;
use servers_shared::testing::client_frame;
use servers_shared::testing::flood::{self, Client, Flood};

fn check(opening: &[u8], request: &dyn Fn(usize) -> Vec<u8>, answers: fn(&[u8]) -> usize) {
    let shared = Arc::new(Shared::in_memory(Options::default()));
    let mut thread = Thread::new(&shared, flood::core(&flood::common()), 0);
    flood::check(&mut thread, &Flood { admit: Thread::greet, opening, request, answers });
}

const GET: &[u8] = b"GET /leaderboards/main/members/ann HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn of_requests_that_come_with_one_read_a_portion_is_answered_at_a_time() {
    let shared = Arc::new(Shared::in_memory(Options::default()));
    let mut thread = Thread::new(&shared, Core::new(&flood::common(), BUFFER_BYTES).unwrap(), 0);
    let mut client = Client::connect(&mut thread, Thread::greet);
    client.ask(&mut thread, &GET.repeat(1000));
    // The turn begins with its socket and continues with those that have more.
    assert_eq!(answers(&client.heard), 128);
    client.ask(&mut thread, b"");
    assert_eq!(answers(&client.heard), 192);
}

fn answers(heard: &[u8]) -> usize {
    flood::count(heard, b"HTTP/1.1 404 ")
}

#[test]
fn a_flood_of_requests_keeps_nobody_waiting() {
    check(b"", &|_| GET.to_vec(), answers);
}

#[test]
fn a_flood_of_pings_keeps_nobody_waiting() {
    let ping = client_frame(true, 9, b"1", [1, 2, 3, 4]);
    check(UPGRADE, &|_| ping.clone(), |heard| flood::count(heard, b"\x8a\x011"));
}

#[test]
fn a_flood_of_calls_keeps_nobody_waiting() {
    let opening = [PREFACE, &frame(4, 0, 0, b"")].concat();
    let get = message(|out| put_bytes(out, 1, b"main"));
    let call = |n| {
        let stream = 2 * n as u32 + 1;
        [head(stream, "Get"), frame(0, 1, stream, &get)].concat()
    };
    check(&opening, &call, |heard| ended(heard).len());
}

/// The beginning of a request with this many bytes of its body, on a separate connection.
fn half_a_request(thread: &mut Thread<'_>, opening: &[u8], bytes: usize) -> Client {
    let mut client = Client::connect(thread, Thread::greet);
    client.ask(thread, opening);
    // The session has begun before its bytes arrive.
    client.ask(thread, b"");
    (0..bytes / 10_000).for_each(|_| client.ask(thread, &[0; 10_000]));
    client
}

#[test]
fn of_clients_whose_requests_are_not_whole_those_who_began_first_are_parted_from() {
    const MB: usize = 1 << 20;
    let shared = Arc::new(Shared::in_memory(Options { total_unfinished: MB, ..Options::default() }));
    let mut thread = Thread::new(&shared, Core::new(&flood::common(), BUFFER_BYTES).unwrap(), 0);
    let http = b"POST /bulk HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n";
    // A binary frame of 900,000 bytes.
    let websocket = [UPGRADE, &[0x82, 0xff], &900_000_u64.to_be_bytes(), &[0; 4]].concat();
    let mut clients: Vec<Client> = Vec::new();
    for n in 0..12 {
        let opening = if n % 2 == 0 { &http[..] } else { &websocket };
        clients.push(half_a_request(&mut thread, opening, 300_000));
        assert!(thread.core.clients.count() >= clients.len().min(2), "no more than needs be");
        let held: usize = thread.core.clients.iter().map(|(_, client)| client.unfinished_bytes).sum();
        assert!(held <= MB, "{held} bytes");
    }
    // An honest one is answered anyway.
    let mut honest = Client::connect(&mut thread, Thread::greet);
    let first = thread.core.clients.keys().into_iter().min_by_key(|key| key.generation).unwrap();
    honest.ask(&mut thread, &http[..]);
    for _ in 0..90 {
        honest.ask(&mut thread, &[b' '; 10_000]);
    }
    let heard = honest.heard.escape_ascii().to_string();
    assert!(heard.starts_with("HTTP/1.1 415 "), "{heard}");
    assert!(thread.core.clients.get_mut(first).is_none(), "who began first made room for it");
}

#[test]
fn half_messages_of_many_calls_are_counted_as_those_of_one_client() {
    const MB: usize = 1 << 20;
    let shared = Arc::new(Shared::in_memory(Options { total_unfinished: 16 * MB, ..Options::default() }));
    let mut thread = Thread::new(&shared, Core::new(&flood::common(), BUFFER_BYTES).unwrap(), 0);
    let begun = [&[0][..], &900_000_u32.to_be_bytes(), &[0; 10_000]].concat();
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::connect(&mut thread, Thread::greet);
        client.ask(&mut thread, &[PREFACE, &frame(4, 0, 0, b"")].concat());
        client.ask(&mut thread, b"");
        for stream in (1..250).step_by(2) {
            client.ask(&mut thread, &[head(stream, "Update"), frame(0, 0, stream, &begun)].concat());
        }
        clients.push(client);
        let held: usize = thread.core.clients.iter().map(|(_, client)| client.unfinished_bytes).sum();
        assert!(held <= 16 * MB, "{held} bytes");
    }
    assert!((15..20).contains(&thread.core.clients.count()), "{}", thread.core.clients.count());
}
