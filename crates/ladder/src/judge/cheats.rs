//! Requests of cheaters, judged separately from the load: each must be refused.

use measure::Trial;

use super::{Case, Ruling, Verdict};
use crate::wording::{show_many, show_number};

const ACCEPTED: &str = "cheat accepted";

/// No disturbance makes a service take a change that it should refuse, in whichever phase of the trial.
pub(super) fn cheats(case: &Case<'_>) -> Option<Ruling> {
    let cheats = case.trial.cheats.filter(|cheats| cheats.accepted > 0)?;
    let words = case.trial.error_samples().find(|(cause, _)| *cause == ACCEPTED);
    let first = words.map_or(String::new(), |(_, words)| format!("; the first: {words}"));
    let reason = format!(
        "cheat accepted: {} of {} changes with no, false, expired or repeated signatures were accepted{first}; the built-in \
         service refuses them with --keys FILE",
        show_number(cheats.accepted as f64),
        show_number(cheats.sent as f64)
    );
    Some(Ruling::new(Verdict::Fail, ACCEPTED, reason))
}

/// How many were refused, for people.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let cheats = trial.cheats.filter(|cheats| cheats.sent > 0)?;
    Some(format!("{} of {} cheats were refused", show_many(cheats.refused), show_many(cheats.sent)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, passes};
    use super::*;
    use crate::testing::{TrialBuilder, terms};

    fn builder(accepted: u64) -> TrialBuilder {
        TrialBuilder::asking(200.0).edit(move |at, interval| {
            if at == 7 {
                interval.counters[22..25].copy_from_slice(&[40, 40 - accepted, accepted]);
            }
        })
    }

    #[test]
    fn one_accepted_cheat_fails_a_rung_whose_honest_clients_met_everything() {
        let terms = terms("errors == 0, response.p99 < 50ms");
        check(&builder(1), &terms, Verdict::Fail, ACCEPTED, "1 of 40 changes");
        passes(&builder(0), &terms);
        let remark = builder(0).judged(&terms).1.remark.unwrap();
        assert_eq!(remark, "40 of 40 cheats were refused");
    }
}
