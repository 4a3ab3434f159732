//! The cost of long answers compared to short ones.

use ladder::Conclusion;
use ladder::wording::{show_bytes, show_ns, show_share};
use serde_json::json;

use super::{
    COST_CPU_SHARE, COST_RATE, COST_TIME, Cell, LONG_BYTES_LEAST, SHORT_BYTES_MOST, Step, Sweep, per_s,
    rates, requesters,
};

/// The axis along which answers differ in length.
pub(super) const SERVICE: &str = "service";

/// Bytes on the wire per answer, with the fewest requesters; `None` where no rung was clean.
pub(super) fn bytes_of(cell: &Cell<'_>) -> Option<f64> {
    cell.clean().find_map(Step::bytes_per_answer)
}

pub(super) fn is_short(cell: &Cell<'_>) -> bool {
    bytes_of(cell).is_some_and(|bytes| bytes <= SHORT_BYTES_MOST)
}

pub(super) fn is_long(cell: &Cell<'_>) -> bool {
    bytes_of(cell).is_some_and(|bytes| bytes >= LONG_BYTES_LEAST)
}

pub(super) fn show_size(cell: &Cell<'_>) -> String {
    bytes_of(cell).map_or_else(|| "unknown size".to_owned(), show_bytes)
}

/// In each state of the server the shortest and the longest answer, where one is short and the other long.
fn pairs<'s, 'a>(sweep: &'s Sweep<'a>) -> Vec<(&'s Cell<'a>, &'s Cell<'a>)> {
    let size = |cell: &Cell<'_>| bytes_of(cell).unwrap_or(0.0);
    let mut pairs: Vec<(&Cell<'_>, &Cell<'_>)> = Vec::new();
    for short in sweep.cells.iter().filter(|cell| is_short(cell)) {
        let of_service = || sweep.siblings(short).filter(|(axis, _)| *axis == SERVICE).map(|(_, cell)| cell);
        if of_service().any(|other| size(other) < size(short)) {
            continue;
        }
        let longest = of_service().filter(|cell| is_long(cell)).max_by(|a, b| size(a).total_cmp(&size(b)));
        pairs.extend(longest.map(|long| (short, long)));
    }
    pairs
}

/// The rungs of as many requesters in both, both without failures: up to the knee if there is one, else the most.
fn common<'s, 'a>(
    short: &'s Cell<'a>,
    long: &'s Cell<'a>,
    knee: f64,
) -> Option<(&'s Step<'a>, &'s Step<'a>)> {
    let both = || {
        let same = |step: &Step<'_>| long.step(step.requesters).filter(|other| other.is_clean());
        short.clean().filter_map(move |step| Some((step, same(step)?)))
    };
    both().rfind(|(step, _)| step.requesters <= knee).or_else(|| both().next_back())
}

/// What a long answer costs compared to a short one in the same state of the server.
pub(super) fn cost_of_long_answers(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let knee = rates::knee(sweep);
    let (mut sentences, mut told) = (Vec::new(), Vec::new());
    for (short, long) in pairs(sweep) {
        let Some((of_short, of_long)) = common(short, long, knee) else { continue };
        let times = of_long.service_ns.zip(of_short.service_ns);
        let shares = of_long.cpu_share.zip(of_short.cpu_share);
        let costs = of_long.rate_per_s <= COST_RATE * of_short.rate_per_s
            || times.is_some_and(|(long, short)| long >= COST_TIME * short)
            || shares.is_some_and(|(long, short)| long >= short + COST_CPU_SHARE);
        if !costs {
            continue;
        }
        let mut parts = vec![format!("{} against {}", per_s(of_long.rate_per_s), per_s(of_short.rate_per_s))];
        parts.extend(times.map(|(long, short)| format!("{} against {}", show_ns(long), show_ns(short))));
        parts.extend(
            shares.map(|(long, short)| {
                format!("{} of the CPU against {}", show_share(long), show_share(short))
            }),
        );
        sentences.push(format!(
            "A long answer costs: {} ({}) beside {} ({}), with {}: {}.",
            sweep.name(long),
            show_size(long),
            sweep.name(short),
            show_size(short),
            requesters(of_short.requesters),
            parts.join(", "),
        ));
        let figures = |cell: &Cell<'_>, step: &Step<'_>| {
            json!({
                "cell": cell.json(), "bytes": bytes_of(cell), "rate_per_s": step.rate_per_s,
                "service_mean_ns": step.service_ns, "cpu_share": step.cpu_share,
            })
        };
        told.push(json!({
            "requesters": of_short.requesters, "long": figures(long, of_long), "short": figures(short, of_short),
        }));
    }
    if sentences.is_empty() {
        return None;
    }
    Some(Conclusion::new("cost_of_long_answers", &sentences, json!({ "pairs": told })))
}
