//! Before anything is measured, one unit of load connects and leaves again. A target that does not speak the protocol
//! is then reported at once, with its own answer, and not after a ramp in which no client got in.
//!
//! Opens as many connections as one unit has (two for the arena): a server that pairs its players would otherwise match
//! the probe's single connection, which leaves, with the first real player.
//! An HTTP server gets one real request (`http`). Where bots keep connections, one bot runs (`first_bot`); the bare
//! handshake explains its failures, and is also the only check for a restarted subject.
//! The protocol's row says what proves that a server speaks it (`plan::FirstSign`): a handshake, a greeting, or
//! nothing, in which case the probe can only check that the server does not close the connection at once.

use std::net::SocketAddr;

use console::say;
use plan::{HttpBots, Networks, Plan, ScriptBots, Target, WorkloadSettings as _, needs};

use crate::secrets;
use handshake::handshake;
use http::First;

pub mod cluster;
mod first_bot;
mod handshake;
mod http;
pub mod look;

/// Which subject is asked whether it lets clients in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// it was not loaded yet in this run: one client of the workload comes in
    Fresh,
    /// one like it was loaded before and did let clients in: that it is there again is enough
    Again,
}

/// Whether a subject at this address lets clients in at all, and answers them. Errors: what must be mended before a climb, in
/// the server's own words.
pub fn lets_in(plan: &Plan, target: &Target, socket: SocketAddr, asked: Asked) -> anyhow::Result<()> {
    // Whether it answers at all does not depend on what is emulated later.
    let plan = &Plan { networks: Networks::default(), ..plan.clone() };
    let mut workers = plan::split(plan, 1.0, target, socket, 1, &[]);
    let first = first_bot::worker_of(plan, target, socket).filter(|_| asked == Asked::Fresh);
    let connections = match first {
        Some((worker, connections)) => {
            workers = vec![worker];
            Some(connections)
        }
        None => None,
    };
    secrets::fill_in(&mut workers)?;
    let Some(worker) = workers.first() else { return Ok(()) };
    if HttpBots::of(&plan.bots).is_some() {
        match http::first_request(worker)? {
            First::Right => {}
            First::Doubtful(words) => say::err_line!("stepladder: {words}"),
            First::Wrong(words) => {
                say::err_line!("stepladder: the first request was not answered rightly: {words}");
            }
        }
        return Ok(());
    }
    match connections {
        Some(_) if ScriptBots::of(&plan.bots).is_some() => first_bot::script_comes_in(worker),
        Some(connections) => first_bot::come_in(worker, connections),
        // Only the script knows what it opens, and where; that something listens was already checked.
        None if ScriptBots::of(&plan.bots).is_some() => Ok(()),
        None => handshake(worker, needs(plan, 1.0).connections),
    }
}
