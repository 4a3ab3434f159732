//! Faults of the servers that have few: those that the listener injects for all of them. See `process` for the rest.

use servers::{null, oracle};

use super::{check_reset, faults};
use crate::client::{Client, Running};

#[test]
fn a_null_server_resets_connections_that_it_is_to_refuse() {
    let server = Running::start(|shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = null::Options { listen, shutdown: Some(shutdown), ..Default::default() };
        let protocol = null::Protocol::Lines;
        null::run(null::Options { protocol, faults: faults(&["refuse@0s"]), ..options }, listening)
    });
    check_reset(&mut Client::silent(server.address).stream);
    server.end().unwrap();
}

#[test]
fn an_oracle_resets_connections_that_it_is_to_refuse() {
    let server = Running::start(|shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = oracle::Options { listen, shutdown: Some(shutdown), ..Default::default() };
        oracle::run(oracle::Options { planted: faults(&["refuse@0s"]), ..options }, listening)
    });
    check_reset(&mut Client::silent(server.address).stream);
    server.end().unwrap();
}
