//! A duel as `duel --json` and the page show it. Additions are free, other changes are not.

use crate::Difference;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::UnitKind;
use crate::duel::gate::GateState;
use crate::duel::interval::{Pairs, Scale};
use crate::duel::verdicts::{DuelVerdict, Finding, LoadStanding, Rules, Standing};
use crate::duel::{ALPHA, Duel, DuelStop};
use crate::figures::FigureValue;

/// Two servers under the same loads. What is infinite is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DuelAnswers {
    /// what B is compared with, as it was written
    pub a: String,
    /// what is compared, as it was written
    pub b: String,
    /// settings that are not the same on both sides
    pub differs: Vec<Difference>,
    /// ratios that differ by less count as equal
    pub delta: f64,
    /// of the intervals
    pub level: f64,
    /// blocks under each load at most
    pub blocks_most: usize,
    /// how long all trials together may take
    pub budget_ns: u64,
    /// the order within the blocks comes from it
    pub seed: u64,
    /// null while it goes on and where it was killed
    pub ended_because: Option<DuelStop>,
    /// the same in words
    pub ended: String,
    /// ascending
    pub loads: Vec<DuelLoad>,
}

/// What is known under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DuelLoad {
    /// in the unit of its bots
    pub load: f64,
    /// blocks with both trials
    pub blocks: usize,
    /// why others were dropped
    pub dropped: Vec<String>,
    /// that were measured
    pub figures: Vec<DuelFigure>,
    /// in the order of the command line
    pub gates: Vec<DuelGate>,
}

/// What is known of one figure under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DuelFigure {
    /// its name
    pub figure: String,
    /// what is known
    pub verdict: DuelVerdict,
    /// the verdict in a word or two
    pub in_words: String,
    /// the change with its interval, in words
    pub change: String,
    /// `b / a` or `b - a`
    pub compared_as: String,
    /// of its values: `ns`, `share`, `count`, `per_s`, `bytes`, `number`
    pub unit: String,
    /// of the change
    pub estimate: Option<f64>,
    /// of the interval; null before the first look too
    pub low: Option<f64>,
    /// of the interval
    pub high: Option<f64>,
    /// over the blocks, in `unit`
    pub median_a: Option<f64>,
    /// over the blocks, in `unit`
    pub median_b: Option<f64>,
    /// that say something about it
    pub blocks: usize,
    /// after how many blocks a difference was known
    pub known_after_blocks: Option<usize>,
    /// that do not state it
    pub blocks_unstated: usize,
    /// why a block does not state it
    pub unstated_because: Option<String>,
    /// blocks in which it was infinite at A alone
    pub infinite_at_a_only: usize,
    /// blocks in which it was infinite at B alone
    pub infinite_at_b_only: usize,
    /// block by block, in the order in which they were held
    pub by_block: Vec<DuelBlock>,
}

/// One block, and what was known after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DuelBlock {
    /// A's value, in the figure's unit
    pub a: Option<f64>,
    /// B's value
    pub b: Option<f64>,
    /// B against A in this block, as the figure is compared
    pub change: Option<f64>,
    /// of this block and all before it
    pub estimate: Option<f64>,
    /// of the interval after this block; null before the first look
    pub low: Option<f64>,
    /// of the interval
    pub high: Option<f64>,
}

/// A bound that B's change must keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DuelGate {
    /// as its author wrote it
    pub gate: String,
    /// what is known of it
    pub state: GateState,
}

impl DuelAnswers {
    /// `texts`: A and B as they were written. `stop`: why it ended.
    pub fn of(
        duel: &Duel,
        standing: &Standing,
        rules: &Rules,
        texts: &[String; 2],
        stop: Option<DuelStop>,
        differs: Vec<Difference>,
    ) -> DuelAnswers {
        let [a, b] = texts.clone();
        DuelAnswers {
            a,
            b,
            differs,
            delta: duel.delta,
            level: 1.0 - ALPHA,
            blocks_most: duel.blocks_most,
            budget_ns: duel.budget_ns,
            seed: duel.seed,
            ended_because: stop,
            ended: ended(stop),
            loads: standing.loads.iter().map(|load| of_load(load, duel.delta, rules)).collect(),
        }
    }
}

/// Why a duel ended, as a sentence.
pub fn ended(stop: Option<DuelStop>) -> String {
    match stop {
        Some(stop) => format!("The duel ended because {}.", stop.text()),
        None => "The duel was cut off; its trials up to there count.".to_owned(),
    }
}

fn of_load(load: &LoadStanding, delta: f64, rules: &Rules) -> DuelLoad {
    DuelLoad {
        load: load.load,
        blocks: load.blocks,
        dropped: load.dropped.clone(),
        figures: load.findings.iter().map(|finding| of_figure(finding, delta, rules)).collect(),
        gates: load
            .gates
            .iter()
            .map(|gate| DuelGate { gate: gate.gate.to_string(), state: gate.state })
            .collect(),
    }
}

fn of_figure(finding: &Finding, delta: f64, rules: &Rules) -> DuelFigure {
    let plain = |value: f64| finite(finding.scale.plain(value));
    DuelFigure {
        figure: finding.figure.name.to_owned(),
        verdict: finding.verdict,
        in_words: finding.verdict_text(delta),
        change: finding.change_text(),
        compared_as: match finding.scale {
            Scale::Ratio => "b / a",
            Scale::Difference => "b - a",
        }
        .to_owned(),
        unit: match finding.figure.unit {
            UnitKind::Time => "ns",
            UnitKind::Share => "share",
            UnitKind::Count => "count",
            UnitKind::Rate => "per_s",
            UnitKind::Bytes => "bytes",
            UnitKind::Number | UnitKind::Ok => "number",
        }
        .to_owned(),
        estimate: finding.centre.and_then(plain),
        low: finding.range.and_then(|(low, _)| plain(low)),
        high: finding.range.and_then(|(_, high)| plain(high)),
        median_a: finding.medians.0.and_then(finite),
        median_b: finding.medians.1.and_then(finite),
        blocks: finding.blocks,
        known_after_blocks: finding.known_after,
        blocks_unstated: finding.pairs.unstated,
        unstated_because: finding.unstated_because.clone(),
        infinite_at_a_only: finding.pairs.a_never,
        infinite_at_b_only: finding.pairs.b_never,
        by_block: (1..=finding.values.len()).map(|blocks| of_block(finding, blocks, rules)).collect(),
    }
}

/// The last of the first `blocks` blocks, with what they say together.
fn of_block(finding: &Finding, blocks: usize, rules: &Rules) -> DuelBlock {
    let so_far = &finding.values[..blocks];
    let (last, pairs) = (so_far[blocks - 1], Pairs::of(finding.scale, so_far));
    let plain = |value: f64| finite(finding.scale.plain(value));
    let number = |value| match value {
        FigureValue::Value(value) => Some(value),
        FigureValue::Infinite | FigureValue::TooFew { .. } | FigureValue::Absent(_) => None,
    };
    let range = pairs.range(&rules.looks(1));
    DuelBlock {
        a: number(last.0),
        b: number(last.1),
        change: Pairs::of(finding.scale, &[last]).centre().and_then(plain),
        estimate: pairs.centre().and_then(plain),
        low: range.and_then(|(low, _)| plain(low)),
        high: range.and_then(|(_, high)| plain(high)),
    }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FIGURES;
    use crate::duel::{Sample, findings};

    fn figure(name: &str, blocks: &[(FigureValue, FigureValue)]) -> DuelFigure {
        let figure = FIGURES.iter().find(|figure| figure.name == name).expect("a figure");
        let rules = Rules::new(ALPHA, 0.05, 20);
        let found = findings(&[Sample { figure, blocks: blocks.to_vec() }], &rules);
        of_figure(&found[0], 0.05, &rules)
    }

    fn value(number: f64) -> FigureValue {
        FigureValue::Value(number)
    }

    #[test]
    fn after_its_last_block_a_figure_is_what_it_is_in_the_end() {
        let blocks: Vec<_> = (0..8).map(|at| (value(100.0), value(120.0 + f64::from(at % 3)))).collect();
        let figure = figure("response.p50", &blocks);
        assert_eq!(
            (figure.by_block.len(), figure.compared_as.as_str(), figure.unit.as_str()),
            (8, "b / a", "ns")
        );
        let last = figure.by_block.last().unwrap();
        assert_eq!((last.estimate, last.low, last.high), (figure.estimate, figure.low, figure.high));
        assert!((figure.by_block[1].change.unwrap() - 1.21).abs() < 1e-9, "{figure:?}");
        assert_eq!(figure.by_block[2].low, None, "before the first look there is no interval");
        let width = |block: &DuelBlock| block.high.unwrap() - block.low.unwrap();
        assert!(width(last) < width(&figure.by_block[3]), "the interval narrows: {figure:?}");
    }

    #[test]
    fn what_never_came_is_null_and_still_a_block() {
        let blocks = [(value(100.0), FigureValue::Infinite), (value(100.0), value(110.0))];
        let figure = figure("response.p99", &blocks);
        assert_eq!((figure.by_block[0].b, figure.by_block[0].change), (None, None));
        assert_eq!((figure.infinite_at_b_only, figure.by_block[1].b), (1, Some(110.0)));
    }

    #[test]
    fn answers_come_back_as_they_were_stored() {
        let figure = figure("response.p50", &[(value(100.0), value(110.0))]);
        let text = serde_json::to_string(&figure).unwrap();
        assert_eq!(serde_json::from_str::<DuelFigure>(&text).unwrap(), figure);
    }
}
