//! A climb or a duel as JUnit XML, for the test reports of CI systems.
//!
//! Shape: `testsuites` with one `testsuite`; of a climb a `testcase` per hold of a load and per gate; without gates one for the verdict of
//! the whole run; `system-out` holds the command, the machine and the closing page; of a duel, see `of_duel`. Times are seconds.
//! Invariant: there is a failure or an error exactly if the exit code is not 0. What could not be told is an `error` and never
//! passes; a rung that did not hold, where gates or the search decide, is `skipped` with its reason.
//! Source of the form: the schema that Jenkins and Surefire accept (junit-10.xsd), in its order of elements.

mod of_duel;

use std::collections::BTreeMap;
use std::io;

use console::say;
use ladder::wording::{show_cell, show_number};
use ladder::{Climb, GateResult, RunFacts, Rung, Verdict};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

pub use self::of_duel::report as report_of_duel;

/// What became of a test case.
#[derive(Debug, PartialEq)]
enum State {
    Passed,
    Failure(Found),
    Error(Found),
    Skipped(String),
}

/// What a failure or an error says.
#[derive(Debug, PartialEq)]
struct Found {
    /// one word: `FAIL`, `NOT_MET` …
    kind: &'static str,
    /// one sentence
    message: String,
    /// lines behind it
    details: String,
}

/// One test case.
struct Case {
    group: &'static str,
    name: String,
    seconds: f64,
    state: State,
}

/// The whole file.
pub fn report(climb: &Climb) -> io::Result<String> {
    file(&climb.run, &properties(climb), &cases(climb), &ladder::closing(climb).to_string())
}

/// `page`: the closing page.
fn file(run: &RunFacts, properties: &[(&str, String)], cases: &[Case], page: &str) -> io::Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |is: fn(&State) -> bool| cases.iter().filter(|case| is(&case.state)).count().to_string();
    let tests = cases.len().to_string();
    let failures = count(|state| matches!(state, State::Failure(_)));
    let errors = count(|state| matches!(state, State::Error(_)));
    let skipped = count(|state| matches!(state, State::Skipped(_)));
    let time = format!("{:.3}", cases.iter().map(|case| case.seconds).sum::<f64>());
    let counts = [("tests", tests.as_str()), ("failures", &failures), ("errors", &errors), ("time", &time)];
    let name = attribute(run.name.as_ref().unwrap_or(&run.subject));
    let suites = writer.create_element("testsuites").with_attribute(("name", "stepladder"));
    suites.with_attributes(counts).write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name.as_str()));
        let suite = suite.with_attributes(counts).with_attributes([
            ("skipped", skipped.as_str()),
            ("id", "0"),
            ("package", "stepladder"),
            ("hostname", &attribute(&host(run))),
            ("timestamp", &timestamp(run.started_unix_ms)),
        ]);
        suite.write_inner_content(|writer| {
            property_list(writer, properties)?;
            cases.iter().try_for_each(|case| test_case(writer, &name, case))?;
            writer
                .create_element("system-out")
                .write_text_content(BytesText::new(&text(&about(run, page))))?;
            Ok(())
        })?;
        Ok(())
    })?;
    String::from_utf8(writer.into_inner()).map_err(io::Error::other)
}

fn properties(climb: &Climb) -> Vec<(&'static str, String)> {
    let run = &climb.run;
    let bound = |bound: Option<f64>| bound.map_or(String::new(), show_number);
    vec![
        ("run", run.id.clone()),
        ("subject", run.subject.clone()),
        ("verdict", climb.verdict.to_string()),
        ("capacity.unit", climb.capacity.unit.to_string()),
        ("capacity.lower_bound", bound(climb.capacity.lower_bound)),
        ("capacity.upper_bound", bound(climb.capacity.upper_bound)),
        ("seed", run.seed.to_string()),
        ("stepladder", run.stepladder.clone()),
        ("git", run.git.clone().unwrap_or_default()),
    ]
}

fn property_list(writer: &mut Writer<Vec<u8>>, properties: &[(&str, String)]) -> io::Result<()> {
    writer.create_element("properties").write_inner_content(|writer| {
        for (name, value) in properties.iter().filter(|(_, value)| !value.is_empty()) {
            let property = writer.create_element("property").with_attribute(("name", *name));
            property.with_attribute(("value", attribute(value).as_str())).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn test_case(writer: &mut Writer<Vec<u8>>, suite: &str, case: &Case) -> io::Result<()> {
    let element = writer.create_element("testcase").with_attributes([
        ("classname", format!("{suite}.{}", case.group).as_str()),
        ("name", &attribute(&case.name)),
        ("time", &format!("{:.3}", case.seconds)),
    ]);
    let (tag, found) = match &case.state {
        State::Passed => return element.write_empty().map(drop),
        State::Skipped(message) => {
            let inner = |writer: &mut Writer<Vec<u8>>| {
                let skipped = writer.create_element("skipped");
                skipped.with_attribute(("message", attribute(message).as_str())).write_empty().map(drop)
            };
            return element.write_inner_content(inner).map(drop);
        }
        State::Failure(found) => ("failure", found),
        State::Error(found) => ("error", found),
    };
    element
        .write_inner_content(|writer| {
            let element = writer.create_element(tag).with_attribute(("type", found.kind));
            let element = element.with_attribute(("message", attribute(&found.message).as_str()));
            element.write_text_content(BytesText::new(&text(&found.details))).map(drop)
        })
        .map(drop)
}

fn cases(climb: &Climb) -> Vec<Case> {
    // A rung decides only where its failure is one of the run.
    let rungs_decide = climb.gates.is_empty() && climb.verdict != Verdict::Pass;
    let names = names(&climb.rungs);
    let rungs = climb.rungs.iter().zip(names).map(|(rung, name)| Case {
        group: "rungs",
        name,
        seconds: rung.hold_s,
        state: of_rung(rung, rungs_decide),
    });
    let mut cases: Vec<Case> = rungs.collect();
    let whole = |group, name: &str, state| Case { group, name: name.to_owned(), seconds: 0.0, state };
    if climb.gates.is_empty() {
        cases.push(whole("run", "verdict", of_run(climb)));
    }
    cases
        .extend(climb.gates.iter().map(|gate| whole("gates", &format!("gate {}", gate.gate), of_gate(gate))));
    if let Some(why) = &climb.ended_early {
        let found = Found { kind: "ENDED_EARLY", message: why.clone(), details: why.clone() };
        cases.push(whole("run", "whole", State::Error(found)));
    }
    cases
}

/// Names that are the same in every run of the same plan, so that CI systems recognise them.
fn names(rungs: &[Rung]) -> Vec<String> {
    let mut held: BTreeMap<String, u32> = BTreeMap::new();
    let mut names = Vec::new();
    for rung in rungs {
        let mut name = format!("{} {}", show_number(rung.load), rung.load_unit);
        if let Some(cell) = &rung.cell {
            name += &format!(", {}", show_cell(cell));
        }
        let count = held.entry(name.clone()).or_default();
        *count += 1;
        names.push(if *count == 1 { name } else { format!("{name}, hold {count}") });
    }
    names
}

fn of_rung(rung: &Rung, decides: bool) -> State {
    let reason = rung.reason.clone().unwrap_or_else(|| "no reason is stored".to_owned());
    if rung.verdict == Verdict::Pass {
        return State::Passed;
    }
    if !decides {
        return State::Skipped(format!("{}: {reason}", rung.verdict));
    }
    let mut details = vec![reason.clone()];
    details.extend(rung.remark.clone());
    details.extend(
        rung.errors.iter().filter(|(_, count)| **count > 0).map(|(cause, count)| format!("{cause}: {count}")),
    );
    details.extend(rung.error_samples.iter().map(|one| format!("{}, for example: {}", one.cause, one.text)));
    state(rung.verdict, reason, details.join("\n"))
}

fn of_run(climb: &Climb) -> State {
    let answers: Vec<&str> = climb.conclusions.iter().map(|answer| answer.text.as_str()).collect();
    let first = answers.first().copied().unwrap_or_default().to_owned();
    state(climb.verdict, first, answers.join("\n"))
}

fn state(verdict: Verdict, message: String, details: String) -> State {
    let found = Found { kind: verdict.name(), message, details };
    match verdict {
        Verdict::Pass => State::Passed,
        Verdict::Fail => State::Failure(found),
        Verdict::GeneratorLimited | Verdict::Inconclusive | Verdict::Invalid => State::Error(found),
    }
}

fn of_gate(gate: &GateResult) -> State {
    let found = |kind| Found { kind, message: gate.found.clone(), details: gate.found.clone() };
    match gate.met {
        Some(true) => State::Passed,
        Some(false) => State::Failure(found("NOT_MET")),
        None => State::Error(found("CANNOT_BE_TOLD")),
    }
}

fn about(run: &RunFacts, page: &str) -> String {
    let machine = serde_json::to_string(&run.environment).unwrap_or_default();
    format!("command: {}\nmachine: {machine}\n\n{page}", run.command)
}

fn host(run: &RunFacts) -> String {
    let name = run.environment.get("hostname").and_then(|name| name.as_str());
    name.filter(|name| !name.is_empty()).unwrap_or("localhost").to_owned()
}

/// Without a zone, as the schema wants it: UTC.
fn timestamp(unix_ms: u64) -> String {
    let instant = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    instant.unwrap_or_default().strftime("%FT%T").to_string()
}

/// A text as XML may hold it: control characters, which XML 1.0 has no form for, are written as JSON writes them.
fn text(text: &str) -> String {
    let masked = console::masks::mask_own(text);
    say::harmless(&masked)
        .replace('\u{1b}', "\\u001b")
        .replace('\u{fffe}', "\\ufffe")
        .replace('\u{ffff}', "\\uffff")
}

/// The same in one line: line ends in an attribute would be read as blanks.
fn attribute(words: &str) -> String {
    text(words).replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests;
