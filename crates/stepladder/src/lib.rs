//! The command line: where all rooms meet.
//!
//! `climb` is the one loop, `trial` runs one trial, `phases` says when a phase begins; the rest reads options and
//! prints. Nothing is measured or judged here.

mod around;
pub mod bench;
pub mod bisect;
mod calibration;
pub mod certificates;
pub mod cli;
mod climb;
pub mod commands;
pub mod consent;
mod doctor;
pub mod duel;
pub mod help;
mod judging;
mod lookup;
mod outputs;
mod phases;
mod preflight;
mod probe;
mod progress;
pub mod report;
pub mod scripts;
mod secrets;
pub mod selftest;
pub mod serve;
mod show;
mod ticks;
mod trial;
mod under_test;
pub mod view;
