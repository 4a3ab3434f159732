//! The oracle: an HTTP/1.1 server whose response times follow a known distribution, so that instruments can be checked
//! against it.
//!
//! `service_time` decides when a request is answered, `faults` which answers are wrong, `pages` what each path returns.
//! One thread with one queue for all connections, in the order in which requests were read. All of it is exact:
//! - An answer is sent at `max(arrival, end of the one before) + service`, and never earlier. Arrival is when the
//!   request's last byte was read. The thread wakes early and spins until the instant, so that lateness does not depend
//!   on the timer; it never delays later answers.
//! - While frozen, nothing is read, answered or accepted, from the start on: the first period begins with a stall.
//!   Answers that fall due meanwhile are sent at its end. The kernel goes on accepting connections and bytes, as
//!   it does for a stopped process.
//! - Faults by number are counted over all connections. What follows a request that is never answered, on the same
//!   connection, is neither answered nor counted.
//!
//! A connection with 64 unanswered requests, or with unsent output, is not read meanwhile.

mod client;
mod faults;
mod pages;
mod service_time;
mod thread;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use faults::Faults;

use servers_shared::cli::{self, check, time};
use servers_shared::control::Listening;
use servers_shared::fault::{self, Fault, Server};
use servers_shared::listener::Readiness;
use servers_shared::{ServeError, Shutdown};
use service_time::{Freeze, Service};

/// How an oracle runs. By default it answers at once and everything right.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42061", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// How long its one server takes for a request; requests of all connections wait in one queue
    #[arg(long, value_enum, default_value_t = Law::None)]
    pub service: Law,
    /// Time for a request: always (fixed) or on average (exponential), 1 µs to 60 s
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = time)]
    pub mean: Duration,
    /// Seed of exponential times
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Read, answer and accept nothing for the first TIME of every period, from the start on
    #[arg(long, value_name = "TIME", value_parser = time, requires = "every")]
    pub freeze: Option<Duration>,
    /// Period of the stalls
    #[arg(long, value_name = "TIME", value_parser = time, requires = "freeze")]
    pub every: Option<Duration>,
    /// Planted faults of single answers.
    #[command(flatten)]
    pub faults: Faults,
    /// Sockets at once; whoever comes on top of that is closed.
    #[arg(skip = 10_000_usize)]
    pub max_connections: usize,
    /// How long a request may take from its first byte to its last.
    #[arg(skip = Duration::from_secs(5))]
    pub request_timeout: Duration,
    /// Faults of the whole server, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Oracle))]
    pub planted: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

/// How long the oracle's server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Law {
    /// no time: every request is answered at once
    None,
    /// always --mean
    Fixed,
    /// exponentially distributed around --mean; under Poisson arrivals an M/M/1 queue
    Exponential,
}

impl Default for Options {
    fn default() -> Options {
        cli::defaults()
    }
}

impl Options {
    fn service(&self) -> Service {
        match self.service {
            Law::None => Service::None,
            Law::Fixed => Service::Fixed(self.mean),
            Law::Exponential => Service::Exponential { mean: self.mean, seed: self.seed },
        }
    }

    fn stalls(&self) -> Option<Freeze> {
        self.freeze.zip(self.every).map(|(length, every)| Freeze { length, every })
    }

    fn check(&self) -> Result<(), ServeError> {
        if self.service != Law::None {
            check("mean", self.mean, Duration::from_micros(1)..=Duration::from_secs(60), "1us to 60s")?;
        }
        if let Some(Freeze { length, every }) = self.stalls() {
            check("freeze", length, Duration::from_nanos(1)..every, "above 0 and below --every")?;
            check("every", every, ..=Duration::from_secs(3600), "3600s at most")?;
        }
        let Faults { status, one_in, wrong_body_one_in, no_answer_one_in } = self.faults;
        check("status", status.unwrap_or(200), 200..=599, "200 to 599")?;
        check("one-in", one_in.unwrap_or(1), 1.., "1 or more")?;
        check("wrong-body-one-in", wrong_body_one_in.unwrap_or(1), 1.., "1 or more")?;
        check("no-answer-one-in", no_answer_one_in.unwrap_or(1), 1.., "1 or more")?;
        check("max-connections", self.max_connections, 1..=1_000_000, "1 to 1000000")
    }
}

/// The service time in words, for the output.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, seed) = (self.mean, self.seed);
        match self.service {
            Law::None => write!(f, "answers at once")?,
            Law::Fixed => write!(f, "one server, {mean:?} per request")?,
            Law::Exponential => {
                write!(f, "one server, exponential with mean {mean:?} per request (seed {seed})")?;
            }
        }
        if let Some(Freeze { length, every }) = self.stalls() {
            write!(f, "; frozen for the first {length:?} of every {every:?}")?;
        }
        let Faults { status, one_in, wrong_body_one_in, no_answer_one_in } = self.faults;
        if let Some((status, one_in)) = status.zip(one_in) {
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

/// Answers until SIGTERM, SIGINT or `options.shutdown`; then all connections are closed, whatever is due on them.
///
/// `on_listening` is told the address once connections are taken.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    options.check()?;
    let planted = (Server::Oracle, &options.planted[..]);
    let listening = Listening::on(options.listen, Readiness::Connected, planted, &options.shutdown)?;
    let address = listening.address;
    let mut crew = listening.crew()?;
    let common = crew.common.clone();
    crew.spawn("oracle".to_owned(), move || thread::run(&options, &common))?;
    on_listening(address);
    crew.serve()
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
            Options { service: Law::Fixed, mean: Duration::ZERO, ..Options::default() },
            "--mean 0ns is out of range: 1us to 60s",
        );
        check_refused(
            Options { freeze: Some(second), every: Some(second), ..Options::default() },
            "--freeze 1s is out of range: above 0 and below --every",
        );
        check_refused(
            with_faults(Faults { status: Some(100), one_in: Some(1), ..Faults::default() }),
            "--status 100 is out of range: 200 to 599",
        );
        check_refused(
            with_faults(Faults { wrong_body_one_in: Some(0), ..Faults::default() }),
            "--wrong-body-one-in 0 is out of range: 1 or more",
        );
    }

    #[test]
    fn the_law_is_told_in_words() {
        let (freeze, every) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(10)));
        let faults =
            Faults { status: Some(503), one_in: Some(9), wrong_body_one_in: Some(3), no_answer_one_in: None };
        assert_eq!(Options::default().to_string(), "answers at once");
        assert_eq!(
            Options { service: Law::Exponential, seed: 7, freeze, every, faults, ..Options::default() }
                .to_string(),
            "one server, exponential with mean 1ms per request (seed 7); frozen for the first 1s of every 10s; \
             status 503 for one in 9; a wrong body for one in 3"
        );
    }
}
