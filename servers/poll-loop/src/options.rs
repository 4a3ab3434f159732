//! The poll loop's options, and their ranges.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::turn::{Priority, Rules};
use servers_shared::cli::{self, check, time, time_or_0};
use servers_shared::fault::{self, Fault, Server};
use servers_shared::{ServeError, Shutdown};

/// How a poll loop runs. The defaults are the published one, in the background, with nothing near.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42071", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Turns of the loop per second, 1 to 1000
    #[arg(long, default_value_t = 30, value_name = "HZ")]
    pub tick_rate: u32,
    /// Requests taken per tick, 1 to 100000
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub slots: usize,
    /// Requests admitted at once, waiting or being answered; 0 for any number
    // Spelled with its path, so that clap does not treat the type as an optional argument.
    #[arg(long, default_value = "14", value_name = "N", value_parser = some_unless_0)]
    pub queue: std::option::Option<usize>,
    /// What happens to a request beyond that, at once and also while the loop draws
    #[arg(long, value_enum, default_value_t = Beyond::Refuse)]
    pub beyond: Beyond,
    /// How much is near: scales the long answers
    #[arg(long, value_enum, default_value_t = Locality::None)]
    pub locality: Locality,
    /// Draw for somebody who looks: a frame takes 72 % of a tick instead of 1.2 %
    #[arg(long)]
    pub foreground: bool,
    /// What drawing a frame takes, in processor time [default: 24ms in the foreground at 30 Hz, 400us behind]
    #[arg(long, value_name = "TIME", value_parser = time_or_0)]
    pub draw: Option<Duration>,
    /// Who yields when answers and the frame do not both fit into a tick
    #[arg(long, value_enum, default_value_t = Priority::Normal)]
    pub priority: Priority,
    /// Factor to the planted costs of the services, 0 to 1000; 0 switches them off
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub cost_scale: f64,
    /// Write ticks, requests and frames to this file as JSON lines; it must not exist
    #[arg(long, value_name = "FILE")]
    pub tick_log: Option<PathBuf>,
    /// Write at the end of a tick log that exists, which mixes the results of both runs
    #[arg(long)]
    pub append: bool,
    /// How often a line is written there, 10 ms to a day
    #[arg(long, default_value = "250ms", value_name = "TIME", value_parser = time)]
    pub tick_log_every: Duration,
    /// Sockets at once; more are refused with status 503
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_connections: usize,
    /// How long a request may take from its first byte to its last.
    #[arg(skip = Duration::from_secs(5))]
    pub request_timeout: Duration,
    /// How long a client may leave an answer in our hands.
    #[arg(skip = Duration::from_secs(10))]
    pub answer_timeout: Duration,
    /// How long the end of the server waits for what was admitted.
    #[arg(skip = Duration::from_secs(5))]
    pub drain: Duration,
    /// Faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::PollLoop))]
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

/// What happens to a request for which there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Beyond {
    /// status 503, at once; the connection stays
    Refuse,
    /// the connection is reset
    Reset,
}

/// How many objects are near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Locality {
    /// nothing
    None,
    /// 40 objects
    Moderate,
    /// 400 objects
    High,
}

fn some_unless_0(text: &str) -> Result<Option<usize>, std::num::ParseIntError> {
    text.parse().map(|queue| Some(queue).filter(|queue| *queue > 0))
}

/// Of a period, in thousandths. At 30 Hz 24 ms and 0.4 ms: idle in the background, the loop uses 0.8 s of processor
/// time per minute.
const FOREGROUND_PER_MILLE: u64 = 720;
const BACKGROUND_PER_MILLE: u64 = 12;

impl Locality {
    /// How many objects that is.
    pub fn objects(self) -> usize {
        match self {
            Locality::None => 0,
            Locality::Moderate => 40,
            Locality::High => 400,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        cli::defaults()
    }
}

impl Options {
    pub(super) fn period_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.tick_rate.max(1))
    }

    pub(super) fn rules(&self) -> Rules {
        let share = if self.foreground { FOREGROUND_PER_MILLE } else { BACKGROUND_PER_MILLE };
        Rules {
            slots: self.slots,
            period_ns: self.period_ns(),
            drawing_ns: self.draw.map_or(self.period_ns() * share / 1_000, |draw| draw.as_nanos() as u64),
            priority: self.priority,
        }
    }

    pub(super) fn check(&self) -> Result<(), ServeError> {
        check("tick-rate", self.tick_rate, 1..=1000, "1 to 1000 ticks per second")?;
        check("slots", self.slots, 1..=100_000, "1 to 100000 requests per tick")?;
        let queue = self.queue.unwrap_or(1);
        check("queue", queue, 1..=1_000_000, "1 to 1000000 requests, or 0 for any number")?;
        let draw = self.draw.unwrap_or_default();
        check("draw", draw, ..=Duration::from_secs(10), "at most 10s per frame")?;
        check("cost-scale", self.cost_scale, 0.0..=1_000.0, "0 to 1000")?;
        let log_every = Duration::from_millis(10)..=Duration::from_secs(86_400);
        check("tick-log-every", self.tick_log_every, log_every, "10ms to a day")?;
        check("max-connections", self.max_connections, 1..=1_000_000, "1 to 1000000")
    }
}

/// What makes one run of it differ from another, in a line.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticks/s, {} slots, queue ", self.tick_rate, self.slots)?;
        match (self.queue, self.beyond) {
            (None, _) => write!(f, "unbounded")?,
            (Some(queue), Beyond::Refuse) => write!(f, "{queue} (beyond: refuse)")?,
            (Some(queue), Beyond::Reset) => write!(f, "{queue} (beyond: reset)")?,
        }
        let view = if self.foreground { "foreground" } else { "background" };
        let drawing_ms = self.rules().drawing_ns as f64 / 1e6;
        let priority = match self.priority {
            Priority::Normal => "normal",
            Priority::BelowNormal => "below normal",
        };
        let near = self.locality.objects();
        write!(f, ", {view} ({drawing_ms:.1} ms per frame), priority {priority}, locality ")?;
        match self.locality {
            Locality::None => write!(f, "none"),
            Locality::Moderate => write!(f, "moderate ({near} objects)"),
            Locality::High => write!(f, "high ({near} objects)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused_with_their_name_and_range() {
        assert!(Options::default().check().is_ok());
        let check = |options: Options, message| {
            assert_eq!(options.check().unwrap_err().to_string(), message);
        };
        let default = Options::default;
        check(
            Options { tick_rate: 0, ..default() },
            "--tick-rate 0 is out of range: 1 to 1000 ticks per second",
        );
        check(Options { cost_scale: f64::NAN, ..default() }, "--cost-scale NaN is out of range: 0 to 1000");
        check(
            Options { tick_log_every: Duration::ZERO, ..default() },
            "--tick-log-every 0ns is out of range: 10ms to a day",
        );
    }

    #[test]
    fn a_line_tells_what_runs() {
        let options = Options::default();
        assert_eq!(
            options.to_string(),
            "30 ticks/s, 10 slots, queue 14 (beyond: refuse), background (0.4 ms per frame), priority normal, \
             locality none"
        );
        let options = Options {
            queue: None,
            foreground: true,
            locality: Locality::High,
            priority: Priority::BelowNormal,
            tick_rate: 60,
            ..options
        };
        assert_eq!(
            options.to_string(),
            "60 ticks/s, 10 slots, queue unbounded, foreground (12.0 ms per frame), priority below normal, \
             locality high (400 objects)"
        );
    }
}
