//! How a climb may end, and how one ended.

use ladder::Verdict;
use serde_json::{Value, json};

/// One acceptable end of a climb.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// of the run and of its largest load
    pub verdict: Verdict,
    /// the signal, or words of the reason or remark; empty: any
    pub says: &'static str,
    /// the cause of the failure, as `Came` has it; empty: any
    pub cause: &'static str,
    /// what of the server's memory and descriptors grows, by the figures' names; `None`: any
    pub grows: Option<&'static [Growth]>,
    /// of the climb's process
    pub code: i32,
}

/// Something of the server that grows in a long hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// as in objectives
    pub figure: &'static str,
    /// growth per connection that ended: least and most
    pub per_closed: (f64, f64),
}

/// Memory and descriptors: what is never given back. Times and lateness may grow by chance.
const LEAKED: [&str; 2] = ["subject.fds", "subject.rss_bytes"];

impl Outcome {
    /// Every objective was met.
    pub const fn pass() -> Outcome {
        Outcome { verdict: Verdict::Pass, says: "", cause: "", grows: None, code: 0 }
    }

    /// Every objective was met, and this of the server grows, in the order of the names.
    pub const fn growing(these: &'static [Growth]) -> Outcome {
        Outcome { grows: Some(these), ..Outcome::pass() }
    }

    /// The server failed for this reason.
    pub const fn fail(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Fail, says, cause: "", grows: None, code: 1 }
    }

    /// The server failed, and this is why.
    pub const fn caused(cause: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Fail, says: "", cause, grows: None, code: 1 }
    }

    /// It could not be told for this reason.
    pub const fn inconclusive(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Inconclusive, says, cause: "", grows: None, code: 2 }
    }

    /// The generator could not make the load.
    pub const fn generator_limited(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::GeneratorLimited, says, cause: "", grows: None, code: 2 }
    }

    /// The books contradict each other.
    pub const fn invalid(says: &'static str) -> Outcome {
        Outcome { verdict: Verdict::Invalid, says, cause: "", grows: None, code: 2 }
    }

    /// Whether what came is this.
    pub fn agrees(&self, came: &Came) -> bool {
        came.verdict == Some(self.verdict)
            && came.run_verdict == Some(self.verdict)
            && came.code == Some(self.code)
            && (self.cause.is_empty() || came.cause == self.cause)
            && self
                .grows
                .is_none_or(|expected| came.grows.as_deref().is_some_and(|grows| agree(expected, grows)))
            && (self.says.is_empty()
                || came.signal == self.says
                || came.reason.contains(self.says)
                || came.remark.contains(self.says))
    }

    /// For the table: `FAIL (ticks.silence)`.
    pub fn text(&self) -> String {
        if let Some(grows) = self.grows {
            let names: Vec<String> = grows.iter().map(Growth::text).collect();
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            return format!("{}, growing: {names}", self.verdict);
        }
        match (self.says, self.cause) {
            ("", "") => self.verdict.to_string(),
            ("", cause) => format!("{}: {cause}", self.verdict),
            (says, _) => format!("{} ({says})", self.verdict),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let grows = self.grows.map(|grows| {
            let pair = |growth: &Growth| json!({ "figure": growth.figure, "per_closed": growth.per_closed });
            grows.iter().map(pair).collect::<Vec<_>>()
        });
        json!({
            "verdict": self.verdict.name(), "says": self.says, "cause": self.cause, "grows": grows, "exit_code": self.code,
        })
    }
}

impl Growth {
    /// `subject.fds by 0.95 to 1.05 a connection`
    fn text(&self) -> String {
        let (least, most) = self.per_closed;
        format!("{} by {least} to {most} a connection", self.figure)
    }
}

/// Both in the order of their names.
fn agree(expected: &[Growth], grows: &[(String, Option<f64>)]) -> bool {
    let is_one = |(growth, (figure, each)): (&Growth, &(String, Option<f64>))| {
        let (least, most) = growth.per_closed;
        growth.figure == figure && each.is_some_and(|each| (least..=most).contains(&each))
    };
    expected.len() == grows.len() && expected.iter().zip(grows).all(is_one)
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
    /// memory and descriptors that grow, each with its growth per connection that ended, by name; `None` where trends are not told
    pub grows: Option<Vec<(String, Option<f64>)>>,
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
            grows: rung["trends"]["of"].as_object().map(|all| {
                let grows =
                    LEAKED.iter().filter(|name| all.get(**name).is_some_and(|one| one["grows"] == true));
                grows.map(|name| ((*name).to_owned(), all[*name]["per_closed"].as_f64())).collect()
            }),
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
            "remark": self.remark, "cause": self.cause, "grows": self.grows, "disturbed_share": self.disturbed_share, "exit_code": self.code,
        })
    }
}
