//! Where the sampler reads a subject's ticks: a file that grows, packets of StatsD, or a metrics endpoint.

use std::io;

use measure::ticklog::{LoggedSecond, Notice, TickLogReader};

use crate::scrape::Scraper;
use crate::statsd::Statsd;
use crate::tick_log::TickLog;

/// All sources of a subject's ticks that are followed during trials.
#[derive(Debug, Default)]
pub struct TickFeeds {
    /// how all of them were written, the clients' view included, the judged one first; empty where there are not several
    pub names: Vec<String>,
    /// those that are read here
    pub feeds: Vec<NamedFeed>,
}

/// A source, and what it is for.
#[derive(Debug)]
pub struct NamedFeed {
    /// the name under which it is compared with the judged one; `None`: it is judged
    pub compared_as: Option<String>,
    /// the source
    pub feed: TickFeed,
    /// of a file: how far its stamps are behind this machine's clock for another time zone, as it was found; 0 in the same
    pub(crate) zone_ns: i64,
}

impl NamedFeed {
    /// Stamped by this machine's clock, as long as nothing else is found.
    pub fn new(compared_as: Option<String>, feed: TickFeed) -> NamedFeed {
        NamedFeed { compared_as, feed, zone_ns: 0 }
    }
}

impl TickFeeds {
    /// The source that is judged; `None`: nothing is, or the clients' view.
    pub fn judged(&mut self) -> Option<&mut TickFeed> {
        let judged = self.feeds.iter_mut().find(|source| source.compared_as.is_none());
        judged.map(|source| &mut source.feed)
    }
}

impl From<TickFeed> for TickFeeds {
    fn from(feed: TickFeed) -> TickFeeds {
        TickFeeds { names: Vec::new(), feeds: vec![NamedFeed::new(None, feed)] }
    }
}

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

    /// `None`: its tick rate was not given and is not found yet, so it tells of no seconds.
    pub fn rate_hz(&mut self) -> Option<f64> {
        // An endpoint is not asked without one.
        self.reader().map_or(Some(0.0), |reader| reader.rate_hz())
    }

    /// A trial begins: what was wrong with an endpoint before is no part of it, and a rate that is not known is that of the ticks from now on.
    pub fn begin_trial(&mut self, realtime_ms: u64) {
        if let TickFeed::Metrics(scraper) = self {
            scraper.begin_trial();
        }
        if self.rate_hz().is_none() {
            // A problem with the file is reported when it is read next.
            let _ = self.poll(realtime_ms);
            if let Some(reader) = self.reader() {
                reader.forget_waiting();
            }
        }
    }

    fn reader(&mut self) -> Option<&mut TickLogReader> {
        match self {
            TickFeed::File(log) => Some(log.reader()),
            TickFeed::Statsd(statsd) => Some(statsd.reader()),
            TickFeed::Metrics(_) => None,
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
