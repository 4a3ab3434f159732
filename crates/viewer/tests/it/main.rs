//! The viewer through its public interface: planted runs in real stores, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod benches;
mod changing;
mod committed;
mod doors;
mod duels;
mod fixtures;
mod floods;
mod given;
mod growing;
mod histories;
mod pages;
mod profiles;
mod reports;
mod size;
mod tick_logs;
