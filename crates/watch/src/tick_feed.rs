//! Where the sampler reads a subject's ticks: a file that grows, packets of StatsD, or a metrics endpoint.

use std::io;

use measure::ticklog::{LoggedSecond, Notice};

use crate::scrape::Scraper;
use crate::statsd::Statsd;
use crate::tick_log::TickLog;

/// A source of ticks that is followed during trials.
#[derive(Debug)]
pub enum TickFeed {
    /// a file
    File(TickLog),
    /// packets over UDP
    Statsd(Statsd),
    /// answers over HTTP
    Metrics(Scraper),
}

impl TickFeed {
    /// Reads what is new and returns the seconds that are complete at `realtime_ms`. Errors: a file cannot be read.
    pub fn poll(&mut self, realtime_ms: u64) -> io::Result<Vec<LoggedSecond>> {
        match self {
            TickFeed::File(log) => log.poll(realtime_ms),
            TickFeed::Statsd(statsd) => Ok(statsd.poll(realtime_ms)),
            TickFeed::Metrics(scraper) => Ok(scraper.poll(realtime_ms)),
        }
    }

    /// What there is to say of it since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        match self {
            TickFeed::File(log) => {
                log.take_notices().iter().map(|notice| notice.to_string().into()).collect()
            }
            TickFeed::Statsd(statsd) => statsd.take_notices().into_iter().map(Notice::from).collect(),
            TickFeed::Metrics(scraper) => scraper.take_notices(),
        }
    }
}

impl From<TickLog> for TickFeed {
    fn from(log: TickLog) -> TickFeed {
        TickFeed::File(log)
    }
}
