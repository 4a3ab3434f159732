use super::super::Options;
use super::super::grpc::PREFACE;
use super::super::grpc::tests::{ended, frame, head, message};
use super::*;
use crate::protobuf::put_bytes;
use crate::thread::flood::{self, Client, Flood};
use crate::websocket::frame::tests::client_frame;
use crate::websocket::handshake::tests::UPGRADE;

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
    // The turn begins with its socket and goes on with those that have more.
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
