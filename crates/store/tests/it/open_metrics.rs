//! The totals of a run as OpenMetrics: the text's content, that it is valid, and that counters never decrease.

use std::collections::{BTreeMap, BTreeSet};

use measure::{Entry, ProcessMetric};
use proptest::prelude::*;
use store::export::{RunSums, open_metrics};
use store::{Store, StoredVerdict};

use crate::given;

/// Name and labels of each sample, and its value. Panics where the text breaks a rule of OpenMetrics 1.0.0: families stand together
/// and say their type first, units end names, counters end with `_total`, buckets do not decrease and end with `+Inf`, no
/// sample stands twice, and `# EOF` is the last line.
fn read(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("# EOF at the end");
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind, mut below) = (String::new(), String::new(), None);
    for line in body.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            let (what, rest) = words.split_once(' ').expect(line);
            let (name, value) = rest.split_once(' ').expect(line);
            match what {
                "TYPE" => {
                    assert!(families.insert(name.to_owned()), "{name} stands twice");
                    (family, kind) = (name.to_owned(), value.to_owned());
                    assert!(["gauge", "counter", "info", "stateset", "histogram"].contains(&value), "{line}");
                }
                "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                "HELP" => assert!(!value.is_empty()),
                _ => panic!("{line}"),
            }
            assert_eq!(name, family, "{line}");
            continue;
        }
        let (key, value) = line.rsplit_once(' ').expect(line);
        let name = key.split('{').next().unwrap();
        assert!(
            name.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'),
            "{line}"
        );
        let value: f64 = value.parse().expect(line);
        let suffix = name.strip_prefix(&family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let is_right = match kind.as_str() {
            "counter" => suffix == "_total" && value >= 0.0,
            "info" => suffix == "_info" && value == 1.0,
            "stateset" => suffix.is_empty() && (value == 0.0 || value == 1.0),
            "gauge" => suffix.is_empty(),
            _ => ["_bucket", "_count", "_sum"].contains(&suffix),
        };
        assert!(is_right, "{line} is no {kind}");
        if suffix == "_bucket" {
            assert!(below.is_none_or(|below| below <= value), "{line}: buckets decrease");
            below = Some(value);
        } else if suffix == "_count" {
            assert_eq!(below.take(), Some(value), "{line}: the last bucket has all");
        }
        check_labels(&key[name.len()..]);
        assert!(samples.insert(key.to_owned(), value).is_none(), "{line} stands twice");
    }
    samples
}

/// `{name="text",…}` with backslash, quote and line feed escaped.
fn check_labels(labels: &str) {
    let Some(mut rest) = labels.strip_prefix('{') else { return assert_eq!(labels, "") };
    loop {
        let (name, after) = rest.split_once("=\"").expect(labels);
        assert!(
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'),
            "{labels}"
        );
        let mut escapes = false;
        let end = after.find(|letter| {
            let ends = letter == '"' && !escapes;
            assert!(!escapes || matches!(letter, '\\' | '"' | 'n'), "{labels}");
            escapes = letter == '\\' && !escapes;
            ends
        });
        rest = &after[end.expect(labels) + 1..];
        if rest == "}" {
            return;
        }
        rest = rest.strip_prefix(',').expect(labels);
    }
}

/// Without secrets.
fn text(metrics: &RunSums) -> String {
    open_metrics(&metrics.families(&str::to_owned))
}

fn is_counter(key: &str) -> bool {
    key.contains("_total") || key.contains("_bucket{") || key.contains("_count{")
}

/// The samples as soon as they contain `sent` sent messages of the hold: the writer commits with a delay.
fn told(metrics: &mut RunSums, store: &Store, sent: f64) -> BTreeMap<String, f64> {
    let key = "stepladder_messages_total{operation=\"shot\",phase=\"hold\",state=\"sent\"}";
    for _ in 0..500 {
        metrics.read_on(store).unwrap();
        let samples = read(&text(metrics));
        let found = samples.get(key).copied().unwrap_or(0.0);
        assert!(found <= sent, "{found} sent of {sent}");
        if found == sent {
            return samples;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{sent} messages within 10 s");
}

/// The text as soon as it contains messages: the writer commits with a delay.
fn told_at_all(metrics: &mut RunSums, store: &Store) -> String {
    for _ in 0..500 {
        metrics.read_on(store).unwrap();
        let text = text(metrics);
        if text.contains("state=\"sent\"") {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("messages within 10 s");
}

#[test]
fn counters_are_sums_over_all_rungs_and_gauges_are_of_the_last_one() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(Some("say \"hi\"\\")), None).unwrap();
    let mut metrics = RunSums::new(writer.id().clone());
    let of = |at_s, name, value| given::sample(at_s, name, value);
    for (seq, cpu_s) in [(0, [2.0, 5.0]), (1, [1.0, 4.0])] {
        writer.begin_trial(&given::trial_head(seq, 500.0 * f64::from(seq + 1)), 1).unwrap();
        let readings = [
            of(1, ProcessMetric::CpuTime, cpu_s[0]),
            of(2, ProcessMetric::CpuTime, cpu_s[1]),
            of(2, ProcessMetric::Rss, 7e6),
        ];
        writer.append([&[given::second(0, 20), given::event(1, "hold")][..], &readings].concat()).unwrap();
        if seq == 0 {
            writer.end_trial(2).unwrap();
            let verdict = StoredVerdict {
                judge: "climb".to_owned(),
                verdict: "PASS".to_owned(),
                evidence: "{}".to_owned(),
                ..StoredVerdict::default()
            };
            writer.verdict(seq, verdict).unwrap();
        }
    }
    let samples = told(&mut metrics, &given.store, 40.0);
    let value = |key: &str| *samples.get(key).unwrap_or_else(|| panic!("{key} is missing of {samples:#?}"));
    assert_eq!(value("stepladder_send_lag_seconds_count{part=\"hold\"}"), 40.0);
    assert_eq!(value("stepladder_rungs_total{verdict=\"PASS\"}"), 1.0);
    // The second server began at 0 again: 5 s of the first, 4 s of the second.
    assert_eq!(value("stepladder_subject_cpu_seconds_total"), 9.0);
    assert_eq!(value("stepladder_subject_rss_bytes"), 7e6);
    assert_eq!(value("stepladder_phase{stepladder_phase=\"hold\"}"), 1.0);
    assert_eq!(value("stepladder_trial{purpose=\"rung\"}"), 1.0);
    assert!(
        samples.keys().any(|key| key.starts_with("stepladder_load{unit=\"games\"") && samples[key] == 1000.0)
    );
    // Nothing new: nothing is counted again.
    metrics.read_on(&given.store).unwrap();
    assert_eq!(read(&text(&metrics)), samples);
}

#[test]
fn secrets_are_taken_out_of_label_values_and_never_out_of_the_format() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer.append(given::one_of_each()).unwrap();
    let mut metrics = RunSums::new(writer.id().clone());
    let whole = told_at_all(&mut metrics, &given.store);
    // With every possible secret masked, all operations become the same.
    let masked = open_metrics(&metrics.families(&|_| "•".to_owned()));
    assert!(!masked.contains("\"shot\""), "{masked}");
    let sent = |text: &str| -> f64 {
        let samples = read(text);
        samples.iter().filter(|(key, _)| key.contains("state=\"sent\"")).map(|(_, count)| count).sum()
    };
    assert_eq!(sent(&masked), sent(&whole));
    assert!(sent(&whole) > 0.0);
}

#[test]
fn calibrations_are_not_counted() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let head =
        measure::TrialHead { purpose: measure::Purpose::CalibrationLatency, ..given::trial_head(0, 64.0) };
    writer.begin_trial(&head, 1).unwrap();
    writer.append(vec![given::second(0, 1_000)]).unwrap();
    writer.end_trial(2).unwrap();
    writer.begin_trial(&given::trial_head(1, 500.0), 3).unwrap();
    writer.append(vec![given::second(0, 20)]).unwrap();
    let mut metrics = RunSums::new(writer.id().clone());
    let samples = told(&mut metrics, &given.store, 20.0);
    assert_eq!(samples["stepladder_trial{purpose=\"rung\"}"], 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_is_recorded_the_text_keeps_to_the_format_and_counters_never_decrease(
        entries in given::any_entries(), looks in proptest::collection::vec(any::<bool>(), 1..20),
    ) {
        let given = given::store();
        let reader = Store::open_to_read(&given.path).unwrap();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        let mut metrics = RunSums::new(writer.id().clone());
        let mut before: BTreeMap<String, f64> = BTreeMap::new();
        let mut looks = looks.iter().cycle();
        for seq in 0..2 {
            writer.begin_trial(&given::trial_head(seq, 500.0), 0).unwrap();
            for entry in &entries {
                writer.append(vec![entry.clone()]).unwrap();
                if looks.next() == Some(&true) {
                    metrics.read_on(&reader).unwrap();
                    let now = read(&text(&metrics));
                    for (key, value) in before.iter().filter(|(key, _)| is_counter(key)) {
                        prop_assert!(now.get(key).is_some_and(|now| now >= value), "{key} was {value}: {now:?}");
                    }
                    before = now;
                }
            }
            writer.end_trial(1).unwrap();
        }
        metrics.read_on(&reader).unwrap();
        let followed = text(&metrics);
        let mut at_once = RunSums::new(writer.id().clone());
        at_once.read_on(&reader).unwrap();
        let sent: f64 = 2.0 * entries.iter().map(|entry| match entry {
            Entry::Interval(interval) => interval.flows.iter().flatten().map(|flow| flow.sent as f64).sum(),
            _ => 0.0,
        }).sum::<f64>();
        let of_sent = |samples: &BTreeMap<String, f64>| samples.iter()
            .filter(|(key, _)| key.contains("state=\"sent\"") && key.starts_with("stepladder_messages_total")).map(|(_, count)| count).sum::<f64>();
        let (followed, at_once) = (read(&followed), read(&text(&at_once)));
        prop_assert!((of_sent(&followed) - sent).abs() <= 1e-9 * sent, "{sent}");
        for (key, value) in &followed {
            // Sums of fractions depend on where they were interrupted.
            let other = at_once[key];
            prop_assert!((value - other).abs() <= 1e-9 * value.abs().max(1.0) || value.is_nan(), "{key}: {value} {other}");
        }
    }
}
