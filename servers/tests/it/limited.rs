//! The limited server over real sockets. What a request goes through is tested in its crate; here are its connections.

use std::time::{Duration, Instant};

use servers::limited::{self, Options};

use crate::client::{Client, Running};
use crate::http_client::{connect, get};

fn start(faults: &[&str]) -> Running {
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        limited::run(Options { listen, faults, shutdown: Some(shutdown) }, listening)
    })
}

#[test]
fn requests_are_answered_in_order_and_what_is_none_ends_its_connection() {
    let server = start(&[]);
    let mut client = connect(server.address);
    client.write(format!("{}{}", get("/"), get("/x?y")).as_bytes());
    for _ in 0..2 {
        assert_eq!(client.answer().body, "ok");
    }
    let last = client.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(last.status == 200 && client.is_at_the_end());
    let mut other = connect(server.address);
    assert!(other.ask("nonsense\r\n\r\n").status == 400 && other.is_at_the_end());
    // One that is open and silent, and one within its request, do not hold up the end.
    let mut waiting = [connect(server.address), connect(server.address)];
    assert_eq!(waiting[0].ask(&get("/")).status, 200);
    waiting[1].write(b"GET / HT");
    server.end().unwrap();
    assert!(waiting.iter_mut().all(Client::is_at_the_end));
}

#[test]
fn the_connection_after_forty_is_closed_and_a_place_that_is_free_again_is_taken() {
    let server = start(&["max-connections"]);
    let mut clients: Vec<Client> = (0..40).map(|_| connect(server.address)).collect();
    assert!(clients.iter_mut().all(|client| client.ask(&get("/")).status == 200));
    assert!(connect(server.address).is_at_the_end());
    drop(clients.pop());
    let begin = Instant::now();
    loop {
        let mut client = connect(server.address);
        client.stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        // It may be closed before it has spoken.
        let _ = std::io::Write::write_all(&mut client.stream, get("/").as_bytes());
        if std::io::Read::read(&mut client.stream, &mut [0; 64]).is_ok_and(|count| count > 0) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "the place is never free");
    }
    server.end().unwrap();
}

#[test]
fn a_slow_accept_lets_connections_wait() {
    let server = start(&["accept-backlog"]);
    let begin = Instant::now();
    for _ in 0..4 {
        assert_eq!(connect(server.address).ask(&get("/")).status, 200);
    }
    assert!(begin.elapsed() >= Duration::from_millis(200 - 50), "{:?}", begin.elapsed());
    server.end().unwrap();
}

#[test]
fn a_fault_of_another_server_is_refused_with_those_it_can_plant() {
    let faults = vec!["late-ticks:40%".parse().unwrap()];
    let error = limited::run(Options { faults, ..Options::default() }, |_| {}).unwrap_err().to_string();
    assert!(
        error.contains("serve limited cannot plant the fault late-ticks") && error.contains("slow-disk"),
        "{error}"
    );
}
