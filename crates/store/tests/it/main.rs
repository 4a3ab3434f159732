//! The store through its public interface, on real files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod append_only;
mod cut_off;
mod damage;
mod dashboard;
mod exports;
mod following;
mod forged;
mod given;
mod lines;
mod marks;
mod open_metrics;
mod other_tables;
mod packs;
mod round_trip;
mod runs;
mod second_lines;
mod speed;
mod sums;
