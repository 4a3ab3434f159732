//! Two stored comparisons of client libraries side by side: the same for the page, the terminal and `--json`.

use inflight_analysis::{RunComparison, Told};
use ladder::Origin;
use serde_json::Value;
use store::{RunHead, RunId, RunKind, Store, StoreError};

use crate::bench::Lines;

/// Why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum NotComparable {
    /// One of them has other figures.
    #[error("run {0} compares no client libraries")]
    OtherKind(RunId),
    /// Lines of another version, or damage.
    #[error("run {run}: {why}")]
    Unreadable {
        /// whose lines
        run: RunId,
        /// what is wrong with them
        why: String,
    },
    /// The store does not have it, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Old against new.
pub fn beside(store: &Store, old: &RunId, new: &RunId) -> Result<RunComparison, NotComparable> {
    let figures = |run: &RunId| {
        let record = store.run(run)?;
        if record.head.kind != RunKind::Bench {
            return Err(NotComparable::OtherKind(run.clone()));
        }
        let report = Lines::of(store, run)?.report(store, run);
        let report = report.map_err(|why| NotComparable::Unreadable { run: run.clone(), why })?;
        Ok((origin(&record.head), report))
    };
    let ((was, old_report), (is, new_report)) = (figures(old)?, figures(new)?);
    Ok(RunComparison::of(
        Told { id: old.as_str(), origin: &was, report: &old_report },
        Told { id: new.as_str(), origin: &is, report: &new_report },
    ))
}

/// Where the figures of a run come from.
pub fn origin(head: &RunHead) -> Origin {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    Origin {
        stepladder: head.stepladder.clone(),
        git: head.git.clone(),
        subject: head.subject.clone(),
        scenario: head.scenario.clone(),
        plan: read(&head.plan),
        environment: read(&head.environment),
    }
}
