use std::collections::BTreeSet;

use super::*;
use crate::Flags;
use crate::layers::{OPTIONS, headings, settings};

#[test]
fn every_flag_and_every_key_is_declared_once_and_inside_a_mapping() {
    let (mut flags, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for setting in settings() {
        assert!(setting.flag.is_empty() || flags.insert(setting.flag), "{} is declared twice", setting.flag);
        assert!(setting.key.is_empty() || keys.insert(setting.key), "{} is declared twice", setting.key);
    }
    for setting in settings().filter(|setting| !setting.parent().is_empty()) {
        assert!(keys.contains(setting.parent()), "{} stands in no mapping", setting.key);
    }
}

#[test]
fn every_option_stands_in_a_group_of_the_help_with_a_sentence_and_an_example() {
    for setting in settings().filter(|setting| setting.is_option()) {
        assert!(headings().contains(&setting.heading), "{}", setting.flag);
        assert!(!setting.help.is_empty() && !setting.help.ends_with('.'), "{}", setting.flag);
        let is_switch = matches!(setting.kind, Kind::Switch | Kind::SwitchOff);
        assert_eq!(setting.value_name.is_empty(), is_switch, "{}", setting.flag);
        assert!(!setting.example.is_empty(), "{}", setting.flag);
    }
}

#[test]
fn every_key_has_a_sentence_and_an_example_of_its_shape() {
    for setting in settings().filter(|setting| !setting.key.is_empty()) {
        assert!(setting.about.ends_with('.'), "{}", setting.key);
        let text = format!("a: {}", setting.example_in_file);
        let (one, list, map) = setting.shape.takes();
        let value: serde_json::Value = serde_saphyr::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        let fits = match &value["a"] {
            serde_json::Value::Array(_) => list,
            serde_json::Value::Object(_) => map,
            _ => one,
        };
        assert!(fits, "{}: {}", setting.key, setting.example_in_file);
    }
}

#[test]
fn a_line_is_split_as_a_shell_would() {
    let flags = Flags::of(
        "arena  --name 'a \"b\"' --note \"\" --no-calibration --misbehave a=1 --misbehave b=2 -- --x 1",
    );
    let texts = |flag: &str| flags.all(settings().find(|setting| setting.flag == flag).unwrap());
    assert_eq!(flags.subject(), Some("arena"));
    assert_eq!(
        (texts("--name"), texts("--note")),
        (["a \"b\"".to_owned()].as_slice(), [String::new()].as_slice())
    );
    assert_eq!((texts("--no-calibration"), texts("--misbehave").len()), (["false".to_owned()].as_slice(), 2));
    assert_eq!(flags.all(&OPTIONS), ["--x", "1"]);
    assert!(texts("--echoes").is_empty());
}
