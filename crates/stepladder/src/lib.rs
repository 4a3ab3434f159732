//! The command line: where all rooms meet.
//!
//! It reads the command line and calls the command, each of which is a crate (`climb`, `versus`, `inflight_command`, `scripting`,
//! `selftest`); here is what lists, shows and exports stored runs. Nothing is measured or judged here but the leaderboard's library.

pub mod bench;
pub mod cli;
pub mod commands;
pub mod help;
pub mod report;
pub mod serve;
mod show;
mod ticks;
pub mod view;
