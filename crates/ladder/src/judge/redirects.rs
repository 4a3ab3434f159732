//! How many answers were redirects that were not followed, worded for the user: redirects to a login page are fast, and
//! say nothing about what was to be measured.

use measure::{Role, Trial};

use crate::wording::{show_many, show_share};

/// Fewer are a part of what is measured, such as of requests whose answer is to be one.
const SHARE_LEAST: f64 = 0.5;

/// Their share of the right answers, where it is most of them.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let names = &trial.head.metric_names;
    let mut counts = names
        .counters(Role::Redirects)
        .map(|index| trial.counters.get(&names.counters[index]).copied().unwrap_or_default());
    let (answers, redirects) = (counts.next()?, counts.next()?);
    let share = redirects as f64 / answers as f64;
    if redirects == 0 || share < SHARE_LEAST {
        return None;
    }
    let how_many = match redirects == answers {
        true => format!("all {} answers", show_many(answers)),
        false => format!("{} of {} answers", show_share(share), show_many(answers)),
    };
    Some(format!(
        "{how_many} were redirects, which count as right; --redirects 5 follows them, and --expect-status 200 \
         refuses them"
    ))
}

#[cfg(test)]
mod tests {
    use measure::Role;

    use crate::judge::Verdict;
    use crate::testing::{TrialBuilder, terms};

    #[test]
    fn a_rung_whose_answers_were_mostly_redirects_says_how_many() {
        let judged = |answers: u64, redirects: u64| {
            let builder = TrialBuilder::asking(200.0).edit(move |at, interval| {
                if at == 7 {
                    let places = crate::testing::names().counters(Role::Redirects).collect::<Vec<_>>();
                    (interval.counters[places[0]], interval.counters[places[1]]) = (answers, redirects);
                }
            });
            let judgement = builder.judged(&terms("errors == 0")).1;
            assert_eq!(judgement.verdict, Verdict::Pass, "it is only said");
            judgement.remark
        };
        let begins = |answers, redirects, words: &str| {
            let remark = judged(answers, redirects).expect("a remark");
            assert!(remark.starts_with(words), "{remark}");
        };
        begins(12_000, 12_000, "all 12000 answers were redirects, which count as right; --redirects 5");
        begins(200, 196, "98 % of 200 answers were redirects");
        for (answers, redirects) in [(200, 0), (200, 99), (0, 0)] {
            assert_eq!(judged(answers, redirects), None);
        }
    }
}
