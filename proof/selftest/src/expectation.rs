//! What must come, what must never come, and whether what came agrees.

use console::exit::Exit;
use ladder::Verdict;

use crate::cases::{Case, When};
use crate::outcome::Came;

/// Whether a climb ended as it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// as expected
    Ok,
    /// otherwise, but the climb itself says that it was disturbed, and it is no verdict that must never come
    Undecided {
        /// what disturbed it
        disturbed_by: String,
    },
    /// this machine does not permit it
    NotRun {
        /// in the server's words
        why: String,
    },
    /// a verdict that must never come, or one that nothing excuses
    Wrong,
}

/// Compares what came with what must come.
pub fn compare(case: &Case, came: &Came) -> Agreement {
    if case.expected.iter().any(|outcome| outcome.agrees(came)) {
        return Agreement::Ok;
    }
    let Some(verdict) = came.verdict else {
        let refused = came.reason.find(case.needs).filter(|_| !case.needs.is_empty());
        return match refused {
            Some(at) => Agreement::NotRun { why: came.reason[at..].to_owned() },
            None => Agreement::Wrong,
        };
    };
    let code = Exit::from(verdict) as i32;
    let is_named_wrong =
        case.is_about_causes() && !came.cause.is_empty() && !came.cause.starts_with("suspected");
    // What grows is memory and descriptors, which no disturbance adds to.
    let is_growth_wrong = case.when == When::Long && verdict == Verdict::Pass;
    if is_named_wrong
        || is_growth_wrong
        || case.never.contains(&verdict)
        || came.run_verdict != Some(verdict)
        || came.code != Some(code)
    {
        return Agreement::Wrong;
    }
    let is_disturbed = came.disturbed_share > 0.0 || verdict == Verdict::GeneratorLimited;
    if !is_disturbed {
        return Agreement::Wrong;
    }
    let disturbed_by = match came.remark.split_once(": ") {
        Some((_, culprit)) => culprit.to_owned(),
        None => came.reason.clone(),
    };
    Agreement::Undecided { disturbed_by }
}
