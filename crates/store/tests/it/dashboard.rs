//! The dashboard for Grafana (`examples/grafana`): every name in its queries is one that a run tells, and its form is Grafana's.

use std::collections::{BTreeMap, BTreeSet};

use measure::{Entry, MachineMetric, Measure, ProcessMetric, Reading, Sample};
use serde_json::Value;
use store::StoredVerdict;
use store::export::{RunSums, open_metrics};

use crate::given;

const DASHBOARD: &str = include_str!("../../../../examples/grafana/dashboard.json");

/// Values of each label by the name of its sample, of a run in which everything occurs that can be told.
fn told() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
    let mut entries = given::one_of_each();
    let Some(Entry::Interval(second)) = entries.first_mut() else { panic!("its second comes first") };
    for measure in Measure::ALL {
        for in_hold in [false, true] {
            second.distribution_mut(*measure, in_hold).record(1_000);
        }
    }
    (second.ticks.due, second.ticks.on_time) = (60, 60);
    let of_processes = |name: &ProcessMetric| [Reading::Subject(*name), Reading::Worker(*name)];
    let readings = ProcessMetric::ALL.iter().flat_map(of_processes);
    let readings = readings.chain(MachineMetric::ALL.iter().map(|name| Reading::Machine(*name)));
    entries.extend((0..2).flat_map(|at_ns| {
        readings.clone().map(move |what| Entry::Sample(Sample { at_ns, what, value: 1.0 }))
    }));
    writer.append(entries).unwrap();
    writer.end_trial(1).unwrap();
    let verdict =
        StoredVerdict { verdict: "PASS".to_owned(), evidence: "{}".to_owned(), ..StoredVerdict::default() };
    writer.verdict(0, verdict).unwrap();
    let mut sums = RunSums::new(writer.id().clone());
    sums.read_on(&given.store).unwrap();
    let mut told: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for line in open_metrics(&sums.families(&str::to_owned)).lines().filter(|line| !line.starts_with('#')) {
        let (key, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = key.split_once('{').unwrap_or((key, ""));
        let labels_of_name = told.entry(name.to_owned()).or_default();
        for (label, value) in
            labels.trim_end_matches("\"}").split("\",").filter_map(|one| one.split_once("=\""))
        {
            labels_of_name.entry(label.to_owned()).or_default().insert(value.to_owned());
        }
    }
    told
}

/// All texts at this key, anywhere below.
fn texts<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key).and_then(Value::as_str));
            fields.values().for_each(|below| texts(below, key, found));
        }
        Value::Array(values) => values.iter().for_each(|below| texts(below, key, found)),
        _ => {}
    }
}

/// What a query asks for that no run tells.
fn unknown(query: &str, told: &BTreeMap<String, BTreeMap<String, BTreeSet<String>>>) -> Vec<String> {
    // Those that a scrape adds, and that of the buckets.
    const OF_SCRAPES: [&str; 3] = ["instance", "job", "le"];
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let (mut wrong, mut labels) = (Vec::new(), BTreeSet::from(OF_SCRAPES.map(str::to_owned)));
    let mut rest = query;
    while let Some(at) = rest.find("stepladder_") {
        let end = rest[at..].find(|letter| !is_of_name(letter)).map_or(rest.len(), |end| at + end);
        let name = &rest[at..end];
        rest = &rest[end..];
        let Some(known) = told.get(name) else {
            wrong.push(name.to_owned());
            continue;
        };
        labels.extend(known.keys().cloned());
        let matchers = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let Some((matchers, behind)) = matchers else { continue };
        rest = behind;
        for matcher in matchers.split(',') {
            let (label, value) = matcher.split_once('=').unwrap();
            let values = value.trim_start_matches('~').trim_matches('"').split('|');
            match known.get(label) {
                None if OF_SCRAPES.contains(&label) => {}
                None => wrong.push(format!("{name}: {label}")),
                Some(known) => wrong.extend(
                    values
                        .filter(|value| !known.contains(*value))
                        .map(|value| format!("{name}: {label} {value}")),
                ),
            }
        }
    }
    let groups = query.split("by (").skip(1).filter_map(|behind| behind.split(')').next());
    let grouped = groups.flat_map(|group| group.split(',')).map(str::trim);
    wrong.extend(grouped.filter(|label| !labels.contains(*label)).map(|label| format!("by {label}")));
    wrong
}

#[test]
fn every_name_of_the_dashboard_is_one_that_a_run_tells() {
    let told = told();
    // It finds what is wrong.
    for (query, expected) in [
        ("sum(rate(stepladder_messages_total{state=\"sent\"}[5s]))", &[][..]),
        ("stepladder_mesages_total", &["stepladder_mesages_total"]),
        ("stepladder_messages_total{state=~\"sent|gone\"}", &["stepladder_messages_total: state gone"]),
        (
            "sum by (le, cause) (stepladder_messages_total{cause=\"x\"})",
            &["stepladder_messages_total: cause", "by cause"],
        ),
    ] {
        assert_eq!(unknown(query, &told), expected, "{query}");
    }
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, "expr", &mut queries);
    texts(&dashboard["templating"], "query", &mut queries);
    assert!(queries.len() > 20, "{queries:?}");
    let mut legends = Vec::new();
    texts(&dashboard, "legendFormat", &mut legends);
    let wrong: Vec<_> = queries.iter().flat_map(|query| unknown(query, &told)).collect();
    assert!(wrong.is_empty(), "{wrong:#?} of {:#?}", told.keys());
    let known: BTreeSet<&String> = told.values().flat_map(BTreeMap::keys).collect();
    for label in
        legends.iter().flat_map(|legend| legend.split("{{").skip(1)).filter_map(|one| one.split("}}").next())
    {
        assert!(known.iter().any(|known| *known == label), "{label}");
    }
}

#[test]
fn the_dashboard_has_the_form_that_grafana_asks_for() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(
        dashboard["schemaVersion"].as_u64() >= Some(36) && dashboard["uid"].is_string(),
        "a data source is an object"
    );
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!((&variables[0]["name"], &variables[0]["type"]), (&"datasource".into(), &"datasource".into()));
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(number(&panel["id"])), "{panel}: its id stands twice");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| number(&panel["gridPos"][side]));
        assert!(x + w <= 24 && w > 0 && h > 0, "{panel}: it does not fit 24 columns");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{panel}: it lies on another");
        }
        let targets = panel["targets"].as_array().unwrap();
        let references: BTreeSet<_> =
            targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert_eq!(references.len(), targets.len(), "{panel}: refId");
        for source in targets.iter().map(|target| &target["datasource"]).chain([&panel["datasource"]]) {
            assert_eq!(source["uid"], "${datasource}", "{panel}: a data source of one installation");
        }
    }
}
