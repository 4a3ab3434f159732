//! The capacity of a server over its commits: the climbs of one or more stores as one static page without scripts.
//!
//! A line (`Series`) holds runs that are comparable: same server, plan and machine (`ladder::history::incomparable`). Each
//! run is a bar from the largest load that held to the smallest that did not. Where the capacity changed is `ladder`'s to say.
//! All texts of a store are escaped and cut; the page asks no other for anything, and a policy in it forbids that.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use jiff::Timestamp;
use ladder::history::{Between, Change, FEWEST, changes, incomparable};
use ladder::wording::{show_ns, show_number, show_share};
use ladder::{Capacity, Difference, LoadUnit, Origin, Verdict};
use measure::plain_text;
use quick_xml::escape::escape;
use serde::Deserialize;
use serde_json::Value;
use store::{Outcome, RunEnd, RunKind, RunRecord, RunState, Store, StoreError};

use crate::comparison::origin;

/// Colours and type are those of the page; then what only this one has.
const STYLE: &str = concat!(include_str!("base.css"), include_str!("history.css"));
/// A text of a store shows so much of itself.
const TEXT_CHARS: usize = 300;
/// A setting, where it differs from that of the line above.
const SETTING_CHARS: usize = 60;
/// At most this many differing settings are listed.
const SETTINGS_NAMED: usize = 4;
/// The scale ends so much above the largest bound, so that a bar without an upper one reaches beyond all others.
const SCALE: f64 = 1.12;

/// A page of histories, and what it leaves out.
#[derive(Debug)]
pub struct HistoryPage {
    /// self-contained HTML
    pub html: String,
    /// runs with a bar or a row in it
    pub runs: usize,
    /// runs that are damaged
    pub damaged: Vec<StoreError>,
}

/// The part of a run's stored answers that a history is made of; the contract has it alike in every version.
#[derive(Deserialize)]
struct Told {
    capacity: Capacity,
    verdict: Verdict,
}

/// A run that ended in order.
struct Point {
    id: String,
    number: u64,
    started_unix_ms: u64,
    origin: Origin,
    command: String,
    unit: LoadUnit,
    verdict: Verdict,
    held: Between,
}

/// Comparable runs in the order of time, and where their capacity changed; `None`: they are too few to say.
struct Series {
    points: Vec<Point>,
    changes: Option<Vec<Change>>,
}

/// Runs of climbs that the page does not show.
#[derive(Default)]
struct LeftOut {
    unended: usize,
    of_other_versions: usize,
    of_other_kinds: usize,
}

/// The histories of all climbs in these stores. A run that is in two of them, as in copies of one store, counts once.
///
/// Errors: what a store says that cannot even list its runs.
pub fn history(stores: &[Store]) -> Result<HistoryPage, StoreError> {
    let (mut left_out, mut damaged) = (LeftOut::default(), Vec::new());
    let (mut points, mut seen) = (Vec::new(), BTreeSet::new());
    for store in stores {
        let list = store.runs()?;
        damaged.extend(list.damaged);
        for run in list.runs {
            if seen.insert((run.head.started_unix_ms, run.id.clone())) {
                points.extend(left_out.or_point(run));
            }
        }
    }
    points.sort_by(|a: &Point, b| {
        (a.started_unix_ms, a.number, &a.id).cmp(&(b.started_unix_ms, b.number, &b.id))
    });
    let runs = points.len();
    let all = series(points);
    Ok(HistoryPage { html: html(&all, runs, &left_out, damaged.len()), runs, damaged })
}

impl LeftOut {
    /// A run as a point of a line, or counted here.
    fn or_point(&mut self, run: RunRecord) -> Option<Point> {
        if run.head.kind != RunKind::Climb {
            self.of_other_kinds += 1;
            return None;
        }
        let RunState::Ended(RunEnd { outcome: Outcome::Finished, climb: Some(climb), .. }) = &run.state
        else {
            self.unended += 1;
            return None;
        };
        let Ok(Told { capacity, verdict }) = serde_json::from_str(climb) else {
            self.of_other_versions += 1;
            return None;
        };
        Some(Point {
            id: run.id.to_string(),
            number: run.number,
            started_unix_ms: run.head.started_unix_ms,
            origin: origin(&run.head),
            command: run.head.command,
            unit: capacity.unit,
            verdict,
            held: Between::of(&capacity),
        })
    }

    fn in_words(&self, damaged: usize) -> String {
        let counted = [
            (self.unended, "did not end in order"),
            (self.of_other_versions, "were judged by another version"),
            (self.of_other_kinds, "of another kind (duels, comparisons of client libraries)"),
            (damaged, "are damaged"),
        ];
        let parts: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        if parts.is_empty() { String::new() } else { format!("Not shown: {}.", parts.join(", ")) }
    }
}

/// Points by what is comparable, the line with the newest run first.
fn series(points: Vec<Point>) -> Vec<Series> {
    let mut all: Vec<Vec<Point>> = Vec::new();
    for point in points {
        let is_of = |line: &&mut Vec<Point>| {
            let first = &line[0];
            first.unit == point.unit && incomparable(&first.origin, &point.origin).is_empty()
        };
        match all.iter_mut().find(is_of) {
            Some(line) => line.push(point),
            None => all.push(vec![point]),
        }
    }
    all.sort_by_key(|line| std::cmp::Reverse(line.last().map(|point| point.started_unix_ms)));
    let of = |points: Vec<Point>| {
        let held: Vec<Between> = points.iter().map(|point| point.held).collect();
        Series { changes: changes(&held), points }
    };
    all.into_iter().map(of).collect()
}

fn html(all: &[Series], runs: usize, left_out: &LeftOut, damaged: usize) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Capacity over time</title>\n<style>{STYLE}</style>\n<main>\n<h1>Capacity over time</h1>\n"
    );
    let lines = if all.len() == 1 { "1 line".to_owned() } else { format!("{} lines", all.len()) };
    let _ = writeln!(
        page,
        "<p class=\"muted\">{runs} runs in {lines}; runs share a line if server, plan and machine are the same. A bar reaches from \
         the largest load that held to the smallest that did not. {}</p>",
        text(&left_out.in_words(damaged))
    );
    for (at, line) in all.iter().enumerate() {
        let above =
            all[..at].iter().rev().find(|other| other.first().origin.subject == line.first().origin.subject);
        line.write(&mut page, above);
    }
    page + "</main>\n</html>\n"
}

impl Series {
    fn first(&self) -> &Point {
        &self.points[0]
    }

    fn write(&self, page: &mut String, above: Option<&Series>) {
        let newest = &self.points[self.points.len() - 1];
        let _ = writeln!(
            page,
            "<section>\n<h2>{} <small>{}</small></h2>",
            text(&newest.origin.subject),
            newest.unit
        );
        let _ = writeln!(page, "<p class=\"note\"><code>{}</code></p>", text(&newest.command));
        if let Some(above) = above {
            let differ = incomparable(&above.first().origin, &newest.origin);
            let _ = writeln!(
                page,
                "<p class=\"note\">Not comparable with the line above: {}.</p>",
                text(&named(&differ))
            );
        }
        for words in self.findings() {
            let _ = writeln!(page, "<p class=\"finding\">{}</p>", text(&words));
        }
        self.picture(page);
        self.table(page);
        page.push_str("</section>\n");
    }

    /// Each change in a sentence, the newest first, or why there is none.
    fn findings(&self) -> Vec<String> {
        let count = self.points.iter().filter(|point| point.held != Between::default()).count();
        match &self.changes {
            None => vec![format!(
                "Too few runs to tell a change from chance: {FEWEST} with bounds are needed, and there are {count}."
            )],
            Some(found) if found.is_empty() => {
                vec![format!("No change: as far as {count} runs tell, they differ by chance.")]
            }
            Some(found) => found.iter().rev().map(|change| self.finding(change)).collect(),
        }
    }

    fn finding(&self, change: &Change) -> String {
        let (before, at) = (&self.points[change.at - 1], &self.points[change.at]);
        let verb = if change.is_rise { "rose" } else { "fell" };
        let mut words = format!(
            "It {verb} with run {}{}: {} {} before, {} since (medians; {} of shuffled histories show as much).",
            at.id,
            at.commit().map_or(String::new(), |commit| format!(", commit {commit}")),
            change.before.in_words(),
            at.unit,
            change.after.in_words(),
            show_share(change.p),
        );
        if before.origin.stepladder != at.origin.stepladder {
            let (was, is) = (&before.origin.stepladder, &at.origin.stepladder);
            let _ = write!(words, " Stepladder changed there too, from {was} to {is}.");
        }
        words
    }

    /// The whole line at a glance, without words in it: their size would change with the page's.
    fn picture(&self, page: &mut String) {
        let (count, top) = (self.points.len(), self.top());
        // Their rows say as much.
        if count < 3 {
            return;
        }
        let height = |load: f64| 100.0 - load / top * 100.0;
        let _ = write!(
            page,
            "<figure><svg class=\"history\" viewBox=\"0 0 {count} 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
        );
        for (at, point) in
            self.points.iter().enumerate().filter(|(_, point)| point.held != Between::default())
        {
            let (lower, upper) = point.ends(top);
            let (from, to) = (height(upper), height(lower));
            let _ = write!(
                page,
                "<rect class=\"{}\" x=\"{:.2}\" y=\"{from:.2}\" width=\"0.7\" height=\"{:.2}\"/>",
                point.class(),
                at as f64 + 0.15,
                (to - from).max(1.0)
            );
        }
        for change in self.changes.iter().flatten() {
            let at = change.at;
            let _ = write!(page, "<path class=\"change\" d=\"M{at} 0V100\"/>");
        }
        let _ = writeln!(
            page,
            "</svg><figcaption class=\"muted\">0 to {} {} from bottom to top; the oldest run is on the left{}</figcaption></figure>",
            show_number(self.top()),
            self.first().unit,
            if self.changes.iter().flatten().next().is_some() { ", and a line is a change" } else { "" }
        );
    }

    /// A row per run, the newest first, and one for each change.
    fn table(&self, page: &mut String) {
        page.push_str(
            "<table class=\"runs\">\n<thead><tr><th>began (UTC)</th><th>commit</th><th>run</th><th>verdict</th><th>held</th><th></th></tr></thead>\n<tbody>\n",
        );
        let top = self.top();
        for (at, point) in self.points.iter().enumerate().rev() {
            point.row(page, top);
            if let Some(change) = self.changes.iter().flatten().find(|change| change.at == at) {
                let (class, sign) = if change.is_rise { ("rise", "▲ rose") } else { ("fall", "▼ fell") };
                let _ = writeln!(
                    page,
                    "<tr class=\"change {class}\"><td colspan=\"6\">{sign} here: {} before, {} since</td></tr>",
                    change.before.in_words(),
                    change.after.in_words()
                );
            }
        }
        page.push_str("</tbody>\n</table>\n");
    }

    fn largest(&self) -> f64 {
        let bounds = self.points.iter().flat_map(|point| [point.held.lower, point.held.upper]).flatten();
        bounds.fold(0.0, f64::max)
    }

    /// The end of the scale.
    fn top(&self) -> f64 {
        (self.largest() * SCALE).max(f64::MIN_POSITIVE)
    }
}

impl Point {
    fn commit(&self) -> Option<Cow<'_, str>> {
        self.origin.git.as_deref().map(|commit| Cow::Owned(plain_text(commit, TEXT_CHARS)))
    }

    /// Where its bar begins and ends.
    fn ends(&self, top: f64) -> (f64, f64) {
        (self.held.lower.unwrap_or(0.0), self.held.upper.unwrap_or(top))
    }

    /// A bound that is not known is drawn as one that is open.
    fn class(&self) -> &'static str {
        if self.held.lower.is_some() && self.held.upper.is_some() { "bar" } else { "bar open" }
    }

    fn row(&self, page: &mut String, top: f64) {
        let verdict = self.verdict.name();
        let began =
            i64::try_from(self.started_unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let began = began.map_or_else(|| "—".to_owned(), |at| at.strftime("%F %H:%M").to_string());
        let _ = write!(
            page,
            "<tr><td>{began}</td><td><code>{}</code></td><td>{}</td><td class=\"{}\">{}</td><td class=\"held\">{}</td><td class=\"picture\">",
            text(&self.commit().unwrap_or(Cow::Borrowed("—"))),
            text(&self.id),
            verdict.to_lowercase(),
            verdict.replace('_', " "),
            self.held.in_words()
        );
        if self.held != Between::default() {
            let (lower, upper) = self.ends(top);
            let (from, to) = (lower / top * 100.0, upper / top * 100.0);
            let _ = write!(
                page,
                "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"rail\" d=\"M0 5H100\"/>\
                 <rect class=\"{}\" x=\"{from:.2}\" y=\"1\" width=\"{:.2}\" height=\"8\"/></svg>",
                self.class(),
                (to - from).max(0.8)
            );
        }
        page.push_str("</td></tr>\n");
    }
}

/// `ladder.rungs (500 there, 1000 here)` of the first few.
fn named(differences: &[Difference]) -> String {
    let named = differences.iter().take(SETTINGS_NAMED);
    let mut parts: Vec<String> = named
        .map(|one| {
            format!(
                "{} ({} there, {} here)",
                one.what,
                setting(&one.what, &one.old),
                setting(&one.what, &one.new)
            )
        })
        .collect();
    let more = differences.len().saturating_sub(SETTINGS_NAMED);
    parts.extend((more > 0).then(|| format!("{more} more")));
    if parts.is_empty() { "another unit of the loads".to_owned() } else { parts.join(", ") }
}

/// A setting as people write it: `15 s` of nanoseconds, `[500, 1000]` of a list.
fn setting(what: &str, value: &Value) -> String {
    let is_time = what.ends_with(".time") || what.ends_with("_ns");
    match value {
        Value::String(text) => plain_text(text, SETTING_CHARS),
        Value::Null => "none".to_owned(),
        Value::Number(number) if is_time => show_ns(number.as_f64().unwrap_or_default()),
        Value::Number(number) => show_number(number.as_f64().unwrap_or_default()),
        Value::Array(values) => {
            let all: Vec<String> = values.iter().map(|value| setting(what, value)).collect();
            plain_text(&format!("[{}]", all.join(", ")), SETTING_CHARS)
        }
        other => plain_text(&other.to_string(), SETTING_CHARS),
    }
}

/// A text of a store as text of the page.
fn text(text: &str) -> String {
    let plain = plain_text(text, TEXT_CHARS);
    escape(if text.is_empty() { "" } else { plain.as_str() }).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_written_as_people_say_them() {
        for (what, value, expected) in [
            ("ladder.hold.time", json!(15_000_000_000_u64), "15 s"),
            ("ladder.rungs", json!([300.0, 1_500.0]), "[300, 1500]"),
            ("ladder.hold", json!(60), "60"),
            ("subject.options", json!([]), "[]"),
            ("subject.name", Value::Null, "none"),
        ] {
            assert_eq!(setting(what, &value), expected, "{what}");
        }
    }
}
