//! One source of ticks during a trial: its seconds are placed on the trial's clock, and its problems are reported.

use measure::ticklog::Notice;
use measure::trial::kind;
use measure::{Entry, Event, Reading, Sample};

use super::placement::Placement;
use crate::tick_feed::{NamedFeed, TickFeeds};

/// A source of ticks that tells of none for so long tells of none at all.
const TOLD_WITHIN_NS: u64 = 2_000_000_000;

#[derive(Debug)]
pub(super) struct Followed {
    source: NamedFeed,
    placement: Placement,
    has_complained: bool,
    /// it told of ticks
    has_ticks: bool,
    /// or it was said why not
    has_reasons: bool,
}

/// When a source is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub realtime_ms: u64,
    /// on the trial's clock
    pub now_ns: u64,
    /// when sampling began
    pub began_ns: u64,
    /// nothing is read after this
    pub is_last: bool,
}

impl Followed {
    /// Follows these sources from now on.
    pub fn all(feeds: TickFeeds, zero_realtime_ns: u64, realtime_ms: u64) -> Vec<Followed> {
        let follow = |mut source: NamedFeed| {
            source.feed.begin_trial(realtime_ms);
            let placement = Placement::new(zero_realtime_ns, source.zone_ns);
            Followed { source, placement, has_complained: false, has_ticks: false, has_reasons: false }
        };
        feeds.feeds.into_iter().map(follow).collect()
    }

    /// The source, to be followed on in the next trial.
    pub fn into_source(mut self) -> NamedFeed {
        self.source.zone_ns = self.placement.zone_ns();
        self.source
    }

    /// The realtime clock was set.
    pub fn step(&mut self, step_ns: i64, at_ns: u64) {
        self.placement.step(step_ns, at_ns);
    }

    /// Reads what is new, and sends it with what there is to say of it.
    pub fn read(&mut self, now: Now, send: &dyn Fn(Entry)) {
        let Now { now_ns, is_last, .. } = now;
        let compared_as = self.source.compared_as.clone();
        let tell = |kind: &str, text: String| {
            let (kind, text) = match &compared_as {
                Some(name) if kind == kind::TICKS_LOST => (kind::COMPARED_LOST, format!("{name}: {text}")),
                Some(name) => (kind, format!("{name}: {text}")),
                None => (kind, text),
            };
            send(Entry::Event(Event { at_ns: now_ns, kind: kind.to_owned(), text }));
        };
        let feed = &mut self.source.feed;
        // At the end nothing is waited for: what the log holds of its last second is that second.
        let had_rate = feed.rate_hz().is_some();
        let polled = feed.poll(if is_last { u64::MAX } else { now.realtime_ms });
        let found_hz = feed.rate_hz().filter(|_| !had_rate);
        let notices = feed.take_notices();
        if let Some(hz) = found_hz {
            tell(kind::TICK_RATE, format!("{} Hz", (hz * 1e3).round() / 1e3));
        }
        match polled {
            Ok(seconds) => {
                self.has_ticks |= !seconds.is_empty();
                for second in seconds {
                    let gauges = second.gauges.clone();
                    let placed = self.placement.place(second, now_ns);
                    if let Some(notice) = placed.notice {
                        tell(kind::TICK_LOG, notice);
                    }
                    let Some(second) = placed.second else { continue };
                    if let Some(name) = &compared_as {
                        send(Entry::Ticks(Box::new(second.compared_as(name))));
                        continue;
                    }
                    for (gauge, value) in gauges {
                        let (at_ns, what) = (second.to_ns, Reading::Subject(gauge));
                        send(Entry::Sample(Sample { at_ns, what, value: value as f64 }));
                    }
                    send(Entry::Ticks(Box::new(second)));
                }
            }
            Err(error) if !std::mem::replace(&mut self.has_complained, true) => {
                tell(
                    kind::TICK_LOG,
                    format!("the tick log cannot be read ({error}); its ticks are missing from here on"),
                );
            }
            Err(_) => {}
        }
        self.has_reasons |= !notices.is_empty();
        for Notice { text, is_loss } in notices {
            tell(if is_loss { kind::TICKS_LOST } else { kind::TICK_LOG }, text);
        }
        // Of a source that is only compared the judge says so.
        let is_silent = !self.has_ticks && !self.has_reasons && compared_as.is_none();
        if is_last && is_silent && now_ns.saturating_sub(now.began_ns) >= TOLD_WITHIN_NS {
            tell(kind::TICK_LOG, "the source of ticks told of none in this trial".to_owned());
        }
    }
}
