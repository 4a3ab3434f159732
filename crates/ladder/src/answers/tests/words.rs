//! The three answers never contradict each other or the table above them: their sentences are checked against the rungs.

use measure::{MachineMetric, Reading};

use super::*;

/// A rung by what happens in it.
fn rung(load: f64, kind: u8) -> Rung {
    let others = || (Reading::Machine(MachineMetric::OthersCores), 1.2);
    let mut builder = TrialBuilder { hold_s: 20, ..TrialBuilder::arena(load) };
    match kind {
        0 => {}
        1 => builder = builder.late(0.5),
        2 => builder.send_lag_ns = 40_000_000,
        3 => {
            let readings = move |_| vec![others(), (Reading::Program("cc1".into()), 1.2)];
            builder = builder.late(0.4).sampled(readings);
        }
        4 => builder = builder.sampled(move |_| vec![others()]),
        5 => builder = builder.event(9, kind::BUG, "planted"),
        6 => builder = builder.event(9, kind::SUBJECT_EXITED, "signal 9"),
        _ => builder.late_share = None,
    }
    judged(&builder, TICKS)
}

/// The loads that a sentence names before a word.
fn named_before(text: &str, word: &str) -> Vec<f64> {
    let Some(sentence) = text.split_inclusive(". ").find(|sentence| sentence.contains(word)) else {
        return Vec::new();
    };
    let head = sentence.split(word).next().unwrap_or("");
    head.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter_map(|part| part.trim_matches('.').parse().ok())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_sentences_say_what_the_rungs_are(kinds in proptest::collection::vec(0u8..8, 1..5)) {
        let rungs: Vec<_> = kinds.iter().enumerate().map(|(at, &kind)| rung(100.0 * (at + 1) as f64, kind)).collect();
        let climb = climb_of(&rungs);
        check_contract(&climb);
        let of = |verdict| climb.rungs.iter().filter(|rung| rung.verdict == verdict).map(|rung| rung.load).collect::<Vec<_>>();
        let (passed, failed) = (of(Verdict::Pass), of(Verdict::Fail));
        let unjudged: Vec<f64> = climb.rungs.iter().filter(|rung| !rung.verdict.counts()).map(|rung| rung.load).collect();
        let (many, why, trust) =
            (text_of(&climb, "how_many"), text_of(&climb, "why_not_more"), text_of(&climb, "can_i_trust_it"));

        // How many: the loads said to hold or not hold have those verdicts in the table.
        let upper = failed.iter().copied().fold(f64::INFINITY, f64::min);
        let lower = passed.iter().copied().filter(|load| *load < upper).fold(f64::NEG_INFINITY, f64::max);
        prop_assert_eq!(many.contains(" held, and nothing failed"), lower.is_finite() && upper.is_infinite(), "{}", many);
        prop_assert_eq!(many.contains("did not: the capacity lies between"), lower.is_finite() && upper.is_finite(), "{}", many);
        prop_assert_eq!(many.starts_with("Fewer than"), !lower.is_finite() && upper.is_finite(), "{}", many);
        prop_assert_eq!(many.starts_with("Unknown"), passed.is_empty() && failed.is_empty(), "{}", many);
        if lower.is_finite() {
            prop_assert_eq!(named_before(many, " games (").first().copied(), Some(lower), "{}", many);
        }
        // Why not more: a failure is named only if there is one, and it is that of the smallest failing load.
        prop_assert_eq!(why.starts_with("Nothing failed"), upper.is_infinite() && lower.is_finite() && unjudged.iter().all(|load| *load < lower), "{}", why);
        if upper.is_finite() {
            prop_assert!(why.starts_with(&format!("At {upper} games")), "{}", why);
        }
        // Can I trust it: never yes while a load was not judged, and that comes first.
        prop_assert_eq!(trust.starts_with("No:"), passed.is_empty() && failed.is_empty(), "{}", trust);
        prop_assert!(!trust.starts_with("Yes:") || unjudged.is_empty(), "{}", trust);
        if !unjudged.is_empty() {
            let of_all = match kinds.len() {
                1 => "the only rung".to_owned(),
                all => format!("{} of {all} rungs", unjudged.len()),
            };
            let head = format!(": {of_all} could not be judged: {} (", unjudged[0]);
            prop_assert!(trust.contains(&head), "{} is not in {}", head, trust);
            let at = trust.find(&head).unwrap();
            prop_assert!(at < 12, "it comes first: {}", trust);
        }
        let limited = of(Verdict::GeneratorLimited).len();
        prop_assert_eq!(trust.contains("the load generator kept up"), limited == 0, "{}", trust);
        prop_assert_eq!(trust.contains("the books do not balance"), kinds.contains(&5), "{}", trust);
        let most = climb.rungs.iter().filter_map(|rung| rung.disturbed_share).fold(0.0, f64::max);
        prop_assert_eq!(trust.contains("nothing disturbed it"), most == 0.0, "{}", trust);
        // The run passes only if every requested load was judged and held.
        prop_assert_eq!(climb.verdict == Verdict::Pass, passed.len() == kinds.len());
        prop_assert_eq!(climb.verdict == Verdict::Fail, !failed.is_empty());
        // No sentence claims that an unjudged load held.
        for load in &unjudged {
            prop_assert!(!many.contains(&format!("{load} games ({} clients) held", load * 2.0)), "{}", many);
        }
    }
}
