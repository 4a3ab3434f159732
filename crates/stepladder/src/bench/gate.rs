//! Gates: conditions on the figures of a benchmark, `[IMPLEMENTATION.][OPERATION.][THREADS.]FIGURE OP VALUE`.
//!
//! `one-lock.update.1.ops >= 900k`. An omitted part matches everything measured, so `ops >= 900k` applies to every line
//! of the table. Comparisons and units are those of objectives (`ladder::Condition`).
//! A gate on something that is not measured is refused before the benchmark begins, because it could never fail.

use std::str::FromStr;

use ladder::{Condition, ConditionError, UnitKind};
use servers::leaderboard::Implementation;
use servers::leaderboard::bench::{Cell, Operation, Report, Settings};
use thiserror::Error;

/// A condition that the measured figures must meet.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// As written.
    pub(super) text: String,
    implementation: Option<Implementation>,
    operation: Option<Operation>,
    threads: Option<usize>,
    figure: &'static Figure,
    op: ladder::Op,
    /// In the inner unit of the figure's kind.
    bound: f64,
}

/// A figure that a gate can name.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    unit: UnitKind,
    meaning: &'static str,
    of: Of,
}

#[derive(Debug)]
enum Of {
    Cell(fn(&Cell) -> Option<f64>),
    BytesPerMember,
}

const FIGURES: [Figure; 6] = [
    Figure {
        name: "ops",
        unit: UnitKind::Rate,
        meaning: "items per second, median of the slices (a bulk of 16 counts 16)",
        of: Of::Cell(|cell| Some(cell.rate_per_s())),
    },
    Figure {
        name: "ratio",
        unit: UnitKind::Number,
        meaning: "ops over those of hashmap-indexset in the same slice, median; of all others",
        of: Of::Cell(|cell| cell.ratio().filter(|_| cell.implementation != PEER)),
    },
    Figure {
        name: "cpu",
        unit: UnitKind::Time,
        meaning: "CPU time per item",
        of: Of::Cell(|cell| Some(cell.cpu_ns_per_item)),
    },
    Figure {
        name: "allocations",
        unit: UnitKind::Number,
        meaning: "heap allocations per item",
        of: Of::Cell(|cell| cell.allocations_per_item),
    },
    Figure {
        name: "lock_wait",
        unit: UnitKind::Share,
        meaning: "share of the threads' time spent waiting for a lock or for the board's owner",
        of: Of::Cell(|cell| Some(cell.lock_wait_share)),
    },
    Figure {
        name: "bytes_per_member",
        unit: UnitKind::Bytes,
        meaning: "heap memory per member",
        of: Of::BytesPerMember,
    },
];

const PEER: Implementation = Implementation::HashMapIndexSet;

/// A gate that cannot be read, or could never fail.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum GateError {
    #[error(transparent)]
    Condition(#[from] ConditionError),
    #[error("{text:?}: there is no figure {name:?}; there are {}", names())]
    UnknownFigure { text: String, name: String },
    #[error(
        "{text:?}: {part:?} is neither an implementation (one-lock), an operation (update, bulk:16) nor a number of \
         threads, in this order"
    )]
    UnknownPart { text: String, part: String },
    #[error("{text:?}: {name} is {kind}, but {value:?} is not")]
    WrongValue { text: String, name: &'static str, kind: &'static str, value: String },
    #[error(
        "{text:?}: nothing of this is measured; change the gate, or --implementations, --op and --threads"
    )]
    NotMeasured { text: String },
    #[error("{text:?}: a ratio is measured only with hashmap-indexset among --implementations")]
    NoPeer { text: String },
}

fn names() -> String {
    FIGURES.map(|figure| figure.name).join(", ")
}

/// For `--help`.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Gates: [IMPLEMENTATION.][OPERATION.][THREADS.]FIGURE OP VALUE, for example\n  \
         one-lock.update.ops >= 900k   one-lock.ratio >= 3   one-lock.bulk:16.2.cpu < 1us\n\
         A part that is left out stands for all that are measured.\n\nFigures:\n",
    );
    for Figure { name, unit, meaning, .. } in &FIGURES {
        text.push_str(&format!("  {name:<18} {meaning}; {}\n", unit.in_words()));
    }
    text + "\nExit: 0 all gates were met, 1 one was missed, 2 could not be measured, 3 wrong usage."
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        let condition = Condition::of(text)?;
        let text = || condition.text.to_owned();
        let (parts, name) = condition.name.rsplit_once('.').unwrap_or(("", condition.name));
        let figure = FIGURES
            .iter()
            .find(|figure| figure.name == name)
            .ok_or_else(|| GateError::UnknownFigure { text: text(), name: name.to_owned() })?;
        let bound = condition.bound(figure.unit).ok_or_else(|| GateError::WrongValue {
            text: text(),
            name: figure.name,
            kind: figure.unit.in_words(),
            value: condition.value.to_owned(),
        })?;
        let mut gate = Gate {
            text: text(),
            implementation: None,
            operation: None,
            threads: None,
            figure,
            op: condition.op,
            bound,
        };
        for part in parts.split('.').filter(|_| !parts.is_empty()) {
            gate.select(part)
                .ok_or_else(|| GateError::UnknownPart { text: text(), part: part.to_owned() })?;
        }
        Ok(gate)
    }
}

impl Gate {
    fn select(&mut self, part: &str) -> Option<()> {
        if let (Ok(found), None, None, None) =
            (part.parse(), self.implementation, self.operation, self.threads)
        {
            self.implementation = Some(found);
        } else if let (Ok(found), None, None) = (part.parse(), self.operation, self.threads) {
            self.operation = Some(found);
        } else if let (Ok(found), None) = (part.parse(), self.threads) {
            self.threads = Some(found);
        } else {
            return None;
        }
        Some(())
    }

    fn selects(&self, implementation: Implementation, cell: Option<(Operation, usize)>) -> bool {
        let is = |(operation, threads)| {
            self.operation.is_none_or(|own| own == operation) && self.threads.is_none_or(|own| own == threads)
        };
        self.implementation.is_none_or(|own| own == implementation) && cell.is_none_or(is)
    }

    /// Whether the benchmark will measure what the gate is about.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), GateError> {
        let text = || self.text.clone();
        let is_of_memory = matches!(self.figure.of, Of::BytesPerMember);
        if is_of_memory && (self.operation.is_some() || self.threads.is_some()) {
            return Err(GateError::NotMeasured { text: text() });
        }
        let is_ratio = self.figure.name == "ratio";
        if is_ratio && !settings.implementations.contains(&PEER) {
            return Err(GateError::NoPeer { text: text() });
        }
        let mut measured =
            settings.implementations.iter().filter(|each| !(is_ratio && **each == PEER)).filter(|each| {
                is_of_memory
                    || settings.operations.iter().any(|operation| {
                        settings
                            .threads
                            .iter()
                            .any(|threads| self.selects(**each, Some((*operation, *threads))))
                    })
            });
        match measured.any(|each| self.selects(*each, None)) {
            true => Ok(()),
            false => Err(GateError::NotMeasured { text: text() }),
        }
    }

    /// What did not meet it, and its value in the figure's inner unit; `None` when a figure is missing after all.
    pub(super) fn misses(&self, report: &Report) -> Vec<(String, Option<f64>)> {
        let values: Vec<(String, Option<f64>)> = match self.figure.of {
            Of::BytesPerMember => {
                let memory = report.memory.iter().filter(|each| self.selects(each.implementation, None));
                memory.map(|each| (each.implementation.to_string(), each.bytes_per_member)).collect()
            }
            Of::Cell(read) => {
                let is_selected = |cell: &&Cell| {
                    self.selects(cell.implementation, Some((cell.operation, cell.threads)))
                        && !(self.figure.name == "ratio" && cell.implementation == PEER)
                };
                let name =
                    |cell: &Cell| format!("{}.{}.{}", cell.implementation, cell.operation, cell.threads);
                report.cells.iter().filter(is_selected).map(|cell| (name(cell), read(cell))).collect()
            }
        };
        let is_met = |value: &Option<f64>| value.is_some_and(|value| self.op.holds(value, self.bound));
        values.into_iter().filter(|(_, value)| !is_met(value)).collect()
    }

    /// A value of the gate's figure, for people.
    pub(super) fn show(&self, value: Option<f64>) -> String {
        let Some(value) = value else { return "not measured".to_owned() };
        match self.figure.unit {
            UnitKind::Time => format!("{value:.0} ns"),
            UnitKind::Share => format!("{:.1} %", value * 100.0),
            UnitKind::Rate => format!("{value:.0}/s"),
            UnitKind::Bytes => format!("{value:.1} B"),
            _ => format!("{value:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use servers::leaderboard::bench::Memory;

    use super::*;

    fn cell(implementation: Implementation, operation: Operation, threads: usize, ops: f64) -> Cell {
        Cell {
            implementation,
            operation,
            threads,
            rates_per_s: vec![ops],
            ratios: vec![ops / 200_000.0],
            cpu_ns_per_item: 1e9 / ops,
            allocations_per_item: Some(0.0),
            lock_wait_share: 0.25,
        }
    }

    fn report() -> Report {
        let bytes_per_member = Some(84.0);
        let filled_in = Duration::from_secs(1);
        Report {
            memory: vec![Memory { implementation: Implementation::OneLock, bytes_per_member, filled_in }],
            cells: vec![
                cell(Implementation::OneLock, Operation::Update, 1, 900_000.0),
                cell(Implementation::OneLock, Operation::UpdateBulk(16), 2, 1_100_000.0),
                cell(PEER, Operation::Update, 1, 200_000.0),
                cell(PEER, Operation::UpdateBulk(16), 2, 200_000.0),
            ],
        }
    }

    #[track_caller]
    fn check(gate: &str, expected: &[&str]) {
        let gate: Gate = gate.parse().unwrap();
        let missed: Vec<String> = gate.misses(&report()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(missed, expected);
    }

    #[test]
    fn a_gate_holds_for_everything_that_its_name_selects() {
        check("one-lock.ops >= 900k", &[]);
        check("one-lock.ops > 900k", &["one-lock.update.1"]);
        check("one-lock.update.1.ops >= 1M/s", &["one-lock.update.1"]);
        check("one-lock.2.ops >= 1M", &[]);
        check("ops >= 250000", &["hashmap-indexset.update.1", "hashmap-indexset.bulk:16.2"]);
        check("bulk:16.ops >= 1M", &["hashmap-indexset.bulk:16.2"]);
        check("one-lock.cpu < 1us", &["one-lock.update.1"]);
        check("lock_wait <= 25%", &[]);
        check("one-lock.bytes_per_member <= 80", &["one-lock"]);
        check("allocations == 0", &[]);
    }

    #[test]
    fn the_peers_ratio_to_itself_is_no_figure() {
        check("ratio >= 4", &[]);
        check("ratio >= 5", &["one-lock.update.1"]);
    }

    #[test]
    fn a_figure_that_is_missing_misses_its_gate() {
        let mut report = report();
        report.cells[0].allocations_per_item = None;
        let gate: Gate = "one-lock.update.allocations == 0".parse().unwrap();
        assert_eq!(gate.misses(&report), [("one-lock.update.1".to_owned(), None)]);
    }

    #[test]
    fn a_gate_that_cannot_be_read_is_refused() {
        let refused = |text: &str| text.parse::<Gate>().unwrap_err().to_string();
        assert!(refused("ops").contains("compares nothing"));
        assert!(refused("ops => 3").contains("no comparison"));
        assert!(refused("one-lock.opz >= 3").contains("there are ops, ratio, cpu"));
        assert!(refused("two-locks.ops >= 3").contains("\"two-locks\" is neither"));
        assert!(refused("update.one-lock.ops >= 3").contains("\"one-lock\" is neither"));
        assert!(refused("ops >= fast").contains("a rate per second"));
        assert!(refused("cpu < 5").contains("a time"));
    }

    #[test]
    fn a_gate_about_something_that_is_not_measured_is_refused() {
        let settings = Settings { implementations: vec![Implementation::OneLock], ..Settings::default() };
        let check = |gate: &str| gate.parse::<Gate>().unwrap().check(&settings);
        assert_eq!(check("one-lock.update.1.ops > 1"), Ok(()));
        assert_eq!(check("bytes_per_member < 150"), Ok(()));
        for gate in ["actor.ops > 1", "rank.ops > 1", "2.ops > 1", "update.bytes_per_member < 150"] {
            assert_eq!(check(gate), Err(GateError::NotMeasured { text: gate.to_owned() }));
        }
        assert_eq!(check("ratio > 1"), Err(GateError::NoPeer { text: "ratio > 1".to_owned() }));
    }
}
