//! The output of a bisection: a line for each comparison, the results page, and JSON.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;
use climb::outputs::write_json;
use console::say;
use ladder::FigureDoc;
use ladder::bisect::{Found, Look};
use ladder::duel::blocks;
use serde_json::{Value, json};

use super::options::AskedOf;
use super::revisions::Revision;
use crate::duel::DuelRun;

/// How a bisection ended.
pub enum Ended {
    /// with this
    Found(Found),
    /// the first and the last revision are not known to differ
    NoEffect,
    /// by its user
    Interrupted,
}

/// A comparison that was made.
pub struct Step {
    a: usize,
    b: usize,
    look: Look,
    /// the change of the figure in words; or why there is none
    text: String,
    /// of the duel
    run: Option<String>,
    blocks: usize,
    figure: Option<&'static str>,
    /// as people read it: a ratio or a difference, and its interval
    change: Option<(f64, Option<(f64, f64)>)>,
}

impl Step {
    /// What a duel said. `figure`: which of its figures is followed; else the first that is known to differ.
    pub fn of(a: usize, b: usize, look: Look, run: &DuelRun, figure: Option<&FigureDoc>) -> Step {
        let standing = run.standing();
        let load = standing.loads.first();
        let findings = load.map_or(&[][..], |load| &load.findings);
        let finding = match figure {
            Some(figure) => findings.iter().find(|one| one.figure.name == figure.name),
            None => ladder::bisect::effect(findings),
        };
        let change = finding.and_then(|one| {
            let range = one.range.map(|(low, high)| (one.scale.plain(low), one.scale.plain(high)));
            Some((one.scale.plain(one.centre?), range))
        });
        let text = match finding {
            Some(one) => format!("{} {}", one.figure.name, one.change_text()),
            None => run.why_nothing(),
        };
        Step {
            a,
            b,
            look,
            text,
            run: Some(run.id().to_string()),
            blocks: load.map_or(0, |load| load.blocks),
            figure: finding.map(|one| one.figure.name),
            change,
        }
    }

    /// A revision that could not be compared.
    pub fn untestable(a: usize, b: usize, why: &str) -> Step {
        Step {
            a,
            b,
            look: Look::Untestable,
            text: why.to_owned(),
            run: None,
            blocks: 0,
            figure: None,
            change: None,
        }
    }

    /// One line.
    pub fn text(&self, history: &[Revision]) -> String {
        let what = match self.look {
            Look::Unchanged => "no change",
            Look::Changed => "changed",
            Look::Undecided => "undecided",
            Look::Untestable => "passed over",
        };
        let count = if self.run.is_some() { format!(", {}", blocks(self.blocks)) } else { String::new() };
        format!(
            "{:>4}  {}  against {}: {what}{count}: {}",
            self.b,
            history[self.b].short(),
            history[self.a].short(),
            say::in_line(&self.text)
        )
    }

    fn as_json(&self, history: &[Revision]) -> Value {
        json!({
            "revision": self.b, "hash": history[self.b].hash, "against": history[self.a].hash, "look": self.look,
            "figure": self.figure, "estimate": self.change.map(|(centre, _)| centre),
            "low": self.change.and_then(|(_, range)| range).map(|(low, _)| low),
            "high": self.change.and_then(|(_, range)| range).map(|(_, high)| high),
            "blocks": self.blocks, "in_words": self.text, "run": self.run,
        })
    }
}

/// Shows what was found.
pub fn print(asked: &AskedOf, ended: &Ended, steps: &[Step], json: Option<&Path>) -> anyhow::Result<()> {
    let history = &asked.history;
    let found = match ended {
        Ended::Found(found) => json!(found),
        Ended::NoEffect => json!({ "found": "no_effect" }),
        Ended::Interrupted => json!({ "found": "interrupted" }),
    };
    let commit = match ended {
        Ended::Found(Found::Revision { revision, .. } | Found::NotConfirmed { revision, .. }) => {
            Some(&history[*revision])
        }
        _ => None,
    };
    let document = json!({
        "schema": 1,
        "bisect": {
            "good": history.first(), "bad": history.last(), "revisions": history.len(), "found": found, "commit": commit,
            "comparisons": steps.iter().map(|step| step.as_json(history)).collect::<Vec<_>>(),
        }
    });
    write_json(&format!("{document:#}"), json)?;
    let text = page(history, ended, steps)?;
    if json == Some(Path::new("-")) {
        say::err_own_text!("{text}");
    } else {
        say::out_text!("{text}");
    }
    Ok(())
}

fn page(history: &[Revision], ended: &Ended, steps: &[Step]) -> Result<String, std::fmt::Error> {
    let bold = Style::new().bold();
    let mut text = String::from("\n");
    let last = steps.last().map_or("", |step| step.text.as_str());
    let of = |at: usize| {
        let Revision { subject, author, date, .. } = &history[at];
        format!(
            "{} \"{}\" ({}, {})",
            history[at].short(),
            say::in_line(subject),
            say::in_line(author),
            say::in_line(date)
        )
    };
    match ended {
        Ended::Found(Found::Revision { revision, before }) => {
            writeln!(text, "{bold}{}{bold:#}", of(*revision))?;
            writeln!(
                text,
                "changed it: against the revision before it, {}, {}.",
                history[*before].short(),
                say::in_line(last)
            )?;
        }
        Ended::Found(Found::Between { before, changed }) => {
            writeln!(
                text,
                "{bold}One of {} revisions changed it{bold:#}: {}.",
                changed - before,
                say::in_line(last)
            )?;
            writeln!(text, "Nothing can be known of those before the last:")?;
            for at in before + 1..=*changed {
                writeln!(text, "  {}", of(at))?;
            }
        }
        Ended::Found(Found::NotConfirmed { revision, look }) => {
            let how = match look {
                Look::Unchanged => "shows no change",
                _ => "does not decide it",
            };
            writeln!(
                text,
                "{bold}Not found.{bold:#} It came down to {}, but its comparison with the revision before it {how}: {}.",
                of(*revision),
                say::in_line(last)
            )?;
            writeln!(
                text,
                "Several small changes, or a noisy machine; give more time (--budget) and try again."
            )?;
        }
        Ended::NoEffect => {
            writeln!(
                text,
                "{bold}Nothing to find{bold:#}: the two revisions are not known to differ: {}.",
                say::in_line(last)
            )?;
            writeln!(
                text,
                "Name the figure (--figure), hold longer (--hold), or give more time (--budget)."
            )?;
        }
        Ended::Interrupted => {
            writeln!(text, "Interrupted after {} comparisons; they are stored.", steps.len())?
        }
    }
    writeln!(
        text,
        "\n{} comparisons; changes are the mean within blocks, with intervals of 95 %:",
        steps.len()
    )?;
    for step in steps {
        writeln!(text, "{}", step.text(history))?;
    }
    Ok(text)
}
