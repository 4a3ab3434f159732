use super::interval::Pairs;
use super::looks::{spent, student_critical};
use super::world::{Noise, World, duel};
use super::*;
use crate::judge::Verdict;

mod oracles;
mod schedule;

#[test]
fn quantiles_of_students_t_are_those_of_the_tables() {
    for (level, degrees, quantile) in [
        (0.05, 3, 3.182_446),
        (0.05, 19, 2.093_024),
        (0.01, 5, 4.032_143),
        (0.001, 9, 4.780_913),
        (0.2, 30, 1.310_415),
    ] {
        let found = student_critical(level, degrees);
        assert!((found / quantile - 1.0).abs() < 1e-5, "{level} {degrees}: {found}");
    }
    // The closed form for 3 degrees of freedom far out: t ≈ (4√3 / (π level))^(1/3).
    let far = student_critical(1e-9, 3);
    let expected = (4.0 * 3.0_f64.sqrt() / (std::f64::consts::PI * 1e-9)).cbrt();
    assert!((far / expected - 1.0).abs() < 1e-3, "{far} {expected}");
}

#[test]
fn each_look_spends_what_was_planned_for_it_and_no_more() {
    const WALKS: usize = 60_000;
    let (alpha, blocks_most) = (0.2, 12);
    let looks = Looks::new(alpha, blocks_most);
    // The normal statistic that a level belongs to; Student's t with 10⁶ degrees of freedom is that.
    let bounds: Vec<f64> = (0..=blocks_most)
        .map(|blocks| match looks.level(blocks) {
            level if level > 0.0 => student_critical(level, 1_000_000),
            _ => f64::INFINITY,
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut normal = || {
        let (u, v) = (1.0 - random.f64(), random.f64());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    };
    let mut crossed = vec![0usize; blocks_most + 1];
    for _ in 0..WALKS {
        let mut sum = 0.0;
        for (at, (bound, crossed)) in bounds.iter().zip(&mut crossed).enumerate().skip(1) {
            sum += normal();
            let statistic: f64 = sum / (at as f64).sqrt();
            if statistic.abs() > *bound {
                *crossed += 1;
                break;
            }
        }
    }
    for (blocks, crossed) in crossed.iter().enumerate().skip(BLOCKS_LEAST) {
        let before = if blocks == BLOCKS_LEAST { 0.0 } else { spent(alpha, blocks - 1, blocks_most) };
        let planned = spent(alpha, blocks, blocks_most) - before;
        let found = *crossed as f64 / WALKS as f64;
        let sd = (planned / WALKS as f64).sqrt();
        assert!((found - planned).abs() < 4.0 * sd, "look {blocks}: {found} of {planned}");
    }
    assert_eq!((looks.level(0), looks.level(BLOCKS_LEAST - 1)), (0.0, 0.0), "no look before the first");
}

#[test]
fn a_duel_of_four_blocks_looks_once_at_the_full_level() {
    assert_eq!(Looks::new(0.05, 4).level(4), 0.05);
    assert!((Looks::new(0.05, 4).critical(4) - 3.182_446).abs() < 1e-4);
}

#[test]
fn the_last_look_of_many_is_not_much_wider_than_a_single_one() {
    let (looks, single) = (Looks::new(0.05, 20), student_critical(0.05, 19));
    let widening = looks.critical(20) / single;
    assert!((1.0..1.25).contains(&widening), "{widening}");
}

#[test]
fn infinite_values_are_compared_by_their_signs_alone() {
    use FigureValue::{Infinite, Value};
    let of = |b_never: usize, above: usize, below: usize| {
        let mut blocks = vec![(Value(1.0), Infinite); b_never];
        blocks.extend(vec![(Value(1.0), Value(1.1)); above]);
        blocks.extend(vec![(Value(1.0), Value(0.9)); below]);
        Pairs::of(Scale::Ratio, &blocks)
    };
    // Six of six on one side: 2 · 2⁻⁶ = 3.1 %; five of five only 6.3 %.
    assert_eq!(of(6, 0, 0).range_once(0.05), Some((f64::INFINITY, f64::INFINITY)));
    assert_eq!(of(5, 0, 0).range_once(0.05), Some((f64::NEG_INFINITY, f64::INFINITY)));
    let (low, high) = of(1, 5, 0).range_once(0.05).expect("six blocks");
    assert!((low - 1.1_f64.ln()).abs() < 1e-12 && high.is_infinite());
    let (low, _) = of(1, 4, 1).range_once(0.05).expect("six blocks");
    assert!(low < 0.0, "one block the other way: undecided");
    assert_eq!(of(3, 0, 0).centre(), Some(f64::INFINITY));
    let both = Pairs::of(Scale::Ratio, &[(Infinite, Infinite), (Value(0.0), Value(1.0))]);
    assert_eq!((both.count(), both.unstated, both.centre()), (0, 2, None));
}

#[test]
fn equal_values_have_the_noise_of_the_distributions_resolution() {
    let blocks = [(FigureValue::Value(5e6), FigureValue::Value(5e6)); 6];
    let (low, high) = Pairs::of(Scale::Ratio, &blocks).range_once(0.05).expect("six blocks");
    assert!(low < 0.0 && high > 0.0 && high < 0.001, "{low} {high}");
    let shares = [(FigureValue::Value(0.0), FigureValue::Value(0.0)); 6];
    assert_eq!(Pairs::of(Scale::Difference, &shares).range_once(0.05), Some((0.0, 0.0)));
}

/// What a duel of one figure says of these logarithms of ratios.
fn found(logs: &[f64], names: &[&str]) -> Vec<Finding> {
    let block = |log: &f64| (FigureValue::Value(1e6), FigureValue::Value(1e6 * log.exp()));
    let samples: Vec<Sample> = names
        .iter()
        .map(|name| Sample {
            figure: FigureDoc::named(name).expect("a known figure"),
            blocks: logs.iter().map(block).collect(),
        })
        .collect();
    findings(&samples, &Rules::new(ALPHA, 0.05, 20))
}

#[test]
fn a_verdict_names_the_direction_in_the_terms_of_its_figure() {
    let logs = [0.10, 0.11, 0.09, 0.10, 0.105, 0.095, 0.1, 0.1];
    let down: Vec<f64> = logs.iter().map(|log| -log).collect();
    for (name, up, less) in [
        ("response.p99", "slower", "faster"),
        ("rate_per_s", "faster", "slower"),
        ("subject.cpu_per_message", "more", "less"),
        ("bytes_per_s", "more", "less"),
    ] {
        assert_eq!(found(&logs, &[name])[0].verdict_text(0.05), up);
        assert_eq!(found(&down, &[name])[0].verdict_text(0.05), less);
    }
    let finding = &found(&logs, &["response.p99"])[0];
    assert_eq!(finding.change_text(), "+10.5 % (+9.5 % to +11.5 %)");
    assert!(finding.known_after.is_some_and(|blocks| blocks < logs.len()));
    let even = found(&[0.01, -0.012, 0.004, -0.006, 0.011, -0.01], &["response.p99"]);
    assert_eq!(even[0].verdict_text(0.05), "no difference larger than 5 %");
    let wild = found(&[0.3, -0.2, 0.4, -0.4, 0.1], &["response.p99"]);
    assert_eq!(wild[0].verdict_text(0.05), "undecided after 5 blocks");
}

#[test]
fn several_figures_share_the_level() {
    // For one figure this is significant; for eight that all agree the level of each is an eighth.
    let logs = [0.012, 0.03, 0.055, 0.021, 0.045, 0.006, 0.04, 0.03, 0.01];
    assert_eq!(found(&logs, &["response.p99"])[0].verdict, DuelVerdict::Larger);
    let names = [
        "response.p50",
        "response.p90",
        "response.p95",
        "response.p99",
        "service.p50",
        "service.p90",
        "service.p95",
        "service.p99",
    ];
    let all = found(&logs, &names);
    assert!(all.iter().all(|finding| finding.verdict != DuelVerdict::Larger));
    assert_eq!(all[3].range, found(&logs, &["response.p99"])[0].range, "the interval holds for it alone");
}

#[test]
fn a_gate_is_read_and_refused_with_what_to_write() {
    let state = |text: &str, low: f64, high: f64| {
        let gate: Gate = text.parse().expect("a gate");
        gate.state(Some((low, high)), Some((low, high)))
    };
    let five = 0.05_f64.ln_1p();
    assert_eq!(state("response.p99 <= +5%", -0.01, five), GateState::Met);
    assert_eq!(state("response.p99 < 5%", -0.01, five), GateState::Undecided);
    assert_eq!(state("response.p99 <= +5%", -0.01, 0.06), GateState::Undecided);
    assert_eq!(state("response.p99 <= +5%", 0.05, 0.06), GateState::NotMet);
    assert_eq!(state("response.p99 <= +5%", 0.05, f64::INFINITY), GateState::NotMet);
    assert_eq!(state("response.p99 <= -10%", -0.2, -0.11), GateState::Met);
    assert_eq!(state("rate_per_s >= -2%", -0.01, 0.3), GateState::Met);
    assert_eq!(state("ticks.late_share <= +1pp", 0.0, 0.0099), GateState::Met);
    assert_eq!(state("errors <= +0", 0.0, 0.0), GateState::Met);
    let none: Gate = "errors <= 0".parse().expect("a gate");
    assert_eq!(none.state(None, None), GateState::Undecided);

    let refused = |text: &str, needle: &str| {
        let error = text.parse::<Gate>().expect_err(text).to_string();
        assert!(error.contains(needle), "{error}");
    };
    refused("response.p98 <= +5%", "did you mean response.p9");
    refused("response.p99 <= 50ms", "a change in percent");
    refused("response.p99 <= +5", "a change in percent");
    refused("response.p99 <= -100%", "above -100");
    refused("response.p99 <= +-5%", "a change in percent");
    refused("response.p99 <= inf%", "a change in percent");
    refused("ticks.late_share <= +5%", "percentage points");
    refused("errors <= +5%", "as a number");
    refused("response.p99 == 0%", "use < <= > or >=");
    refused("audit < 1", "--expect");
    refused("response.p99", "compares nothing");
}

#[test]
fn a_gate_survives_the_store() {
    let gate: Gate = " response.p99 <= +5% ".parse().expect("a gate");
    let text = serde_json::to_string(&gate).expect("JSON");
    assert_eq!(text, "\"response.p99 <= +5%\"");
    assert_eq!(serde_json::from_str::<Gate>(&text).expect("a gate"), gate);
    assert!(serde_json::from_str::<Gate>("\"response.p99 <= 5\"").is_err());
}
