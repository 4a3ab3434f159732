//! Which revision changed a figure: duels along a history, as a pure function of the duels so far.
//!
//! First the last revision is compared with the first. The difference found is the *effect*. A revision counts as
//! changed when its figure has moved by more than half of it; that is a gate, and a duel runs until it is decided. The
//! rest is a bisection. An undecided comparison is repeated once with twice the time. A revision that cannot be judged
//! (it does not build, or twice undecided) is skipped, as in `git bisect skip`. At the end the first changed revision
//! is compared with the last unchanged one: this gives the answer's ratio, and must show the effect again.
//! Method: docs/method/bisect.md.

use serde::Serialize;

use crate::duel::{DuelVerdict, Finding, Gate, GateState, Scale};
use crate::figures::UnitKind;

/// Revisions beyond the effect's half are changed.
const HALF: f64 = 0.5;

/// What is known of a revision, by a duel with the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// as the first revision
    Unchanged,
    /// as the last
    Changed,
    /// the duel ended before that was known
    Undecided,
    /// it could not be compared
    Untestable,
}

impl Look {
    /// What a gate on half the effect says.
    pub fn of(state: GateState) -> Look {
        match state {
            GateState::Met => Look::Unchanged,
            GateState::NotMet => Look::Changed,
            GateState::Undecided => Look::Undecided,
        }
    }
}

/// A comparison that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// of a revision with the first one
    Looked {
        /// counted from the first one, which is 0
        revision: usize,
        /// what it said
        look: Look,
    },
    /// of neighbours, for the answer
    Confirmed(Look),
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// compare this revision with the first one
    Look {
        /// which
        revision: usize,
        /// it was undecided once: it gets twice the time
        is_repeated: bool,
    },
    /// compare these two
    Confirm {
        /// the last one that is unchanged
        before: usize,
        /// the first one that is changed
        changed: usize,
    },
    /// nothing
    Done(Found),
}

/// What a bisection found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// this revision
    Revision {
        /// which, from 0
        revision: usize,
        /// the last one before it about which anything is known
        before: usize,
    },
    /// one of those after `before`, up to `changed`: nothing can be known about those in between
    Between {
        /// the last one that is unchanged
        before: usize,
        /// the first one that is changed
        changed: usize,
    },
    /// it was narrowed down to this revision, and its comparison with the one before does not show the effect
    NotConfirmed {
        /// which
        revision: usize,
        /// what the comparison said
        look: Look,
    },
}

/// The next comparison in a history of `revisions` (at least 2), the last of which is known to be changed.
pub fn next(revisions: usize, made: &[Made]) -> Next {
    let (mut before, mut changed) = (0, revisions - 1);
    let mut undecided = vec![0u8; revisions];
    let mut is_passed_over = vec![false; revisions];
    let mut confirmed = None;
    for one in made {
        match *one {
            Made::Looked { revision, look: Look::Unchanged } => before = before.max(revision),
            Made::Looked { revision, look: Look::Changed } => changed = changed.min(revision),
            Made::Looked { revision, look: Look::Undecided } => {
                undecided[revision] += 1;
                is_passed_over[revision] |= undecided[revision] > 1;
            }
            Made::Looked { revision, look: Look::Untestable } => is_passed_over[revision] = true,
            Made::Confirmed(look) => confirmed = Some(look),
        }
    }
    let middle = 0.5 * (before + changed) as f64;
    let testable = (before + 1..changed).filter(|revision| !is_passed_over[*revision]);
    let nearest = testable.min_by(|a, b| (*a as f64 - middle).abs().total_cmp(&(*b as f64 - middle).abs()));
    if let Some(revision) = nearest {
        return Next::Look { revision, is_repeated: undecided[revision] > 0 };
    }
    match confirmed {
        None => Next::Confirm { before, changed },
        Some(Look::Changed) if changed - before > 1 => Next::Done(Found::Between { before, changed }),
        Some(Look::Changed) => Next::Done(Found::Revision { revision: changed, before }),
        Some(look) => Next::Done(Found::NotConfirmed { revision: changed, look }),
    }
}

/// How many comparisons are to be expected of a history, the first and the last one included.
pub fn comparisons(revisions: usize) -> u32 {
    (revisions.max(2) as u64 - 1).next_power_of_two().ilog2() + 2
}

/// The figure of a duel to follow: the one known to differ by most of its own interval. `None`: there is none.
pub fn effect(findings: &[Finding]) -> Option<&Finding> {
    let is_known = |finding: &&Finding| {
        matches!(finding.verdict, DuelVerdict::Smaller | DuelVerdict::Larger)
            && finding.centre.is_some_and(f64::is_finite)
    };
    let clearness = |finding: &Finding| {
        let (low, high) = finding.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        finding.centre.unwrap_or(0.0).abs() / (high - low).max(f64::MIN_POSITIVE)
    };
    findings.iter().filter(is_known).max_by(|a, b| clearness(a).total_cmp(&clearness(b)))
}

/// The gate that revisions as the first one meet, and revisions as the last one do not. `None`: the effect has no size.
pub fn gate(effect: &Finding) -> Option<Gate> {
    let half = HALF * effect.centre.filter(|centre| centre.is_finite() && *centre != 0.0)?;
    let op = if half > 0.0 { "<=" } else { ">=" };
    let change = match (effect.scale, effect.figure.unit) {
        (Scale::Ratio, _) => format!("{:+.4}%", half.exp_m1() * 100.0),
        (Scale::Difference, UnitKind::Share) => format!("{:+.4}pp", half * 100.0),
        (Scale::Difference, _) => format!("{half:+}"),
    };
    format!("{} {op} {change}", effect.figure.name).parse().ok()
}

#[cfg(test)]
mod tests;
