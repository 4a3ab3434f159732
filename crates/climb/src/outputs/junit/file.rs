//! Writes test cases as the file that CI systems read.

use std::io;

use console::say;
use ladder::RunFacts;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

/// What became of a test case.
#[derive(Debug, PartialEq)]
pub(super) enum State {
    Passed,
    Failure(Found),
    Error(Found),
    Skipped(String),
}

/// What a failure or an error says.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    /// one word: `FAIL`, `NOT_MET` …
    pub kind: &'static str,
    /// one sentence
    pub message: String,
    /// lines behind it
    pub details: String,
}

/// One test case.
pub(super) struct Case {
    pub group: &'static str,
    pub name: String,
    pub seconds: f64,
    pub state: State,
}

/// The whole file. `page`: the results page.
pub(super) fn file(
    run: &RunFacts,
    properties: &[(&str, String)],
    cases: &[Case],
    page: &str,
) -> io::Result<String> {
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
pub(super) fn text(text: &str) -> String {
    let masked = console::masks::mask_own(text);
    say::harmless(&masked)
        .replace('\u{1b}', "\\u001b")
        .replace('\u{fffe}', "\\ufffe")
        .replace('\u{ffff}', "\\uffff")
}

/// The same in one line: line ends in an attribute would be read as blanks.
pub(super) fn attribute(words: &str) -> String {
    text(words).replace('\n', "\\n").replace('\t', "\\t")
}
