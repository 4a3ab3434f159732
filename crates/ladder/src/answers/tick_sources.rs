//! Several sources of a server's ticks: what each told of a rung, and in one sentence of the run whether they agreed.

use measure::{Distribution, Measure, Quantile, TickCounts, Trial};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::contract::{Climb, Rung};
use crate::figures::{self, late_bounds};
use crate::judge::consistency::{CLIENT, is_contradicted_by};
use crate::wording::show_number;

/// What one of several sources told of a hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TickSourceFigures {
    /// as it was given: `statsd=127.0.0.1:8125`
    pub source: String,
    /// ticks due; 0: it told of none
    pub due: u64,
    /// null where it told of none, or only between which bounds
    pub late_share: Option<f64>,
    /// the least and the most that it can be, where that is not the same
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub late_share_bounds: Option<(f64, f64)>,
    /// between two ticks
    pub interval_p99_ns: Option<u64>,
}

impl TickSourceFigures {
    fn new(source: &str, counts: &TickCounts, unclear: u64, interval: &Distribution) -> Self {
        let bounds = late_bounds(counts, unclear);
        TickSourceFigures {
            source: source.to_owned(),
            due: counts.due,
            late_share: bounds.filter(|(least, most)| least == most).map(|(_, most)| most),
            late_share_bounds: bounds.filter(|(least, most)| least < most),
            interval_p99_ns: match interval.quantile(0.99, 0) {
                Quantile::Ns(ns) => Some(ns),
                Quantile::TooFew | Quantile::Infinite => None,
            },
        }
    }
}

/// Of every source, the judged one first; empty where there is only one.
pub(super) fn figures(trial: &Trial) -> Vec<TickSourceFigures> {
    let Some(judged) = trial.judged_tick_source() else { return Vec::new() };
    let (nothing, none) = (Distribution::new(), TickCounts::default());
    let clients = || {
        let interval = trial.distribution(Measure::TickInterval);
        TickSourceFigures::new(CLIENT, &trial.client_ticks, 0, interval)
    };
    let judged = match &trial.ticks {
        _ if judged == CLIENT => clients(),
        Some(ticks) => {
            TickSourceFigures::new(judged, &ticks.counts, figures::unclear(trial), &ticks.interval)
        }
        None => TickSourceFigures::new(judged, &none, 0, &nothing),
    };
    let others = trial.compared_ticks.iter().map(|compared| match &compared.ticks {
        _ if compared.source == CLIENT => clients(),
        Some(ticks) => {
            TickSourceFigures::new(&compared.source, &ticks.counts, compared.unclear, &ticks.interval)
        }
        None => TickSourceFigures::new(&compared.source, &none, 0, &nothing),
    });
    std::iter::once(judged).chain(others).collect()
}

/// Which source was judged, and what became of each other; `None` where there is only one.
pub(super) fn sentence(climb: &Climb) -> Option<String> {
    let rungs: Vec<&Rung> = climb.rungs.iter().filter(|rung| rung.tick_sources.len() > 1).collect();
    let (judged, others) = rungs.first()?.tick_sources.split_first()?;
    let told = |rung: &Rung, source: &str| {
        rung.tick_sources.iter().any(|figures| figures.source == source && figures.due > 0)
    };
    // ` at 500, 1000`; nothing more of all rungs. `None`: at none.
    let at = |is_so: &dyn Fn(&Rung) -> bool| {
        let loads: Vec<String> =
            rungs.iter().filter(|rung| is_so(rung)).map(|rung| show_number(rung.load)).collect();
        let is_of_all = loads.len() == rungs.len();
        (!loads.is_empty())
            .then(|| if is_of_all { String::new() } else { format!(" at {}", loads.join(", ")) })
    };
    let by = match at(&|rung| !told(rung, &judged.source)) {
        None => format!("judged by {}", judged.source),
        Some(at) if at.is_empty() => {
            return Some(format!("Ticks were to be judged by {}, which told of none.", judged.source));
        }
        Some(at) => format!("judged by {}, which told of none{at}", judged.source),
    };
    let (mut agreed, mut parts) = (Vec::new(), Vec::new());
    for TickSourceFigures { source, .. } in others {
        let contradicted =
            at(&|rung| is_contradicted_by(rung.signal.as_deref(), rung.reason.as_deref(), source));
        let silent = at(&|rung| !told(rung, source));
        match (contradicted, silent) {
            (None, None) => agreed.push(source.as_str()),
            (Some(at), _) => parts.push(format!("{source} contradicted it{at}")),
            (None, Some(at)) => parts.push(format!("{source} told of no ticks{at}")),
        }
    }
    if !agreed.is_empty() {
        parts.insert(0, format!("{} agreed", agreed.join(" and ")));
    }
    Some(format!("Ticks were {by}; {}.", parts.join("; ")))
}
