//! Where a subject's ticks are read: which sources, from when on, and by whom.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, bail};
use console::masks::mask;
use measure::ticklog::MetricReader;
use plan::{Plan, Target, TickSource};
use watch::{NamedFeed, Scraper, Statsd, TickFeed, TickFeeds, TickLog};

use crate::consent::Consent;
use crate::lookup;
use crate::trial::Elsewhere;

/// Which of the ticks in a log are the run's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TicksFrom {
    /// all: there is no log yet
    Nothing,
    /// those that come from now on: the server, or the run, has written before
    Present,
}

/// How the sources of ticks were written, where there are several; else empty.
pub fn tick_names(plan: &Plan) -> Vec<String> {
    let names = plan.subject.tick_sources().map(|source| mask(&source.to_string()).into_owned());
    if plan.subject.compared_ticks.is_empty() { Vec::new() } else { names.collect() }
}

/// A source by its place among all: the first is judged.
pub(super) fn named(names: &[String], at: usize, feed: TickFeed) -> NamedFeed {
    NamedFeed::new(names.get(at).filter(|_| at > 0).cloned(), feed)
}

/// Those that are read here.
pub(super) fn follow(
    plan: &Plan,
    consent: &Consent,
    from: TicksFrom,
    elsewhere: Option<&dyn Elsewhere>,
) -> anyhow::Result<TickFeeds> {
    let names = tick_names(plan);
    let mut feeds = Vec::new();
    for (at, source) in plan.subject.tick_sources().enumerate() {
        if elsewhere.is_none_or(|elsewhere| !elsewhere.follows(source)) {
            let may_ask = |endpoint: &Target| lookup::resolve(endpoint, &plan.may_load, consent);
            let feed = feed(source, plan.subject.tick_rate_hz, from, &may_ask)?;
            feeds.extend(feed.map(|feed| named(&names, at, feed)));
        }
    }
    Ok(TickFeeds { names, feeds })
}

/// A source of ticks of a server that runs on this machine, for a climb elsewhere: what comes from now on. `rate_hz`: 0 where it is
/// to be found. Errors: it cannot be read here; its endpoint is another machine's.
pub fn follow_running(source: &TickSource, rate_hz: f64) -> anyhow::Result<Option<TickFeed>> {
    let may_ask = |endpoint: &Target| match endpoint.literal_address() {
        Some(ip) if ip.is_loopback() => Ok(vec![SocketAddr::new(ip, endpoint.port)]),
        _ => bail!("{endpoint} is not this machine's; write 127.0.0.1, or let the climb ask it"),
    };
    feed(source, rate_hz, TicksFrom::Present, &may_ask)
}

/// `rate_hz`: 0 where it is to be found.
fn feed(
    source: &TickSource,
    rate_hz: f64,
    from: TicksFrom,
    may_ask: &dyn Fn(&Target) -> anyhow::Result<Vec<SocketAddr>>,
) -> anyhow::Result<Option<TickFeed>> {
    let known_hz = Some(rate_hz).filter(|rate_hz| *rate_hz > 0.0 || !source.tells_rate());
    match source {
        TickSource::Log(Some(path)) => Ok(Some(follow_file(path, rate_hz, from)?.into())),
        TickSource::Frames(form, path) => {
            let log = follow_file(path, rate_hz, from)?.with_form(form.clone(), known_hz);
            Ok(Some(log.with_context(|| format!("{}: its header cannot be read", path.display()))?.into()))
        }
        TickSource::Statsd { address, metric } => {
            let feed = Statsd::listen(*address, metric.clone(), known_hz);
            Ok(Some(TickFeed::Statsd(
                feed.with_context(|| format!("cannot listen for StatsD at {address}"))?,
            )))
        }
        TickSource::OpenMetrics { endpoint, metric, unit } => {
            let reader = MetricReader::new(metric.clone(), *unit, rate_hz);
            let addresses = may_ask(endpoint).context("--ticks openmetrics")?;
            let place = (endpoint.authority(), plan::percent::encoded(&endpoint.path));
            let scraper = Scraper::start(endpoint.to_string(), addresses, (&place.0, &place.1), reader);
            Ok(Some(TickFeed::Metrics(
                scraper.context("the thread that asks for ticks could not be started")?,
            )))
        }
        TickSource::None | TickSource::Client | TickSource::Log(None) => Ok(None),
    }
}

pub(super) fn follow_file(path: &Path, tick_rate_hz: f64, from: TicksFrom) -> anyhow::Result<TickLog> {
    if from == TicksFrom::Present {
        return TickLog::from_now(path, tick_rate_hz)
            .with_context(|| format!("{}: cannot follow this tick log", path.display()));
    }
    if path.metadata().is_ok_and(|file| file.len() > 0) {
        bail!(
            "{}: this tick log exists already, and its old ticks would mix with the new run's; \
             remove it or name another file",
            path.display()
        );
    }
    Ok(TickLog::from_begin(path, tick_rate_hz))
}
