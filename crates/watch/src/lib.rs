//! What is observed from outside: the subject's processes and the services that it asks, its tick log, this process, the machine, the link.
//!
//! Files named by others, such as that log, are opened without blocking (`files`).
//! It also starts and stops the subject, because only the parent of a process learns how it ended.
//! Everything is plain threads, files under /proc and /sys, and one netlink socket: sampling costs well below 1 % of a core even when the
//! subject holds 40,000 sockets, so that it does not disturb what it measures.
//! Invariant: a process that was not started here is never signalled, but for SIGUSR1 to a Node.js that has a handler for it
//! (`profile::runtime`).
//! Units: `_ns` since the start of the trial, from a clock that the caller provides.

mod control_group;
pub mod cores;
mod exit_guard;
pub mod files;
mod hsperf;
mod inherited;
mod link;
mod listener;
pub mod machine;
pub mod other_runs;
mod others;
pub mod preflight;
mod process;
pub mod profile;
mod queues;
mod realtime;
mod sampler;
pub mod scrape;
mod services;
mod sock_diag;
pub mod statsd;
mod subject;
mod thread_states;
mod threads;
pub mod tick_feed;
pub mod tick_log;
mod watched;

#[cfg(feature = "fuzz")]
pub mod fuzz {
    //! Parsers of what other programs and the kernel write, for fuzz targets.

    pub use crate::hsperf::parse as hsperf;

    /// The body of an answer over HTTP, once it has ended.
    pub fn metrics_body(answer: &[u8]) -> Option<Vec<u8>> {
        crate::scrape::body_of(answer, true).ok().flatten().map(|body| body.into_owned())
    }

    /// How many sockets a datagram of the kernel lists; `None` where its lengths are wrong, or it says that it failed.
    pub fn sockets(bytes: &[u8]) -> Option<usize> {
        let mut found = Vec::new();
        crate::sock_diag::take(bytes, &mut found).ok()?;
        Some(found.len())
    }
}

pub use control_group::{ControlGroup, NoControlGroup};
pub use cores::AllowedCores;
pub use exit_guard::ExitGuard;
pub use inherited::Inherited;
pub use link::{LinkKind, NetworkLink};
pub use listener::{NoListener, listener};
pub use machine::{Machine, MachineReading, environment};
pub use others::{OtherPrograms, OthersReading};
pub use preflight::Listens;
pub use preflight::{Ports, Unreachable, raise_descriptors, reach};
pub use process::{ProcessReading, ProcessTree};
pub use realtime::Realtime;
pub use sampler::{Sampler, SamplerPlan, SamplerReport};
pub use scrape::Scraper;
pub use statsd::Statsd;
pub use subject::{Exit, ExitWatch, NotReady, StartError, Started, Stopped, refuse_taken, shell};
pub use threads::{Threads, ThreadsReading, thread_cpu_s};
pub use tick_feed::{NamedFeed, TickFeed, TickFeeds};
pub use tick_log::{TickLog, TickLogNotice};
