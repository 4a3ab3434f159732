//! Ticks due, by the server's log, against those that the requested games require; and what was wrong with the log.

use std::collections::BTreeSet;

use measure::Trial;
use measure::trial::kind;

use super::{Case, Ruling, Verdict};
use crate::figures;
use crate::wording::{show_many, show_number, show_share};

/// Fewer than this share means that fewer games were running, which no late share would show. Games begin and end, hence no
/// more than four fifths.
const SHARE_LEAST: f64 = 0.8;
/// More than this share is not the load of these games: a server may count a tick for each of two players, and games that are
/// over may go on for a while.
const SHARE_MOST: f64 = 2.5;
/// A node whose late share is larger than that of all nodes by so much is named.
const WORSE_BY: f64 = 0.01;
/// A shorter part of a hold may lie between two games, which many players begin and end together.
const LOGGED_S_LEAST: f64 = 3.0;

/// Ticks due in whole entries of the log, and how many the requested games owe meanwhile; `None` if that says nothing.
fn due_and_owed(trial: &Trial) -> Option<(u64, f64)> {
    let period_ns = trial.head.tick_period_ns;
    let logged = trial.logged.filter(|_| period_ns > 0 && trial.head.counts_games())?;
    let logged_ns = logged.to_ns.saturating_sub(logged.from_ns) as f64;
    (logged_ns >= LOGGED_S_LEAST * 1e9).then(|| (logged.due, trial.head.load * logged_ns / period_ns as f64))
}

/// What was wrong with the source of its ticks, and their rate where it was found.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let said: BTreeSet<&str> = trial
        .events
        .iter()
        .filter(|event| {
            matches!(event.kind.as_str(), kind::TICK_LOG | kind::TICKS_LOST | kind::COMPARED_LOST)
        })
        .map(|event| event.text.as_str())
        .collect();
    let found = trial.event(kind::TICK_RATE);
    let found = found.map(|event| format!("tick rate {}, found from the intervals of this load", event.text));
    let of_all = trial.ticks.as_ref().and_then(|ticks| ticks.counts.late_share()).unwrap_or(0.0);
    let worst = figures::worst_node(trial).filter(|(_, share)| *share >= of_all + WORSE_BY);
    let worst = worst.map(|(node, share)| {
        let (share, of_all) = (show_share(share), show_share(of_all));
        format!(
            "node {node} is judged, where {share} of the ticks were late or missed (over all nodes {of_all})"
        )
    });
    let said: Vec<&str> = worst.as_deref().into_iter().chain(found.as_deref()).chain(said).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// A server that runs fewer games than requested keeps its ticks easily.
pub(super) fn games_missing(case: &Case<'_>) -> Option<Ruling> {
    let (due, owed) = due_and_owed(case.trial)?;
    let share = due as f64 / owed;
    if share >= SHARE_LEAST {
        return None;
    }
    let reason = format!(
        "only {} of the ticks that {} games owe were due (limit {}): fewer games were running; the errors of the bots \
         say what kept them out",
        show_share(share),
        show_number(case.trial.head.load),
        show_share(SHARE_LEAST),
    );
    Some(Ruling::new(Verdict::Fail, "ticks.due", reason))
}

/// A log of more ticks than these games can have tells of other games, or it tells nothing: late ones vanish among them.
pub(super) fn too_many(case: &Case<'_>) -> Option<Ruling> {
    let (due, owed) = due_and_owed(case.trial).filter(|(due, owed)| *due as f64 > SHARE_MOST * owed)?;
    let reason = format!(
        "inconsistent: {} ticks were due by the server's log, and {} games owe {} in that time; look for other clients of the \
         server, or for a server that does not tell the truth",
        show_many(due),
        show_number(case.trial.head.load),
        show_many(owed as u64),
    );
    Some(Ruling::new(Verdict::Inconclusive, "inconsistent", reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TrialBuilder, terms};

    #[test]
    fn a_server_of_several_nodes_is_judged_by_the_worst_of_them() {
        let check = |nodes: &[(&str, u64, u64)], verdict: Verdict, named: &str| {
            let builder = TrialBuilder::arena(50.0).late(0.2).nodes(nodes);
            let (_, judgement) = builder.judged(&terms("ticks.late_share < 25%"));
            let remark = judgement.remark.unwrap_or_default();
            assert_eq!((judgement.verdict, remark.contains(named)), (verdict, true), "{nodes:?}: {remark}");
        };
        // In each second, of which 20 % over all nodes are late.
        check(&[("a", 1_500, 300), ("b", 1_500, 300)], Verdict::Pass, "");
        let named = "node b is judged, where 40 % of the ticks were late or missed (over all nodes 20 %)";
        check(&[("a", 1_500, 0), ("b", 1_500, 600)], Verdict::Fail, named);
        // Three ticks in the whole hold say nothing of a node.
        check(&[("a", 3_000, 600), ("b", 0, 0)], Verdict::Pass, "");
    }
}
