//! Users and their connections: one user who waits for each response, and users who stay for one or two requests.

use ladder::wording::{show_ns, show_number, show_share};
use ladder::{Conclusion, LoadUnit};
use serde_json::json;

use super::{NOISE, Step, WORTH_TELLING, cells};
use crate::plan::Axis;

/// One user is a poor load when so many times as much comes of more users.
const POOR: f64 = 2.0;
/// Rungs with more users that must bear it out.
const MORE_LEAST: usize = 2;

/// What one user with many requests gets, against several.
pub(super) fn one_user(steps: &[Step<'_>]) -> Option<Conclusion> {
    // The cell in which users stay longest describes users, not connections.
    let stays = |step: &Step<'_>| {
        let limit = |axis| step.on(axis).unwrap_or(u64::MAX);
        limit(Axis::RequestsPerBot).min(limit(Axis::ReconnectAfter))
    };
    let cells = cells(steps);
    let of_requesters = cells.iter().filter(|cell| cell[0].rung.load_unit == LoadUnit::Requesters);
    let cell = of_requesters.max_by_key(|cell| stays(cell[0]))?;
    let one = cell.first().filter(|step| step.load == 1.0 && step.rate_per_s > 0.0)?;
    let more: Vec<_> = cell.iter().filter(|step| step.load > 1.0 && step.passes).collect();
    let gains = |step: &&&&Step<'_>| step.rate_per_s >= POOR * one.rate_per_s;
    let best = more.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    if more.iter().filter(gains).count() < MORE_LEAST {
        return None;
    }
    let text = format!(
        "One user with many requests gets {} responses/s, because each request waits for the last response; {} users get {} \
         ({:.1} times as many){}.",
        show_number(one.rate_per_s.round()),
        best.load,
        show_number(best.rate_per_s.round()),
        best.rate_per_s / one.rate_per_s,
        one.shown_cell(),
    );
    let evidence =
        json!({ "one": one.json(), "more": more.iter().map(|step| step.json()).collect::<Vec<_>>() });
    Some(Conclusion::new("one_user", &[text], evidence))
}

/// What users cost who make few requests on a connection.
pub(super) fn short_visits(steps: &[Step<'_>]) -> Option<Conclusion> {
    [Axis::RequestsPerBot, Axis::ReconnectAfter].into_iter().find_map(|axis| of_axis(steps, axis))
}

/// Fewer and more requests on a connection, at the same load.
struct Pair<'s, 'a> {
    few: &'s Step<'a>,
    many: &'s Step<'a>,
    /// the few's CPU per response, of the many's
    cpu: Option<f64>,
    /// the few's rate, of the many's, where responses set it
    rate: Option<f64>,
}

impl Pair<'_, '_> {
    /// How many times as much the few cost, by what tells more; at least one of both is known.
    fn cost(&self) -> f64 {
        let by_rate = self.rate.map_or(0.0, |rate| 1.0 / rate.max(f64::MIN_POSITIVE));
        self.cpu.unwrap_or(0.0).max(by_rate)
    }
}

fn of_axis(steps: &[Step<'_>], axis: Axis) -> Option<Conclusion> {
    let mut pairs = Vec::new();
    for few in steps.iter().filter(|step| step.on(axis) == Some(1)) {
        for many in steps.iter().filter(|step| step.on(axis).is_some_and(|count| count > 1)) {
            if few.load != many.load || few.beside(axis) != many.beside(axis) || !many.passes {
                continue;
            }
            let cpu = few.cpu_per_response().zip(many.cpu_per_response()).map(|(few, many)| few / many);
            let is_closed = few.rung.load_unit == LoadUnit::Requesters && many.rate_per_s > 0.0;
            let rate = is_closed.then(|| few.rate_per_s / many.rate_per_s);
            if cpu.is_some() || rate.is_some() {
                pairs.push(Pair { few, many, cpu, rate });
            }
        }
    }
    // The clearest: where most requests share a connection, at the highest load.
    let shown = pairs
        .iter()
        .max_by(|a, b| a.many.on(axis).cmp(&b.many.on(axis)).then(a.few.load.total_cmp(&b.few.load)))?;
    let is_borne_out = pairs.len() >= 2 && pairs.iter().all(|pair| pair.cost() > 1.0 + NOISE);
    if !is_borne_out || shown.cost() < 1.0 + WORTH_TELLING {
        return None;
    }
    let mut text = format!(
        "Many users with one request each pay for their connections: at {} {}, instead of {} requests on a connection,",
        show_number(shown.few.load),
        shown.few.rung.load_unit,
        shown.many.on(axis).unwrap_or_default(),
    );
    let mut parts = Vec::new();
    if let Some(rate) = shown.rate.filter(|rate| *rate < 1.0 - NOISE) {
        parts.push(format!(
            "{} responses/s come instead of {} ({} fewer)",
            show_number(shown.few.rate_per_s.round()),
            show_number(shown.many.rate_per_s.round()),
            show_share(1.0 - rate)
        ));
    }
    if let Some(cpu) = shown.cpu.filter(|cpu| *cpu > 1.0 + NOISE) {
        parts.push(format!("a response costs the server {cpu:.1} times the CPU"));
    }
    if let Some(ns) = shown.few.handshake_ns {
        parts.push(format!("and a connection takes {} on average", show_ns(ns)));
    }
    text += &format!(" {}.", parts.join(", "));
    let pair = |pair: &Pair<'_, '_>| json!({ "few": pair.few.json(), "many": pair.many.json() });
    let evidence = json!({ "axis": axis.name(), "pairs": pairs.iter().map(pair).collect::<Vec<_>>() });
    Some(Conclusion::new("connections_cost", &[text], evidence))
}
