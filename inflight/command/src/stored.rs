//! What is stored of a comparison: its header, its end, and the results of its lines.

use climb::stored::{environment, head_of_now, unix_ms};
use console::signals::Interrupt;
use inflight_analysis::{Replay, Report, artifact};
use store::{LineSource, Outcome, RunEnd, RunHead, RunId, RunKind, RunWriter, Store};

/// `plan`: what was asked, as JSON.
pub fn head(target: &str, seed: u64, plan: String) -> anyhow::Result<RunHead> {
    Ok(RunHead {
        kind: RunKind::Bench,
        subject: target.to_owned(),
        scenario: None,
        seed,
        arrivals: "closed".to_owned(),
        // Clients and server are on this machine; only the server's own affinity could separate them.
        shared_cores: true,
        plan,
        environment: serde_json::to_string(&environment())?,
        ..head_of_now()
    })
}

/// Ends a run. `measured`: what it came to. Errors: the store does not take it.
pub fn end(writer: RunWriter, measured: &anyhow::Result<()>, interrupt: &Interrupt) -> anyhow::Result<()> {
    let outcome = match measured {
        Err(_) => Outcome::Broken,
        Ok(()) if interrupt.is_asked() => Outcome::Interrupted,
        Ok(()) => Outcome::Finished,
    };
    let reason = measured.as_ref().err().map(|error| format!("{error:#}"));
    Ok(writer.end_run(RunEnd { outcome, reason, ended_unix_ms: unix_ms(), climb: None })?)
}

/// The results of a stored run. Errors: damage, or lines of another version.
pub fn stored(store: &Store, run: &RunId) -> anyhow::Result<Report> {
    let mut replay = Replay::default();
    for line in store.lines(run)? {
        match line.source {
            LineSource::Bench => replay.note(line.process, &line.text)?,
            LineSource::Client => replay.line(line.process, &line.text)?,
        }
    }
    replay.report(|process| {
        let found = store.artifact(run, &artifact(process))?;
        Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default())
    })
}
