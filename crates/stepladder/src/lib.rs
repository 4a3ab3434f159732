//! The command line: where all components meet.
//!
//! Parses the command line and calls the command, each of which is a crate (`climb`, `versus`, `inflight_command`,
//! `scripting`, `selftest`). This crate lists, shows and exports stored runs. It measures and judges nothing but the
//! leaderboard library.

pub mod bench;
mod browse;
pub mod cli;
pub mod commands;
pub mod help;
pub mod mark;
pub mod report;
pub mod serve;
mod show;
mod ticks;
pub mod view;
