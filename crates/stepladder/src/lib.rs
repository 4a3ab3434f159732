//! The command line: where all rooms meet.
//!
//! `climb` is the one loop, `trial` runs one trial, `phases` says when a phase begins; the rest reads options and
//! prints. Nothing is measured or judged here.

pub mod bench;
pub mod cli;
pub mod commands;
pub mod help;
pub mod report;
pub mod serve;
mod show;
mod ticks;
pub mod view;
