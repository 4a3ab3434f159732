//! What a user can choose about the poll loop, and the ranges.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::turn::{Priority, Rules};
use crate::fault::Fault;
use crate::{ServeError, Shutdown};

/// How a poll loop runs. The defaults are the published one, in the background, with nothing near.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, which `on_listening` is told.
    pub listen: SocketAddr,
    /// Turns of the loop per second, 1 to 1000.
    pub tick_rate: u32,
    /// How many requests are taken per tick, 1 to 100,000.
    pub slots: usize,
    /// How many requests may be admitted at once, waiting or under way; None: any number.
    pub queue: Option<usize>,
    /// What happens to a request beyond that.
    pub beyond: Beyond,
    /// How much is near, which scales the long answers.
    pub locality: Locality,
    /// The loop draws for somebody who looks at it.
    pub foreground: bool,
    /// What a frame takes, in processor time; None: 72 % of a period in the foreground, 1.2 % in the background.
    pub draw: Option<Duration>,
    /// Who yields when answers and the frame do not both fit.
    pub priority: Priority,
    /// Factor to the services' planted costs, 0 to 1000.
    pub cost_scale: f64,
    /// Where ticks are written, as JSON lines. An existing file is refused.
    pub tick_log: Option<PathBuf>,
    /// Write at the end of an existing tick log, which mixes the results of both runs.
    pub append: bool,
    /// How often, 10 ms to a day.
    pub tick_log_every: Duration,
    /// Sockets at once; whoever comes on top of that is refused with status 503.
    pub max_connections: usize,
    /// How long a request may take from its first byte to its last.
    pub request_timeout: Duration,
    /// How long a client may leave an answer in our hands.
    pub answer_timeout: Duration,
    /// How long the end of the server waits for what was admitted.
    pub drain: Duration,
    /// Faults to plant, for testing instruments.
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    pub shutdown: Option<Shutdown>,
}

/// What happens to a request beyond that. Always at once, also while the loop draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Status 503; the connection stays.
    Refuse,
    /// The connection is reset.
    Reset,
}

/// How many objects are near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// 0
    None,
    /// 40
    Moderate,
    /// 400
    High,
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
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 42_071)),
            tick_rate: 30,
            slots: 10,
            queue: Some(14),
            beyond: Beyond::Refuse,
            locality: Locality::None,
            foreground: false,
            draw: None,
            priority: Priority::Normal,
            cost_scale: 1.0,
            tick_log: None,
            append: false,
            tick_log_every: Duration::from_millis(250),
            max_connections: 10_000,
            request_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(5),
            faults: Vec::new(),
            shutdown: None,
        }
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
        let refuse = |option, value: String, range| Err(ServeError::Option { option, value, range });
        if !(1..=1000).contains(&self.tick_rate) {
            return refuse("tick-rate", self.tick_rate.to_string(), "1 to 1000 ticks per second");
        }
        if !(1..=100_000).contains(&self.slots) {
            return refuse("slots", self.slots.to_string(), "1 to 100000 requests per tick");
        }
        if let Some(queue) = self.queue.filter(|queue| !(1..=1_000_000).contains(queue)) {
            return refuse("queue", queue.to_string(), "1 to 1000000 requests, or 0 for any number");
        }
        if self.draw.is_some_and(|draw| draw > Duration::from_secs(10)) {
            return refuse("draw", format!("{:?}", self.draw.unwrap_or_default()), "at most 10s per frame");
        }
        if !(0.0..=1_000.0).contains(&self.cost_scale) {
            return refuse("cost-scale", self.cost_scale.to_string(), "0 to 1000");
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(86_400)).contains(&self.tick_log_every) {
            return refuse("tick-log-every", format!("{:?}", self.tick_log_every), "10ms to a day");
        }
        if !(1..=1_000_000).contains(&self.max_connections) {
            return refuse("max-connections", self.max_connections.to_string(), "1 to 1000000");
        }
        Ok(())
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
