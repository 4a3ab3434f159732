//! The axes of poll-loop's sweep: services, views, priorities, localities. Each combination is a cell of the ladder.
//!
//! Services are the innermost axis, since all others are options of the server, which must be restarted for them.
//! An axis that is not given has a default range; one that the server's own options fix has that single value.

use std::collections::BTreeMap;

use crate::layers::http_sweep;
use crate::layers::reader::{RawValue, Reader};
use crate::layers::subject::ResolvedTarget;
use crate::mistakes::{ConfigError, RequestConfigError};
use crate::plan::{Cell, SubjectSource};
use crate::settings::{Setting, Shape};
use crate::units::UnitError;
use crate::vocabulary;
use crate::workloads::{BotSettings, HttpBots, HttpCheck, HttpRequest, WorkloadSettings as _};

pub(super) const HEADING: &str = "Sweep of poll-loop";
const SWEEP: Setting = Setting::of(HEADING, &[]);

settings! { pub(super) SETTINGS;
    SERVICES = SWEEP.key("ladder.services", Shape::OneOrMore, "[root, object]")
        .about("poll-loop: the services to sweep, or all.")
        .flag("--services", "LIST").help("root, pilot, force-field, ihost, objects, object, script, property, or all")
        .default("root,object").flag_example("root,object");
    VIEWS = SWEEP.key("ladder.views", Shape::OneOrMore, "[background, foreground]")
        .about("poll-loop: in the background, where little is drawn, in the foreground, or all.")
        .flag("--views", "LIST").help("background, foreground, or all").default("all").flag_example("all");
    PRIORITIES = SWEEP.key("ladder.priorities", Shape::OneOrMore, "[normal, below-normal]")
        .about("poll-loop: the priority of its process: normal, below-normal or all.")
        .flag("--priorities", "LIST").help("normal, below-normal, or all")
        .default("all in the foreground, normal in the background").flag_example("all");
    LOCALITIES = SWEEP.key("ladder.localities", Shape::OneOrMore, "[none, high]")
        .about("poll-loop: objects near: none, moderate, high or all.")
        .flag("--localities", "LIST").help("Objects near: none, moderate, high, or all").default("moderate")
        .flag_example("all");
}

/// Whether anybody speaks of an axis.
pub(super) fn are_said(reader: &Reader) -> bool {
    SETTINGS.iter().any(|setting| reader.said(setting).is_some())
}

const VIEW_NAMES: [&str; 2] = ["background", "foreground"];
const PRIORITY_NAMES: [&str; 2] = ["normal", "below-normal"];
const LOCALITY_NAMES: [&str; 3] = ["none", "moderate", "high"];

/// The services with the path of each.
const SERVICE_PATHS: [(&str, &str); 8] = [
    ("root", "/"),
    ("pilot", "/pilot"),
    ("force-field", "/force-field?force=50"),
    ("ihost", "/ihost"),
    ("objects", "/objects"),
    ("object", "/object?id=1"),
    ("script", "/script/objects"),
    // One fact of the object whose full page `object` requests; all of them have the same cost and length.
    ("property", "/property?id=1&fact=heading"),
];
/// A short answer and a long one.
const SERVICES_USUAL: [&str; 2] = ["root", "object"];
const LOCALITY_USUAL: &str = "moderate";
/// View and priority; a background process leaves time enough, whatever its priority.
const CLASSES_USUAL: [(&str, &str); 3] =
    [("background", "normal"), ("foreground", "normal"), ("foreground", "below-normal")];

/// What poll-loop can be asked, one request per service.
pub(crate) fn services() -> Vec<HttpRequest> {
    let service = |(name, path): (&str, &str)| HttpRequest {
        name: name.into(),
        weight: 1.0,
        method: "GET".into(),
        path: path.into(),
        headers: Vec::new(),
        body: String::new(),
        check: HttpCheck { status: vec![(200, 200)], ..HttpCheck::default() },
        capture: Vec::new(),
    };
    SERVICE_PATHS.into_iter().map(service).collect()
}

/// The values of an axis: what was said, what the server's options nail down, or neither.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    RawValue(Vec<String>),
    NailedDown(String),
    Unsaid,
}

/// All cells, in the order in which they are climbed. Empty for subjects without axes.
pub(super) fn read(reader: &mut Reader, found: Option<&ResolvedTarget>, bots: &BotSettings) -> Vec<Cell> {
    let own = [&SERVICES, &VIEWS, &PRIORITIES, &LOCALITIES];
    let said = own.map(|setting| reader.all(setting));
    let Some(found) = found else { return Vec::new() };
    let has_axes = found.built_in().is_some_and(|server| server.has_axes);
    let swept = http_sweep::cells(reader, has_axes);
    let (true, Some(http), SubjectSource::BuiltIn { options, .. }) =
        (has_axes, HttpBots::of(bots), &found.source)
    else {
        for (setting, said) in own.into_iter().zip(said) {
            if let Some(said) = said {
                let place = said.first().unwrap_or(&reader.in_whole_file(setting)).place.clone();
                let wrong =
                    RequestConfigError::AxisOfPollLoop { axis: setting.name(), subject: found.name.clone() };
                reader.refuse_plainly(place, wrong);
            }
        }
        return swept;
    };
    let names: Vec<&str> = http.requests.iter().map(|request| request.name.as_str()).collect();
    let has_own_requests = names != SERVICE_PATHS.map(|(name, _)| name);
    if has_own_requests && said.iter().all(Option::is_none) {
        return Vec::new();
    }
    let [services, views, priorities, localities] = said;
    let services = match values(reader, services, &names) {
        Some(services) => services,
        None if has_own_requests => names.iter().map(|&name| name.to_owned()).collect(),
        None => SERVICES_USUAL.map(str::to_owned).to_vec(),
    };
    let nailed = Nailed::read(options);
    let views = axis(reader, &VIEWS, views, &VIEW_NAMES, nailed.view);
    let priorities = axis(reader, &PRIORITIES, priorities, &PRIORITY_NAMES, nailed.priority);
    let localities = axis(reader, &LOCALITIES, localities, &LOCALITY_NAMES, nailed.locality);
    let mut cells = Vec::new();
    for locality in of_axis(&localities, &[LOCALITY_USUAL]) {
        for (view, priority) in classes(&views, &priorities) {
            for service in &services {
                let combination =
                    Combination { service, view: &view, priority: &priority, locality: &locality };
                let is_nailed =
                    [&views, &priorities, &localities].map(|values| matches!(values, Values::NailedDown(_)));
                cells.push(cell(&combination, is_nailed, &names));
            }
        }
    }
    cells
}

struct Combination<'a> {
    service: &'a str,
    view: &'a str,
    priority: &'a str,
    locality: &'a str,
}

/// What the server's own options say of an axis: the option and its value.
struct Nailed {
    view: Option<(&'static str, String)>,
    priority: Option<(&'static str, String)>,
    locality: Option<(&'static str, String)>,
}

impl Nailed {
    fn read(options: &[String]) -> Nailed {
        let value = |name: &'static str| {
            super::subject::option_value(options, name).map(|value| (name, value.to_owned()))
        };
        let is_foreground = options.iter().any(|option| option == "--foreground");
        Nailed {
            view: is_foreground.then(|| ("--foreground", "foreground".to_owned())),
            priority: value("--priority"),
            locality: value("--locality"),
        }
    }
}

fn cell(combination: &Combination<'_>, is_nailed: [bool; 3], names: &[&str]) -> Cell {
    let Combination { service, view, priority, locality } = *combination;
    let [view_is, priority_is, locality_is] = is_nailed;
    let mut options = Vec::new();
    if !locality_is {
        options.extend(["--locality".to_owned(), locality.to_owned()]);
    }
    if !view_is && view == "foreground" {
        options.push("--foreground".to_owned());
    }
    if !priority_is && priority != "normal" {
        options.extend(["--priority".to_owned(), priority.to_owned()]);
    }
    let named = [("service", service), ("view", view), ("priority", priority), ("locality", locality)];
    Cell {
        names: BTreeMap::from(named.map(|(axis, value)| (axis.to_owned(), value.to_owned()))),
        options,
        request: names.iter().position(|name| *name == service),
    }
}

/// The values that were said, each once; `None` when nothing was. `all` is all there are.
fn values(reader: &mut Reader, said: Option<Vec<RawValue>>, known: &[&str]) -> Option<Vec<String>> {
    let said = said?;
    let mut values = Vec::new();
    for one in &said {
        let text = one.text.trim();
        if text == "all" && said.len() == 1 {
            return Some(known.iter().map(|&name| name.to_owned()).collect());
        }
        if !known.contains(&text) {
            let wrong = RequestConfigError::NotInAxis { text: text.into(), known: vocabulary::listed(known) };
            let nearest = vocabulary::nearest(text, known.iter().copied()).map(str::to_owned);
            let wrong = if text.is_empty() { UnitError::Empty.into() } else { ConfigError::from(wrong) };
            reader.refuse_with(one, wrong, nearest);
        } else if values.iter().any(|value| value == text) {
            reader.refuse(one, RequestConfigError::TwiceInAxis(text.into()).into());
        } else {
            values.push(text.to_owned());
        }
    }
    Some(values)
}

/// An axis that is an option of the server, which may be nailed down behind `--`.
fn axis(
    reader: &mut Reader,
    setting: &Setting,
    said: Option<Vec<RawValue>>,
    known: &[&str],
    nailed: Option<(&'static str, String)>,
) -> Values {
    let place = said.as_ref().and_then(|said| said.first()).map(|said| said.place.clone());
    match (values(reader, said, known), nailed) {
        (Some(values), None) => Values::RawValue(values),
        (None, Some((_, value))) => Values::NailedDown(value),
        (None, None) => Values::Unsaid,
        (Some(values), Some((option, _))) => {
            if let Some(place) = place {
                let wrong = RequestConfigError::AxisNailedDown { axis: setting.name(), option };
                reader.refuse_plainly(place, wrong);
            }
            Values::RawValue(values)
        }
    }
}

fn of_axis(values: &Values, usual: &[&str]) -> Vec<String> {
    match values {
        Values::RawValue(values) => values.clone(),
        Values::NailedDown(value) => vec![value.clone()],
        Values::Unsaid => usual.iter().map(|&value| value.to_owned()).collect(),
    }
}

/// Views with priorities. Where only one of the two was said, the usual combinations that have it.
fn classes(views: &Values, priorities: &Values) -> Vec<(String, String)> {
    let views_of = of_axis(views, &VIEW_NAMES);
    let priorities_of = of_axis(priorities, &PRIORITY_NAMES);
    let is_usual = |view: &str, priority: &str| CLASSES_USUAL.contains(&(view, priority));
    let is_open = *views == Values::Unsaid || *priorities == Values::Unsaid;
    let mut classes = Vec::new();
    for view in &views_of {
        for priority in &priorities_of {
            if !is_open || is_usual(view, priority) {
                classes.push((view.clone(), priority.clone()));
            }
        }
    }
    classes
}
