//! Where the sampler reads a subject's ticks: a file that grows, or packets of StatsD.

use std::io;

use measure::ticklog::LoggedSecond;

use crate::statsd::Statsd;
use crate::tick_log::TickLog;

/// A source of ticks that is followed during trials.
#[derive(Debug)]
pub enum TickFeed {
    /// a file
    File(TickLog),
    /// packets over UDP
    Statsd(Statsd),
}

impl TickFeed {
    /// Reads what is new and returns the seconds that are complete at `realtime_ms`. Errors: a file cannot be read.
    pub fn poll(&mut self, realtime_ms: u64) -> io::Result<Vec<LoggedSecond>> {
        match self {
            TickFeed::File(log) => log.poll(realtime_ms),
            TickFeed::Statsd(statsd) => Ok(statsd.poll(realtime_ms)),
        }
    }

    /// What there is to say of it since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        match self {
            TickFeed::File(log) => log.take_notices().iter().map(ToString::to_string).collect(),
            TickFeed::Statsd(statsd) => statsd.take_notices(),
        }
    }
}

impl From<TickLog> for TickFeed {
    fn from(log: TickLog) -> TickFeed {
        TickFeed::File(log)
    }
}
