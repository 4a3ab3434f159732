//! A worker's thread against real sockets on loopback.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests too.

mod any;
mod panics;
