//! Compares what loads gave on the way down, after a higher one, with what they gave on the way up.
//!
//! The words compare only verdicts: figures of two holds of one load may differ without a cause, whereas a `FAIL` rests
//! on undisturbed seconds. The figures of both holds are in the evidence.

use serde_json::{Value, json};

use super::conclusions::load_of;
use crate::contract::{Climb, Conclusion, Rung};
use crate::judge::Verdict;
use crate::wording::{show_cell, show_number};

/// Both holds of a load.
struct Pair<'a> {
    up: &'a Rung,
    down: &'a Rung,
    /// the load right before the one on the way down
    after: f64,
}

impl Pair<'_> {
    fn verdicts(&self) -> (Verdict, Verdict) {
        (self.up.verdict, self.down.verdict)
    }

    /// Of a sweep: ` (root · background)`.
    fn cell(&self) -> String {
        self.down.cell.as_ref().map_or(String::new(), |cell| format!(" ({})", show_cell(cell)))
    }

    fn is_judged(&self) -> bool {
        self.up.verdict.counts() && self.down.verdict.counts()
    }
}

/// What a climb from above shows; `None` without a rung.
pub(super) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    climb.rungs.first()?;
    let cells = climb.rungs_by_cell();
    let pairs: Vec<Pair<'_>> = cells.iter().flat_map(|rungs| pairs(climb, rungs)).collect();
    let sentences = if pairs.is_empty() { vec![nothing_came_down(climb)] } else { compared(climb, &pairs) };
    let evidence = json!({ "loads": pairs.iter().map(evidence).collect::<Vec<_>>() });
    Some(Conclusion::new("from_above", &sentences, evidence))
}

/// The loads of a cell that were held upwards and then downwards: what comes after both are repeats in any order.
fn pairs<'a>(climb: &'a Climb, of_cell: &[usize]) -> Vec<Pair<'a>> {
    let rungs: Vec<&Rung> = of_cell.iter().map(|at| &climb.rungs[*at]).collect();
    let steps = |rungs: &[&Rung], goes_on: fn(f64, f64) -> bool| {
        rungs.windows(2).take_while(|pair| goes_on(pair[0].load, pair[1].load)).count()
    };
    let top = steps(&rungs, |before, next| next > before);
    let way_down = &rungs[top..];
    let down = steps(way_down, |before, next| next < before);
    let pair = |at: usize| {
        let (down, after) = (way_down[at], way_down[at - 1].load);
        let up = rungs[..top].iter().find(|rung| rung.load == down.load)?;
        Some(Pair { up, down, after })
    };
    (1..=down).filter_map(pair).collect()
}

fn nothing_came_down(climb: &Climb) -> String {
    let died = climb.rungs.iter().any(Rung::server_exited);
    let why = match &climb.ended_early {
        _ if died => "the server exited before",
        Some(_) => "the run ended before",
        None => "there was one load only",
    };
    format!("No load was held on the way down: {why}.")
}

fn compared(climb: &Climb, pairs: &[Pair<'_>]) -> Vec<String> {
    let judged = || pairs.iter().filter(|pair| pair.is_judged());
    let with = |verdicts| pairs.iter().filter(move |pair| pair.verdicts() == verdicts);
    let mut sentences = Vec::new();
    for pair in with((Verdict::Pass, Verdict::Fail)) {
        let reason = pair.down.reason.clone().unwrap_or_else(|| "no reason is known".to_owned());
        sentences.push(format!(
            "{}{} passed on the way up and failed on the way down, after {}: {reason}.",
            load_of(climb, pair.down.load),
            pair.cell(),
            show_number(pair.after),
        ));
    }
    let remembers = !sentences.is_empty();
    for pair in with((Verdict::Fail, Verdict::Pass)) {
        sentences.push(format!(
            "{}{} failed on the way up and passed on the way down: what failed does not come from the load alone.",
            load_of(climb, pair.down.load),
            pair.cell(),
        ));
    }
    let (same, of) = (judged().filter(|pair| pair.up.verdict == pair.down.verdict).count(), judged().count());
    let overloaded = climb.rungs.iter().any(|rung| rung.verdict == Verdict::Fail);
    if of > 0 && same == of {
        let loads = match of {
            1 => "The load that was held both ways".to_owned(),
            _ => format!("Each of {of} loads"),
        };
        sentences.push(format!("{loads} gave the same verdict on the way down as on the way up."));
        if !overloaded {
            sentences.push(
                "No load failed, so what stays behind after an overload was not seen; climb higher."
                    .to_owned(),
            );
        }
    } else if remembers {
        sentences.push(
            "Either the server had not recovered from the higher load or it is near its limit there: --repeat tells chance from \
             memory, --restart-per-rung without --from-above shows what a fresh server holds."
                .to_owned(),
        );
    }
    let untold = pairs.iter().filter(|pair| !pair.is_judged());
    let untold: Vec<String> =
        untold.map(|pair| format!("{}{}", show_number(pair.down.load), pair.cell())).collect();
    if !untold.is_empty() {
        sentences.push(format!("Not compared, because a hold could not be judged: {}.", untold.join(", ")));
    }
    sentences
}

fn evidence(pair: &Pair<'_>) -> Value {
    let of = |rung: &Rung| {
        json!({
            "trial": rung.seq, "verdict": rung.verdict, "signal": rung.signal, "rate_per_s": rung.rate_per_s,
            "response_p99_ns": rung.response_ns.as_ref().and_then(|summary| summary.p99),
            "late_share": rung.ticks.as_ref().and_then(|ticks| ticks.late_share),
            "disturbed_share": rung.disturbed_share,
        })
    };
    json!({
        "load": pair.down.load, "cell": pair.down.cell, "after": pair.after, "up": of(pair.up), "down": of(pair.down),
    })
}
