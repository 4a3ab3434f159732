//! The oracle: an HTTP/1.1 server whose response times follow a known distribution, so that instruments can be held to it.
//!
//! `service_time` says when a request is answered, `faults` which answers are planted wrong, `pages` what lies where. One thread
//! with one queue for all connections, in the order in which requests were read. Everything planted is exact:
//! - An answer leaves at `max(arrival, end of the one before) + service`, and never before that. Arrival is when the
//!   request's last byte was read. The thread wakes early and waits for the instant awake, so that what an answer is
//!   late does not hang on the timer; it never moves the answers behind.
//! - While frozen, nothing is read, answered or accepted, from the start on: the first period begins with a stall.
//!   Answers that fall due meanwhile leave at its end. The kernel goes on taking connections and bytes, as it does for
//!   a process that was stopped.
//! - Faults by number are counted over all connections. What comes behind a request that is never answered, on the
//!   same connection, is neither answered nor counted.
//!
//! A connection with 64 unanswered requests, or with an answer that it does not take, is not read meanwhile.

mod client;
mod faults;
mod pages;
mod service_time;
mod thread;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use faults::Faults;
pub use service_time::{Freeze, Service};

use crate::fault::process::ProcessFaults;
use crate::fault::{self, Fault};
use crate::listener::{Listener, Readiness};
use crate::shutdown::{AllSignalsBlocked, Ear};
use crate::{ServeError, Shutdown, clock, thread_table};

/// How long the thread has to notice the end.
const END_NS_MAX: u64 = 2_000_000_000;

/// How an oracle runs. By default it answers at once and everything right.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, which `on_listening` is told.
    pub listen: SocketAddr,
    /// How long one request takes: nothing, or 1 µs to 60 s, on average where it varies.
    pub service: Service,
    /// A stall that recurs; None: never.
    pub freeze: Option<Freeze>,
    /// Planted faults. Statuses lie between 200 and 599, and one in 0 is refused.
    pub faults: Faults,
    /// Sockets at once; whoever comes on top of that is closed.
    pub max_connections: usize,
    /// How long a request may take from its first byte to its last; twice as long at worst.
    pub request_timeout: Duration,
    /// Faults of the whole server, beside those of single answers, for testing instruments.
    pub planted: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    pub shutdown: Option<Shutdown>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 42_061)),
            service: Service::None,
            freeze: None,
            faults: Faults::default(),
            max_connections: 10_000,
            request_timeout: Duration::from_secs(5),
            planted: Vec::new(),
            shutdown: None,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), ServeError> {
        let out_of = |option, value: String, range| Err(ServeError::Option { option, value, range });
        let (least, most) = (Duration::from_micros(1), Duration::from_secs(60));
        if let Service::Fixed(mean) | Service::Exponential { mean, .. } = self.service
            && !(least..=most).contains(&mean)
        {
            return out_of("mean", format!("{mean:?}"), "1us to 60s");
        }
        if let Some(Freeze { length, every }) = self.freeze {
            if length.is_zero() || length >= every {
                return out_of("freeze", format!("{length:?}"), "above 0 and below --every");
            }
            if every > Duration::from_secs(3600) {
                return out_of("every", format!("{every:?}"), "3600s at most");
            }
        }
        let Faults { status, wrong_body_one_in, no_answer_one_in } = self.faults;
        if let Some((status, _)) = status.filter(|(status, _)| !(200..=599).contains(status)) {
            return out_of("status", status.to_string(), "200 to 599");
        }
        for (option, one_in) in [
            ("one-in", status.map(|(_, one_in)| one_in)),
            ("wrong-body-one-in", wrong_body_one_in),
            ("no-answer-one-in", no_answer_one_in),
        ] {
            if one_in == Some(0) {
                return out_of(option, "0".to_string(), "1 or more");
            }
        }
        if !(1..=1_000_000).contains(&self.max_connections) {
            return out_of("max-connections", self.max_connections.to_string(), "1 to 1000000");
        }
        Ok(())
    }
}

/// The service time in words, for the output.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.service {
            Service::None => write!(f, "answers at once")?,
            Service::Fixed(time) => write!(f, "one server, {time:?} per request")?,
            Service::Exponential { mean, seed } => {
                write!(f, "one server, exponential with mean {mean:?} per request (seed {seed})")?;
            }
        }
        if let Some(Freeze { length, every }) = self.freeze {
            write!(f, "; frozen for the first {length:?} of every {every:?}")?;
        }
        let Faults { status, wrong_body_one_in, no_answer_one_in } = self.faults;
        if let Some((status, one_in)) = status {
            write!(f, "; status {status} for one in {one_in}")?;
        }
        if let Some(one_in) = wrong_body_one_in {
            write!(f, "; a wrong body for one in {one_in}")?;
        }
        if let Some(one_in) = no_answer_one_in {
            write!(f, "; no answer for one in {one_in}")?;
        }
        Ok(())
    }
}

/// What the two threads share.
struct Shared {
    options: Options,
    listener: Listener,
    /// Where the periods of stalls are counted from, monotonic ns.
    start_ns: u64,
    going_down: AtomicBool,
}

/// Answers until SIGTERM, SIGINT or `options.shutdown`; then all connections are closed, whatever is due on them.
///
/// `on_listening` is told the address once connections are taken.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    options.check()?;
    let planted = fault::Faults::of(fault::Server::Oracle, &options.planted)?;
    thread_table::raise_limit();
    let listen_error = |source| ServeError::Listen { address: options.listen, source };
    let listener = Listener::bind(options.listen, Readiness::Connected).map_err(listen_error)?;
    let listener = listener.with_faults(planted.clone());
    let address = listener.address().map_err(ServeError::system("getsockname"))?;
    let ear = Ear::new(options.shutdown.clone()).map_err(ServeError::system("signalfd"))?;
    let (start_ns, going_down) = (clock::now_ns(), AtomicBool::new(false));
    let shared = Arc::new(Shared { options, listener, start_ns, going_down });
    let blocked = AllSignalsBlocked::new();
    let answering = {
        let shared = shared.clone();
        std::thread::Builder::new().name("oracle".to_string()).spawn(move || thread::run(&shared))
    };
    drop(blocked);
    let answering = answering.map_err(ServeError::system("starting a thread"))?;
    let _process_faults =
        ProcessFaults::start(planted.as_ref()).map_err(ServeError::system("starting a thread"))?;
    on_listening(address);
    while !ear.hears_the_end(1_000_000_000) && !answering.is_finished() {}
    let lost = answering.is_finished();
    shared.listener.refuse();
    shared.going_down.store(true, Ordering::Release);
    let told_ns = clock::now_ns();
    while !answering.is_finished() && clock::now_ns() < told_ns + END_NS_MAX {
        std::thread::sleep(Duration::from_millis(2));
    }
    if lost || !answering.is_finished() { Err(ServeError::ThreadLost { thread: 0 }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(options: Options, message: &str) {
        assert_eq!(options.check().unwrap_err().to_string(), message);
    }

    #[test]
    fn what_cannot_be_kept_exactly_is_refused_with_the_option_and_its_range() {
        let with_faults = |faults| Options { faults, ..Options::default() };
        let second = Duration::from_secs(1);
        check_refused(
            Options { service: Service::Fixed(Duration::ZERO), ..Options::default() },
            "--mean 0ns is out of range: 1us to 60s",
        );
        check_refused(
            Options { freeze: Some(Freeze { length: second, every: second }), ..Options::default() },
            "--freeze 1s is out of range: above 0 and below --every",
        );
        check_refused(
            with_faults(Faults { status: Some((100, 1)), ..Faults::default() }),
            "--status 100 is out of range: 200 to 599",
        );
        check_refused(
            with_faults(Faults { wrong_body_one_in: Some(0), ..Faults::default() }),
            "--wrong-body-one-in 0 is out of range: 1 or more",
        );
    }

    #[test]
    fn the_law_is_told_in_words() {
        let service = Service::Exponential { mean: Duration::from_millis(1), seed: 7 };
        let freeze = Some(Freeze { length: Duration::from_secs(1), every: Duration::from_secs(10) });
        let faults = Faults { status: Some((503, 9)), wrong_body_one_in: Some(3), no_answer_one_in: None };
        assert_eq!(Options::default().to_string(), "answers at once");
        assert_eq!(
            Options { service, freeze, faults, ..Options::default() }.to_string(),
            "one server, exponential with mean 1ms per request (seed 7); frozen for the first 1s of every 10s; \
             status 503 for one in 9; a wrong body for one in 3"
        );
    }
}
