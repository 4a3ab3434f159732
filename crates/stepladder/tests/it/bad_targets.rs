//! External failures before and during the ramp: targets that are absent, or not what they should be.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::main_job::{assert_valid, exit_code_of};
use crate::place::{Place, Ran, parse};

/// A listener that treats every connection in this way; returns its URL.
fn target(treat: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}", listener.local_addr().expect("its address"));
    thread::spawn(move || listener.incoming().flatten().for_each(treat));
    url
}

/// Nothing was measured, and nothing that looks like a result was left.
#[track_caller]
fn refused(url: &str, fragments: &[&str]) {
    let place = Place::new();
    let ran = place.climb(&[url, "--bots", "arena", "--rungs", "2", "--json", "run.json"]);
    ran.refused(2, fragments);
    assert!(!ran.err.contains("calibration"), "it is known before any load: {}", ran.err);
    assert!(!place.path("run.json").exists(), "no results, no file");
    assert!(place.run(["runs"]).out.contains("no runs yet"));
}

#[test]
fn a_target_that_is_not_reachable_is_named_with_a_command_that_starts_one() {
    refused(
        "ws://127.0.0.1:1",
        &[
            "cannot reach ws://127.0.0.1:1 (connection refused, tried 3 times",
            "is a server listening there?",
            "stepladder serve arena --listen 127.0.0.1:1",
        ],
    );
}

#[test]
fn a_web_server_is_named_as_such_with_its_answer() {
    let url = target(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    refused(
        &url,
        &[&format!("{url} is not a WebSocket server: it answered 404 Not Found"), "check its port and path"],
    );
}

#[test]
fn a_target_that_closes_at_once_is_named() {
    let url = target(drop);
    refused(&url, &[&url, "closes connections during the WebSocket handshake", "wss://"]);
}

#[test]
fn a_target_that_never_answers_is_given_up_after_one_handshake() {
    let url = target(std::mem::forget);
    refused(&url, &[&url, "did not answer the WebSocket handshake within 5 s"]);
}

#[test]
fn a_target_that_speaks_something_else_is_named() {
    let url = target(|mut stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        let _ = stream.read(&mut [0; 1024]);
    });
    refused(&url, &["is not a WebSocket server"]);
}

#[test]
fn a_command_that_ends_before_it_listens_is_quoted() {
    let place = Place::new();
    let port = crate::place::free_port();
    let url = format!("ws://127.0.0.1:{port}");
    let ran: Ran = place.climb(&[&url, "--bots", "arena", "--rungs", "2", "--start", "exit 7"]);
    ran.refused(2, &["`exit 7` ended before it was ready", "exit code 7"]);
}

#[test]
fn a_server_that_turns_the_rest_away_fails_the_rung_and_says_why() {
    let place = Place::new();
    let ran = place.climb(&["arena", "--rungs", "4", "--json", "-", "--", "--max-connections", "4"]);
    let run = parse(&ran.out);
    assert_valid(&run);
    assert_eq!((ran.code, exit_code_of(&run["verdict"])), (1, 1), "{ran:#?}");
    let rung = &run["rungs"][0];
    let reason = rung["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("of 8 connections open") && reason.contains("(rejected)"), "{reason}");
    assert!(rung["connections"]["failed"]["rejected"].as_u64() > Some(0), "{rung:#}");
    assert_eq!(run["capacity"]["upper_bound"], 4.0);
}
