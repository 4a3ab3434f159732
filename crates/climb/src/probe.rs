//! One unit of load is let in and leaves again, before anything is measured: a target that is no such server is named at
//! once, in the words of its own answer, and not after a ramp in which nobody ever came in.
//!
//! As many connections as one unit has (two for the arena), because a server that pairs its players would give a single
//! one that leaves to the first real one as an opponent.
//! A server of HTTP is asked one real request (`http`). Where bots keep connections, one of them is played (`first_bot`); what
//! it meets is explained by the handshake alone, which is also all that is asked of a subject that is started again.
//! What shows that a server speaks a protocol stands in the protocol's row (`plan::FirstSign`): it shakes hands, it greets,
//! or it may be silent, so that all that can be asked of it is that it does not hang up at once.

use std::net::SocketAddr;

use console::say;
use plan::{HttpBots, Plan, ScriptBots, Target, WorkloadSettings as _, needs};

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
        // What a script opens, and where, only it knows; that something listens was seen.
        None if ScriptBots::of(&plan.bots).is_some() => Ok(()),
        None => handshake(worker, needs(plan, 1.0).connections),
    }
}
