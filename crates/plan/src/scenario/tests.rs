use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

fn scenarios() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// What is wrong with a file, one message per line; empty when nothing is.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let (_, mistakes) = read(&ScenarioText { path: "x.yaml".into(), text: text.into() });
    let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(mistakes, expected, "{text}");
}

#[test]
fn what_is_no_scenario_is_refused_with_its_line() {
    check("", &["x.yaml: the scenario is empty (for example: subject: { target: ws://127.0.0.1:42069 })"]);
    check(
        "# nothing\n",
        &["x.yaml: the scenario is empty (for example: subject: { target: ws://127.0.0.1:42069 })"],
    );
    let example = "(for example: { subject: { target: ws://127.0.0.1:42069 } })";
    check("words", &[&format!("x.yaml:1: this is one value, but a mapping belongs here {example}")]);
    check("- a\n- b\n", &[&format!("x.yaml:1: this is a list, but a mapping belongs here {example}")]);
    check("seed: 1\nseed: 2\n", &["x.yaml:2: the key \"seed\" is there twice"]);
    check("seed: *s\n", &["x.yaml:1: this cannot be read as YAML: alias references unknown anchor"]);
    check("name: \"a", &["x.yaml:1: this cannot be read as YAML: unclosed quote"]);
    check("name: a\n---\nname: b\n", &["x.yaml:3: a second document begins here, but a scenario is one"]);
    check(
        "ladder: {rungs: [~, 5]}\n",
        &["x.yaml:1: ladder.rungs: a list has an empty entry (for example: rungs: [500, 1000, 2000])"],
    );
    let deep = format!("name: {}{}", "[".repeat(40), "]".repeat(40));
    check(&deep, &["x.yaml:1: this is too large or nested too deep for a scenario"]);
}

#[test]
fn a_key_without_a_value_is_a_setting_not_made() {
    check("subject:\n  target: arena\nladder:\nname:\n", &[]);
}

#[test]
fn values_keep_the_spelling_of_their_author() {
    let text = "name: 1.0\nseed: 18446744073709551615\nladder: { rungs: [1e3] }\nbots: arena\n";
    let (scenario, mistakes) = read(&ScenarioText { path: "x.yaml".into(), text: text.into() });
    let scenario = scenario.unwrap();
    assert!(mistakes.is_empty());
    let text_of = |key: &str| scenario.at(key).map_or("", Node::text);
    assert_eq!((text_of("name"), text_of("seed")), ("1.0", "18446744073709551615"));
    assert_eq!(scenario.at("ladder.rungs").unwrap().items()[0].text(), "1e3");
    let bots = scenario.at("bots").unwrap();
    assert_eq!((bots.text(), bots.line), ("arena", 4));
}

/// What is generated from the settings and kept in the repository is what they generate.
#[track_caller]
fn check_committed(path: &std::path::Path, current: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, current).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(
        committed == current,
        "{path} is out of date; regenerate it with: UPDATE=1 cargo test -p stepladder-plan committed"
    );
}

#[test]
fn the_committed_schema_is_the_one_that_refuses() {
    let current = serde_json::to_string_pretty(&scenario_schema()).unwrap() + "\n";
    check_committed(&scenarios().join("scenario.schema.json"), &current);
}

#[test]
fn the_committed_reference_has_every_setting() {
    let mut page = "# Settings of a climb\n\nMade from their declarations. A flag on the command line overrides the key \
        of a scenario file.\n"
        .to_owned();
    for heading in crate::layers::headings() {
        page += &format!("\n## {heading}\n\n| flag | key | what it does | default |\n|---|---|---|---|\n");
        for setting in crate::layers::settings().filter(|setting| setting.heading == heading) {
            let flag = match (setting.flag, setting.value_name) {
                ("", _) => String::new(),
                (flag, "") => format!("`{flag}`"),
                (flag, value) => format!("`{flag} {value}`"),
            };
            let key = if setting.key.is_empty() { String::new() } else { format!("`{}`", setting.key) };
            let what = if setting.help.is_empty() { setting.about } else { setting.help };
            let of = match setting.bots {
                [] => String::new(),
                bots => format!(" ({})", bots.join(", ")),
            };
            let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
            let what = cell(what.trim_end_matches('.'));
            page +=
                &format!("| {} | {} | {what}{of} | {} |\n", cell(&flag), cell(&key), cell(setting.default));
        }
    }
    check_committed(&scenarios().join("../docs/reference/settings.md"), &page);
}

#[test]
fn every_worked_example_becomes_a_plan_and_keeps_to_the_schema() {
    let schema = jsonschema::validator_for(&scenario_schema()).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(scenarios()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !crate::is_scenario_file(&name) {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).unwrap();
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        let strays: Vec<String> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(strays.is_empty(), "{name}: {strays:?}");
        let flags = crate::Flags::climb(name.clone());
        let read = |path: &Path| fs::read_to_string(scenarios().join("..").join(path));
        let scenario = ScenarioText { path: name, text };
        if let Err(mistakes) = crate::resolve_with(&flags, Some(scenario), 1, &read) {
            panic!("{mistakes}");
        }
    }
    assert!(count >= 3, "there are worked examples");
}
