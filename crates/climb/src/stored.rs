//! What is stored of a run besides its trials (header, verdicts, end), and the errors for a store that cannot be
//! opened.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::resume::Resumed;
use console::exit::{Exit, Failure};
use console::masks::{mask, mask_own};
use console::signals::Interrupt;
use ladder::Rung;
use plan::Plan;
use store::{Outcome, RunEnd, RunHead, RunKind, RunState, RunWriter, StoreError};

/// A file that is no store of ours was named by mistake; one that fails or is damaged was not.
pub fn no_store(error: StoreError) -> Failure {
    let is_usage = matches!(
        error,
        StoreError::NoStore { .. }
            | StoreError::NotSqlite { .. }
            | StoreError::Foreign { .. }
            | StoreError::Newer { .. }
            | StoreError::Older { .. }
            | StoreError::OtherTables { .. }
            | StoreError::CannotOpen { .. }
    );
    (if is_usage { Exit::WrongUsage } else { Exit::NotMeasured }, error.into())
}

/// How a run of trials ended, at this moment; its answers are not in it yet.
pub fn run_end(outcome: &anyhow::Result<()>, interrupt: &Interrupt) -> RunEnd {
    RunEnd {
        outcome: match outcome {
            Err(_) => Outcome::Broken,
            Ok(()) if interrupt.is_asked() => Outcome::Interrupted,
            Ok(()) => Outcome::Finished,
        },
        reason: outcome.as_ref().err().map(|error| mask(&format!("{error:#}")).into_owned()),
        ended_unix_ms: unix_ms(),
        climb: None,
    }
}

/// Why a stored run is not whole; `None`: it is.
pub fn ended_early(state: &RunState) -> Option<String> {
    match state {
        RunState::Recording => Some("the run is still being recorded".to_owned()),
        RunState::CutOff(cut_off) => Some(cut_off.to_string()),
        RunState::Ended(end) => ended_early_by(end),
    }
}

/// Why a run with this end is not whole; `None`: it is.
pub fn ended_early_by(end: &RunEnd) -> Option<String> {
    match end.outcome {
        Outcome::Finished => None,
        Outcome::Interrupted => Some("the run was interrupted".to_owned()),
        Outcome::Broken => {
            Some(format!("the run broke off: {}", end.reason.as_deref().unwrap_or("no reason is stored")))
        }
    }
}

/// Stores what a rung was found to be worth.
pub fn keep_verdict(writer: &RunWriter, rung: &Rung) -> anyhow::Result<()> {
    let verdict = store::StoredVerdict {
        judge: "climb".to_owned(),
        verdict: rung.verdict.name().to_owned(),
        reason: rung.reason.as_ref().map(|reason| mask_own(reason).into_owned()),
        cut_s: rung.hold.map_or(0, |hold| hold.cut_s),
        evidence: serde_json::to_string(&rung.evidence)?,
    };
    Ok(writer.verdict(rung.seq, verdict)?)
}

/// What a run's head says of this moment and this process.
pub fn head_of_now() -> RunHead {
    RunHead {
        command: mask_own(&command_line(std::env::args_os())).into_owned(),
        git: git_commit(),
        stepladder: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: unix_ms(),
        ..RunHead::default()
    }
}

/// The arguments in shell syntax. Invalid UTF-8 becomes the replacement character.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// The machine.
pub fn environment() -> serde_json::Map<String, serde_json::Value> {
    let mut environment = watch::environment();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    environment.insert("cores".to_owned(), cores.into());
    environment
}

/// The head of a climb of this plan, whose subject listens at `address`; `shared_cores`: on a machine that makes load too. Errors:
/// the plan is no JSON.
pub fn run_head(
    plan: &Plan,
    resumed: Option<&Resumed>,
    address: SocketAddr,
    shared_cores: bool,
) -> anyhow::Result<RunHead> {
    let mut environment = environment();
    environment.extend(resumed.map(|old| (ladder::RESUMED.to_owned(), old.noted())));
    if let Ok(link) = watch::NetworkLink::to(address) {
        let described = serde_json::json!({
            "interface": link.interface, "kind": link.kind.name(), "bits_per_s": link.bits_per_s,
        });
        environment.insert("link".to_owned(), described);
    }
    if plan.subject.target().is_some_and(|target| target.insecure) {
        environment.insert("certificates".to_owned(), "any".into());
    }
    let nodes = plan.subject.target().map_or(1, |target| 1 + target.others.len());
    if nodes > 1 {
        environment.insert("nodes".to_owned(), nodes.into());
    }
    Ok(RunHead {
        kind: RunKind::Climb,
        name: plan.name.clone(),
        subject: plan.subject.name.clone(),
        scenario: plan.scenario.clone(),
        seed: plan.seed,
        arrivals: plan.arrivals.to_string(),
        shared_cores,
        plan: serde_json::to_string(plan)?,
        environment: serde_json::to_string(&environment)?,
        ..head_of_now()
    })
}

fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:,=%@+".contains(letter));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The commit of the current folder, with `+` if files differ from it; `None` outside a repository.
fn git_commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    Some(if is_changed { format!("{commit}+") } else { commit })
}

/// The current time, ms since 1970; 0 if the clock is before that.
pub fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_command_line_is_kept_as_a_shell_takes_it_whatever_its_bytes_are() {
        let words = [&b"stepladder"[..], b"climb", b"a b", b"--store", b"\xff.db"];
        let words = words.map(|word| OsString::from_vec(word.to_vec()));
        assert_eq!(command_line(words.into_iter()), "stepladder climb 'a b' --store '\u{fffd}.db'");
    }
}
