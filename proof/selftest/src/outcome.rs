//! How a climb may end, and how one ended.

use ladder::Verdict;
use serde_json::{Value, json};

/// One acceptable end of a climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// of the run and of its largest load
    pub verdict: Verdict,
    /// the signal, or words of the reason or remark; empty: any
    pub says: &'static str,
    /// the cause of the failure, as `Came` has it; empty: any
    pub cause: &'static str,
    /// of the climb's process
    pub code: i32,
}

impl Outcome {
    /// Every objective was met.
    pub const fn pass() -> Outcome {
        Outcome { verdict: Verdict::Pass, says: "", cause: "", code: 0 }
    }

    /// The server failed for this reason.
    pub const fn fail(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Fail, says, cause: "", code: 1 }
    }

    /// The server failed, and this is why.
    pub const fn caused(cause: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Fail, says: "", cause, code: 1 }
    }

    /// It could not be told for this reason.
    pub const fn inconclusive(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Inconclusive, says, cause: "", code: 2 }
    }

    /// The generator could not make the load.
    pub const fn generator_limited(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::GeneratorLimited, says, cause: "", code: 2 }
    }

    /// The books contradict each other.
    pub const fn invalid(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Invalid, says, cause: "", code: 2 }
    }

    /// Whether what came is this.
    pub fn agrees(&self, came: &Came) -> bool {
        came.verdict == Some(self.verdict)
            && came.run_verdict == Some(self.verdict)
            && came.code == Some(self.code)
            && (self.cause.is_empty() || came.cause == self.cause)
            && (self.says.is_empty()
                || came.signal == self.says
                || came.reason.contains(self.says)
                || came.remark.contains(self.says))
    }

    /// For the table: `FAIL (ticks.silence)`.
    pub fn text(&self) -> String {
        match (self.says, self.cause) {
            ("", "") => self.verdict.to_string(),
            ("", cause) => format!("{}: {cause}", self.verdict),
            (says, _) => format!("{} ({says})", self.verdict),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "verdict": self.verdict.name(), "says": self.says, "cause": self.cause, "exit_code": self.code })
    }
}

/// How a climb ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Came {
    /// of the largest load; `None` where the climb wrote no results
    pub verdict: Option<Verdict>,
    /// of the run
    pub run_verdict: Option<Verdict>,
    /// empty when it passed
    pub signal: String,
    /// empty when it passed; what the climb printed last where it wrote no results
    pub reason: String,
    /// what disturbed it
    pub remark: String,
    /// why it failed: `lock`, `suspected pause`; empty where no cause is told
    pub cause: String,
    /// share of the hold that was disturbed
    pub disturbed_share: f64,
    /// of the climb's process; `None` where a signal ended it
    pub code: Option<i32>,
}

impl Came {
    /// What a climb's JSON says of its last rung, which has the largest load, and of the cause.
    pub fn read(run: &Value, code: Option<i32>) -> Came {
        let rung = run["rungs"].as_array().and_then(|rungs| rungs.last()).unwrap_or(&Value::Null);
        let conclusions = run["conclusions"].as_array().into_iter().flatten();
        let cause = conclusions.map(|one| &one["evidence"]["cause"]).find(|cause| cause.is_object());
        let cause = cause.map(|cause| (cause["name"].as_str(), cause["standing"].as_str()));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let verdict = |value: &Value| serde_json::from_value(value.clone()).ok();
        Came {
            verdict: verdict(&rung["verdict"]),
            run_verdict: verdict(&run["verdict"]),
            signal: text(&rung["signal"]),
            reason: text(&rung["reason"]),
            remark: text(&rung["remark"]),
            cause: match cause {
                Some((Some(name), Some("named"))) => name.to_owned(),
                Some((Some(name), Some("suspected"))) => format!("suspected {name}"),
                _ => String::new(),
            },
            disturbed_share: rung["disturbed_share"].as_f64().unwrap_or(0.0),
            code,
        }
    }

    /// `FAIL (ticks.silence)`.
    pub fn short(&self) -> String {
        let code = self.code.map_or("a signal".to_owned(), |code| format!("exit {code}"));
        match (self.verdict, self.signal.as_str()) {
            (None, _) => format!("no result ({code})"),
            (Some(verdict), "") => verdict.to_string(),
            (Some(verdict), signal) => format!("{verdict} ({signal})"),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "verdict": self.verdict.map(Verdict::name), "signal": self.signal, "reason": self.reason,
            "remark": self.remark, "cause": self.cause, "disturbed_share": self.disturbed_share, "exit_code": self.code,
        })
    }
}
