//! What kept the server's own code from running in both holds, as its runtime tells: the garbage collector, and callbacks that
//! held the event loop.

use measure::{Callback, Operation, Stops};

use super::ProfiledHold;
use crate::wording::{show_ns, show_share};

/// From here on a callback is one that all connections feel, and its function is named.
const LONG_CALLBACK_NS: u64 = 20_000_000;

/// Shorter stops of a runtime for anything but garbage collection are not mentioned.
const LONG_STOP_NS: u64 = 10_000_000;

/// The sentences, where both holds have such figures.
pub(super) fn told(good: &ProfiledHold, bad: &ProfiledHold) -> Option<String> {
    let (before, after) = (good.stops.as_ref()?, bad.stops.as_ref()?);
    let (at_good, at_bad) = (good.place(), bad.place());
    let mut parts = Vec::new();
    if let (Some(share), Some(share_before)) = (after.gc_share, before.gc_share) {
        let longest = |stops: &Stops| {
            let ns = stops.gc_max_ns.filter(|ns| *ns > 0);
            ns.map_or(String::new(), |ns| format!(" ({} at most at once)", show_ns(ns as f64)))
        };
        parts.push(format!(
            "Garbage collection stopped all threads for {} of the hold at {at_bad}{} and {} at {at_good}{}.",
            show_share(share),
            longest(after),
            show_share(share_before),
            longest(before)
        ));
    }
    if let (Some(share), Some(share_before)) = (after.other_share, before.other_share)
        && let Some(Operation { ns, name }) = after.other_max.as_ref().filter(|one| one.ns >= LONG_STOP_NS)
    {
        parts.push(format!(
            "Other operations of its runtime stopped all threads for {} of the hold at {at_bad} ({} at most at once: {name}) and {} at \
             {at_good}.",
            show_share(share),
            show_ns(*ns as f64),
            show_share(share_before)
        ));
    }
    if let (Some(late), Some(late_before)) = (after.loop_delay_ns, before.loop_delay_ns) {
        let words = |[p99, max]: [u64; 2]| format!("{} (p99 {})", show_ns(max as f64), show_ns(p99 as f64));
        parts.push(format!(
            "The event loop was up to {} late at {at_bad} and {} at {at_good}.",
            words(late),
            words(late_before)
        ));
    }
    if let Some(Callback { ns, function, long }) = &after.callback {
        let (took, long_before) = (show_ns(*ns as f64), before.callback.as_ref().map_or(0, |one| one.long));
        parts.push(match function {
            _ if *ns < LONG_CALLBACK_NS => format!("No callback held it longer than {took} at {at_bad}."),
            Some(function) => format!(
                "`{function}` held it for {took} in one callback; {long} took 20 ms or longer at {at_bad} and {long_before} at {at_good}."
            ),
            None => format!(
                "One callback took {took} at {at_bad}, but no function half of it, or the server waited for a core."
            ),
        });
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use measure::LoadUnit;

    use super::*;

    fn hold(load: f64, stops: Option<Stops>) -> ProfiledHold {
        ProfiledHold { load, load_unit: LoadUnit::Requests, stops, ..ProfiledHold::default() }
    }

    fn node(gc: (f64, u64), delay: [u64; 2], ns: u64, function: Option<&str>, long: u64) -> Option<Stops> {
        let function = function.map(str::to_owned);
        Some(Stops {
            gc_share: Some(gc.0),
            gc_max_ns: Some(gc.1),
            loop_delay_ns: Some(delay),
            callback: Some(Callback { ns, function, long }),
            ..Stops::default()
        })
    }

    #[test]
    fn a_long_callback_is_named_and_a_loop_that_is_late_by_many_short_ones_is_not() {
        let good = hold(50.0, node((0.0001, 0), [1_000_000, 43_000_000], 41_000_000, Some("render"), 24));
        let told_of = |stops| told(&good, &hold(600.0, stops)).unwrap();
        let late = [64_000_000, 90_000_000];
        assert_eq!(
            told_of(node((0.125, 16_000_000), late, 40_200_000, Some("renderReport (report.mjs:2)"), 200)),
            "Garbage collection stopped all threads for 12.5 % of the hold at 600 req/s (16 ms at most at once) and 0.01 % at \
             50 req/s. The event loop was up to 90 ms (p99 64 ms) late at 600 req/s and 43 ms (p99 1 ms) at 50 req/s. \
             `renderReport (report.mjs:2)` held it for 40.2 ms in one callback; 200 took 20 ms or longer at 600 req/s and 24 at \
             50 req/s."
        );
        let short = told_of(node((0.0, 0), late, 1_300_000, Some("burn (server.mjs:20)"), 0));
        assert!(short.ends_with("No callback held it longer than 1.3 ms at 600 req/s."), "{short}");
        let away = told_of(node((0.0, 0), late, 30_000_000, None, 1));
        assert!(away.contains("One callback took 30 ms at 600 req/s, but no function half of it"), "{away}");
        // A JVM or Go has no event loop.
        let go = Some(Stops { gc_share: Some(0.5), gc_max_ns: Some(7_000_000), ..Stops::default() });
        let text = told(&hold(50.0, go.clone()), &hold(600.0, go)).unwrap();
        assert!(text.starts_with("Garbage collection") && !text.contains("event loop"), "{text}");
        assert_eq!(told(&good, &hold(600.0, None)), None);
    }

    #[test]
    fn other_stops_of_a_runtime_are_told_where_one_was_long() {
        let jvm = |share: f64, ns: u64| {
            let name = "ThreadDump".to_owned();
            let other_max = Some(Operation { ns, name });
            Some(Stops { gc_share: Some(0.0), other_share: Some(share), other_max, ..Stops::default() })
        };
        let text = |ns| told(&hold(50.0, jvm(0.001, 2_000_000)), &hold(600.0, jvm(0.04, ns))).unwrap();
        assert!(
            text(61_000_000).ends_with(
                "Other operations of its runtime stopped all threads for 4 % of the hold at 600 req/s (61 ms at most at once: \
                 ThreadDump) and 0.1 % at 50 req/s."
            ),
            "{}",
            text(61_000_000)
        );
        assert!(!text(2_000_000).contains("Other operations"));
    }
}
