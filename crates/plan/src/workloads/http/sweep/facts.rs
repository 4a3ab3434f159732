//! Single facts of an object, requested concurrently, against one full page that holds them all.
//!
//! Like is compared with like: the same facts of one object, in the same state of the server. On one side as many
//! requesters as there are facts, each requesting one; on the other a single requester for the page. The figure is the
//! time until all facts are there. Bytes say nothing about that: a long page moves many of them and holds the same
//! facts.
//! Not here: what a page is made of (`servers/poll-loop/src/pages.rs`, where the facts are listed).

use ladder::Conclusion;
use ladder::wording::{show_ns, show_share};
use serde_json::{Value, json};

use super::sizes::{self, SERVICE};
use super::{Cell, SAME_RATE, Step, Sweep, per_s, requesters};

/// The poll loop's service that answers with one fact of one object …
const SINGLE_FACT: &str = "property";
/// … and the one whose page holds all of these facts, and more detail.
const FULL_PAGE: &str = "object";
/// This many facts of an object can be requested individually. The server lists as many (`poll_loop::FACTS`).
const OBJECT_FACTS: u32 = 9;

/// One way to get all facts of an object, in one cell.
struct Way<'s, 'a> {
    cell: &'s Cell<'a>,
    step: &'s Step<'a>,
    facts_per_s: f64,
    /// until all facts are there
    all_ns: f64,
}

impl Way<'_, '_> {
    fn facts_per_tick(&self) -> f64 {
        self.facts_per_s / self.cell.tick_rate_hz
    }

    fn json(&self) -> Value {
        json!({
            "cell": self.cell.json(), "requesters": self.step.requesters, "rate_per_s": self.step.rate_per_s,
            "facts_per_s": self.facts_per_s, "facts_per_tick": self.facts_per_tick(), "all_facts_ns": self.all_ns,
            "bytes_per_answer": sizes::bytes_of(self.cell), "frames_per_s": self.step.frames_per_s,
            "tick_busy_share": self.step.busy_share, "cpu_share": self.step.cpu_share,
        })
    }

    fn shown(&self) -> String {
        format!(
            "{} ({} facts, {:.1} per tick)",
            show_ns(self.all_ns),
            per_s(self.facts_per_s),
            self.facts_per_tick()
        )
    }
}

/// As many requesters as there are facts; where so many were not tried, the most below, who ask in several rounds.
fn single<'s, 'a>(cell: &'s Cell<'a>) -> Option<Way<'s, 'a>> {
    let facts = f64::from(OBJECT_FACTS);
    let fits = |step: &&Step<'_>| step.requesters > 1.0 && step.requesters <= facts && step.rate_per_s > 0.0;
    let step = cell.steps.iter().rfind(fits).filter(|step| step.is_clean())?;
    let rounds = (facts / step.requesters).ceil();
    let all_ns = rounds * step.requesters / step.rate_per_s * 1e9;
    Some(Way { cell, step, facts_per_s: step.rate_per_s, all_ns })
}

fn page<'s, 'a>(cell: &'s Cell<'a>) -> Option<Way<'s, 'a>> {
    let step = cell.firm_base()?;
    let facts_per_s = f64::from(OBJECT_FACTS) * step.rate_per_s;
    Some(Way { cell, step, facts_per_s, all_ns: 1e9 / step.rate_per_s })
}

/// Whether several requests for single facts have them all sooner than one full page does, in each state of the server in
/// which both were held without failures.
pub(super) fn small_against_large(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let is_of = |cell: &Cell<'_>, service: &str| cell.names.get(SERVICE).is_some_and(|name| name == service);
    let (mut sentences, mut told) = (Vec::new(), Vec::new());
    for small in sweep.cells.iter().filter(|cell| is_of(cell, SINGLE_FACT)) {
        let large = sweep.siblings(small).find(|(axis, other)| *axis == SERVICE && is_of(other, FULL_PAGE));
        let Some((small, large)) = single(small).zip(large.and_then(|(_, large)| page(large))) else {
            continue;
        };
        let within = SAME_RATE + small.step.edge + large.step.edge;
        let sooner = match small.all_ns / large.all_ns {
            part if part < 1.0 - within => Some(SINGLE_FACT),
            part if part > 1.0 + within => Some(FULL_PAGE),
            _ => None,
        };
        let outcome = match sooner {
            Some(SINGLE_FACT) => "The single facts win",
            Some(_) => "The full page wins",
            None => "Neither is sooner",
        };
        let busy =
            small.step.busy_share.zip(large.step.busy_share).map_or(String::new(), |(small, large)| {
                format!("; the ticks are {} busy against {}", show_share(small), show_share(large))
            });
        sentences.push(format!(
            "{OBJECT_FACTS} facts of an object: {} of {} have them all in {}, {} of {} in {}. {outcome}{busy}.",
            requesters(small.step.requesters),
            sweep.name(small.cell),
            small.shown(),
            requesters(1.0),
            sweep.name(large.cell),
            large.shown(),
        ));
        told.push(json!({ "small": small.json(), "large": large.json(), "sooner": sooner }));
    }
    if sentences.is_empty() {
        return None;
    }
    let evidence = json!({ "facts": OBJECT_FACTS, "pairs": told });
    Some(Conclusion::new("small_against_large", &sentences, evidence))
}
