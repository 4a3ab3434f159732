//! Clients that keep the leaderboard service waiting, and what it buffers for them: both have bounds.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use serde_json::json;
use servers::leaderboard_service::Options;

use crate::adversary::process::Process;
use crate::adversary::{SERVER, WHICH};
use crate::client::Client;
use crate::http_client::{Answer, get};
use crate::leaderboard_client::{Player, options, request, start};
use crate::leaderboard_grpc::{block_on, call_with, connect, framed, head};
use crate::leaderboard_websocket::encoded;

/// How long a test waits for what must come; only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(3600);

/// A page of all rows is longer than what the system takes at once from who does not read.
const ROWS: usize = 1000;
const PAGE: &str = "/leaderboards/main/top?limit=1000";

fn fill(address: SocketAddr) {
    let mut player = Player(Client::silent(address));
    let item = |member: usize| json!({"member": format!("{member:0>250}"), "mode": "replace", "score": "9".repeat(900)});
    for from in (0..ROWS).step_by(ROWS / 2) {
        let items: Vec<_> = (from..from + ROWS / 2).map(item).collect();
        player.done(
            "POST",
            "/bulk",
            &json!({"leaderboards": [{"leaderboard": "main", "scores": items}]}).to_string(),
        );
    }
}

/// Waits until there are so many connections, this one among them.
fn await_connections(prober: &mut Player, count: usize) {
    await_connections_of(prober, &count.to_string(), |connections| connections == count);
}

fn await_connections_of(prober: &mut Player, wanted: &str, is_wanted: impl Fn(usize) -> bool) {
    let until = Instant::now() + PATIENCE;
    let connections = |metrics: String| {
        let mut lines = metrics.lines();
        lines
            .find_map(|line| line.strip_prefix("leaderboard_connections "))
            .and_then(|count| count.parse().ok())
    };
    while !connections(prober.ask("GET", "/metrics", "").body).is_some_and(&is_wanted) {
        assert!(Instant::now() < until, "there are not {wanted} connections");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks for more than fits anywhere, and waits until the answers begin.
fn ask_for_much(address: SocketAddr) -> Client {
    let mut client = Client::with_little_room(address);
    client.write(get(PAGE).repeat(8).as_bytes());
    client.stream.peek(&mut [0]).unwrap();
    client
}

#[test]
fn answers_that_a_client_does_not_take_have_a_deadline() {
    let running = start(Options { answer_timeout: SHORT, threads: Some(1), ..options() });
    fill(running.address);
    let mut prober = Player::of(&running);
    let _silent = ask_for_much(running.address);
    await_connections(&mut prober, 1);
    running.end().unwrap();
}

#[test]
fn of_clients_that_do_not_take_too_many_answers_those_who_began_first_are_parted_from() {
    let running =
        start(Options { answer_timeout: LONG, total_unsent: 1 << 20, threads: Some(1), ..options() });
    fill(running.address);
    let mut prober = Player::of(&running);
    let _silent: Vec<Client> = (0..4).map(|_| ask_for_much(running.address)).collect();
    let mut last = ask_for_much(running.address);
    await_connections(&mut prober, 2);
    for _ in 0..8 {
        let Answer { status, body, .. } = last.answer();
        assert_eq!((status, body.matches("\"rank\"").count()), (200, ROWS));
    }
    running.end().unwrap();
}

/// A body of 900 kB but for its last bytes.
fn ask_by_half(address: SocketAddr) -> Client {
    let mut client = Client::silent(address);
    client.write(b"POST /bulk HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n");
    client.write(&[b' '; 899_990]);
    client
}

#[test]
fn of_clients_whose_unfinished_requests_take_too_much_those_who_began_first_are_parted_from() {
    let running =
        start(Options { request_timeout: LONG, total_unfinished: 4 << 20, threads: Some(1), ..options() });
    let mut prober = Player::of(&running);
    let _halves: Vec<Client> = (0..11).map(|_| ask_by_half(running.address)).collect();
    let mut last = ask_by_half(running.address);
    // Four of them, and the prober.
    await_connections_of(&mut prober, "at most 5", |connections| connections <= 5);
    last.write(&[b' '; 10]);
    assert_eq!(last.answer().status, 415, "it came whole, and says no type");
    running.end().unwrap();
}

async fn connect_without_windows(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (requests, connection) =
        Builder::new().initial_window_size(0).handshake::<_, Bytes>(stream).await.unwrap();
    tokio::task::spawn_local(async move { drop(connection.await) });
    requests.ready().await.unwrap()
}

#[test]
fn answers_for_which_a_client_opens_no_window_have_a_deadline() {
    let running = start(Options { answer_timeout: SHORT, request_timeout: LONG, ..options() });
    block_on(async {
        let mut requests = connect_without_windows(running.address).await;
        let (response, mut stream) = requests.send_request(head("Top", &[]), false).unwrap();
        stream.send_data(framed(&encoded("Top", &json!({"board": "main"}))), true).unwrap();
        // An empty page has no bytes, but its message has a length.
        let mut body = response.await.unwrap().into_body();
        assert!(body.data().await.is_none_or(|data| data.is_err()));
    });
    running.end().unwrap();
}

#[test]
fn a_call_that_is_never_whole_has_a_deadline_whatever_else_is_answered_on_its_connection() {
    let running = start(Options { request_timeout: SHORT, answer_timeout: LONG, ..options() });
    block_on(async {
        let mut requests = connect(running.address).await;
        let (_half, mut stream) = requests.send_request(head("Update", &[]), false).unwrap();
        stream.send_data(Bytes::from_static(&[0, 0, 0]), false).unwrap();
        let get = framed(&encoded("Get", &json!({"board": "main", "member": "ann"})));
        loop {
            let Ok((response, mut stream)) = requests.send_request(head("Get", &[]), false) else { return };
            if stream.send_data(get.clone(), true).is_err() || response.await.is_err() {
                return;
            }
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    running.end().unwrap();
}

#[test]
fn a_stream_of_bulks_has_a_deadline_for_its_first_message_and_may_rest_between_two() {
    let running = start(Options { request_timeout: SHORT, answer_timeout: LONG, ..options() });
    let bulk = framed(&encoded("Bulk", &json!({"parts": []})));
    block_on(async {
        let mut requests = connect(running.address).await;
        let (response, _stream) = requests.send_request(head("Bulk", &[]), false).unwrap();
        assert!(response.await.is_err(), "it is answered without a message");

        let mut requests = connect(running.address).await;
        let (response, mut stream) = requests.send_request(head("Bulk", &[]), false).unwrap();
        stream.send_data(bulk.clone(), false).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap().len(), 5);
        tokio::time::sleep(2 * SHORT).await;
        stream.send_data(bulk.clone(), true).unwrap();
        assert_eq!(body.data().await.unwrap().unwrap().len(), 5);
        let mut requests = connect(running.address).await;
        assert_eq!(call_with(&mut requests, "Bulk", &[], bulk).await.status, 0);
    });
    running.end().unwrap();
}

#[test]
fn connections_keep_no_memory_of_long_requests() {
    const CONNECTIONS: usize = 100;
    let server = Process::start(SERVER, &[(WHICH, "leaderboard")]);
    let body = "x".repeat(1 << 20);
    let refused = || {
        let mut client = Client::silent(server.address);
        assert_eq!(client.ask(&request("POST", "/bulk", &body)).status, 400);
        client
    };
    // What each thread keeps for itself.
    let _first: Vec<Client> = (0..8).map(|_| refused()).collect();
    let before = server.resident_bytes();
    let _idle: Vec<Client> = (0..CONNECTIONS).map(|_| refused()).collect();
    let after = server.resident_bytes();
    let kept = after.saturating_sub(before) / CONNECTIONS as u64;
    assert!(kept < 1 << 18, "{kept} bytes of memory for each idle connection");
}
