//! The command line: where all rooms meet.
//!
//! `climb` is the one loop, `trial` runs one trial, `phases` says when a phase begins; the rest reads options and
//! prints. Nothing is measured or judged here.

pub mod around;
pub mod calibration;
pub mod cli;
pub mod climb;
pub mod commands;
pub mod doctor;
pub mod judging;
pub mod phases;
pub mod preflight;
pub mod probe;
pub mod progress;
pub mod report;
pub mod secrets;
pub mod selftest;
pub mod serve;
pub mod show;
pub mod signals;
pub mod ticks;
pub mod trial;
pub mod under_test;
pub mod view;
